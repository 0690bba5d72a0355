// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_BIAS_H
#define PARTITA_CUDA_BIAS_H

#include "device.h"

// Queues it for a gy of the shape's batch and outputs in the device's memory.
enum partita_status cuda_queue_bias(const struct partita_plan *plan, const struct shape *shape,
                                    void *gb, const void *gy);

// Of the whole batch, in any memory.
enum partita_status cuda_backward_bias(const struct partita_plan *plan, void *gb, const void *gy);

#endif
