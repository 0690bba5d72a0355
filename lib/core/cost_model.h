// SPDX-License-Identifier: MIT
// The cost model: what the planner believes about this machine, in seconds. The built-in one was
// measured on one machine and is scaled roughly to other instruction sets; partita_wisdom_calibrate
// replaces it with this machine's own.
#ifndef PARTITA_HOST_H
#define PARTITA_HOST_H

#include <partita/common.h>

#include "base/cpu.h"

enum {
    COST_FFT_FIRST = 5, // transforms of 2^5 ..
    COST_FFT_LAST = 20, // .. 2^20 samples are measured; beyond them passes over memory are added
    COST_FFT_SIZES = COST_FFT_LAST - COST_FFT_FIRST + 1,
};

// Where the operands of a sum of products are: all in L2, all beyond it, or h in memory and x in
// L2.
enum cost_distance { COST_NEAR, COST_FAR, COST_MEMORY, COST_DISTANCES };

// Costs of one precision.
struct cost_rates {
    double fma;      // direct kernel: one real multiply-add of a 64-tap filter in tiles
    double fir_call; // direct kernel: fixed cost of one call
    double cmac_cached, cmac_far; // one complex bin product: operands in L2, and beyond it
    double product[COST_DISTANCES]
                  [3]; // the same in sums along lines, of which 1, 2 or 4 are made at once
    double fetch;    // a transform's first pass over samples out of cache takes this more, a scalar
    double copy;     // moving one scalar through a window or output copy
    double copy_far; // the same from and to memory beyond the caches
    double fft[2][COST_FFT_SIZES]; // forward plus inverse, a sample: real, complex
};

struct cost_model {
    enum cpu_isa level;
    size_t cache_bytes;         // L2 of one core
    size_t shared_bytes;        // the last cache, which cores share
    struct cost_rates costs[2]; // f32, f64
};

// The built-in model of a level.
void cost_model_default(struct cost_model *ret, enum cpu_isa level);

// Measures this machine in under a second. Errors: PARTITA_ERR_NOMEM. *ret is complete or
// untouched.
enum partita_status cost_model_calibrate(struct cost_model *ret, enum cpu_isa level);

// Seconds of a forward and an inverse transform of n samples, interpolated between measured sizes.
double cost_model_fft(const struct cost_model *model, bool f64, bool complex, size_t n);

// Processor, cores and level in one word-separated line: what a wisdom file is keyed by. At most
// size-1 characters.
void cost_model_machine(char *text, size_t size, enum cpu_isa level);

#endif
