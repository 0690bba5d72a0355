// SPDX-License-Identifier: MIT
// Phases are integers modulo one turn, 2^128, so they do not lose precision in long signals.
#include "tuner.h"

#include <math.h>
#include <string.h>

#include "base/sample_type.h"

// Long division of |hz| by the rate, bit by bit. Every operation is exact: the remainder is below
// the rate, and a difference of two numbers that differ by at most a factor of 2 is not rounded.
static unsigned __int128 turns_per_sample(double hz, double rate)
{
    double remainder = fmod(fabs(hz), rate);
    unsigned __int128 turns = 0;
    for (int bit = 0; bit < 128; bit++) {
        remainder *= 2;
        turns <<= 1;
        if (remainder < rate) continue;
        remainder -= rate;
        turns |= 1;
    }
    return hz < 0 ? -turns : turns;
}

// exp(-2 pi i turns): the upper half of the phase, from -1/2 to 1/2 turns, has more bits than a
// double. The angle has an error of at most 2^-50.
static void rotation(double factor[2], unsigned __int128 turns)
{
    static const double TURN = 6.283185307179586476925;
    const double angle = TURN * ldexp((double)(int64_t)(uint64_t)(turns >> 64), -64);
    factor[0] = cos(angle);
    factor[1] = -sin(angle);
}

void tuner_begin(struct tuner *tuner, double hz, double rate)
{
    tuner->step = turns_per_sample(hz, rate);
    for (unsigned k = 0; k < TUNER_BLOCK; k++) rotation(tuner->table[k], k * tuner->step);
}

void tuner_shift(const struct tuner *tuner, const struct tuner_frames *frames, uint64_t first)
{
    const size_t reals = 2 * frames->channels;
    const bool wide = type_is_double(frames->type);
    double block[2] = {0}, *d = frames->samples;
    float *f = frames->samples;
    for (size_t i = 0; i < frames->n; i++) {
        const uint64_t n = first + i;
        const double *step = tuner->table[n % TUNER_BLOCK];
        if (i == 0 || n % TUNER_BLOCK == 0) rotation(block, (n - n % TUNER_BLOCK) * tuner->step);
        const double re = block[0] * step[0] - block[1] * step[1];
        const double im = block[0] * step[1] + block[1] * step[0];
        for (size_t k = i * reals; k < (i + 1) * reals; k += 2) {
            const double a = wide ? d[k] : (double)f[k], b = wide ? d[k + 1] : (double)f[k + 1];
            const double y[2] = {a * re - b * im, a * im + b * re};
            if (wide) memcpy(d + k, y, sizeof y);
            else f[k] = (float)y[0], f[k + 1] = (float)y[1];
        }
    }
}
