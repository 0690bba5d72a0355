// SPDX-License-Identifier: MIT
// A limiter to full scale without look-ahead, hence without latency. One gain for all channels
// drops at once to what the loudest sample needs and recovers exponentially. After Giannoulis,
// Massberg, Reiss, "Digital dynamic range compressor design", JAES 60(6), 2012: hard knee, infinite
// ratio, attack time 0, release in the gain. When the gain has recovered, samples within full scale
// pass unchanged.
#ifndef PARTITA_APPS_LIVE_LIMITER_H
#define PARTITA_APPS_LIVE_LIMITER_H

#include <stddef.h>

struct limiter {
    double gain;    // current; a double, since float steps are too coarse to recover to 1
    double release; // fraction of 1 - gain that is recovered per frame
};

// release: time constant of the recovery in seconds.
void limiter_open(struct limiter *limiter, double rate, double release);

// Limits n frames of finite samples in place, a pointer a channel. Returns how many frames were
// attenuated.
size_t limiter_process(struct limiter *limiter, float *const *x, size_t channels, size_t n);

#endif
