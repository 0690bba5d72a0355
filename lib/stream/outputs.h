// SPDX-License-Identifier: MIT
// Outputs of a stream whose inputs are in a history, channel by channel: computed with the stream's
// filter, faded into those of the incoming one during a swap, NaN where they depend on a non-finite
// sample, and decimated by the stride.
#ifndef PARTITA_OUTPUTS_H
#define PARTITA_OUTPUTS_H

#include "history.h"
#include "paths.h"

// The position of a stream that works in quanta of frames, from its start. If calls consist of
// whole quanta, the work on a quantum precedes the writing of its outputs: while they are written
// the quantum counts as complete, and the position is one quantum ahead of the frame that is
// written.
struct position {
    uint64_t quantum; // complete quanta
    size_t fill;      // frames of the quantum that is being collected, or written
    size_t set;       // which of the two sets of outputs belongs to the stream's own filter
};

static inline uint64_t position_frame(const struct position *position, size_t quantum)
{
    return position->quantum * quantum + position->fill;
}

// How an engine computes a step's outputs.
struct outputs {
    const struct history *history;
    uint64_t now;         // frame of the first output
    size_t set;           // which of the two sets of outputs belongs to the stream's own filter
    char *const *samples; // [2] buffers for a step's outputs of one channel
    // Writes to y the finished outputs of a set, n of one channel, to which the heads' sums are
    // added if there are paths.
    void (*begin)(const struct partita_stream *stream, size_t set, size_t channel, char *y,
                  size_t n);
    // NULL: no heads, and outputs depend on all inputs of their group.
    struct path_view (*paths)(const struct partita_filter *filter);
};

// Writes the outputs that become due with n frames, and advances the history by these; returns
// their number.
size_t outputs_emit(const struct partita_stream *stream, const struct outputs *outputs,
                    const struct frames *frames, size_t n);

#endif
