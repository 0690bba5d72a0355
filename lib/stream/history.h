// SPDX-License-Identifier: MIT
// The last frames of every input of a stream, in a line that is read in windows, and what came in
// that was no number. In a transform such a sample would spread over whole blocks, so it is a zero
// here, and is remembered for the outputs that hear it. Frames are counted from the stream's begin.
#ifndef PARTITA_HISTORY_H
#define PARTITA_HISTORY_H

#include "stream.h"

struct history {
    size_t frames;        // kept a channel
    size_t late;          // by how many frames outputs are behind the inputs
    uint64_t *loud;       // [in] frames up to the last one that was not zero
    uint64_t *bad;        // [in] frames up to the last one that was no number
    unsigned char *marks; // [in][frames] which frames were none
    uint64_t *poisoned;   // [in] output frames up to which such an input is heard
    char *samples;        // [in][2 * frames] every frame twice: windows never wrap
};

// Cut out of an arena that is part of a stream's region; zeros are a history without input.
void history_layout(struct history *history, const struct shape *shape, struct arena *arena);

// A frame's place in a channel's line, index < 2 * frames.
char *history_at(const struct history *history, const struct shape *shape, size_t channel,
                 size_t index);

// Takes n frames of every input, of which the first is frame `now`; they do not go round the line.
void history_take(struct history *history, const struct partita_plan *plan, uint64_t now,
                  const struct frames *frames, size_t n);

// Adds `taps` causal taps, applied to frames now .. now+n-1 of an input less what outputs are late,
// to y.
void history_filter(const struct history *history, const struct partita_plan *plan, uint64_t now,
                    size_t channel, const char *taps, size_t n_taps, char *y, size_t n);

// Whether outputs from frame `now` on hear, or may yet hear, a sample of an input, or of any, that
// was no number.
bool history_nonfinite(const struct history *history, uint64_t now, size_t channel);
bool history_any_nonfinite(const struct history *history, const struct shape *shape, uint64_t now);

// Makes those of the outputs now .. now+n-1 no numbers that hear such a sample of an input.
void history_mark_nonfinite(const struct history *history, const struct shape *shape, uint64_t now,
                            size_t channel, char *y, size_t n);

// The same for what comes after these frames, whether or not any output fell due.
void history_advance(struct history *history, const struct shape *shape, uint64_t now, size_t n);

#endif
