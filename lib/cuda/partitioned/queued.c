// SPDX-License-Identifier: MIT
// Streams of cuda/partitioned with arrays on the device and a queue of the caller's: kernels are
// queued, and nothing else is done (decision 32). The host knows neither the position nor whether
// its work is done; the stream's state is on the device.

#include "kernels/kernels.h"
#include "partitioned.h"

// Frames by which outputs are behind the inputs: with whole quanta the host counts one more.
static size_t hidden_frames(const struct cuda_partitioned_choice *choice)
{
    return choice->whole ? choice->quantum : 0;
}

struct cuda_queued_layout cuda_queued_layout_of(const struct partita_plan *plan)
{
    const struct cuda_partitioned *partitioned = cuda_partitioned_of(plan);
    const struct cuda_partitioned_choice *choice = &partitioned->choice;
    const struct shape *shape = &plan->shape;
    const struct fir_order *order = &plan->kernels->fir_order;
    const int depth = shape->complex_taps ? FIR_DEPTH / 2 : FIR_DEPTH;
    return (struct cuda_queued_layout){
        .partitions = partitioned->layout,
        .history = (int64_t)cuda_partitioned_history(choice),
        .latency = (int64_t)(choice->latency - hidden_frames(choice)),
        .delay = (int64_t)(cuda_partitioned_delay(choice) - hidden_frames(choice)),
        .span = (int64_t)shape->axis[0].span,
        .stride = (int64_t)shape->axis[0].stride,
        .complex_taps = shape->complex_taps,
        .lanes = order->lanes,
        .short_lanes = shape->complex_taps ? 0 : order->short_lanes,
        .sum_taps = FIR_SEGMENT,
        .rows = order->lanes ? depth : 1,
    };
}

void cuda_queued_layout_memory(const struct partita_plan *plan,
                               const struct cuda_partition_layout *layout,
                               const struct cuda_partition_memory *partitions,
                               struct cuda_queued_memory *memory, struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    const size_t inputs = (size_t)layout->inputs;
    const size_t history = cuda_partitioned_history(&cuda_partitioned_of(plan)->choice);
    const size_t rows = size_mul(2 * (size_t)layout->ring_quanta, (size_t)layout->outputs);
    memory->position = arena_take(arena, sizeof *memory->position);
    memory->nonfinite_until = arena_take(arena, inputs * sizeof *memory->nonfinite_until);
    memory->affected_until = arena_take(arena, inputs * sizeof *memory->affected_until);
    memory->nonfinite = arena_take(arena, size_mul(inputs, history));
    memory->partitions = *partitions;
    memory->partitions.x_frames = (int64_t)history;
    memory->partitions.x = arena_take(arena, size_mul(inputs, history * shape->sample_bytes));
    memory->partitions.y =
        arena_take(arena, size_mul(rows, (size_t)layout->quantum * shape->sample_bytes));
    if (!arena->base) return;
    memory->partitions.quantum = &memory->position->quantum;
}

enum partita_status cuda_queued_load(const struct partita_plan *plan)
{
    const struct cuda_queued_layout layout = cuda_queued_layout_of(plan);
    return CU(plan, cuda_queued_load_kernels(&layout));
}

enum partita_status cuda_queued_begin(struct partita_stream *stream, bool keep)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct cuda_partitioned_filter *own = stream->filter->state;
    const struct cuda_queued_layout layout = cuda_queued_layout_of(stream->plan);
    const struct cuda_thread before = *cuda_thread();
    cuda_thread_set(&(struct cuda_thread){.stream = state->queue.stream});
    const enum partita_status status =
        CU(stream->plan, cuda_queued_start(&layout, &state->queued, &own->device, keep));
    cuda_thread_set(&before);
    return status;
}

