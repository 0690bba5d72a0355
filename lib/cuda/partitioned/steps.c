// SPDX-License-Identifier: MIT
// Calls of streams of cuda/partitioned. With arrays on the device and a queue of the caller's,
// kernels are queued, and nothing else is done (decision 32). With arrays of the host, the graph of
// a step is launched for at most a quantum of frames, and waited for.
#include <assert.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "partitioned.h"

// The most that can be due, as only the device knows the quantum.
static struct cuda_partition_launch stream_launch(const struct cuda_partition_layout *layout)
{
    struct cuda_partition_launch launch = {0};
    for (int i = 0; i < layout->n_segments; i++)
        launch.collected[i] = launch.finished[i] =
            (layout->groups - 1) / layout->segment[i].quanta + 1;
    return launch;
}

// n frames of a call from frame `first` on. With problem.up the outputs are those of branches,
// whose stride is 1.
static struct cuda_step step_of(const struct partita_stream *stream, const struct frames *frames,
                                size_t first, size_t n)
{
    const size_t stride = stream->plan->shape.axis[0].stride;
    const size_t before = stride > 1 ? stream_outputs_due(stream, first) : first;
    const size_t due = stride > 1 ? stream_outputs_due(stream, first + n) - before : n;
    const size_t next = stride > 1 ? stream_outputs_wait(stream) + before * stride : first;
    return (struct cuda_step){.x_first = (int64_t)first,
                              .y_first = (int64_t)before,
                              .n = (int)n,
                              .wait = due ? (int)(next - first) : 0,
                              .due = (int)due,
                              .silent = !frames->x};
}

// Passes the latest filter that was given to partita_stream_swap to the device. The stream has it
// from then on, also if it is reset or cloned.
static enum partita_status post_swap(struct partita_stream *stream, bool *ret_posted)
{
    struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct pending_swap *newest = swap_queue_take(&stream->swap_queue);
    if (newest) state->pending = newest;
    const struct pending_swap *pending = state->pending;
    *ret_posted = false;
    if (!pending) return PARTITA_OK;
    const struct cuda_partition_layout *layout = &cuda_partitioned_of(stream->plan)->layout;
    const struct cuda_partitioned_filter *filter = pending->filter->state;
    const struct cuda_swap swap = {filter->device, pending->fade, pending->number};
    const enum partita_status status =
        CU(stream->plan, cuda_position_change(layout, &state->memory, CUDA_POST, &swap));
    if (status != PARTITA_OK) return status;
    *ret_posted = true;
    stream->filter = pending->filter;
    state->pending = NULL;
    return PARTITA_OK;
}

// Arrays of the host.

enum partita_status cuda_partitioned_queue_step(void *context)
{
    const struct partita_stream *stream = context;
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct shape *shape = &stream->plan->shape;
    const struct cuda_partition_layout *layout = &cuda_partitioned_of(stream->plan)->layout;
    const int quantum = layout->quantum;
    struct cuda_partition_memory memory = state->memory;
    struct cuda_step_work work = {
        .step = {.n = quantum, .due = quantum},
        .x = {.count = (int64_t)shape->in_channels, .base = state->x, .samples = quantum},
        .y = {.count = (int64_t)shape->out_channels, .base = state->y, .samples = quantum},
        .launch = stream_launch(layout)};
    assert(memory.position);
    memory.step = state->step;
    enum partita_status status = cuda_partitioned_issue(stream->plan, layout, &memory, &work);
    if (status != PARTITA_OK) return status;
    return CU(stream->plan, cuda_position_change(layout, &memory, CUDA_ADVANCE, NULL));
}

static enum partita_status run_step(struct partita_stream *stream)
{
    struct cuda_queue *queue = &cuda_stream_of(stream)->held->queue;
    bool posted;
    queue->running = true;
    cuda_queue_use(queue);
    enum partita_status status = post_swap(stream, &posted);
    if (status == PARTITA_OK) status = cuda_queue_launch(stream->plan, queue);
    return status == PARTITA_OK ? cuda_queue_wait(stream->plan, queue) : status;
}

struct step cuda_partitioned_step(struct partita_stream *stream, const struct frames *frames)
{
    const struct cuda_partitioned_stream *state = cuda_stream_of(stream);
    const struct shape *shape = &stream->plan->shape;
    const size_t quantum = cuda_partitioned_of(stream->plan)->split.quantum;
    const size_t n = size_min(frames->n, quantum), bytes = shape->sample_bytes;
    struct cuda_scope scope;
    assert(n > 0 && state->held->queue.exec);
    *state->step = step_of(stream, frames, 0, n);
    for (size_t c = 0; c < shape->in_channels && frames->x; c++)
        samples_copy(state->x + c * quantum * bytes, 1, frames_x(frames, c, 0, bytes),
                     frames->x_stride, n, bytes);
    const bool good = cuda_partitioned_succeeds(stream, cuda_enter(stream->plan, &scope)) &&
                      cuda_partitioned_succeeds(stream, run_step(stream));
    cuda_leave(&scope);
    if (!good) return (struct step){0};
    const size_t due = (size_t)state->step->due;
    for (size_t k = 0; k < shape->out_channels; k++)
        samples_copy(frames_y(frames, k, 0, bytes), frames->y_stride,
                     state->y + k * quantum * bytes, 1, due, bytes);
    return (struct step){n, due};
}

