// SPDX-License-Identifier: MIT
// Tells a dead or stopped audio server by its callbacks: no host says so itself (PortAudio has no
// call for it, and its stream stays "active" when a JACK server is stopped).
#ifndef PARTITA_APPS_LIVE_HEARTBEAT_H
#define PARTITA_APPS_LIVE_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct heartbeat {
    uint64_t calls;
    double last_look; // s
    double silence;   // s that were looked at without a call
};

void heartbeat_start(struct heartbeat *heartbeat, double now);

// Looks at the number of calls so far. False: none for `limit` seconds. Only time that was looked
// at counts, in steps of at most a fifth of the limit: a program that was itself stopped has seen
// nothing, and must not blame the server.
bool heartbeat_look(struct heartbeat *heartbeat, uint64_t calls, double now, double limit);

// The limit for a host that has called so often for so many frames: twenty of its periods, at least
// a second; before its first call, five. latency: s that lie in its buffers and may pass besides
// without a call.
double heartbeat_limit(uint64_t calls, uint64_t frames, double rate, double latency);

#endif
