// SPDX-License-Identifier: MIT
// Detects a dead or stopped audio server by missing callbacks. PortAudio does not report it: its
// stream stays "active" when a JACK server is stopped.
#ifndef PARTITA_APPS_LIVE_HEARTBEAT_H
#define PARTITA_APPS_LIVE_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct heartbeat {
    uint64_t calls;
    double last_check; // s; at first the start
    double silence;    // observed time without a call, s
};

// Checks the number of calls so far. False: there was none for `limit` seconds. Each check counts
// at most a fifth of the limit, so that time in which the program itself was stopped is not
// attributed to the server.
bool heartbeat_check(struct heartbeat *heartbeat, uint64_t calls, double now, double limit);

// The limit for a device that has made `calls` calls for `frames` frames: twenty of its periods,
// but at least one second; five seconds before the first call. latency: s, added to the limit,
// since a device may fill its buffers before it calls again.
double heartbeat_limit(uint64_t calls, uint64_t frames, double rate, double latency);

#endif