// Arrays on the device.

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
    const struct cuda_partition_layout *layout;
    const struct cuda_partition_memory *memory;
    struct cuda_step step;
    bool captured;
    bool begun; // some of its work is queued, and will change the stream's state
};

// The kernels of a step that read or write the caller's arrays, some channels at a time.
static enum partita_status queue_channels(struct queued_call *call, bool outputs)
{
    const struct partita_plan *plan = call->stream->plan;
    const struct shape *shape = &plan->shape;
    const size_t n = outputs ? shape->out_channels : shape->in_channels;
    enum partita_status status = PARTITA_OK;
    for (size_t c = 0; c < n && status == PARTITA_OK; c += CUDA_CHANNELS) {
        struct cuda_channels channels = {.first = (int)c,
                                         .count = (int64_t)size_min(n - c, CUDA_CHANNELS)};
        for (size_t i = 0; i < (size_t)channels.count; i++)
            if (outputs) channels.at[i] = call->frames->y[c + i];
            else if (call->frames->x) channels.at[i] = (char *)(uintptr_t)call->frames->x[c + i];
        status = CU(plan, (outputs ? cuda_frames_emit : cuda_frames_take)(
                              call->layout, call->memory, &call->step, &channels));
        call->begun |= status == PARTITA_OK && !call->captured;
    }
    return status;
}

// The first operation of a step is one of queue_channels, which notes that the call has begun.
static enum partita_status queue_step(struct queued_call *call)
{
    const struct partita_plan *plan = call->stream->plan;
    const struct cuda_partition_launch launch = stream_launch(call->layout);
    enum partita_status status = queue_channels(call, false);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_partitioned_launch(call->layout, call->memory, &launch));
    if (status == PARTITA_OK && call->step.due) status = queue_channels(call, true);
    return status == PARTITA_OK
               ? CU(plan, cuda_position_change(call->layout, call->memory, CUDA_ADVANCE, NULL))
               : status;
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
    const size_t quantum = (size_t)call->layout->quantum, n = call->frames->n;
    enum partita_status status = PARTITA_OK;
    for (size_t at = 0; at < n && status == PARTITA_OK; at += quantum) {
        call->step = step_of(call->stream, call->frames, at, size_min(n - at, quantum));
        status = queue_step(call);
    }
    return status;
}

// A call whose first operation is refused, for example by a queue of another device, leaves the
// stream as before, and so does a captured call, since nothing of it is executed yet. After other
// failures, also refusals, the state on the device is that of a part of the call: the stream fails.
static enum partita_status queue_frames(struct partita_stream *stream, const struct frames *frames,
                                        void *queue)
{
    const struct partita_plan *plan = stream->plan;
    enum cudaStreamCaptureStatus capture;
    struct queued_call call = {.stream = stream,
                               .frames = frames,
                               .layout = &cuda_partitioned_of(plan)->layout,
                               .memory = &cuda_stream_of(stream)->memory};
    enum partita_status status = CU(plan, cudaStreamIsCapturing(queue, &capture));
    const bool captured = status == PARTITA_OK && capture != cudaStreamCaptureStatusNone;
    if (status == PARTITA_OK) status = check_frames(stream, frames, captured);
    if (status != PARTITA_OK) return status;
    const size_t whole = stream_outputs_due(stream, frames->n);
    call.captured = captured;
    if (!captured) status = post_swap(stream, &call.begun);
    if (status == PARTITA_OK) status = queue_steps(&call);
    if (status == PARTITA_OK)
        status =
            queue_silence(stream, frames, whole, stream_outputs_due(stream, frames->rest) - whole);
    if (status == PARTITA_OK || (status != PARTITA_ERR_DEVICE && !call.begun)) return status;
    cuda_partitioned_succeeds(stream, PARTITA_ERR_DEVICE);
    return PARTITA_ERR_DEVICE;
}

enum partita_status cuda_partitioned_queue(struct partita_stream *stream,
                                           const struct frames *frames, void *queue)
{
    struct cuda_scope scope;
    enum partita_status status = cuda_enter_queue(stream->plan, queue, &scope);
    if (status == PARTITA_OK) status = queue_frames(stream, frames, queue);
    cuda_leave(&scope);
    return status;
}
