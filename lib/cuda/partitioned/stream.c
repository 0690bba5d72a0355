// SPDX-License-Identifier: MIT
// Streams of cuda/partitioned: input into the history, a launch whenever a tick is complete,
// outputs from the head and from what the device has written; it is waited for no earlier than
// that. What the device holds is mirrored on the host only while a state is saved or restored.
#include <string.h>

#include "kernels/kernels.h"
#include "partitioned.h"
#include "stream/outputs.h"
#include "stream/stream.h"

// Where a stream is. Where calls bring whole ticks, `tick` is counted on at the launch, before its
// outputs are played: the place is a tick beyond the frame asked for then, and `delay` includes
// that tick.
struct position {
    uint64_t tick; // complete ticks; the next launch is of this one
    size_t fill;   // frames of the tick that is being collected
    size_t set;    // which of the two sets of outputs belongs to the stream's own filter
};

struct cuda_partitioned_stream {
    struct position *position;
    struct history history;
    char *samples[2]; // outputs of one tick of one channel, by either filter
    struct cuda_queue queue;
    struct cuda_flow flow;
    void *device, *pinned; // all that `flow` points to
    size_t device_bytes;
    struct cuda_tick *tick; // these three are pinned
    char *x, *y;
    size_t y_bytes;
    char *mirror, *y_mirror; // of the device's memory and y, in the region
    struct region region;
};

static const struct cuda_cut *cut_of(const struct partita_stream *stream)
{
    return &((const struct cuda_partitioned *)stream->plan->state)->cut;
}

// Whether it went well; if not, the stream has failed for good. Its swaps are over then, and what
// the device still does may read a filter that the caller releases next: it is waited for.
static bool done(struct partita_stream *stream, enum partita_status status)
{
    struct cuda_queue *queue = &((struct cuda_partitioned_stream *)stream->state)->queue;
    if (status == PARTITA_OK) return true;
    if (queue->running) cuda_queue_wait(stream->plan, queue);
    atomic_store(&stream->status, (int)status);
    return false;
}

static void cut_device(const struct partita_plan *plan, struct cuda_flow *flow, struct arena *arena)
{
    const struct cuda_partitions *partitions =
        &((const struct cuda_partitioned *)plan->state)->cut.partitions;
    const struct shape *shape = &plan->shape;
    const size_t line = (size_t)partitions->window * shape->sample_bytes;
    flow->own_tick = arena_take(arena, sizeof *flow->own_tick);
    flow->samples = arena_take(arena, size_mul(shape->in_channels, line));
    for (int i = 0; i < partitions->n_levels; i++) {
        const struct cuda_level *level = &partitions->level[i];
        const size_t spectrum = (size_t)level->points * 2 * shape->scalar_bytes;
        const size_t block = (size_t)level->hop * shape->sample_bytes;
        flow->level[i].spectra =
            arena_take(arena, size_mul(shape->in_channels * (size_t)level->parts, spectrum));
        flow->level[i].sums = arena_take(arena, size_mul(2 * shape->out_channels, spectrum));
        flow->level[i].out = i ? arena_take(arena, size_mul(4 * shape->out_channels, block)) : NULL;
    }
}

static void cut_pinned(const struct partita_plan *plan, struct cuda_partitioned_stream *state,
                       struct arena *arena)
{
    const struct cuda_partitions *partitions =
        &((const struct cuda_partitioned *)plan->state)->cut.partitions;
    const size_t tick = (size_t)partitions->tick * plan->shape.sample_bytes;
    state->y_bytes = size_mul(2 * (size_t)partitions->rounds * plan->shape.out_channels, tick);
    state->tick = arena_take(arena, sizeof *state->tick);
    state->x = arena_take(arena, size_mul(plan->shape.in_channels, tick));
    state->y = arena_take(arena, state->y_bytes);
}

// The history reaches back as far as the head and the delay of what is heard.
static size_t history_frames(const struct cuda_cut *cut)
{
    const size_t tick = (size_t)cut->partitions.tick;
    const size_t frames = cut->head + cut->latency + tick;
    return (frames + tick - 1) / tick * tick;
}

