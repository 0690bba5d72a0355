// SPDX-License-Identifier: MIT
#include "stream.h"

#include <assert.h>

#include "base/clock.h"
#include "base/sizes.h"
#include "geometry/upsampling.h"

// Frames of the outputs of branches, unless calls are of whole blocks: few enough for a near cache.
enum { BRANCH_FRAMES = 256 };

struct partita_stream *stream_layout(const struct partita_plan *plan, struct arena *arena)
{
    const struct shape *shape = &plan->shape;
    struct partita_stream made = {.plan = plan};
    struct partita_stream *stream = arena_take(arena, sizeof *stream);
    if (shape->up.branches && !plan->choice.resamples) {
        const size_t n = shape->whole_blocks ? shape->block : BRANCH_FRAMES;
        const size_t bytes = size_mul(n, shape->sample_bytes);
        made.branches = arena_take(arena, size_mul(shape->out_channels, sizeof *made.branches));
        char *samples = arena_take(arena, size_mul(shape->out_channels, bytes));
        for (size_t k = 0; stream && k < shape->out_channels; k++)
            made.branches[k] = samples + k * bytes;
        made.branch_frames = n;
    }
    made.state = plan->engine->stream.layout(&made, arena);
    if (!stream) return NULL;
    *stream = made;
    swap_queue_open(&stream->swap_queue);
    return stream;
}

enum partita_status stream_open(const struct partita_plan *plan,
                                const struct partita_filter *filter,
                                struct partita_stream **ret_stream)
{
    const struct stream_ops *ops = &plan->engine->stream;
    struct arena arena = {0};
    stream_layout(plan, &arena);
    if (!arena_allocate(&arena, &plan->allocator)) return PARTITA_ERR_NOMEM;
    struct partita_stream *stream = stream_layout(plan, &arena);
    assert(arena.used == arena.size);
    stream->filter = filter;
    const enum partita_status status = ops->open ? ops->open(stream) : PARTITA_OK;
    if (status == PARTITA_OK) *ret_stream = stream;
    else stream_close(stream);
    return status;
}

void stream_close(struct partita_stream *stream)
{
    if (!stream) return;
    const struct partita_plan *plan = stream->plan;
    if (plan->engine->stream.close) plan->engine->stream.close(stream);
    mem_release(&plan->allocator, stream);
}

size_t stream_outputs_wait(const struct partita_stream *stream)
{
    const size_t step = shape_output_step(&stream->plan->shape);
    assert(stream->phase < step);
    return stream->phase ? step - stream->phase : 0;
}

size_t stream_outputs_due(const struct partita_stream *stream, size_t n)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t step = shape_output_step(shape), positions = n * shape_positions(shape);
    if (step == 1) return positions;
    const size_t wait = stream_outputs_wait(stream);
    return positions > wait ? (positions - wait - 1) / step + 1 : 0;
}

// Writes zeros for n frames, which do not count in the stream's time.
static void write_silence(struct partita_stream *stream, const struct frames *frames, size_t n)
{
    const size_t bytes = stream->plan->shape.sample_bytes, due = stream_outputs_due(stream, n);
    for (size_t k = 0; k < shape_own_outputs(&stream->plan->shape); k++)
        for (size_t i = 0; i < due; i++) memset(frames_y(frames, k, i, bytes), 0, bytes);
}

// The device begins and ends swaps.
static bool swaps_on_device(const struct partita_stream *stream)
{
    return stream->plan->engine->stream.queue;
}

// After the device has failed every swap counts as settled, so that nobody waits.
static void settle_failed(struct partita_stream *stream)
{
    swap_end(stream);
    const struct pending_swap *pending = swap_queue_take(&stream->swap_queue);
    if (pending) stream->filter = pending->filter;
    if (pending || swaps_on_device(stream)) swap_queue_settle(&stream->swap_queue);
}

static struct step answer_failed(struct partita_stream *stream, const struct frames *frames)
{
    const size_t due = stream_outputs_due(stream, frames->n);
    settle_failed(stream);
    write_silence(stream, frames, frames->n);
    return (struct step){frames->n, due};
}

// A step of an engine that writes the outputs of branches, and the outputs that it makes due.
static struct step step_branches(struct partita_stream *stream, const struct frames *frames)
{
    const struct shape *shape = &stream->plan->shape;
    struct frames part = *frames;
    part.y = stream->branches;
    part.y_stride = 1;
    part.y_first = 0;
    part.rest = size_min(part.rest, stream->branch_frames);
    part.n = size_min(part.n, part.rest);
    const struct step step = stream->plan->engine->stream.step(stream, &part);
    const size_t due = stream_outputs_due(stream, step.in);
    assert(step.out == step.in);
    for (size_t k = 0; k < shape->up.out_channels; k++) {
        const struct branches from = {stream->branches[k * shape->up.branches],
                                      stream->branch_frames, stream_outputs_wait(stream)};
        upsampling_take(shape, &from, frames_y(frames, k, 0, shape->sample_bytes), frames->y_stride,
                        due);
    }
    return (struct step){step.in, due};
}

// One step of the engine, within one state of a swap.
static struct step run_step(struct partita_stream *stream, struct frames *frames)
{
    if (atomic_load(&stream->status) != PARTITA_OK) return answer_failed(stream, frames);
    if (!swaps_on_device(stream)) swap_begin(stream);
    const struct swap *swap = &stream->swap;
    frames->rest = frames->n;
    if (swap->state != SWAP_NONE) frames->n = size_min(frames->n, swap->left);
    const struct step step = stream->branch_frames
                                 ? step_branches(stream, frames)
                                 : stream->plan->engine->stream.step(stream, frames);
    assert(step.in <= frames->n);
    frames->n = frames->rest;
    if (swap->state != SWAP_NONE) swap_advance(stream, step.in);
    return step;
}

