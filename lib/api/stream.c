// SPDX-License-Identifier: MIT
// Streams: the loop that feeds an engine until a call's frames are used up, and when which filter
// is heard. Everything else is the engine's.
#include "core/engine.h"

#include <string.h>

#include "base/clock.h"

// Passes states that have no frames left.
static void settle_swap(struct partita_stream *stream)
{
    struct swap *swap = &stream->swap;
    if (swap->state == SWAP_WAITING && swap->left == 0) {
        swap->state = SWAP_FADING;
        swap->left = swap->fade;
    }
    if (swap->state == SWAP_FADING && swap->left == 0) {
        stream->filter = swap->incoming;
        swap->incoming = NULL;
        swap->state = SWAP_SETTLING;
        swap->left = stream->plan->engine->swap_end(stream);
    }
    if (swap->state == SWAP_SETTLING && swap->left == 0) {
        swap->state = SWAP_NONE;
        swap_queue_settle(&stream->swap_queue);
    }
}

// Takes a waiting filter over unless a swap is under way.
static void begin_swap(struct partita_stream *stream)
{
    const struct pending_swap *pending_swap =
        stream->swap.state == SWAP_NONE ? swap_queue_take(&stream->swap_queue) : NULL;
    if (!pending_swap) return;
    stream->swap = (struct swap){
        .state = SWAP_WAITING, .incoming = pending_swap->filter, .fade = pending_swap->fade};
    stream->swap.left = stream->plan->engine->swap_begin(stream);
    settle_swap(stream);
}

// Answers frames that are not heard: they are no part of the stream's time.
static void silence(struct partita_stream *stream, const struct frames *frames, size_t n)
{
    const size_t bytes = stream->plan->shape.sample_bytes,
                 due = partita_stream_output_frames(stream, n);
    for (size_t k = 0; k < stream->plan->shape.out_channels; k++)
        for (size_t i = 0; i < due; i++) memset(frames_y(frames, k, i, bytes), 0, bytes);
}

static void end_swap(struct partita_stream *stream)
{
    struct swap *swap = &stream->swap;
    if (swap->incoming) stream->filter = swap->incoming;
    if (swap->state != SWAP_NONE) swap_queue_settle(&stream->swap_queue);
    *swap = (struct swap){.state = SWAP_NONE};
}

// Answers n frames after the device has failed. Nobody waits for a swap in vain.
static struct step answer_failed(struct partita_stream *stream, const struct frames *frames)
{
    const size_t due = partita_stream_output_frames(stream, frames->n);
    end_swap(stream);
    const struct pending_swap *pending_swap = swap_queue_take(&stream->swap_queue);
    if (pending_swap) {
        stream->filter = pending_swap->filter;
        swap_queue_settle(&stream->swap_queue);
    }
    silence(stream, frames, frames->n);
    return (struct step){frames->n, due};
}

// One step of the engine, which sees one state of a swap.
static struct step run_step(struct partita_stream *stream, const struct frames *frames)
{
    if (atomic_load(&stream->status) != PARTITA_OK) return answer_failed(stream, frames);
    struct frames part = *frames;
    part.rest = part.n;
    begin_swap(stream);
    struct swap *swap = &stream->swap;
    if (swap->state != SWAP_NONE && part.n > swap->left) part.n = swap->left;
    const struct step step = stream->plan->engine->stream_step(stream, &part);
    if (swap->state == SWAP_NONE) return step;
    swap->left -= step.in;
    settle_swap(stream);
    return step;
}

static void feed(struct partita_stream *stream, struct frames frames)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t beyond = shape->whole_blocks ? frames.n % shape->block : 0;
    frames.n -= beyond;
    const size_t stride = shape->axis[0].stride, n = frames.n;
    const double begin = stream->plan->sample_rate > 0 ? clock_seconds() : 0;
    while (frames.n) {
        const struct step step = run_step(stream, &frames);
        stream->phase = (stream->phase + step.in) % stride;
        frames.x_first += step.in;
        frames.y_first += step.out;
        frames.n -= step.in;
    }
    if (beyond) silence(stream, &frames, beyond);
    if (begin > 0 && n)
        stats_count(&stream->stats, clock_seconds() - begin, (double)n / stream->plan->sample_rate);
}

void partita_stream_process_strided(struct partita_stream *stream, void *const *y, size_t y_stride,
                                    const void *const *x, size_t x_stride, size_t n_frames)
{
    feed(stream, (struct frames){
                     .y = y, .y_stride = y_stride, .x = x, .x_stride = x_stride, .n = n_frames});
}

void partita_stream_process(struct partita_stream *stream, void *const *y, const void *const *x,
                            size_t n_frames)
{
    feed(stream, (struct frames){.y = y, .y_stride = 1, .x = x, .x_stride = 1, .n = n_frames});
}

void partita_stream_drain(struct partita_stream *stream, void *const *y, size_t y_stride,
                          size_t n_frames)
{
    feed(stream, (struct frames){.y = y, .y_stride = y_stride, .n = n_frames});
}

size_t partita_stream_output_frames(const struct partita_stream *stream, size_t n_frames)
{
    // Outputs fall due at positions that the stride divides; the next one is `wait` frames away.
    const size_t stride = stream->plan->shape.axis[0].stride,
                 wait = (stride - stream->phase) % stride;
    return n_frames > wait ? (n_frames - wait - 1) / stride + 1 : 0;
}

size_t partita_stream_latency(const struct partita_stream *stream)
{
    return stream->plan->choice.latency;
}

size_t partita_stream_tail(const struct partita_stream *stream)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t tail = stream->plan->choice.latency + shape->axis[0].span - 1;
    return shape->whole_blocks ? (tail + shape->block - 1) / shape->block * shape->block : tail;
}

void partita_stream_reset(struct partita_stream *stream)
{
    stream->phase = 0;
    stream->plan->engine->stream_reset(stream);
    // A swap under way is over at once: there is nothing left to fade from.
    end_swap(stream);
}

enum partita_status partita_stream_status(const struct partita_stream *stream)
{
    return stream ? (enum partita_status)atomic_load(&stream->status) : PARTITA_ERR_ARG;
}

bool partita_stream_swapping(const struct partita_stream *stream)
{
    return !swap_queue_settled(&stream->swap_queue);
}

enum partita_status partita_stream_swap(struct partita_stream *stream,
                                        const struct partita_filter *filter, size_t fade)
{
    if (!stream || !filter || filter->plan != stream->plan) return PARTITA_ERR_ARG;
    if (!stream->plan->engine->swap_begin) return PARTITA_ERR_UNSUPPORTED;
    swap_queue_post(&stream->swap_queue, filter, fade);
    return PARTITA_OK;
}

enum partita_status partita_stream_stats(const struct partita_stream *stream,
                                         struct partita_stream_stats *ret_stats)
{
    if (!stream || !ret_stats) return PARTITA_ERR_ARG;
    if (!(stream->plan->sample_rate > 0)) return PARTITA_ERR_STATE;
    stats_read(&stream->stats, ret_stats);
    return PARTITA_OK;
}
