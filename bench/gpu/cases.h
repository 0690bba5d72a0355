// SPDX-License-Identifier: MIT
// What bench_gpu runs: layers that were measured on GPUs in print, as many images as there, and signals and streams of
// the size that GPUs are bought for.
#ifndef BENCH_GPU_CASES_H
#define BENCH_GPU_CASES_H

#include "workloads/layer.h"

// All cases, in memory that lives as long as the program. `tiny`: the same ones with few channels, images and samples,
// as a stand-in for a device can run them.
struct workload *gpu_cases(bool tiny, size_t *ret_n);

// Prints them as CSV: shapes for peers that run elsewhere, and `items`, which times are divided by.
void gpu_cases_print(const struct workload *cases, size_t n);

#endif