// The states of a stream for the host's arrays and for the device's are separate.
static bool takes_arrays(const struct partita_stream *stream, enum stream_arrays arrays)
{
    if (stream->arrays == STREAM_NO_ARRAYS || stream->arrays == arrays) return true;
    log_line(&stream->plan->log, "a stream processes %s until partita_stream_reset",
             stream->arrays == STREAM_QUEUED ? "the device's arrays on queues"
                                             : "the host's arrays");
    return false;
}

enum partita_status stream_queue(struct partita_stream *stream, struct frames frames, void *queue)
{
    const struct partita_plan *plan = stream->plan;
    const struct shape *shape = &plan->shape;
    const double begin = plan->sample_rate > 0 ? clock_seconds() : 0;
    if (atomic_load(&stream->status) != PARTITA_OK) {
        settle_failed(stream);
        return (enum partita_status)atomic_load(&stream->status);
    }
    if (!takes_arrays(stream, STREAM_QUEUED)) return PARTITA_ERR_STATE;
    const enum stream_arrays before = stream->arrays;
    stream->arrays = STREAM_QUEUED;
    frames.rest = frames.n;
    if (shape->whole_blocks) frames.n -= frames.n % shape->block;
    const enum partita_status status = plan->engine->stream.queue(stream, &frames, queue);
    if (status == PARTITA_ERR_DEVICE) atomic_store(&stream->status, (int)status);
    else if (status != PARTITA_OK) stream->arrays = before;
    if (status != PARTITA_OK) return status;
    stream->phase = (stream->phase + frames.n) % shape->axis[0].stride;
    if (begin > 0 && frames.n)
        stats_count(&stream->stats, clock_seconds() - begin, (double)frames.n / plan->sample_rate);
    return PARTITA_OK;
}

// An address that is not the caller's memory does no harm.
static void prefetch_behind(const char *end, size_t bytes, bool write)
{
    for (size_t at = 0; at < bytes; at += MEM_ALIGN) {
        const void *line = (const void *)((uintptr_t)end + at);
        if (write) __builtin_prefetch(line, 1, 3);
        else __builtin_prefetch(line, 0, 3);
    }
}

void stream_prefetch_next(struct partita_stream *stream, const struct frames *frames)
{
    // The hardware prefetches longer sequences, and calls of many channels take so long that
    // prefetched data has left the caches before it is used.
    enum { MAX_BYTES = 1024, MAX_CHANNELS = 8 };
    const struct shape *shape = &stream->plan->shape;
    const size_t bytes = shape->sample_bytes, n = frames->n, in = n * frames->x_stride * bytes;
    const size_t channels = size_max(shape->in_channels, shape_own_outputs(shape));
    const uintptr_t before = (uintptr_t)stream->x_begin;
    stream->x_begin = frames->x[0];
    if ((uintptr_t)stream->x_begin - before != in || in > MAX_BYTES || channels > MAX_CHANNELS)
        return;
    const size_t due = stream_outputs_due(stream, n), out = due * frames->y_stride * bytes;
    // With strides the samples of all channels lie among those of the first one.
    const size_t inputs = frames->x_stride > 1 ? 1 : shape->in_channels;
    const size_t outputs = frames->y_stride > 1 ? 1 : shape_own_outputs(shape);
    for (size_t c = 0; c < inputs; c++) prefetch_behind(frames_x(frames, c, n, bytes), in, false);
    for (size_t k = 0; k < outputs && due && out <= MAX_BYTES; k++)
        prefetch_behind(frames_y(frames, k, due, bytes), out, true);
}

void stream_feed(struct partita_stream *stream, struct frames *frames)
{
    const struct shape *shape = &stream->plan->shape;
    if (!takes_arrays(stream, STREAM_HOST_ARRAYS)) {
        write_silence(stream, frames, frames->n);
        return;
    }
    if (frames->n) stream->arrays = STREAM_HOST_ARRAYS;
    const size_t beyond = shape->whole_blocks ? frames->n % shape->block : 0;
    frames->n -= beyond;
    const size_t n = frames->n, apart = shape_output_step(shape);
    const double begin = stream->plan->sample_rate > 0 ? clock_seconds() : 0;
    while (frames->n) {
        const struct step step = run_step(stream, frames);
        // Most streams have an output at every position, and need not divide.
        if (apart > 1) stream->phase = (stream->phase + step.in * shape_positions(shape)) % apart;
        frames->x_first += step.in;
        frames->y_first += step.out;
        frames->n -= step.in;
    }
    if (beyond) write_silence(stream, frames, beyond);
    if (begin > 0 && n)
        stats_count(&stream->stats, clock_seconds() - begin, (double)n / stream->plan->sample_rate);
}

void stream_reset(struct partita_stream *stream)
{
    const struct engine *engine = stream->plan->engine;
    const struct region region = engine->stream.region(stream);
    stream->phase = 0;
    if (engine->stream.reset) engine->stream.reset(stream);
    else memset(region.data, 0, region.bytes);
    swap_end(stream); // nothing is left to fade from
    if (swaps_on_device(stream)) swap_queue_settle(&stream->swap_queue);
    stream->arrays = STREAM_NO_ARRAYS;
}
