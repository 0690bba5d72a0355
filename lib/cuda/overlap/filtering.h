// SPDX-License-Identifier: MIT
// What overlap-save and overlap-add share on the host: a problem as jobs of windows (save.h), and
// what they cost.
#ifndef PARTITA_CUDA_FILTERING_H
#define PARTITA_CUDA_FILTERING_H

#include "cuda/kernels/save.h"
#include "spectral.h"

struct cuda_fft_form cuda_form_of(const struct shape *shape, size_t points);

// Windows as those of overlap-save, without an activation.
struct cuda_filtering cuda_filtering_of(const struct shape *shape,
                                        const struct cuda_fft_form *form);

// Transforms and products of all windows, inputs being transformed `in_again` times, and bytes of
// x, y and filters.
struct cuda_work cuda_filtering_work(const struct shape *shape,
                                     const struct cuda_filtering *filtering, size_t points,
                                     double in_again);

struct estimate cuda_filtering_estimate(const struct request *request, const struct shape *shape,
                                        const struct cuda_filtering *filtering,
                                        const struct cuda_work *work, size_t workspace);

#endif
