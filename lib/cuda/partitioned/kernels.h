// SPDX-License-Identifier: MIT
// The interface between C and CUDA for the kernels of cuda/partitioned (decision 25). Time advances
// in quanta of a few frames. Each quantum runs the same three kernels:
//
//   forward   of every segment whose block of input is complete: one transform an input, into its
//             ring of spectra
//   products  of every segment: a share of the bins of every output, over all partitions of its
//             paths
//   inverse   of every segment whose products are complete: one transform an output; that of
//             segment 0 also adds the finished sums of the other segments and writes the outputs
//
// A segment with r > 1 quanta per block collects the block, multiplies one share of its bins in the
// quantum that completes it and one in each of the r - 1 that follow, and outputs the result in the
// r quanta after that. So every quantum multiplies the same number of bins. A block of segment 0 (r
// = 1) is complete at once.
//
//      quanta     | 0 1 2 3 | 4 5 6 | 7 8 9 10 | ...       a segment with r = 4
//      collect    | block 0 |
//      multiply           3 | 4 5 6 |                      shares 0 1 2 3
//      output                       | 7 8 9 10 |           so its taps begin 2r - 1 quanta after
//                                                          those of segment 0
//
// Transforms are negacyclic of real samples and cyclic of complex samples (fft.h). In the product
// of two blocks of input with the taps of one partition the second half does not wrap; it is the
// output.
//
// Groups of channels that share no path begin their blocks in turn: group g is g modulo r quanta
// ahead, as if it had been fed silence for so long. With r groups or more every quantum therefore
// transforms about equally many blocks. Below, a group's own quantum is the stream's and these.
//
// A bank (bank.h) is computed as a stream with a group for each slot. The groups have filters and
// phases of their own, and lists say which of them have work in a quantum.
#ifndef PARTITA_CUDA_PARTITIONED_KERNELS_H
#define PARTITA_CUDA_PARTITIONED_KERNELS_H

#include "cuda/kernels/fft.h"

enum {
    CUDA_MAX_SEGMENTS = 3,
    CUDA_PRODUCT_THREADS = 256, // of a thread block
    CUDA_I16_BINS = 16,         // of a spectrum in 16 bits that have a scale together
};

// Partitions of one size.
struct cuda_segment {
    int quanta;     // of a block, a power of two; 1 in segment 0
    int hop;        // frames of a block, and taps of a partition: quanta * quantum
    int points;     // of a transform, and bins of a spectrum: hop of real samples, 2 * hop of
                    // complex ones
    int partitions; // and stored spectra of each input
    int start;      // quanta by which its taps begin after those of segment 0
    struct cuda_fft_form form;
};

// The layout of spectra is [quanta][channel][partitions][share]: the share that a quantum
// multiplies is contiguous.
struct cuda_partition_layout {
    int quantum, log2_share; // bins of a share: 2^log2_share
    int inputs, outputs;
    int groups, group_inputs, group_outputs; // channels of a group
    bool complex, f64;
    bool i16; // spectra of filters have 16 bits; f32 (spectra_i16.cuh)
    int n_segments;
    struct cuda_segment segment[CUDA_MAX_SEGMENTS];
    int ring_quanta; // quanta of outputs that are kept
    int window;      // frames of the longest transform
    int64_t history; // frames that are kept of each input, whole quanta
    // Frames by which outputs are behind the inputs, for the heads' taps and for the partitions'.
    int64_t latency, delay;
    int64_t span, stride;
    bool complex_taps;
};

// The partitions of a path that are not zero: `count` of them from `first` on.
struct cuda_path_range {
    int first, count;
    int columns; // of all paths whose spectra are stored together, [quanta][columns][share]
    uint32_t at; // the share of the path's first column; 2^32 shares take at least 272 GiB
};

struct cuda_path {
    int in;
    int head_taps; // its first taps, which are in no partition, in causal order:
    const void *head;
    void *spectra; // shares of all segments
    float *scales; // in 16 bits, of the lines of each share
    struct cuda_path_range segment[CUDA_MAX_SEGMENTS];
};

