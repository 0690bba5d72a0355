// SPDX-License-Identifier: MIT
// A separable filter as CUDA's samples have it: first along rows, then along columns, with the
// plane between in memory.
#include <math.h>
#include <stdlib.h>

#include "gpu/kernels.h"
#include "gpu/resident.h"
#include "peers/peers.h"

enum { TAPS = 2 * TWO_PASSES_RADIUS + 1 };

struct passes {
    const struct resident *arrays;
    struct two_passes filter;
    void *between;
};

static void two_passes_close(void *state)
{
    struct passes *p = state;
    cudaFree(p->between);
    if (p->arrays) resident_close();
    free(p);
}

static double two_passes_pass(void *state, const struct workload *w, double *calls)
{
    struct passes *p = state;
    (void)w;
    (void)calls;
    const double start = bench_now();
    const bool ok = filter_rows(p->between, p->arrays->x, &p->filter) &&
                    filter_columns(p->arrays->y, p->between, &p->filter) &&
                    cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
    return ok ? bench_now() - start : NAN;
}

// One plane as input and as output, with the radius that the kernels are built for; the `shape` of
// its case makes the taps separable.
static bool two_passes_applies(const struct workload *w)
{
    if (w->layer == NULL || w->shape == NULL || w->layer->direction != PARTITA_FORWARD)
        return false;
    const struct partita_problem *p = &w->layer->problem;
    return p->rank == 2 && p->in_channels == 1 && p->out_channels == 1 && p->kernel[0] == TAPS &&
           p->kernel[1] == TAPS;
}

bool peer_two_passes(struct contender *contender, const struct workload *w)
{
    if (!two_passes_applies(w)) return false;
    struct passes *p = bench_allocate(sizeof *p);
    const float *taps = (const float *)w->h;
    p->filter.height = (int)w->layer->problem.size[0];
    p->filter.width = (int)w->layer->problem.size[1];
    for (int i = 0; i < TAPS; i++) {
        p->filter.row[i] = taps[i];
        p->filter.column[i] = taps[i * TAPS] / taps[0];
    }
    p->arrays = resident_open(w);
    if (p->arrays == NULL || cudaMalloc(&p->between, w->x_bytes) != cudaSuccess) {
        snprintf(contender->reason, sizeof contender->reason, "no memory on the device");
        two_passes_close(p);
        return false;
    }
    contender->state = p;
    contender->pass = two_passes_pass;
    contender->fetch = resident_fetch;
    contender->fetches_samples = true;
    contender->close = two_passes_close;
    contender->gate = gate_peer(w);
    return true;
}
