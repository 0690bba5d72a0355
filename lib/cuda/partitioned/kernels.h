// SPDX-License-Identifier: MIT
// What the kernels of cuda/partitioned are asked to do, in words that C and CUDA share (decision
// 25). Time goes by in ticks of `tick` frames, each of which runs the same three kernels:
//
//   forward    of every level whose block of input is complete: one transform an input, into its
//   ring of spectra products   of every level: a share of the bins of every output, over all
//   partitions of its cells inverse    of every level whose products are complete, one transform an
//   output; level 0's plays what all have ready
//
// A level of r ticks collects a block, whose shares of bins are multiplied in the tick that
// completes it and the r - 1 that follow, and plays its outputs in the r ticks after that. So every
// tick multiplies as many bins, and one of level 0 (r = 1) is complete at once.
//
//      ticks      | 0 1 2 3 | 4 5 6 | 7 8 9 10 | ...       a level of 4 ticks
//      collect    | block 0 |
//      multiply           3 | 4 5 6 |                      shares 0 1 2 3
//      play                         | 7 8 9 10 |           so its taps begin 2r - 1 ticks after
//      those of level 0
//
// Transforms are turned ones of real samples, cyclic ones of complex samples (fft.h). Neither wraps
// into the second half of two blocks that meet one block of taps, and there the outputs are.
#ifndef PARTITA_CUDA_PARTITIONS_H
#define PARTITA_CUDA_PARTITIONS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuda/kernels/fft.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_LEVELS = 3,
    CUDA_PRODUCT_THREADS = 256, // of a thread block
    CUDA_LEAST_TICK = 16,       // frames
};

struct cuda_level {
    int ticks;  // of a block, a power of two; 1 in level 0
    int hop;    // frames of a block: ticks * tick; one partition holds as many taps
    int points; // points of a transform, bins of a spectrum: hop of real samples, 2 * hop of
                // complex ones
    int parts;  // partitions, and spectra kept of each input
    int start;  // ticks by which its taps begin after those of level 0
    struct cuda_fft_form form;
};

// Spectra lie share by share, [ticks][channel][parts][share]: what a tick multiplies is one piece.
struct cuda_partitions {
    int tick, log2_share; // bins of a tick: 2^log2_share
    int inputs, outputs;
    bool complex, f64;
    int n_levels;
    struct cuda_level level[CUDA_LEVELS];
    int rounds; // ticks of outputs that are kept for the host
    int window; // frames of the longest transform
};

// The partitions of a cell that are not zero: `count` from `first` on, in places base .. of a
// level's line of spectra.
struct cuda_cell {
    int in;
    struct {
        int first, count;
        int64_t base;
    } level[CUDA_LEVELS];
};

// A filter in the device's memory. first_cell NULL: there is none, outputs are left as they are.
struct cuda_cells {
    const int *first_cell; // [outputs + 1] into cells, which are sorted by output
    const struct cuda_cell *cells;
    const void *spectra[CUDA_LEVELS]; // [ticks][line][share]
    int64_t line[CUDA_LEVELS];        // places
};

// What the host says of a tick, in memory that both see: also what a device would divide for.
struct cuda_tick {
    uint64_t tick;
    int round;                   // of the outputs
    int newest[CUDA_LEVELS];     // which of a level's places holds the spectra of its last complete
                                 // block
    struct cuda_cells filter[2]; // of the two sets of outputs
};

// A stream's memory. On the device but for `tick`, `x` and `y`, which are the host's, pinned.
struct cuda_flow {
    const struct cuda_tick *tick;
    const void *x;              // [inputs][tick] samples of the tick
    void *y;                    // [rounds][2 sets][outputs][tick]
    struct cuda_tick *own_tick; // a copy that is near
    void *samples;              // [inputs][window] the last ones
    struct {
        void *spectra; // [ticks][inputs][parts][share]
        void *sums;    // [2 sets][outputs][points]
        void *out;     // [2 blocks in turn][2 sets][outputs][hop]; NULL in level 0
    } level[CUDA_LEVELS];
};

// Load the kernels of one tick, which a queue that records does not do.
cudaError_t cuda_load_transforms(const struct cuda_partitions *partitions);
cudaError_t cuda_load_partition_products(const struct cuda_partitions *partitions);

// Queue the kernels of one tick.
cudaError_t cuda_launch_forward(const struct cuda_partitions *partitions,
                                const struct cuda_flow *flow, cudaStream_t stream);
cudaError_t cuda_launch_partition_products(const struct cuda_partitions *partitions,
                                           const struct cuda_flow *flow, cudaStream_t stream);
cudaError_t cuda_launch_inverse(const struct cuda_partitions *partitions,
                                const struct cuda_flow *flow, cudaStream_t stream);

// Taps to be transformed for one level of a filter: cells[n] name the partitions; cell i's taps,
// causal and real or complex as samples are, begin at taps + i * span samples.
struct cuda_taps {
    int level;
    int64_t n, span, offset; // offset: the level's first tap
    const struct cuda_cell *cells;
    const void *taps;
    void *spectra;
    int64_t line;
};
cudaError_t cuda_launch_taps(const struct cuda_partitions *partitions, const struct cuda_taps *taps,
                             cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
