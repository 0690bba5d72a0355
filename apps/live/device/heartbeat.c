// SPDX-License-Identifier: MIT
// See heartbeat.h.
#include "heartbeat.h"

#include <math.h>

static const double LEAST_SILENCE = 1, SILENT_PERIODS = 20, START_SECONDS = 5;

void heartbeat_start(struct heartbeat *heartbeat, double now)
{
    *heartbeat = (struct heartbeat){.last_look = now};
}

bool heartbeat_look(struct heartbeat *heartbeat, uint64_t calls, double now, double limit)
{
    struct heartbeat *h = heartbeat;
    double step = fmin(now - h->last_look, limit / 5);
    h->last_look = now;
    h->silence = calls == h->calls ? h->silence + step : 0;
    h->calls = calls;
    return h->silence < limit;
}

double heartbeat_limit(uint64_t calls, uint64_t frames, double rate, double latency)
{
    if (!calls) return START_SECONDS + latency;
    return fmax(LEAST_SILENCE, SILENT_PERIODS * (double)frames / (double)calls / rate) + latency;
}
