// SPDX-License-Identifier: MIT
// The last frames of every input of a stream, each stored twice so that windows never wrap. A
// non-finite sample would spread over whole blocks in a transform, so it is stored as 0; the
// outputs that depend on it are later set to NaN. Frames are counted from the stream's begin.
#ifndef PARTITA_HISTORY_H
#define PARTITA_HISTORY_H

#include "stream.h"

struct history {
    size_t frames;             // kept a channel
    size_t delay;              // by how many frames outputs are behind the inputs
    uint64_t *nonzero_until;   // [in] frames up to the last one that was not zero
    uint64_t *nonfinite_until; // [in] frames up to the last one that was not finite
    unsigned char *nonfinite;  // [in][frames] which frames were not finite
    uint64_t *affected_until;  // [in] output frames up to which a non-finite input has an effect
    char *samples;             // [in][2 * frames]
};

// Lays a history out in an arena that is part of a stream's region; zeros are a history without
// input.
void history_layout(struct history *history, const struct shape *shape, struct arena *arena);

// A frame of a channel by its index < 2 * frames.
char *history_at(const struct history *history, const struct shape *shape, size_t channel,
                 size_t index);

// Takes n frames of every input, of which the first is frame `now`; they do not wrap.
void history_take(struct history *history, const struct partita_plan *plan, uint64_t now,
                  const struct frames *frames, size_t n);

// Causal taps of one input.
struct history_taps {
    size_t channel;
    const char *taps;
    size_t n;
};

// Adds these taps, applied to frames now .. now+n-1 less what outputs are late, to y.
void history_filter(const struct history *history, const struct partita_plan *plan, uint64_t now,
                    const struct history_taps *taps, char *y, size_t n);

// Whether outputs from frame `now` on depend, or may yet depend, on a non-finite sample of an
// input, or of any.
bool history_nonfinite(const struct history *history, uint64_t now, size_t channel);
bool history_any_nonfinite(const struct history *history, const struct shape *shape, uint64_t now);

// Sets those of the outputs now .. now+n-1 to NaN that depend on such a sample of an input.
void history_mark_nonfinite(const struct history *history, const struct shape *shape, uint64_t now,
                            size_t channel, char *y, size_t n);

// Moves on by n frames, whether or not any output fell due.
void history_advance(struct history *history, const struct shape *shape, uint64_t now, size_t n);

#endif
