// SPDX-License-Identifier: MIT
// Many mono streams in one process, as bench_bank measures them, and many channels of one signal.
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

// Many channels of one signal, as bench_channelizer measures them.
struct receivers {
    const char *name;
    double rate, bandwidth;
    bool pairs; // complex samples
    size_t channels, taps, stride;
    size_t block, length; // inputs of a call; of the transform, for the textbook
    double *centres;      // [channels], multiples of rate / length
    const float *h;       // [taps]
    bool quick;
};

// An implementation. process takes a block of inputs; output has block / stride complex samples.
struct receivers_contender {
    const char *name;
    void *(*open)(const struct receivers *receivers);
    void (*process)(void *state, const struct receivers *receivers, const float *x);
    const float *(*output)(void *state, const struct receivers *receivers, size_t channel);
    void (*close)(void *state, const struct receivers *receivers);
    bool own_filter; // not h
};

extern const struct receivers_contender receivers_textbook, receivers_liquid;

#endif
