// SPDX-License-Identifier: MIT
// Overlap-save and overlap-add as one kernel: windows of the inputs of a group are transformed, and
// while their spectra are at hand multiplied by those of every filter, summed, transformed back and
// stored. A window of overlap-save keeps what does not wrap. One of overlap-add holds `hop` samples
// and zeros, and all of its samples are wanted: from the skip-th one on they are outputs of its
// own, those before it belong to the windows before. (The kernel is in filtering.cuh, how windows
// are cut in save_cut.c.)
#ifndef PARTITA_CUDA_SAVE_H
#define PARTITA_CUDA_SAVE_H

#include "windows.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where samples of a window belong: sample skip + i, i < hop, of window b of a line is output
// number b*hop + i of it, of which every stride-th is kept, `size` in all. In overlap-add sample i
// < skip is part of output b*hop + i - skip.
struct cuda_outputs {
    int64_t skip, hop, stride, size;
    bool relu;
};

// A job is a window of all inputs of one group of one item: job (g*batch + item)*in.windows + b.
// The windows `in` are those of the first inputs of groups, in this order.
struct cuda_filtering {
    struct cuda_fft_form form;
    struct cuda_windows in;
    struct cuda_outputs out;
    int64_t batch, groups, group_in, group_out;
};

// What becomes of the samples of a window.
enum cuda_way {
    CUDA_SAVE, // its own outputs are stored, finished
    CUDA_STEP, // all are added to what is there
};

// Which windows of a line a launch works on: first, first + of, ...; all of them: {0, 1}.
struct cuda_step {
    int64_t first, of;
};

// How jobs meet thread blocks.
struct cuda_save_cut {
    int64_t parts;  // that the outputs of a job are done in, each with transforms of its own
    int of_part;    // outputs of a part; of the last one fewer
    int64_t blocks; // thread blocks; each takes one of so many (job, part)s after the other
    bool in_memory; // spectra of a job's inputs do not fit the shared memory: `kept` holds them
    size_t shared_bytes, kept_bytes;
};

// Cuts for a device of so many processors; `most` bytes of shared memory a block, kept_limit of
// memory. False: there is no way to.
bool cuda_cut_save(const struct cuda_filtering *filtering, bool f64, int processors, size_t most,
                   size_t kept_limit, struct cuda_save_cut *ret);

// The arrays of a launch: y and x are the caller's, spectra those of the cells
// [groups*group_out][group_in], bias [groups*group_out] or NULL, kept as the cut says.
struct cuda_save_arrays {
    void *y;
    const void *x, *spectra, *bias;
    void *kept;
};

// Queues a step of it.
cudaError_t cuda_launch_save(const struct cuda_filtering *filtering,
                             const struct cuda_save_cut *cut, bool f64,
                             const struct cuda_step *step, const struct cuda_save_arrays *arrays,
                             cudaStream_t stream);
cudaError_t cuda_launch_add(const struct cuda_filtering *filtering, const struct cuda_save_cut *cut,
                            bool f64, const struct cuda_step *step,
                            const struct cuda_save_arrays *arrays, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
