// SPDX-License-Identifier: MIT
// Streams of cuda/partitioned: their memory and states. All state is on the device; the host knows
// neither the position nor the swap in progress.
#include "base/sizes.h"
#include "partitioned.h"

static void layout_pinned(const struct partita_plan *plan, struct cuda_partitioned_stream *state,
                          struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const size_t quantum = cuda_partitioned_of(plan)->split.quantum * shape->sample_bytes;
    arena_take(arena, sizeof *state->held);
    state->memory.settled = arena_take(arena, sizeof *state->memory.settled);
    state->step = arena_take(arena, sizeof *state->step);
    state->x = arena_take(arena, size_mul(shape->in_channels, quantum));
    state->y = arena_take(arena, size_mul(shape->out_channels, quantum));
}

static enum partita_status make_stream_memory(const struct partita_plan *plan,
                                              struct cuda_stream_memory **ret_memory)
{
    struct cuda_partitioned_stream counted = {0};
    struct cuda_stream_memory memory;
    struct arena device = {0}, pinned = {0};
    cuda_memory_layout(plan, &cuda_partitioned_of(plan)->layout, &counted.memory, &device);
    layout_pinned(plan, &counted, &pinned);
    const enum partita_status status = cuda_memory_open(plan, device.used, pinned.used, &memory);
    if (status != PARTITA_OK) return status;
    *ret_memory = memory.pinned;
    **ret_memory = memory;
    return PARTITA_OK;
}

enum partita_status cuda_partitioned_prepare(const struct partita_plan *plan)
{
    struct cuda_stream_memory *memory;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = make_stream_memory(plan, &memory);
    if (status == PARTITA_OK) cuda_memory_keep(plan, memory);
    cuda_leave(&scope);
    return status;
}

static enum partita_status take_stream_memory(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    state->held = cuda_memory_take_idle(plan);
    const enum partita_status status =
        state->held ? PARTITA_OK : make_stream_memory(plan, &state->held);
    if (status != PARTITA_OK) return status;
    struct arena pinned = {.base = state->held->pinned}, device = {.base = state->held->device};
    layout_pinned(plan, state, &pinned);
    cuda_memory_layout(plan, &cuda_partitioned_of(plan)->layout, &state->memory, &device);
    state->device_bytes = device.used;
    *state->memory.settled = 0;
    stream->swap_queue.settled = (atomic_uint *)state->memory.settled;
    return PARTITA_OK;
}

// The stream's filter at its position, or with `keep` false at the start. This and the following
// are queued on the stream's queue.
static enum partita_status start_stream(struct partita_stream *stream, bool keep)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct cuda_partitioned_filter *filter = stream->filter->state;
    const struct cuda_partition_layout *layout = &cuda_partitioned_of(stream->plan)->layout;
    const struct cuda_swap swap = {.filter = filter->device};
    return CU(stream->plan, cuda_position_change(layout, &state->memory,
                                                 keep ? CUDA_REPLACE : CUDA_START, &swap));
}

// Silence from the start on.
static enum partita_status clear_stream(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    state->held->queue.running = true;
    cuda_queue_use(&state->held->queue);
    const enum partita_status status =
        CU(stream->plan,
           cudaMemsetAsync(state->held->device, 0, state->device_bytes, cuda_thread()->stream));
    return status == PARTITA_OK ? start_stream(stream, false) : status;
}

void *cuda_partitioned_state_layout(const struct partita_stream *stream, struct arena *arena)
{
    (void)stream;
    return arena_take(arena, sizeof(struct cuda_partitioned_stream));
}

enum partita_status cuda_partitioned_open(struct partita_stream *stream)
{
    const struct partita_plan *plan = stream->plan;
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = take_stream_memory(stream);
    if (status == PARTITA_OK) status = clear_stream(stream);
    if (status == PARTITA_OK && !state->held->queue.exec)
        status = cuda_queue_make(plan, &state->held->queue, cuda_partitioned_queue_step, stream);
    if (status == PARTITA_OK) status = cuda_queue_wait(plan, &state->held->queue);
    cuda_leave(&scope);
    return status;
}

void cuda_partitioned_close(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    if (!state->held) return;
    struct cuda_scope scope;
    cuda_enter(stream->plan, &scope);
    if (cuda_queue_wait(stream->plan, &state->held->queue) == PARTITA_OK)
        cuda_memory_keep(stream->plan, state->held);
    else cuda_memory_close(stream->plan, *state->held);
    cuda_leave(&scope);
}

// Waits, so that a queue of the caller's may go on with the stream.
void cuda_partitioned_reset(struct partita_stream *stream)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct partita_plan *plan = stream->plan;
    if (state->pending) stream->filter = state->pending->filter;
    state->pending = NULL;
    struct cuda_scope scope;
    const enum partita_status entered = cuda_enter(plan, &scope);
    if (atomic_load(&stream->status) == PARTITA_OK && cuda_partitioned_succeeds(stream, entered) &&
        cuda_partitioned_succeeds(stream, cuda_queue_wait(plan, &state->held->queue)) &&
        cuda_partitioned_succeeds(stream, clear_stream(stream)))
        cuda_partitioned_succeeds(stream, cuda_queue_wait(plan, &state->held->queue));
    cuda_leave(&scope);
}

struct region cuda_partitioned_region(struct partita_stream *stream)
{
    return (struct region){.bytes = cuda_stream_of(stream)->device_bytes};
}

// The position that is copied in has addresses of the filter of the stream that was saved.
static void copy_state(struct partita_stream *stream, void *to, const void *from)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    struct cuda_queue *queue = &state->held->queue;
    const struct partita_plan *plan = stream->plan;
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (atomic_load(&stream->status) == PARTITA_OK) {
        queue->running = true;
        cuda_queue_use(queue);
        if (status == PARTITA_OK) status = cuda_copy(plan, to, from, state->device_bytes);
        if (status == PARTITA_OK && to == state->held->device) status = start_stream(stream, true);
        if (cuda_partitioned_succeeds(stream, status))
            cuda_partitioned_succeeds(stream, cuda_queue_wait(plan, queue));
    }
    cuda_leave(&scope);
}

void cuda_partitioned_copy_out(struct partita_stream *stream, void *to)
{
    copy_state(stream, to, cuda_stream_of(stream)->held->device);
}

void cuda_partitioned_copy_in(struct partita_stream *stream, const void *from)
{
    copy_state(stream, cuda_stream_of(stream)->held->device, from);
}
