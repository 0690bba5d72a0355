// SPDX-License-Identifier: MIT
// Streams of cuda/partitioned: input into the history, a launch whenever a quantum is complete,
// outputs from the head and from what the device has written, which is waited for no earlier. A
// saved state is the stream's host memory, the device's, and y.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "partitioned.h"

bool cuda_partitioned_succeeds(struct partita_stream *stream, enum partita_status status)
{
    struct cuda_queue *queue = &cuda_stream_of(stream)->queue;
    if (status == PARTITA_OK) return true;
    if (queue->running) cuda_queue_wait(stream->plan, queue);
    const bool memory = status == PARTITA_ERR_NOMEM;
    atomic_store(&stream->status, (int)(memory ? status : PARTITA_ERR_DEVICE));
    return false;
}

void cuda_partition_layout_memory(const struct partita_plan *plan,
                                  const struct cuda_partition_layout *layout,
                                  struct cuda_partition_memory *memory, struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const size_t inputs = (size_t)layout->inputs, outputs = (size_t)layout->outputs;
    const size_t window = (size_t)layout->window * shape->sample_bytes;
    memory->samples = arena_take(arena, size_mul(inputs, window));
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const size_t spectrum = (size_t)segment->points * 2 * shape->scalar_bytes;
        const size_t block = (size_t)segment->hop * shape->sample_bytes;
        memory->segment[i].spectra =
            arena_take(arena, size_mul(inputs * (size_t)segment->partitions, spectrum));
        memory->segment[i].sums = arena_take(arena, size_mul(2 * outputs, spectrum));
        memory->segment[i].out = i ? arena_take(arena, size_mul(4 * outputs, block)) : NULL;
    }
}

// All memory of the device.
static void layout_all_device(const struct partita_plan *plan,
                              struct cuda_partitioned_stream *state, struct arena *arena)
{
    const struct cuda_partition_layout *layout = &cuda_partitioned_of(plan)->layout;
    cuda_partition_layout_memory(plan, layout, &state->memory, arena);
    cuda_queued_layout_memory(plan, layout, &state->memory, &state->queued, arena);
}

// Returns the bytes of y.
static size_t layout_stream_pinned(const struct partita_plan *plan,
                                   struct cuda_partition_memory *memory, unsigned **ret_settled,
                                   struct arena *arena)
{
    const struct cuda_partition_layout *layout = &cuda_partitioned_of(plan)->layout;
    const size_t quantum = (size_t)layout->quantum * plan->shape.sample_bytes;
    const size_t rows = size_mul(2 * (size_t)layout->ring_quanta, plan->shape.out_channels);
    arena_take(arena, sizeof(struct cuda_stream_memory));
    *ret_settled = arena_take(arena, sizeof **ret_settled);
    memory->x = arena_take(arena, size_mul(plan->shape.in_channels, quantum));
    memory->x_frames = memory->frames = layout->quantum;
    memory->y = arena_take(arena, size_mul(rows, quantum));
    return size_mul(rows, quantum);
}

static struct cuda_partitioned_stream *layout_cuda_stream(const struct partita_plan *plan,
                                                          struct arena *arena)
{
    const struct cuda_partitioned_choice *choice = &cuda_partitioned_of(plan)->choice;
    struct cuda_partitioned_stream fresh = {0}, *state = arena_take(arena, sizeof *state);
    const size_t quantum = choice->quantum * plan->shape.sample_bytes;
    struct arena device = {0}, pinned = {0};
    layout_all_device(plan, &fresh, &device);
    fresh.y_bytes = layout_stream_pinned(plan, &fresh.memory, &fresh.queued.settled, &pinned);
    for (int i = 0; i < 2; i++) fresh.samples[i] = arena_take(arena, quantum);
    const size_t begin = arena->used;
    fresh.position = arena_take(arena, sizeof *fresh.position);
    fresh.history =
        (struct history){.frames = cuda_partitioned_history(choice), .delay = choice->latency};
    history_layout(&fresh.history, &plan->shape, arena);
    fresh.host_bytes = arena->used - begin;
    fresh.device_bytes = device.used;
    fresh.pinned_bytes = pinned.used;
    if (state) *state = fresh;
    return state;
}

