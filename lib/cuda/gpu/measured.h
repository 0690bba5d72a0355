// SPDX-License-Identifier: MIT
// Rates of GPUs that bench/gpu.sh ran on, by key. Written by tools/gpu_report.py; do not edit.
#ifndef PARTITA_CUDA_MEASURED_H
#define PARTITA_CUDA_MEASURED_H

#include "gpu.h"

// clang-format off
static const struct {
    const char *key; // as in struct device
    struct cuda_gpu_rates rates;
} measured_gpus[] = {
    {.key = ""}, // no GPU
};
// clang-format on

#endif
