// SPDX-License-Identifier: MIT
// Batches in the host's memory: cut into groups of items, each run by a plan of its own while the next one is on its
// way to the device and the one before on its way back. The device holds the arrays of two groups. (decision 27)
#ifndef PARTITA_CUDA_GROUPS_H
#define PARTITA_CUDA_GROUPS_H

#include "../engine.h"

// Makes plan->group where a batch is worth cutting: by the same engine, for a filter of the plan's. How it is cut
// follows from the shape and the workspace limit alone.
enum partita_status cuda_groups_plan(struct partita_plan *plan, const struct request *request);
void cuda_groups_forget(struct partita_plan *plan); // releases it

// Runs a bounded problem: in groups if there are any and an array is not the device's, else as it is.
enum partita_status cuda_groups_run(const struct partita_plan *plan, const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace);

// The gradient of the bias, likewise.
enum partita_status cuda_groups_bias(const struct partita_plan *plan, void *gb, const void *gy);

#endif