// Silence from the begin on.
static enum partita_status clear_cuda_stream(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    memset(state->position, 0, state->host_bytes);
    memset(state->memory.y, 0, state->y_bytes);
    state->queue.running = true;
    const enum partita_status status = CU(
        stream->plan, cudaMemsetAsync(state->device, 0, state->device_bytes, state->queue.stream));
    return status == PARTITA_OK ? cuda_queued_begin(stream, false) : status;
}

// The filter that outputs are made with as well from the next launch on; NULL: none.
static const struct cuda_partitioned_filter *incoming_filter(const struct partita_stream *stream)
{
    const struct swap *swap = &stream->swap;
    const bool both = swap->state == SWAP_WAITING || swap->state == SWAP_FADING;
    return both ? swap->incoming->state : NULL;
}

// Groups whose block is complete in quantum number - 1.
static int groups_due(const struct cuda_partition_layout *layout, int i, uint64_t number)
{
    const int quanta = layout->segment[i].quanta, first = (int)(-number & (uint64_t)(quanta - 1));
    return first < layout->groups ? (layout->groups - first - 1) / quanta + 1 : 0;
}

// What the kernels of the stream's quantum have to do.
static void fill_launch(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct cuda_partition_layout *layout = layout_of_stream(stream);
    const struct cuda_partitioned_filter *own = stream->filter->state;
    const struct cuda_partitioned_filter *incoming = incoming_filter(stream);
    const struct position *position = state->position;
    struct cuda_partition_launch launch = {
        .quantum = {.number = position->quantum,
                    .ring_index = (int)(position->quantum % (uint64_t)layout->ring_quanta)},
        .first_set = incoming ? 0 : (int)position->set,
        .sets = incoming ? 2 : 1,
    };
    for (int i = 0; i < layout->n_segments; i++) {
        const uint64_t partitions = (uint64_t)layout->segment[i].partitions;
        const uint64_t blocks = (position->quantum + 1) / (uint64_t)layout->segment[i].quanta;
        launch.quantum.newest[i] = (int)((blocks + partitions - 1) % partitions);
        launch.collected[i] = groups_due(layout, i, position->quantum + 1);
        launch.finished[i] = groups_due(layout, i, position->quantum + 2);
    }
    assert(position->set < 2);
    launch.quantum.filter[position->set] = own->device;
    if (incoming) launch.quantum.filter[1 - position->set] = incoming->device;
    state->launch = launch;
}

// Makes the graph's nodes, or changes their parameters.
static enum partita_status issue_graph(struct partita_stream *stream, cudaGraph_t graph)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct cuda_partition_target target = {
        .graph = graph, .exec = state->queue.exec, .nodes = state->queue.nodes};
    return CU(stream->plan, cuda_partitioned_launch(layout_of_stream(stream), &state->memory,
                                                    &state->launch, &target));
}

static enum partita_status make_graph(void *context, cudaGraph_t graph)
{
    return issue_graph(context, graph);
}

static void release_stream_memory(const struct partita_plan *plan, struct cuda_stream_memory memory)
{
    cuda_queue_close(plan, &memory.queue);
    cuda_release(plan, memory.device);
    cuda_unpin(plan, memory.pinned);
}

static enum partita_status make_stream_memory(const struct partita_plan *plan,
                                              struct cuda_stream_memory **ret_memory)
{
    struct cuda_partitioned_stream counted = {0};
    struct cuda_stream_memory memory = {0};
    struct arena device = {0}, pinned = {0};
    layout_all_device(plan, &counted, &device);
    layout_stream_pinned(plan, &counted.memory, &counted.queued.settled, &pinned);
    enum partita_status status = cuda_queue_open(plan, &memory.queue);
    if (status == PARTITA_OK) status = cuda_pin(plan, pinned.used, &memory.pinned);
    if (status == PARTITA_OK) status = cuda_allocate(plan, device.used, &memory.device);
    if (status == PARTITA_OK) status = cuda_wait(plan); // it comes from another queue
    if (status != PARTITA_OK) {
        release_stream_memory(plan, memory);
        return status;
    }
    *ret_memory = memory.pinned;
    **ret_memory = memory;
    return PARTITA_OK;
}

