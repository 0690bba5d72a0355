// SPDX-License-Identifier: MIT
// Results of CUDA calls. Every call of the runtime for a plan goes through CU();
// cuda_status is the only function that checks its result.
#ifndef PARTITA_CUDA_STATUS_H
#define PARTITA_CUDA_STATUS_H

#include <cuda_runtime_api.h>

#include "core/plan.h"

// Converts the result of a CUDA call to a status. The first failure of a device is reported to the
// plan's log with its source line; from then on the device is lost, and every later call of its
// plans returns PARTITA_ERR_DEVICE. Lack of memory is no such failure: it returns
// PARTITA_ERR_NOMEM. Nor is a call that is refused before it does anything; it is logged, and the
// device stays as it was: PARTITA_ERR_STATE while a graph is captured, PARTITA_ERR_ARG for an array
// that does not exist or a queue of another device, PARTITA_ERR_UNSUPPORTED for too large a launch
// or a GPU that the module has no code for.
enum partita_status cuda_status(const struct partita_plan *plan, cudaError_t error,
                                const char *call, const char *file, int line);

#define CU(plan, call) cuda_status(plan, call, #call, __FILE__, __LINE__)

// Says in `text` why there is no device, by the result of the first call of a process: without a
// driver every call fails in the same way. Returns PARTITA_ERR_DEVICE.
enum partita_status cuda_missing(cudaError_t error, char *text, size_t size);

#endif
