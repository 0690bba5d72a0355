// SPDX-License-Identifier: MIT
// Overlap-save as one kernel: windows of the inputs of a group are transformed, and while their spectra are at hand
// multiplied by those of every filter, summed, transformed back, and what does not wrap is stored.
#ifndef PARTITA_CUDA_SAVE_H
#define PARTITA_CUDA_SAVE_H

#include "windows.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where samples of a window belong: sample skip + i, i < hop, of window b of a line is output number b*hop + i of it,
// of which every stride-th is kept, `size` in all.
struct cuda_outputs {
    int64_t skip, hop, stride, size;
    bool relu;
};

// A job is a window of all inputs of one group of one item: job (g*batch + item)*in.windows + b. The windows `in` are
// those of the first inputs of groups, in this order.
struct cuda_filtering {
    struct cuda_fft_form form;
    struct cuda_windows in;
    struct cuda_outputs out;
    int64_t batch, groups, group_in, group_out;
};

// How jobs meet thread blocks.
struct cuda_save_cut {
    int64_t parts;  // that the outputs of a job are done in, each with transforms of its own
    int64_t blocks; // thread blocks; each takes one of so many (job, part)s after the other
    bool in_memory; // spectra of a job's inputs do not fit the shared memory: `kept` holds them
    size_t shared_bytes, kept_bytes;
};

// Cuts for a device of so many processors; `most` bytes of shared memory a block, kept_limit of memory. False: there is
// no way to.
bool cuda_cut_save(const struct cuda_filtering *filtering, bool f64, int processors, size_t most, size_t kept_limit,
                   struct cuda_save_cut *ret);

// Queues all of it. y and x are the caller's arrays, spectra those of the cells [groups*group_out][group_in], bias
// [groups*group_out] or NULL, kept as the cut says.
cudaError_t cuda_launch_save(const struct cuda_filtering *filtering, const struct cuda_save_cut *cut, bool f64, void *y,
                             const void *x, const void *spectra, const void *bias, void *kept, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