static void keep_stream_memory(const struct partita_plan *plan, struct cuda_stream_memory *memory)
{
    struct cuda_partitioned *partitioned = plan->state;
    pthread_mutex_lock(&partitioned->lock);
    memory->next = partitioned->idle;
    partitioned->idle = memory;
    pthread_mutex_unlock(&partitioned->lock);
}

static struct cuda_stream_memory *take_idle_memory(const struct partita_plan *plan)
{
    struct cuda_partitioned *partitioned = plan->state;
    pthread_mutex_lock(&partitioned->lock);
    struct cuda_stream_memory *memory = partitioned->idle;
    if (memory) partitioned->idle = memory->next;
    pthread_mutex_unlock(&partitioned->lock);
    return memory;
}

enum partita_status cuda_stream_memory_begin(const struct partita_plan *plan)
{
    struct cuda_stream_memory *memory;
    const enum partita_status status = make_stream_memory(plan, &memory);
    if (status == PARTITA_OK) keep_stream_memory(plan, memory);
    return status;
}

void cuda_stream_memory_end(const struct partita_plan *plan)
{
    struct cuda_stream_memory *memory;
    while ((memory = take_idle_memory(plan)) != NULL) release_stream_memory(plan, *memory);
}

// The memory that is not in the arena.
static enum partita_status allocate_stream_memory(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    state->kept = take_idle_memory(plan);
    const enum partita_status status =
        state->kept ? PARTITA_OK : make_stream_memory(plan, &state->kept);
    if (status != PARTITA_OK) return status;
    state->queue = state->kept->queue;
    state->device = state->kept->device;
    state->pinned = state->kept->pinned;
    struct arena pinned = {.base = state->pinned}, device = {.base = state->device};
    layout_stream_pinned(plan, &state->memory, &state->queued.settled, &pinned);
    layout_all_device(plan, state, &device);
    *state->queued.settled = 0;
    stream->swap_queue.settled = (atomic_uint *)state->queued.settled;
    assert(pinned.used == state->pinned_bytes && device.used == state->device_bytes);
    return PARTITA_OK;
}

enum partita_status cuda_partitioned_open(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct arena arena = {0};
    layout_cuda_stream(plan, &arena);
    if (!arena_reserve(&arena, &stream->allocator)) return PARTITA_ERR_NOMEM;
    struct cuda_partitioned_stream *state = stream->state = layout_cuda_stream(plan, &arena);
    assert(arena.used == arena.size);
    enum partita_status status = allocate_stream_memory(stream);
    if (status == PARTITA_OK) status = clear_cuda_stream(stream);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_partitioned_load_kernels(layout_of_stream(stream)));
    if (status == PARTITA_OK) status = cuda_queued_load(plan);
    if (status == PARTITA_OK) fill_launch(stream);
    if (status == PARTITA_OK && !state->queue.exec)
        status = cuda_queue_make(plan, &state->queue, make_graph, stream);
    if (status == PARTITA_OK) status = cuda_queue_wait(plan, &state->queue);
    return status;
}

void cuda_partitioned_close(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    if (!state || !state->kept) return;
    state->kept->queue = state->queue;
    const bool whole = state->queue.exec || !state->queue.graph;
    if (whole && cuda_queue_wait(stream->plan, &state->kept->queue) == PARTITA_OK)
        keep_stream_memory(stream->plan, state->kept);
    else release_stream_memory(stream->plan, *state->kept);
}

// Waits, so that a queue of the caller's may go on with the stream.
void cuda_partitioned_reset(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct partita_filter *incoming =
        state->pending ? state->pending->filter : stream->swap.incoming;
    state->pending = NULL;
    if (incoming) stream->filter = incoming;
    if (atomic_load(&stream->status) == PARTITA_OK &&
        cuda_partitioned_succeeds(stream, cuda_device_status(stream->plan)) &&
        cuda_partitioned_succeeds(stream, cuda_queue_wait(stream->plan, &state->queue)) &&
        cuda_partitioned_succeeds(stream, clear_cuda_stream(stream)))
        cuda_partitioned_succeeds(stream, cuda_queue_wait(stream->plan, &state->queue));
}

struct region cuda_partitioned_region(struct partita_stream *stream)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    return (struct region){
        .bytes = size_add(size_add(state->host_bytes, state->device_bytes), state->y_bytes)};
}

