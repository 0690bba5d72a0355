// SPDX-License-Identifier: MIT
#ifndef PARTITA_APPS_CLOCK_H
#define PARTITA_APPS_CLOCK_H

#include <time.h>

// Seconds of a monotonic clock.
static inline double clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