// A filter in the device's memory. first_path NULL: there is no filter, and outputs are not
// written.
struct cuda_paths {
    size_t *first_path; // [outputs + 1] into paths, which are sorted by output
    struct cuda_path *paths;
};

// The filters of a stream, or of a slot of a bank, and the fade from one to the other.
struct cuda_slot {
    struct cuda_paths filter[2];   // of the two sets of outputs
    int phase;                     // quanta that the slot is ahead; 0 of a stream
    int set;                       // of the slot's own filter
    uint64_t fade_begin, fade_end; // frames; ~0: the other set has no outputs
    uint64_t fade;                 // frames
};

// A filter that replaces that of a slot. `number` counts the swaps of a stream; 0: none.
struct cuda_swap {
    struct cuda_paths filter;
    uint64_t fade;
    unsigned number;
};

// The description of a quantum.
struct cuda_quantum {
    uint64_t number;
    int fill;                      // frames that it has already
    int frames;                    // that the step adds: nothing is done without a whole quantum
    int64_t x_from;                // its first frame in x
    int ring_index;                // of the outputs
    int newest[CUDA_MAX_SEGMENTS]; // index of the spectra of group 0's last complete block
    struct cuda_slot slot;         // of a stream
};

// The slots of a bank that have work in a quantum, as 2 * slot + set, in the device's memory. Those
// of segment 0 are all open ones, first with the sets of their own filters, then, in `finished`,
// those that have another filter as well with the other set.
struct cuda_bank_work {
    const struct cuda_slot *slots; // NULL: not a bank
    const uint32_t *collected[CUDA_MAX_SEGMENTS], *finished[CUDA_MAX_SEGMENTS];
};

// The work of the kernels of a quantum. The host knows this of banks: kernels then have only
// thread blocks with work. Of a stream only the device knows the quantum: there are thread blocks
// for the largest number of groups that can be due and for both sets, and those without work return
// at once.
struct cuda_partition_launch {
    int collected[CUDA_MAX_SEGMENTS],
        finished[CUDA_MAX_SEGMENTS]; // groups whose block is complete, and whose products are; of a
                                     // bank the entries of the lists
    struct cuda_quantum quantum;     // of a bank, without filters
    struct cuda_bank_work bank;
};

// The memory of a stream or a bank, on the device except pinned memory. A bank has neither a
// position nor pinned memory (frames.h).
struct cuda_partition_memory {
    const struct cuda_quantum *quantum; // NULL: that of the launch
    struct cuda_position *position;
    unsigned char *nonfinite; // [inputs][history] whether a sample was not finite, and is stored
                              // as 0
    uint64_t *nonfinite_until, *affected_until; // [inputs] as in struct history
    unsigned *settled;            // pinned: the number of the last swap that is complete
    const struct cuda_step *step; // pinned: the next step; NULL: that of the launch
    void *x;                      // [inputs][history] samples
    void *y;                      // [ring_quanta][2 sets][outputs][quantum]
    void *samples;                // [inputs][window], a ring
    struct {
        void *spectra; // [quanta][inputs][partitions][share]
        void *sums;    // [2 sets][outputs][points]
        void *out;     // [2 alternating blocks][2 sets][outputs][hop]; NULL in segment 0
    } segment[CUDA_MAX_SEGMENTS];
};

// Queues the kernels of a quantum on the stream of the thread, as all launches of the engine are.
CUDA_C cudaError_t cuda_partitioned_launch(const struct cuda_partition_layout *layout,
                                           const struct cuda_partition_memory *memory,
                                           const struct cuda_partition_launch *launch);

// Taps to be transformed for one segment of a filter. paths[n] name the partitions and the memory
// of their spectra. The taps of path i, in causal order and in the samples' type, begin at taps + i
// * span samples.
struct cuda_partition_taps {
    int segment;
    int64_t n, span, first; // first: the segment's first tap
    const struct cuda_path *paths;
    const void *taps;
};
CUDA_C cudaError_t cuda_partitioned_launch_taps(const struct cuda_partition_layout *layout,
                                                const struct cuda_partition_taps *taps);

#endif