static struct cuda_partitioned_stream *cut_stream(const struct partita_plan *plan,
                                                  struct arena *arena)
{
    const struct cuda_cut *cut = &((const struct cuda_partitioned *)plan->state)->cut;
    struct cuda_partitioned_stream fresh = {0}, *state = arena_take(arena, sizeof *state);
    const size_t tick = (size_t)cut->partitions.tick * plan->shape.sample_bytes;
    struct arena device = {0}, pinned = {0};
    cut_device(plan, &fresh.flow, &device);
    cut_pinned(plan, &fresh, &pinned);
    for (int i = 0; i < 2; i++) fresh.samples[i] = arena_take(arena, tick);
    const size_t begin = arena->used;
    fresh.region.data = fresh.position = arena_take(arena, sizeof *fresh.position);
    fresh.history = (struct history){.frames = history_frames(cut), .delay = cut->latency};
    history_layout(&fresh.history, &plan->shape, arena);
    fresh.device_bytes = device.used;
    fresh.mirror = arena_take(arena, device.used);
    fresh.y_mirror = arena_take(arena, fresh.y_bytes);
    fresh.region.bytes = arena->used - begin;
    if (state) *state = fresh;
    return state;
}

// Silence from the begin on.
static enum partita_status clear(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = stream->state;
    memset(state->region.data, 0, (size_t)(state->mirror - (char *)state->region.data));
    memset(state->y, 0, state->y_bytes);
    state->queue.running = true;
    return CU(stream->plan,
              cudaMemsetAsync(state->device, 0, state->device_bytes, state->queue.stream));
}

static enum partita_status load(const struct partita_plan *plan)
{
    const struct cuda_partitions *partitions =
        &((const struct cuda_partitioned *)plan->state)->cut.partitions;
    const enum partita_status status = CU(plan, cuda_load_transforms(partitions));
    return status == PARTITA_OK ? CU(plan, cuda_load_partition_products(partitions)) : status;
}

static enum partita_status record(const void *context)
{
    const struct partita_stream *stream = context;
    const struct cuda_partitioned_stream *state = stream->state;
    const struct cuda_partitions *partitions = &cut_of(stream)->partitions;
    const struct cuda_flow *flow = &state->flow;
    enum partita_status status =
        CU(stream->plan, cuda_launch_forward(partitions, flow, state->queue.stream));
    if (status == PARTITA_OK)
        status =
            CU(stream->plan, cuda_launch_partition_products(partitions, flow, state->queue.stream));
    if (status == PARTITA_OK)
        status = CU(stream->plan, cuda_launch_inverse(partitions, flow, state->queue.stream));
    return status;
}

// The memory that is not in the arena.
static enum partita_status allocate(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct cuda_partitioned_stream *state = stream->state;
    struct arena pinned = {0};
    cut_pinned(plan, state, &pinned);
    enum partita_status status = cuda_pin(plan, pinned.used, &state->pinned);
    if (status == PARTITA_OK) status = cuda_allocate(plan, state->device_bytes, &state->device);
    if (status == PARTITA_OK) status = cuda_wait(plan); // it comes from another queue
    if (status != PARTITA_OK) return status;
    pinned = (struct arena){.base = state->pinned};
    cut_pinned(plan, state, &pinned);
    struct arena device = {.base = state->device};
    cut_device(plan, &state->flow, &device);
    state->flow.tick = state->tick;
    state->flow.x = state->x;
    state->flow.y = state->y;
    return PARTITA_OK;
}

