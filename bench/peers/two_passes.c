// SPDX-License-Identifier: MIT
// A separable filter as CUDA's samples have it: its rows, then its columns, the plane between them in memory.
#include <math.h>
#include <stdlib.h>

#include "gpu/resident.h"
#include "peers/gpu_kernels.h"

enum { TAPS = 2 * TWO_PASSES_RADIUS + 1 };

struct passes {
    const struct resident *arrays;
    struct two_passes filter;
    void *between;
};

static void close_passes(void *state)
{
    struct passes *p = state;
    cudaFree(p->between);
    if (p->arrays) resident_close();
    free(p);
}

static double run(void *state, const struct workload *w, double *calls)
{
    struct passes *p = state;
    (void)w;
    (void)calls;
    const double start = bench_now();
    const bool fine = filter_rows(p->between, p->arrays->x, &p->filter) &&
                      filter_columns(p->arrays->y, p->between, &p->filter) &&
                      cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
    return fine ? bench_now() - start : NAN;
}

// One plane in and out, of the radius that the kernels are built for; its taps are products, as its case makes them.
static bool is_served(const struct workload *w)
{
    if (w->layer == NULL || w->shape == NULL || w->layer->direction != PARTITA_FORWARD) return false;
    const struct partita_problem *p = &w->layer->problem;
    return p->rank == 2 && p->in_channels == 1 && p->out_channels == 1 && p->kernel[0] == TAPS && p->kernel[1] == TAPS;
}

bool peer_two_passes(struct contender *contender, const struct workload *w)
{
    if (!is_served(w)) return false;
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
        close_passes(p);
        return false;
    }
    contender->state = p;
    contender->pass = run;
    contender->fetch = resident_fetch;
    contender->close = close_passes;
    contender->gate = gate_peer(w);
    return true;
}
