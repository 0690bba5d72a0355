// SPDX-License-Identifier: MIT
#ifndef PARTITA_CUDA_BIAS_H
#define PARTITA_CUDA_BIAS_H

#include "device.h"

// struct device's backward_bias.
enum partita_status cuda_backward_bias(const struct partita_plan *plan, void *gb, const void *gy);

#endif
