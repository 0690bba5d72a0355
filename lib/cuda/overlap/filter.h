// SPDX-License-Identifier: MIT
// Overlap-save and overlap-add as one kernel: it transforms windows of the inputs of a group,
// multiplies their spectra by those of every filter, sums, transforms back and stores. A window of
// overlap-save keeps the samples that do not wrap. A window of overlap-add holds `hop` samples and
// zeros, and all samples of its result are used: those from index `skip` on are its own outputs,
// those before belong to earlier windows.
#ifndef PARTITA_CUDA_OVERLAP_FILTER_H
#define PARTITA_CUDA_OVERLAP_FILTER_H

#include "cuda/kernels/pass.h"
#include "cuda/kernels/windows.h"

// A task is a window of all inputs of one group of one item: task (g*batch + item)*in.count + b.
// The rows of `in` are the first inputs of the groups, in this order.
struct cuda_filtering {
    struct cuda_fft_form form;
    struct cuda_windows in;
    struct cuda_outputs out;
    int64_t batch, groups, group_in, group_out;
    bool accumulate; // add all samples of a window to the outputs, instead of storing its own
                     // outputs with bias and activation
    int parts;       // blocks of the taps of a path: several of long rows only (long_rows.h)
    int lead;        // of long rows: windows that end before the first output
};

// The windows of a row that one launch works on: first, first + step, ..; {0, 1}: all windows.
struct cuda_filter_windows {
    int64_t first, step;
};

// How tasks are assigned to thread blocks.
struct cuda_filter_layout {
    int64_t chunks;    // chunks of a task's outputs; each chunk repeats the input transforms
    int chunk_outputs; // of a chunk; the last one may have fewer
    int64_t blocks;    // thread blocks; each computes every `blocks`-th pair (task, chunk)
    bool in_memory;    // input spectra of a task do not fit shared memory and are in
                       // `spectra_cache`
    size_t shared_bytes, cache_bytes;
};

// Queues the windows of one launch. Taps are spectra of the paths [groups*group_out][group_in];
// bias is not applied if sums accumulate; the workspace has layout.cache_bytes for spectra.
CUDA_C cudaError_t cuda_launch_filter(const struct cuda_filtering *filtering,
                                      const struct cuda_filter_layout *layout, bool f64,
                                      const struct cuda_filter_windows *windows,
                                      const struct cuda_arrays *arrays);

#endif
