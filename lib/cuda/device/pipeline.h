// SPDX-License-Identifier: MIT
// Calls on arrays in host memory, by micro-batches: while one is computed, the next one is copied
// to the device and the previous one is copied back. The device holds the arrays of two. (decision
// 27)
#ifndef PARTITA_CUDA_PIPELINE_H
#define PARTITA_CUDA_PIPELINE_H

#include "core/plan.h"

// Runs a bounded problem: by micro-batches if the plan has them and an array is not in device
// memory, else as a whole.
enum partita_status cuda_pipeline_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace);

#endif
