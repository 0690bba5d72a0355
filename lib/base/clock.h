// SPDX-License-Identifier: MIT
#ifndef PARTITA_CLOCK_H
#define PARTITA_CLOCK_H

#include <time.h>

// Seconds of a clock that never goes back.
static inline double clock_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
