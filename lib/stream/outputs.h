// SPDX-License-Identifier: MIT
// Outputs of a stream whose inputs are in a history, channel by channel: those by the stream's
// filter, the incoming one's faded into them, no numbers where a sample is heard that was none, and
// of them what the stride leaves.
#ifndef PARTITA_OUTPUTS_H
#define PARTITA_OUTPUTS_H

#include "history.h"
#include "paths.h"

// What an engine knows of a step's outputs.
struct outputs {
    const struct history *history;
    uint64_t now;         // frame of the first
    size_t set;           // which of the two sets of outputs belongs to the stream's own filter
    char *const *samples; // [2] room for a step's outputs of one channel
    // Fills y with n outputs of a channel by a filter, to which that set belongs.
    void (*compute)(const struct partita_stream *stream, const struct partita_filter *filter,
                    size_t set, size_t channel, char *y, size_t n);
    struct path_view (*cells)(const struct partita_filter *filter);
};

// Writes the outputs that fall due with n frames; returns how many.
size_t outputs_emit(const struct partita_stream *stream, const struct outputs *outputs,
                    const struct frames *frames, size_t n);

#endif