// The pointers to the channels of a call.
static enum partita_status check_channels(const struct partita_plan *plan, const char *name,
                                          const void *const *channels, size_t n, size_t bytes)
{
    for (size_t c = 0; c < n; c++) {
        enum cuda_memory memory;
        const enum partita_status status = cuda_memory_of(plan, channels[c], bytes, &memory);
        if (status != PARTITA_OK) return status;
        const bool here = memory == CUDA_ON_DEVICE;
        if (here && (uintptr_t)channels[c] % plan->shape.scalar_bytes == 0) continue;
        return log_error(&plan->log, PARTITA_ERR_ARG, "queued stream: %s[%zu] is not %s", name, c,
                         here ? "aligned" : "in the memory of the stream's device");
    }
    return PARTITA_OK;
}

static enum partita_status check_frames(struct partita_stream *stream, const struct frames *frames,
                                        bool captured)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    const size_t due = stream_outputs_due(stream, frames->rest);
    if (captured && frames->n % shape->axis[0].stride)
        return log_error(&plan->log, PARTITA_ERR_ARG,
                         "queued stream: a captured call has whole output frames");
    enum partita_status status = PARTITA_OK;
    if (frames->x && frames->n)
        status = check_channels(plan, "x", frames->x, shape->in_channels,
                                frames->n * shape->sample_bytes);
    if (status == PARTITA_OK && due)
        status = check_channels(plan, "y", (const void *const *)frames->y, shape->out_channels,
                                due * shape->sample_bytes);
    return status;
}

// A call on its way.
struct queued_call {
    struct partita_stream *stream;
    const struct frames *frames;
    struct cuda_queued_layout layout;
    struct cuda_queued_memory memory;
    struct cuda_queued_step step;
    bool captured;
    bool begun; // some of its work is queued, and will change the stream's state
};

// To be called with the status of every operation that was handed to the queue.
static enum partita_status note_queued(struct queued_call *call, enum partita_status status)
{
    call->begun |= status == PARTITA_OK && !call->captured;
    return status;
}

// The kernels of a step that read or write the caller's arrays, some channels at a time.
static enum partita_status queue_channels(struct queued_call *call, bool outputs)
{
    const struct partita_plan *plan = call->stream->plan;
    const struct shape *shape = &plan->shape;
    const size_t n = outputs ? shape->out_channels : shape->in_channels;
    enum partita_status status = PARTITA_OK;
    for (size_t c = 0; c < n && status == PARTITA_OK; c += CUDA_CHANNELS) {
        const size_t count = size_min(n - c, CUDA_CHANNELS);
        struct cuda_channels channels = {{NULL}};
        for (size_t i = 0; i < count; i++)
            if (outputs) channels.at[i] = call->frames->y[c + i];
            else if (call->frames->x) channels.at[i] = (void *)(uintptr_t)call->frames->x[c + i];
        status = outputs ? CU(plan, cuda_queued_emit(&call->layout, &call->memory, &call->step,
                                                     &channels, (int)c, (int)count))
                         : CU(plan, cuda_queued_take(&call->layout, &call->memory, &call->step,
                                                     &channels, (int)c, (int)count));
        note_queued(call, status);
    }
    return status;
}

// The first operation of a step is one of queue_channels, which notes it.
static enum partita_status queue_step(struct queued_call *call)
{
    const struct partita_plan *plan = call->stream->plan;
    const struct cuda_partition_layout *layout = &call->layout.partitions;
    const struct cuda_partition_target target = {.stream = cuda_thread()->stream};
    struct cuda_partition_launch launch = {.sets = 2};
    for (int i = 0; i < layout->n_segments; i++)
        launch.collected[i] = launch.finished[i] =
            (layout->groups - 1) / layout->segment[i].quanta + 1;
    call->memory.partitions.frames = call->step.n;
    enum partita_status status = queue_channels(call, false);
    if (status == PARTITA_OK)
        status =
            CU(plan, cuda_partitioned_launch(layout, &call->memory.partitions, &launch, &target));
    if (status == PARTITA_OK && call->step.due) status = queue_channels(call, true);
    return status == PARTITA_OK
               ? CU(plan, cuda_queued_advance(&call->layout, &call->memory, call->step.n))
               : status;
}

