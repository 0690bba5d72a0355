// SPDX-License-Identifier: MIT
#include "heartbeat.h"

#include <math.h>

static const double MIN_SILENCE = 1, SILENT_PERIODS = 20, START_SECONDS = 5;

bool heartbeat_check(struct heartbeat *h, uint64_t calls, double now, double limit)
{
    double step = fmin(now - h->last_check, limit / 5);
    h->last_check = now;
    h->silence = calls == h->calls ? h->silence + step : 0;
    h->calls = calls;
    return h->silence < limit;
}

double heartbeat_limit(uint64_t calls, uint64_t frames, double rate, double latency)
{
    if (!calls) return START_SECONDS + latency;
    return fmax(MIN_SILENCE, SILENT_PERIODS * (double)frames / (double)calls / rate) + latency;
}
