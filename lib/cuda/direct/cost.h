// SPDX-License-Identifier: MIT
// What a variant of cuda/direct would cost on a device, by counting what its threads do.
#ifndef PARTITA_CUDA_COST_H
#define PARTITA_CUDA_COST_H

#include "cuda/device/device.h"
#include "cuda/kernels/kernels.h"

// Fills everything of an estimate, or applicable = false with a reason.
void cuda_direct_estimate(const struct request *request, enum cuda_variant variant,
                          struct estimate *ret);

// Runs of rows that the gradient of the taps is cut into, by shape and workspace limit alone.
int64_t cuda_weight_parts(const struct cuda_pass *pass, bool f64, size_t workspace_limit);

#endif
