// SPDX-License-Identifier: MIT
#include "outputs.h"

#include "geometry/samples.h"

static bool hears(const struct outputs *outputs, const struct partita_filter *filter, size_t out,
                  size_t in)
{
    const struct path_view cells = outputs->cells(filter);
    for (size_t c = cells.first_cell[out]; c < cells.first_cell[out + 1]; c++)
        if (cells.in(cells.filter, c) == in) return true;
    return false;
}

// Makes those outputs no numbers that hear an input which was none.
static void poison(const struct partita_stream *stream, const struct outputs *outputs,
                   size_t channel, char *y, size_t n)
{
    const bool fading = stream->swap.state == SWAP_FADING;
    for (size_t c = 0; c < stream->plan->shape.in_channels; c++) {
        if (!history_nonfinite(outputs->history, outputs->now, c)) continue;
        if (hears(outputs, stream->filter, channel, c) ||
            (fading && hears(outputs, stream->swap.incoming, channel, c)))
            history_mark_nonfinite(outputs->history, &stream->plan->shape, outputs->now, c, y, n);
    }
}

size_t outputs_emit(const struct partita_stream *stream, const struct outputs *outputs,
                    const struct frames *frames, size_t n)
{
    const struct shape *shape = &stream->plan->shape;
    const size_t stride = shape->axis[0].stride, bytes = shape->sample_bytes;
    const size_t wait = (stride - stream->phase) % stride,
                 due = n > wait ? (n - wait - 1) / stride + 1 : 0;
    const bool straight = stride == 1 && frames->y_stride == 1;
    const bool poisoned = history_any_nonfinite(outputs->history, shape, outputs->now);
    for (size_t k = 0; k < shape->out_channels && due; k++) {
        char *own = frames_y(frames, k, 0, bytes), *y = straight ? own : outputs->samples[0];
        outputs->compute(stream, stream->filter, outputs->set, k, y, n);
        if (stream->swap.state == SWAP_FADING) {
            outputs->compute(stream, stream->swap.incoming, 1 - outputs->set, k,
                             outputs->samples[1], n);
            swap_fade(stream, y, outputs->samples[1], n, 0, 1);
        }
        if (poisoned) poison(stream, outputs, k, y, n);
        if (!straight) samples_copy(own, frames->y_stride, y + wait * bytes, stride, due, bytes);
    }
    return due;
}
