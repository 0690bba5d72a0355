// SPDX-License-Identifier: MIT
// Public functions of streams.
#include "stream/stream.h"

#include "core/arguments.h"
#include "cpu/partitioned/morph.h"
#include "sized.h"

enum partita_status partita_stream_open(const struct partita_plan *plan,
                                        const struct partita_filter *filter,
                                        struct partita_stream **ret_stream)
{
    if (!arguments_given(log_of(plan), plan, filter, ret_stream)) return PARTITA_ERR_ARG;
    if (filter->plan != plan)
        return log_error(&plan->log, PARTITA_ERR_ARG, "filter: of another plan");
    if (!plan->shape.stream)
        return log_error(&plan->log, PARTITA_ERR_STATE,
                         "plan: of a bounded problem, not of streams");
    return stream_open(plan, filter, ret_stream);
}

void partita_stream_close(struct partita_stream *stream)
{
    stream_close(stream);
}

void partita_stream_process_strided(struct partita_stream *stream, union partita_outputs y,
                                    size_t y_stride, union partita_inputs x, size_t x_stride,
                                    size_t n_frames)
{
    struct frames frames = {
        .y = y.samples, .y_stride = y_stride, .x = x.samples, .x_stride = x_stride, .n = n_frames};
    // Live hosts reuse their buffers.
    if (n_frames && x.samples && x.samples[0] != stream->x_begin)
        stream_prefetch_next(stream, &frames);
    stream_feed(stream, &frames);
}

void partita_stream_process(struct partita_stream *stream, union partita_outputs y,
                            union partita_inputs x, size_t n_frames)
{
    partita_stream_process_strided(stream, y, 1, x, 1, n_frames);
}

enum partita_status partita_stream_process_queued(struct partita_stream *stream,
                                                  union partita_outputs y, union partita_inputs x,
                                                  size_t n_frames, void *queue)
{
    const void *outputs = n_frames ? (const void *)y.samples : stream;
    if (!arguments_given(log_of(stream ? stream->plan : NULL), stream, queue, outputs))
        return PARTITA_ERR_ARG;
    if (!stream->plan->engine->stream.queue)
        return log_error(&stream->plan->log, PARTITA_ERR_UNSUPPORTED, "%s has no queues",
                         stream->plan->engine->name);
    const struct frames frames = {
        .y = y.samples, .y_stride = 1, .x = x.samples, .x_stride = 1, .n = n_frames};
    return stream_queue(stream, frames, queue);
}

size_t partita_stream_output_frames(const struct partita_stream *stream, size_t n_frames)
{
    return stream_outputs_due(stream, n_frames);
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
    stream_reset(stream);
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
    if (!engine_swaps(stream->plan->engine) || morph_of(stream)) return PARTITA_ERR_UNSUPPORTED;
    swap_queue_post(&stream->swap_queue, filter, fade);
    return PARTITA_OK;
}

enum partita_status partita_stream_stats_sized(const struct partita_stream *stream,
                                               struct partita_stream_stats *ret_stats,
                                               size_t stats_bytes)
{
    struct partita_stream_stats stats;
    if (!stream || !ret_stats) return PARTITA_ERR_ARG;
    if (!(stream->plan->sample_rate > 0)) return PARTITA_ERR_STATE;
    stats_read(&stream->stats, &stats);
    sized_write(ret_stats, stats_bytes, &stats, sizeof stats);
    return PARTITA_OK;
}

// Whether a stream's state can be copied; `names` are those of the stream and of another argument.
static enum partita_status check_copy(const struct partita_stream *stream, const char *function,
                                      const char *names, const void *argument)
{
    const struct partita_log log = log_of(stream ? stream->plan : NULL);
    if (!arguments_check_null(log, function, names, (const void *const[]){stream, argument}, 2))
        return PARTITA_ERR_ARG;
    const enum partita_status status = partita_stream_status(stream);
    const bool swapping = partita_stream_swapping(stream);
    if (status == PARTITA_OK && !swapping) return status;
    return log_error(&log, swapping ? PARTITA_ERR_STATE : status, "%s: the stream %s", function,
                     swapping ? "still swaps filters" : "has failed");
}

size_t partita_stream_state_size(const struct partita_stream *stream)
{
    return stream_state_bytes(stream);
}

enum partita_status partita_stream_save(struct partita_stream *stream, void *state)
{
    const enum partita_status status = check_copy(stream, __func__, "stream, state", state);
    return status == PARTITA_OK ? stream_state_save(stream, state) : status;
}

enum partita_status partita_stream_restore(struct partita_stream *stream, const void *state,
                                           size_t size)
{
    const enum partita_status status = check_copy(stream, __func__, "stream, state", state);
    return status == PARTITA_OK ? stream_state_restore(stream, state, size) : status;
}

enum partita_status partita_stream_clone(struct partita_stream *stream,
                                         struct partita_stream **ret_stream)
{
    const enum partita_status status =
        check_copy(stream, __func__, "stream, ret_stream", ret_stream);
    if (status == PARTITA_OK && morph_of(stream))
        return log_error(&stream->plan->log, PARTITA_ERR_UNSUPPORTED,
                         "a stream that morphs has no clones: open another and restore the state");
    return status == PARTITA_OK ? stream_clone(stream, ret_stream) : status;
}
