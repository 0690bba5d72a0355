// SPDX-License-Identifier: MIT
// Streams: the loop that feeds an engine until a call's frames are used up. Everything else is the engine's.
#include "engine.h"

static void feed(struct partita_stream *stream, struct frames frames)
{
    const size_t stride = stream->plan->shape.axis[0].stride;
    while (frames.n) {
        const struct step step = stream->plan->engine->stream_step(stream, &frames);
        stream->phase = (stream->phase + step.in) % stride;
        frames.x_first += step.in;
        frames.y_first += step.out;
        frames.n -= step.in;
    }
}

void partita_stream_process_strided(struct partita_stream *stream, void *const *y, size_t y_stride,
                                    const void *const *x, size_t x_stride, size_t n_frames)
{
    feed(stream, (struct frames){.y = y, .y_stride = y_stride, .x = x, .x_stride = x_stride, .n = n_frames});
}

void partita_stream_process(struct partita_stream *stream, void *const *y, const void *const *x, size_t n_frames)
{
    feed(stream, (struct frames){.y = y, .y_stride = 1, .x = x, .x_stride = 1, .n = n_frames});
}

void partita_stream_drain(struct partita_stream *stream, void *const *y, size_t y_stride, size_t n_frames)
{
    feed(stream, (struct frames){.y = y, .y_stride = y_stride, .n = n_frames});
}

size_t partita_stream_output_frames(const struct partita_stream *stream, size_t n_frames)
{
    // Outputs fall due at positions that the stride divides; the next one is `wait` frames away.
    const size_t stride = stream->plan->shape.axis[0].stride, wait = (stride - stream->phase) % stride;
    return n_frames > wait ? (n_frames - wait - 1) / stride + 1 : 0;
}

size_t partita_stream_latency(const struct partita_stream *stream)
{
    return stream->plan->choice.latency;
}

size_t partita_stream_tail(const struct partita_stream *stream)
{
    return stream->plan->choice.latency + stream->plan->shape.axis[0].span - 1;
}

void partita_stream_reset(struct partita_stream *stream)
{
    stream->phase = 0;
    stream->plan->engine->stream_reset(stream);
}
