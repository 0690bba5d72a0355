// SPDX-License-Identifier: MIT
// Holds frames within full scale without looking ahead, so without delay: one gain for all channels
// falls at once to what the loudest sample needs and recovers exponentially. After Giannoulis,
// Massberg, Reiss, "Digital dynamic range compressor design", JAES 60(6), 2012: hard knee, infinite
// ratio, attack time 0, release in the gain. Below full scale and recovered, samples pass bit for
// bit.
#ifndef PARTITA_APPS_LIVE_LIMITER_H
#define PARTITA_APPS_LIVE_LIMITER_H

#include <stddef.h>

struct limiter {
    double gain; // now, at most 1; a float would stop short of 1, its steps being larger than those
                 // that lead there
    double release; // share of the way to 1 that a frame makes good
};

// release: seconds in which all but 1/e of a reduction is undone.
void limiter_open(struct limiter *limiter, double rate, double release);

// Limits n frames of finite samples in place, a pointer a channel. Returns how many frames were
// attenuated.
size_t limiter_run(struct limiter *limiter, float *const *x, size_t channels, size_t n);

#endif
