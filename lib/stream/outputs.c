// SPDX-License-Identifier: MIT
#include "outputs.h"

#include <assert.h>
#include <string.h>

#include "geometry/samples.h"
#include "kernels/kernels.h"

static bool output_depends_on(const struct outputs *outputs, const struct partita_filter *filter,
                              size_t out, size_t in)
{
    const struct shape *shape = &filter->plan->shape;
    if (!outputs->paths) return out / shape->group_out == in / shape->group_in;
    const struct path_view paths = outputs->paths(filter);
    for (size_t p = paths.first_path[out]; p < paths.first_path[out + 1]; p++)
        if (paths.heads[p].channel == in) return true;
    return false;
}

// Sets those of a channel's outputs to NaN that depend on a non-finite sample of an input.
static void outputs_mark_nonfinite(const struct partita_stream *stream,
                                   const struct outputs *outputs, size_t channel, char *y, size_t n)
{
    const bool fading = stream->swap.state == SWAP_FADING;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        if (!history_nonfinite(outputs->history, outputs->now, c)) continue;
        if (!output_depends_on(outputs, stream->filter, channel, c) &&
            !(fading && output_depends_on(outputs, stream->swap.incoming, channel, c)))
            continue;
        history_mark_nonfinite(outputs->history, &stream->plan->shape, outputs->now, c, y, n);
        if (outputs->history->affected_until[c] >= outputs->now + n) return; // all are marked
    }
}

// Fills y with n outputs of a channel by the stream's filter or by the incoming one.
static void outputs_compute(const struct partita_stream *stream, const struct outputs *outputs,
                            bool incoming, size_t channel, char *y, size_t n)
{
    const struct partita_filter *filter = incoming ? stream->swap.incoming : stream->filter;
    outputs->begin(stream, incoming ? 1 - outputs->set : outputs->set, channel, y, n);
    if (!outputs->paths) return;
    const struct path_view paths = outputs->paths(filter);
    for (size_t p = paths.first_path[channel]; p < paths.first_path[channel + 1]; p++)
        if (paths.heads[p].n)
            history_filter(outputs->history, stream->plan, outputs->now, &paths.heads[p], y, n);
}

size_t outputs_emit(const struct partita_stream *stream, const struct outputs *outputs,
                    const struct frames *frames, size_t n)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, bytes = shape->sample_bytes;
    // With problem.up these are outputs of branches, whose stride is 1.
    const size_t wait = stride > 1 ? stream_outputs_wait(stream) : 0;
    const size_t due = stride > 1 ? stream_outputs_due(stream, n) : n;
    const bool straight = stride == 1 && frames->y_stride == 1;
    const bool nonfinite = history_any_nonfinite(outputs->history, shape, outputs->now);
    assert(outputs->set < 2);
    for (size_t k = 0; k < shape->out_channels && due; k++) {
        char *result = frames_y(frames, k, 0, bytes), *y = straight ? result : outputs->samples[0];
        outputs_compute(stream, outputs, false, k, y, n);
        if (stream->swap.state == SWAP_FADING) {
            outputs_compute(stream, outputs, true, k, outputs->samples[1], n);
            swap_fade(stream, y, outputs->samples[1], n, 0, 1);
        }
        if (nonfinite) outputs_mark_nonfinite(stream, outputs, k, y, n);
        if (!straight) samples_copy(result, frames->y_stride, y + wait * bytes, stride, due, bytes);
    }
    if (nonfinite) history_advance(outputs->history, shape, outputs->now, n);
    return due;
}