// The latest filter that was passed to partita_stream_swap. The stream has it from now on, also if
// it is reset or cloned.
static enum partita_status post_swap(struct queued_call *call)
{
    struct partita_stream *stream = call->stream;
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct pending_swap *newest = swap_queue_take(&stream->swap_queue);
    if (newest) state->pending = newest;
    const struct pending_swap *pending = state->pending;
    if (!pending) return PARTITA_OK;
    const struct cuda_partitioned_filter *filter = pending->filter->state;
    const struct cuda_queued_swap swap = {filter->device, pending->fade, pending->number};
    const enum partita_status status =
        note_queued(call, CU(stream->plan, cuda_queued_post(&call->layout, &call->memory, &swap)));
    if (status != PARTITA_OK) return status;
    stream->filter = pending->filter;
    state->pending = NULL;
    return PARTITA_OK;
}

static enum partita_status queue_silence(const struct partita_stream *stream,
                                         const struct frames *frames, size_t first, size_t n)
{
    const struct shape *shape = &stream->plan->shape;
    enum partita_status status = PARTITA_OK;
    for (size_t k = 0; k < shape->out_channels && n && status == PARTITA_OK; k++)
        status =
            CU(stream->plan, cudaMemsetAsync((char *)frames->y[k] + first * shape->sample_bytes, 0,
                                             n * shape->sample_bytes, cuda_thread()->stream));
    return status;
}

static enum partita_status queue_steps(struct queued_call *call)
{
    const struct frames *frames = call->frames;
    const size_t quantum = (size_t)call->layout.partitions.quantum;
    const size_t wait = stream_outputs_wait(call->stream);
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0, n; at < frames->n && status == PARTITA_OK; at += n) {
        n = size_min(frames->n - at, quantum);
        const size_t before = stream_outputs_due(call->stream, at);
        const size_t due = stream_outputs_due(call->stream, at + n) - before;
        const size_t next = wait + before * (size_t)call->layout.stride;
        call->step = (struct cuda_queued_step){.x_first = (int64_t)at,
                                               .y_first = (int64_t)before,
                                               .n = (int)n,
                                               .wait = due ? (int)(next - at) : 0,
                                               .due = (int)due,
                                               .silent = !frames->x};
        status = queue_step(call);
    }
    return status;
}

// A call whose first operation is refused, for example by a queue of another device, leaves the
// stream as before, and so does a captured call, since nothing of it is executed yet. After other
// failures, also refusals, the state on the device is that of a part of the call: the stream fails.
enum partita_status cuda_partitioned_queue(struct partita_stream *stream,
                                           const struct frames *frames, void *queue)
{
    const struct partita_plan *plan = stream->plan;
    enum cudaStreamCaptureStatus capture;
    struct queued_call call = {.stream = stream,
                               .frames = frames,
                               .layout = cuda_queued_layout_of(plan),
                               .memory = cuda_stream_of(stream)->queued};
    enum partita_status status = CU(plan, cudaStreamIsCapturing(queue, &capture));
    const bool captured = status == PARTITA_OK && capture != cudaStreamCaptureStatusNone;
    if (status == PARTITA_OK) status = check_frames(stream, frames, captured);
    if (status != PARTITA_OK) return status;
    const size_t whole = stream_outputs_due(stream, frames->n);
    call.captured = captured;
    if (!captured) status = post_swap(&call);
    if (status == PARTITA_OK) status = queue_steps(&call);
    if (status == PARTITA_OK)
        status =
            queue_silence(stream, frames, whole, stream_outputs_due(stream, frames->rest) - whole);
    if (status == PARTITA_OK || (status != PARTITA_ERR_DEVICE && !call.begun)) return status;
    cuda_partitioned_succeeds(stream, PARTITA_ERR_DEVICE);
    return PARTITA_ERR_DEVICE;
}
