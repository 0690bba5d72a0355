// SPDX-License-Identifier: MIT
// The arrays of a workload in a CUDA device's memory, one copy for all contenders of bench_gpu that
// are open.
#ifndef BENCH_RESIDENT_H
#define BENCH_RESIDENT_H

#include <cuda_runtime_api.h>

#include "runner/runner.h"

struct resident {
    void *x, *h, *y;
};

// Uploads the workload's arrays unless they are there, and sets y to NaN. Returns NULL without
// memory; after a success the caller must call resident_close.
const struct resident *resident_open(const struct workload *w);
void resident_close(void);

// A contender's fetch: copies the samples of y that the oracle knows to the host. Results may have
// gigabytes.
bool resident_fetch(void *state, struct workload *w);

// Ours on these arrays: layers and signals.
open_fn ours_resident;

#endif