static void copy_device_state(struct partita_stream *stream, void *to, const void *from)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct partita_plan *plan = stream->plan;
    if (atomic_load(&stream->status) == PARTITA_OK &&
        cuda_partitioned_succeeds(stream, cuda_device_status(plan)) &&
        cuda_partitioned_succeeds(
            stream, CU(plan, cudaMemcpyAsync(to, from, state->device_bytes, cudaMemcpyDefault,
                                             state->queue.stream))))
        cuda_partitioned_succeeds(stream, cuda_queue_wait(plan, &state->queue));
}

void cuda_partitioned_copy_out(struct partita_stream *stream, void *to)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    char *device = (char *)to + state->host_bytes;
    memcpy(to, state->position, state->host_bytes);
    copy_device_state(stream, device, state->device);
    memcpy(device + state->device_bytes, state->memory.y, state->y_bytes);
}

void cuda_partitioned_copy_in(struct partita_stream *stream, const void *from)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const char *device = (const char *)from + state->host_bytes;
    // What is still queued writes to all that is replaced.
    if (!cuda_partitioned_succeeds(stream, cuda_queue_wait(stream->plan, &state->queue))) return;
    memcpy(state->position, from, state->host_bytes);
    memcpy(state->memory.y, device + state->device_bytes, state->y_bytes);
    copy_device_state(stream, state->device, device);
    // The position has addresses of the filter of the stream that was saved.
    if (stream->arrays == STREAM_HOST_ARRAYS || atomic_load(&stream->status) != PARTITA_OK) return;
    state->queue.running = true;
    if (cuda_partitioned_succeeds(stream, cuda_queued_begin(stream, true)))
        cuda_partitioned_succeeds(stream, cuda_queue_wait(stream->plan, &state->queue));
}

static uint64_t stream_frame(const struct partita_stream *stream)
{
    return position_frame(cuda_stream_of(stream)->position, choice_of_stream(stream)->quantum);
}

static bool launch_entered(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct position *position = state->position;
    const size_t frames = choice_of_stream(stream)->quantum, bytes = frames * shape->sample_bytes;
    const size_t at = position->quantum * frames % state->history.frames;
    assert(at + frames <= state->history.frames);
    // The one before may still read what is written here.
    if (state->queue.running &&
        !cuda_partitioned_succeeds(stream, cuda_queue_wait(plan, &state->queue)))
        return false;
    fill_launch(stream);
    for (size_t c = 0; c < shape->in_channels; c++)
        memcpy((char *)state->memory.x + c * bytes, history_at(&state->history, shape, c, at),
               bytes);
    return cuda_partitioned_succeeds(stream, issue_graph(stream, NULL)) &&
           cuda_partitioned_succeeds(stream, cuda_queue_launch(plan, &state->queue));
}

// Hands the quantum whose frames are complete over to the device.
static bool launch_quantum(struct partita_stream *stream)
{
    struct cuda_scope scope;
    const bool launched = cuda_partitioned_succeeds(stream, cuda_enter(stream->plan, &scope)) &&
                          launch_entered(stream);
    cuda_leave(&scope);
    return launched;
}

// Waits for the device if it has not finished what the n next outputs are made of.
static bool wait_for_outputs(struct partita_stream *stream, size_t n)
{
    struct cuda_queue *queue = &cuda_stream_of(stream)->queue;
    const struct cuda_partitioned_choice *choice = choice_of_stream(stream);
    const uint64_t launched = cuda_stream_of(stream)->launch.quantum.number * choice->quantum;
    if (!queue->running || stream_frame(stream) + n <= launched + cuda_partitioned_delay(choice))
        return true;
    struct cuda_scope scope;
    const bool waited = cuda_partitioned_succeeds(stream, cuda_enter(stream->plan, &scope)) &&
                        cuda_partitioned_succeeds(stream, cuda_queue_wait(stream->plan, queue));
    cuda_leave(&scope);
    return waited;
}

