// SPDX-License-Identifier: MIT
// Adaptive filters; partita/adaptive.h has the recursion and its names. The work of a block is done
// in tasks, one for each partition of each channel: its step, its constraint, and its product with
// the spectrum that it meets in the next block, which is already there. Only the newest spectrum,
// which the first partition meets, is left for the call that completes a block. Tasks depend on the
// block alone and may run at any time before the next one is complete.
#ifndef PARTITA_LIB_ADAPTIVE_H
#define PARTITA_LIB_ADAPTIVE_H

#include "fft/fft.h"
#include "kernels/kernels.h"

#include <partita/adaptive.h>

// Of the tasks of a block: steps; or no step; or none after the return to a copy or to zeros.
enum adaptive_action { LEARN, REST, RESTORE, RESTART };

// The part of the state that is not an array.
struct adaptive_state {
    uint64_t blocks, rested, restored, restarted;
    uint64_t filled, done;             // frames of the current block; tasks of the last one
    uint64_t newest;                   // slot of the newest spectra
    double near_power, residual_power; // means over about ten blocks
    double coherence, spread;          // h after the last block that was learned from; its q;
    double predicted_power, echo_power, other; // sums over its bins of D, c |Y|^2 and V
    enum adaptive_action action;
    bool keeps;    // the tasks make a copy
    bool has_copy; // at the latest when the tasks are done
    bool frozen;   // by the caller
};

// Spectra, and arrays of a real for each bin, at the distance of a spectrum in memory.
struct adaptive_arrays {
    void *estimate;               // a spectrum: the sum of the products so far
    void *power, *squares;        // sums of P |X|^2 and |W|^2
    void *error;                  // a spectrum, E
    void *other;                  // V
    void *residual, *echo, *both; // means of |E|^2, c |Y|^2 and the real part of E conj(Y)
    void *mean;                   // P of all partitions, without state space
    void *gain;                   // R / P
};
enum { ADAPTIVE_ARRAYS = sizeof(struct adaptive_arrays) / sizeof(void *) };

struct partita_adaptive {
    struct partita_adaptive_options options; // completed
    const struct kernels *kernels;
    const struct adaptive_loops *loops;
    struct fft *fft;
    size_t scalar, partitions, tasks;  // bytes of a sample; partitions of a channel, of all
    size_t bins;                       // of a spectrum, with unused lanes
    size_t spectrum_bytes, part_bytes; // of a spectrum; of an array of bins
    double share, prior;               // c; P at first
    struct adaptive_state *state;      // the bytes of the state begin here
    struct adaptive_arrays arrays;
    char *windows, *near_end, *residual; // [channels][n]; [block], zeros up to whole lines
    char *spectra;                       // [channels][partitions], a ring of slots
    char *weights, *copy, *variances;    // [channels][partitions]
    size_t state_bytes;
    char *samples, *spectrum, *scratch; // of a transform
};

// Inner loops, built once for each instruction set and precision, as those of lib/kernels are.
struct adaptive_loops {
    // The step of a partition, with the spectrum x: W, P and squares.
    void (*step)(const struct partita_adaptive *adaptive, size_t part, const void *x);
    // estimate += W X, power += P |X|^2.
    void (*multiply)(const struct partita_adaptive *adaptive, size_t part, const void *x);
    // From error, estimate, power and squares all other arrays, and the sums of the state.
    void (*control)(const struct partita_adaptive *adaptive);
};

// Never NULL: as kernels_select.
const struct adaptive_loops *adaptive_loops_of(enum cpu_isa isa, bool f64);

// Checks a caller's options and fills in their defaults; the log names the field that is refused.
enum partita_status adaptive_resolve(struct partita_adaptive_options *ret,
                                     const struct partita_adaptive_options *given, size_t bytes);

// Runs the tasks of the last block up to the given one.
void adaptive_run_tasks(struct partita_adaptive *adaptive, size_t end);

#endif