enum partita_status cuda_partitioned_open(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct arena arena = {0};
    cut_stream(plan, &arena);
    arena.base = mem_reserve(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    struct cuda_partitioned_stream *state = stream->state = cut_stream(plan, &arena);
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_queue_open(plan, &state->queue);
    if (status == PARTITA_OK) status = allocate(stream);
    if (status == PARTITA_OK) status = clear(stream);
    if (status == PARTITA_OK) status = load(plan);
    if (status == PARTITA_OK) status = cuda_queue_record(plan, &state->queue, record, stream);
    if (status == PARTITA_OK) status = cuda_queue_wait(plan, &state->queue);
    return status;
}

void cuda_partitioned_close(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = stream->state;
    if (!state) return;
    CU(stream->plan, cudaSetDevice(cuda_device_of(stream->plan)->index));
    cuda_queue_close(stream->plan, &state->queue);
    cuda_release(stream->plan, state->device);
    cuda_unpin(stream->plan, state->pinned);
}

void cuda_partitioned_reset(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = stream->state;
    if (atomic_load(&stream->status) == PARTITA_OK && done(stream, cuda_enter(stream->plan)) &&
        done(stream, cuda_queue_wait(stream->plan, &state->queue)))
        done(stream, clear(stream));
}

struct region cuda_partitioned_region(struct partita_stream *stream)
{
    return ((const struct cuda_partitioned_stream *)stream->state)->region;
}

static void move(struct partita_stream *stream, void *to, const void *from)
{
    struct cuda_partitioned_stream *state = stream->state;
    const struct partita_plan *plan = stream->plan;
    if (atomic_load(&stream->status) == PARTITA_OK && done(stream, cuda_enter(plan)) &&
        done(stream, CU(plan, cudaMemcpyAsync(to, from, state->device_bytes, cudaMemcpyDefault,
                                              state->queue.stream))))
        done(stream, cuda_queue_wait(plan, &state->queue));
}

void cuda_partitioned_pause(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = stream->state;
    move(stream, state->mirror, state->device);
    memcpy(state->y_mirror, state->y, state->y_bytes);
}

void cuda_partitioned_resume(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = stream->state;
    memcpy(state->y, state->y_mirror, state->y_bytes);
    move(stream, state->device, state->mirror);
}

static uint64_t now(const struct partita_stream *stream)
{
    const struct position *position =
        ((const struct cuda_partitioned_stream *)stream->state)->position;
    return position->tick * (size_t)cut_of(stream)->partitions.tick + position->fill;
}

// Whether outputs are made with two filters from the next launch on.
static bool hears_both(const struct partita_stream *stream)
{
    return stream->swap.state == SWAP_WAITING || stream->swap.state == SWAP_FADING;
}

// Hands the tick whose frames are complete over to the device.
static bool launch(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    struct cuda_partitioned_stream *state = stream->state;
    const struct position *position = state->position;
    const struct cuda_partitions *partitions = &cut_of(stream)->partitions;
    const size_t tick = (size_t)partitions->tick, bytes = tick * shape->sample_bytes;
    const size_t at = position->tick * tick % state->history.frames;
    if (!done(stream, cuda_enter(plan))) return false;
    // The one before may still read what is written here.
    if (state->queue.running && !done(stream, cuda_queue_wait(plan, &state->queue))) return false;
    const struct cuda_partitioned_filter *own = stream->filter->state,
                                         *incoming = hears_both(stream)
                                                         ? stream->swap.incoming->state
                                                         : NULL;
    state->tick->tick = position->tick;
    state->tick->round = (int)(position->tick % (uint64_t)partitions->rounds);
    for (int i = 0; i < partitions->n_levels; i++) {
        const uint64_t parts = (uint64_t)partitions->level[i].parts,
                       ticks = (uint64_t)partitions->level[i].ticks;
        state->tick->newest[i] = (int)(((position->tick + 1) / ticks + parts - 1) % parts);
    }
    state->tick->filter[position->set] = own->device;
    state->tick->filter[1 - position->set] =
        incoming ? incoming->device : (struct cuda_cells){.first_cell = NULL};
    for (size_t c = 0; c < shape->in_channels; c++)
        memcpy(state->x + c * bytes, history_at(&state->history, shape, c, at), bytes);
    return done(stream, cuda_queue_launch(plan, &state->queue));
}

// Waits for the device if it has not finished what the n next outputs are made of.
static bool wait_for_outputs(struct partita_stream *stream, size_t n)
{
    struct cuda_partitioned_stream *state = stream->state;
    const struct cuda_cut *cut = cut_of(stream);
    const uint64_t launched = state->tick->tick * (size_t)cut->partitions.tick;
    if (!state->queue.running || now(stream) + n <= launched + cut->delay) return true;
    return done(stream, cuda_enter(stream->plan)) &&
           done(stream, cuda_queue_wait(stream->plan, &state->queue));
}

// The head's part of the next n outputs.
static void sum_head(const struct partita_stream *stream, const struct partita_filter *filter,
                     size_t channel, char *y, size_t n)
{
    const struct cuda_partitioned_stream *state = stream->state;
    const struct cuda_partitioned_filter *cells = filter->state;
    memset(y, 0, n * stream->plan->shape.sample_bytes);
    for (size_t c = cells->first_cell[channel]; c < cells->first_cell[channel + 1]; c++) {
        const struct history_taps head = {(size_t)cells->cells[c].in, cells->heads[c],
                                          cells->head_taps[c]};
        if (head.n) history_filter(&state->history, stream->plan, now(stream), &head, y, n);
    }
}

// Adds what the device has written, a tick's worth at a time.
static void add_device(const struct partita_stream *stream, size_t set, size_t channel, char *y,
                       size_t n)
{
    const struct cuda_partitioned_stream *state = stream->state;
    const struct cuda_cut *cut = cut_of(stream);
    const struct shape *shape = &stream->plan->shape;
    const size_t tick = (size_t)cut->partitions.tick, bytes = shape->sample_bytes;
    size_t i = now(stream) < cut->delay ? (size_t)(cut->delay - now(stream)) : 0;
    for (size_t count; i < n; i += count) {
        const uint64_t at = now(stream) + i - cut->delay;
        const size_t offset = at % tick, round = at / tick % (size_t)cut->partitions.rounds;
        count = tick - offset < n - i ? tick - offset : n - i;
        const size_t line = (round * 2 + set) * shape->out_channels + channel;
        stream->plan->kernels->add(y + i * bytes, state->y + (line * tick + offset) * bytes,
                                   count * (shape->complex_signal ? 2 : 1));
    }
}

static void compute(const struct partita_stream *stream, const struct partita_filter *filter,
                    size_t set, size_t channel, char *y, size_t n)
{
    sum_head(stream, filter, channel, y, n);
    add_device(stream, set, channel, y, n);
}

static size_t emit(const struct partita_stream *stream, const struct frames *frames, size_t n)
{
    const struct cuda_partitioned_stream *state = stream->state;
    const struct outputs outputs = {.history = &state->history,
                                    .now = now(stream),
                                    .set = state->position->set,
                                    .samples = state->samples,
                                    .compute = compute,
                                    .paths = cuda_partitioned_cells};
    return outputs_emit(stream, &outputs, frames, n);
}

struct step cuda_partitioned_step(struct partita_stream *stream, const struct frames *frames)
{
    static const struct step nothing;
    const struct cuda_cut *cut = cut_of(stream);
    struct cuda_partitioned_stream *state = stream->state;
    struct position *position = state->position;
    const size_t tick = (size_t)cut->partitions.tick, room = tick - position->fill;
    const size_t n = frames->n < room ? frames->n : room;
    if (cut->whole &&
        position->fill == 0) { // all of the tick is there, even where a swap cuts this step short
        history_take(&state->history, stream->plan, now(stream), frames, tick);
        if (!launch(stream)) return nothing;
        position->tick++;
    } else if (!cut->whole) {
        history_take(&state->history, stream->plan, now(stream), frames, n);
        if (n == room && !launch(stream)) return nothing;
    }
    if (!wait_for_outputs(stream, n)) return nothing;
    const size_t written = emit(stream, frames, n);
    history_advance(&state->history, &stream->plan->shape, now(stream), n);
    position->fill = (position->fill + n) % tick;
    if (!cut->whole && position->fill == 0) position->tick++;
    return (struct step){n, written};
}

// Both filters' outputs are there when every level plays a block that was multiplied with both from
// its first share on.
size_t cuda_partitioned_swap_begin(struct partita_stream *stream)
{
    const struct cuda_cut *cut = cut_of(stream);
    const struct cuda_partitioned_stream *state = stream->state;
    const struct position *position = state->position;
    const uint64_t tick = position->tick;
    // Between whole ticks the next one's outputs are those of a tick ahead.
    const size_t ahead = cut->whole && position->fill == 0 ? (size_t)cut->partitions.tick : 0;
    uint64_t last = 0;
    for (int i = 0; i < cut->partitions.n_levels; i++) {
        const struct cuda_level *level = &cut->partitions.level[i];
        const uint64_t ticks = (uint64_t)level->ticks, block = (tick + ticks) / ticks - 1;
        const uint64_t played = block * ticks + (uint64_t)level->start;
        if (played > last) last = played;
    }
    return (size_t)(last * (size_t)cut->partitions.tick + cut->delay - now(stream) - ahead);
}

// The device may still be at work with the old filter until the next launch.
size_t cuda_partitioned_swap_end(struct partita_stream *stream)
{
    const struct cuda_cut *cut = cut_of(stream);
    const struct cuda_partitioned_stream *state = stream->state;
    struct position *position = state->position;
    const size_t tick = (size_t)cut->partitions.tick;
    position->set = 1 - position->set;
    if (!state->queue.running) return 0;
    return cut->whole ? (tick - position->fill) % tick + 1 : tick - position->fill;
}