// Copies what the device has written, a quantum's worth at a time.
static void copy_device_outputs(const struct partita_stream *stream, size_t set, size_t channel,
                                char *y, size_t n)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct cuda_partitioned_choice *choice = choice_of_stream(stream);
    const struct shape *shape = &stream->plan->shape;
    const size_t quantum = choice->quantum, delay = cuda_partitioned_delay(choice);
    const size_t ring = (size_t)layout_of_stream(stream)->ring_quanta, bytes = shape->sample_bytes;
    const uint64_t now = stream_frame(stream);
    size_t i = now < delay ? (size_t)(delay - now) : 0;
    assert(set < 2 && channel < shape->out_channels);
    memset(y, 0, size_min(i, n) * bytes);
    for (size_t count; i < n; i += count) {
        const uint64_t at = now + i - delay;
        const size_t offset = at % quantum, index = at / quantum % ring;
        const size_t row = (index * 2 + set) * shape->out_channels + channel;
        count = size_min(quantum - offset, n - i);
        assert(((row * quantum + offset) + count) * bytes <= state->y_bytes);
        const char *ready = (const char *)state->memory.y + (row * quantum + offset) * bytes;
        memcpy(y + i * bytes, ready, count * bytes);
    }
}

static size_t emit_device_outputs(const struct partita_stream *stream, const struct frames *frames,
                                  size_t n)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct outputs outputs = {.history = &state->history,
                                    .now = stream_frame(stream),
                                    .set = state->position->set,
                                    .samples = state->samples,
                                    .begin = copy_device_outputs,
                                    .paths = cuda_partitioned_paths};
    return outputs_emit(stream, &outputs, frames, n);
}

struct step cuda_partitioned_step(struct partita_stream *stream, const struct frames *frames)
{
    static const struct step nothing;
    const struct cuda_partitioned_choice *choice = choice_of_stream(stream);
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    struct position *position = state->position;
    const size_t quantum = choice->quantum, n = size_min(frames->n, quantum - position->fill);
    // With whole blocks all frames of a quantum are there with its first one, even if a swap makes
    // this step shorter.
    const bool take = !choice->whole || position->fill == 0;
    const size_t taken = choice->whole ? quantum : n;
    assert(position->fill < quantum);
    if (take) history_take(&state->history, stream->plan, stream_frame(stream), frames, taken);
    if (take && position->fill + taken == quantum && !launch_quantum(stream)) return nothing;
    if (take && choice->whole) position->quantum++;
    if (!wait_for_outputs(stream, n)) return nothing;
    const size_t written = emit_device_outputs(stream, frames, n);
    position->fill = (position->fill + n) % quantum;
    if (!choice->whole && position->fill == 0) position->quantum++;
    return (struct step){n, written};
}

// The last quantum in which a block of a group begins that is not complete before quantum `now`.
static uint64_t cuda_partitioned_block(const struct cuda_partition_layout *layout, int i,
                                       uint64_t now)
{
    const int quanta = layout->segment[i].quanta, old = (int)(now & (uint64_t)(quanta - 1));
    return old && quanta - old < layout->groups ? now : now - (uint64_t)old;
}

// The fade begins when the current block of every segment has been multiplied with both filters in
// all of its bin ranges.
size_t cuda_partitioned_swap_begin(struct partita_stream *stream)
{
    const struct cuda_partitioned_choice *choice = choice_of_stream(stream);
    const struct cuda_partition_layout *layout = layout_of_stream(stream);
    const struct position *position = cuda_stream_of(stream)->position;
    // Between whole quanta the next one's outputs are those of a quantum ahead.
    const size_t ahead = choice->whole && position->fill == 0 ? choice->quantum : 0;
    uint64_t last = 0;
    for (int i = 0; i < layout->n_segments; i++) {
        const struct cuda_segment *segment = &layout->segment[i];
        const uint64_t played =
            cuda_partitioned_block(layout, i, position->quantum) + (uint64_t)segment->start;
        if (played > last) last = played;
    }
    const uint64_t frame = last * choice->quantum + cuda_partitioned_delay(choice);
    assert(frame >= stream_frame(stream) + ahead);
    return (size_t)(frame - stream_frame(stream) - ahead);
}

// The device may still be at work with the old filter until the next launch.
size_t cuda_partitioned_swap_end(struct partita_stream *stream)
{
    const struct cuda_partitioned_choice *choice = choice_of_stream(stream);
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    struct position *position = state->position;
    const size_t left = choice->quantum - position->fill;
    position->set = 1 - position->set;
    if (!state->queue.running) return 0;
    return choice->whole ? left % choice->quantum + 1 : left;
}
