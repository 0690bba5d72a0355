// SPDX-License-Identifier: MIT
// A separable filter as CUDA's samples have it: first along rows, then along columns, with the
// plane between in memory. And the same filter in one pass, by the rungs of the ladder of stencils.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/kernels.h"
#include "gpu/resident.h"
#include "peers/peers.h"

enum { TAPS = 2 * TWO_PASSES_RADIUS + 1 };

struct passes {
    const struct resident *arrays;
    struct two_passes filter;
    void *between;
    struct stencil stencil; // of a rung
    stencil_fn *rung;       // NULL: two passes
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
    const bool queued = p->rung ? p->rung(p->arrays->y, p->arrays->x, &p->stencil)
                                : filter_rows(p->between, p->arrays->x, &p->filter) &&
                                      filter_columns(p->arrays->y, p->between, &p->filter);
    const bool ok = queued && cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
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

static stencil_fn *rung_of(const char *name)
{
    static const struct {
        const char *name;
        stencil_fn *rung;
    } rungs[] = {{"ladder-memory", stencil_in_memory},
                 {"ladder-cache", stencil_in_cache},
                 {"ladder-input-tile", stencil_input_tile},
                 {"ladder-output-tile", stencil_output_tile}};
    for (size_t i = 0; i < sizeof rungs / sizeof *rungs; i++)
        if (!strcmp(name, rungs[i].name)) return rungs[i].rung;
    return NULL;
}

bool peer_two_passes(struct contender *contender, const struct workload *w)
{
    if (!two_passes_applies(w)) return false;
    struct passes *p = bench_allocate(sizeof *p);
    const float *taps = (const float *)w->h;
    p->filter.height = p->stencil.height = (int)w->layer->problem.size[0];
    p->filter.width = p->stencil.width = (int)w->layer->problem.size[1];
    p->rung = rung_of(contender->name);
    memcpy(p->stencil.taps, taps, sizeof p->stencil.taps);
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
