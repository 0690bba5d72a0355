// SPDX-License-Identifier: MIT
// Many mono streams in one process, as bench_bank measures them.
#ifndef BENCH_INSTANCES_H
#define BENCH_INSTANCES_H

#include "base/basics.h"

struct instances {
    const char *name;
    size_t slots, taps, block;
    bool shared; // one filter for all slots
};

// The taps of a slot, written to `taps`.
void instances_taps(const struct instances *instances, size_t slot, float *taps);

// An implementation. open returns NULL if it cannot serve so many, with a message on stderr.
struct instances_contender {
    const char *name;
    void *(*open)(const struct instances *instances);
    float *(*input)(void *state, const struct instances *instances, size_t slot); // [block]
    void (*process)(void *state, const struct instances *instances);
    const float *(*output)(void *state, const struct instances *instances, size_t slot);
    void (*close)(void *state, const struct instances *instances);
};

extern const struct instances_contender instances_zita;

#endif
