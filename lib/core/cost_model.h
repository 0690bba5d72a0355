// SPDX-License-Identifier: MIT
// The cost model: engines count work, and the model has the seconds of each kind of work on this
// machine. The built-in one was measured on one machine and is scaled roughly to other instruction
// sets; partita_wisdom_calibrate replaces it with this machine's own.
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

// Amounts of the kinds of work that engines count, and in a cost model the seconds of one of each.
struct work {
    // Measured by calibration.
    double fma;      // direct kernel: one real multiply-add of a 64-tap filter, computed in tiles
    double call;     // fixed cost of a call of the direct kernel
    double pair;     // two multiply-adds of a pair of bf16 (kernels->conv_pairs)
    double copy;     // copying one scalar into a window or to an output
    double copy_far; // the same from and to memory beyond the caches
    double fetch;    // extra time per scalar of a transform's first pass over samples that are not
                     // in a cache
    // In proportion to one of those before (work_derive).
    double row;    // a row of samples or results that is packed or transformed, besides its samples
    double gather; // moving a scalar whose neighbours go elsewhere
    double pack;   // packing a transformed tap
    double product;   // a multiply-add of a product of spectra
    double one_load;  // a multiply-add that loads one of its factors
    double two_loads; // a multiply-add that loads both of its factors
    double reduction; // adding the lanes of a sum
    double sum;       // storing a sum of products, and loading it where others began it
    double task;      // starting a part of a stream's work
    double block;     // a block or a pair of tiles that is transformed, besides its loops
    double lanes;     // moving a sample from a plane to a lane, or back
    double operation; // multiplication or addition of a transform in lanes, with loads and stores
    double minimal;   // multiply-add of a transform of minimal filtering
    double minimal_copy; // moving a scalar in such a transform
};

// Costs of one precision, all of them doubles in the order of a wisdom file.
struct cost_rates {
    struct work work;                  // seconds of one of each
    double cmac_cached, cmac_far;      // one complex product of bins: operands in L2; beyond L2
    double product[COST_DISTANCES][3]; // as cmac_far, by cmac_partitions with 1, 2 or 4 sums
    double fft[2][COST_FFT_SIZES];     // forward plus inverse, per sample: real, complex
};

struct cost_model {
    enum cpu_isa isa;
    bool pairs;                 // cpu_sums_pairs()
    size_t cache_bytes;         // L2 of one core
    size_t shared_bytes;        // last-level cache, which cores share
    struct cost_rates costs[2]; // f32, f64
};

// The built-in model of an instruction set.
void cost_model_default(struct cost_model *ret, enum cpu_isa isa);

// Sets the rates that are proportional to measured ones.
void work_derive(struct work *rates, enum cpu_isa isa);

// Adds an amount of work so many times.
void work_add(struct work *to, const struct work *more, double times);

// Adds moving scalars once within a working set of so many bytes: the larger it is, the more of it
// the last cache has lost to others, and to factors and the arrays of the call.
void work_move(struct work *to, const struct cost_model *model, double scalars, double bytes);

// Seconds of an amount of work.
double work_seconds(const struct work *work, const struct cost_rates *costs);

// Seconds of a forward and an inverse transform of n samples, interpolated between measured sizes.
double cost_model_fft(const struct cost_model *model, bool f64, bool complex, size_t n);

// Processor, cores and instruction set in one line of words: the key of a wisdom file. At most
// size-1 characters.
void cost_model_machine(char *text, size_t size, enum cpu_isa isa);

#endif
