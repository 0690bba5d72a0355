// SPDX-License-Identifier: MIT
// The cost model: predicted times of operations on this machine, in seconds. The built-in one was
// measured on one machine and is scaled roughly to other instruction sets; partita_wisdom_calibrate
// replaces it with this machine's own.
#ifndef PARTITA_COST_MODEL_H
#define PARTITA_COST_MODEL_H

#include <partita/problem.h>

#include "base/cpu.h"

enum {
    COST_FFT_FIRST = 5, // log2 of the smallest transform that is measured
    COST_FFT_LAST = 20, // log2 of the largest; beyond it the time of passes over memory is added
    COST_FFT_SIZES = COST_FFT_LAST - COST_FFT_FIRST + 1,
};

// Where the operands x and h of a sum of products are: both in L2, both beyond it, or h in memory
// and x in L2.
enum cost_distance { COST_NEAR, COST_FAR, COST_MEMORY, COST_DISTANCES };

// Costs of one precision, all of them doubles in the order of a wisdom file.
struct cost_rates {
    double fma;      // direct kernel: one real multiply-add of a 64-tap filter, computed in tiles
    double fir_call; // fixed cost of a call of the direct kernel; other fixed costs are multiples
    double cmac_cached, cmac_far; // one complex product of bins: operands in L2; beyond L2
    double fetch;    // extra time per scalar of a transform's first pass over samples that are not
                     // in a cache
    double copy;     // copying one scalar into a window or to an output
    double copy_far; // the same from and to memory beyond the caches
    double product[COST_DISTANCES][3]; // as cmac_far, by cmac_partitions with 1, 2 or 4 sums
    double fft[2][COST_FFT_SIZES];     // forward plus inverse, per sample: real, complex
};

struct cost_model {
    enum cpu_isa isa;
    size_t cache_bytes;         // L2 of one core
    size_t shared_bytes;        // last-level cache, which cores share
    struct cost_rates costs[2]; // f32, f64
};

// The built-in model of an instruction set.
void cost_model_default(struct cost_model *ret, enum cpu_isa isa);

// Seconds of a forward and an inverse transform of n samples, interpolated between measured sizes.
double cost_model_fft(const struct cost_model *model, bool f64, bool complex, size_t n);

// Processor, cores and instruction set in one line of words: the key of a wisdom file. At most
// size-1 characters.
void cost_model_machine(char *text, size_t size, enum cpu_isa isa);

#endif
