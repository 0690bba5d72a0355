// SPDX-License-Identifier: MIT
// What bench_gpu runs: layers of published measurements on GPUs, with as many images as there, and
// signals and streams of sizes that need a GPU.
#ifndef BENCH_GPU_CASES_H
#define BENCH_GPU_CASES_H

#include "workloads/layer.h"

// All cases, in memory that lives as long as the program. `tiny`: the same cases with few channels,
// images and samples, for a stand-in for a device.
struct workload *gpu_cases(bool tiny, size_t *ret_n);

// Prints them as CSV: shapes for peers in other programs, and `items`, by which times are divided.
void gpu_cases_print(const struct workload *cases, size_t n);

#endif
