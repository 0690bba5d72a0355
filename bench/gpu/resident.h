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

// A contender's fetch: copies y to the host.
bool resident_fetch(void *state, const struct workload *w);

// Ours on these arrays: layers and signals.
open_fn ours_resident;

#endif
