// SPDX-License-Identifier: MIT
// Measured rates of a GPU (struct cuda_gpu_rates).
#ifndef PARTITA_CUDA_MEASURE_H
#define PARTITA_CUDA_MEASURE_H

#include "core/device.h"

// device->measure: times the library's own kernels the first time that a process asks, in about a
// tenth of a second, with up to some hundred MiB of the GPU's memory.
enum partita_status cuda_measure(struct device *device, const struct partita_log *log);

#endif
