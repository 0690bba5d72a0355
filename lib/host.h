// SPDX-License-Identifier: MIT
// The host model: what the planner believes about this machine, in seconds. Defaults are figures measured once per
// instruction set; partita_wisdom_calibrate replaces them with this machine's own.
#ifndef PARTITA_HOST_H
#define PARTITA_HOST_H

#include "cpu.h"

#include <stdbool.h>
#include <stddef.h>

enum { HOST_FFT_SIZES = 25 }; // transforms of 2^0 .. 2^24 samples

// Costs of one precision.
struct host_costs {
    double fma;                    // direct kernel: one real multiply-add of a long filter
    double fir_call;               // direct kernel: fixed cost of one call and one segment per sample (see host.c)
    double cmac_cached, cmac_far;  // one complex bin product: operands in L2, and beyond
    double copy;                   // moving one scalar through a gather or scatter loop
    double fft_real[HOST_FFT_SIZES];    // forward plus inverse of a real transform, per sample
    double fft_complex[HOST_FFT_SIZES]; // the same for complex samples
};

struct host {
    enum cpu_level level;
    size_t cache_bytes;            // L2 of one core
    struct host_costs costs[2];    // f32, f64
};

// The built-in model of a level.
void host_default(struct host *ret, enum cpu_level level);

// Measures this machine in under a second. Errors: PARTITA_ERR_NOMEM. *ret is complete or untouched.
#include <partita/common.h>
enum partita_status host_calibrate(struct host *ret, enum cpu_level level);

// Seconds of a forward and an inverse transform of n samples, interpolated between measured sizes.
double host_fft(const struct host *host, bool f64, bool complex, size_t n);

#endif
