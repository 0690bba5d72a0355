// SPDX-License-Identifier: MIT
// The last frames of every input of a stream, each stored twice so that windows never wrap. A
// non-finite sample would spread over whole blocks in a transform, so it is stored as 0; the
// outputs that depend on it are later set to NaN. Frames are counted from the start of the stream.
#ifndef PARTITA_HISTORY_H
#define PARTITA_HISTORY_H

#include "stream.h"

struct history {
    size_t frames;             // kept per channel
    size_t delay;              // frames by which outputs are behind the inputs
    uint64_t *nonzero_until;   // [in] number of frames up to and including the last one that was
                               // not zero
    uint64_t *nonfinite_until; // [in] number of frames up to and including the last one that was
                               // not finite
    unsigned char *nonfinite;  // [in][frames] which frames were not finite
    uint64_t *affected_until;  // [in] number of output frames up to the last one that a non-finite
                               // input affects
    char *samples;             // [in][2 * frames]
};

// Lays a history out in an arena that is part of a stream's region; all zeros is a history without
// input.
void history_layout(struct history *history, const struct shape *shape, struct arena *arena);

// A frame of a channel by its index < 2 * frames.
char *history_at(const struct history *history, const struct shape *shape, size_t channel,
                 size_t index);

// Appends n frames of every input, from frame `now` on; they must not wrap around the ring's end.
void history_take(struct history *history, const struct partita_plan *plan, uint64_t now,
                  const struct frames *frames, size_t n);

// Causal taps of one input.
struct history_taps {
    size_t channel;
    const char *taps;
    size_t n;
};

// Adds to y the inputs filtered with these taps, for outputs now .. now+n-1: output i is that of
// frame i - delay.
void history_filter(const struct history *history, const struct partita_plan *plan, uint64_t now,
                    const struct history_taps *taps, char *y, size_t n);

// Whether outputs from frame `now` on depend, or may depend, on a non-finite sample of one input,
// or of any input.
bool history_nonfinite(const struct history *history, uint64_t now, size_t channel);
bool history_any_nonfinite(const struct history *history, const struct shape *shape, uint64_t now);

// Sets those of the outputs now .. now+n-1 to NaN that depend on a non-finite sample of an input.
void history_mark_nonfinite(const struct history *history, const struct shape *shape, uint64_t now,
                            size_t channel, char *y, size_t n);

// Advances by n frames, whether or not any output was due.
void history_advance(const struct history *history, const struct shape *shape, uint64_t now,
                     size_t n);

#endif
