// SPDX-License-Identifier: MIT
// Arrays in host memory by micro-batches: each is computed while the next one is on its way to the
// device and the one before on its way back. The device holds the arrays of two. (decision 27)
#ifndef PARTITA_CUDA_PIPELINE_H
#define PARTITA_CUDA_PIPELINE_H

#include "core/plan.h"

// Runs a bounded problem: by micro-batches if there are any and an array is not the device's, else
// whole.
enum partita_status cuda_pipeline_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace);

// The gradient of the bias, the same for every engine, likewise.
enum partita_status cuda_pipeline_bias(const struct partita_plan *plan, void *gb, const void *gy);

#endif
