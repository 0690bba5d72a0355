// SPDX-License-Identifier: MIT
// Shifts a signal in frequency: sample n of every channel is multiplied by exp(-2 pi i hz n /
// rate).
#ifndef PARTITA_APPS_TUNER_H
#define PARTITA_APPS_TUNER_H

#include <partita/problem.h>

enum { TUNER_BLOCK = 1024 };

struct tuner {
    unsigned __int128 step;       // turns from one sample to the next, times 2^128
    double table[TUNER_BLOCK][2]; // the factors of samples 0 to TUNER_BLOCK - 1
};

// Interleaved frames of a complex type.
struct tuner_frames {
    enum partita_type type;
    void *samples;
    size_t n, channels;
};

// The step is exact but for less than 2^-128 turns, so the phase of sample n is exact but for less
// than n 2^-128 turns.
void tuner_begin(struct tuner *tuner, double hz, double rate);

// Shifts frames in place. `first`: the number of the first one in the signal. The factors have an
// error below 2^-48, and depend on the number alone, not on how the signal is split.
void tuner_shift(const struct tuner *tuner, const struct tuner_frames *frames, uint64_t first);

#endif
