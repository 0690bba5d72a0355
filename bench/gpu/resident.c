// SPDX-License-Identifier: MIT
// Ours on a CUDA device, arrays resident there: what is timed is the call, which waits for its
// result. Filters are made beforehand, except for the correlation of two recordings, which has two
// signals.
#include "gpu/resident.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/kernels.h"
#include "ours/ours.h"
#include "workloads/layer.h"

static const double DEFAULT_BUDGET = 2e-6; // relative L2 error of f32 engines that transform

static struct {
    int users;
    struct resident arrays;
} shared;

static bool upload(void **array, const void *from, size_t bytes)
{
    return cudaMalloc(array, bytes) == cudaSuccess &&
           cudaMemcpy(*array, from, bytes, cudaMemcpyDefault) == cudaSuccess;
}

const struct resident *resident_open(const struct workload *w)
{
    struct resident *r = &shared.arrays;
    bool ready = shared.users++ > 0;
    if (!ready)
        ready = upload(&r->x, w->x, w->x_bytes) && upload(&r->h, w->h, w->h_bytes) &&
                cudaMalloc(&r->y, w->y_bytes) == cudaSuccess;
    // NaN, so that another contender's answer does not count.
    if (ready && cudaMemsetAsync(r->y, 0xff, w->y_bytes, cudaStreamPerThread) == cudaSuccess &&
        cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess)
        return r;
    resident_close();
    return NULL;
}

void resident_close(void)
{
    if (--shared.users > 0) return;
    cudaFree(shared.arrays.x);
    cudaFree(shared.arrays.h);
    cudaFree(shared.arrays.y);
    memset(&shared.arrays, 0, sizeof shared.arrays);
}

bool resident_fetch(void *state, struct workload *w)
{
    (void)state;
    const size_t sample = partita_type_size(w->signal);
    size_t *positions;
    const size_t n = oracle_positions(w, &positions);
    char *samples = bench_allocate(n * sample);
    void *at = NULL, *gathered = NULL;
    const bool ok = upload(&at, positions, n * sizeof *positions) &&
                    cudaMalloc(&gathered, n * sample) == cudaSuccess &&
                    gather_words(gathered, shared.arrays.y, at, n, sample / 4) &&
                    cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess &&
                    cudaMemcpy(samples, gathered, n * sample, cudaMemcpyDefault) == cudaSuccess;
    for (size_t i = 0; ok && i < n; i++)
        memcpy(w->y + positions[i] * sample, samples + i * sample, sample);
    cudaFree(at);
    cudaFree(gathered);
    free(samples);
    free(positions);
    return ok;
}

struct ours_resident {
    const struct resident *arrays;
    struct partita_plan *plan;
    struct partita_filter *filter;
    enum partita_direction direction;
    bool two_signals;
    void *workspace; // the device's
};

static void ours_resident_close(void *state)
{
    struct ours_resident *o = state;
    partita_filter_destroy(o->filter);
    partita_plan_destroy(o->plan);
    cudaFree(o->workspace);
    if (o->arrays) resident_close();
    free(o);
}

static enum partita_status ours_resident_call(const struct ours_resident *o)
{
    const struct resident *a = o->arrays;
    if (o->two_signals)
        return partita_forward(o->plan, NULL, a->y, a->x, &(struct partita_call){.taps = a->h});
    if (o->direction == PARTITA_FORWARD)
        return partita_forward(o->plan, o->filter, a->y, a->x,
                               &(struct partita_call){.workspace = o->workspace});
    if (o->direction == PARTITA_BACKWARD_DATA)
        return partita_backward_data(o->plan, o->filter, a->y, a->x,
                                     &(struct partita_call){.workspace = o->workspace});
    return partita_backward_weight(o->plan, a->y, a->x, a->h,
                                   &(struct partita_call){.workspace = o->workspace});
}

static double ours_resident_pass(void *state, const struct workload *w, double *calls)
{
    (void)w;
    (void)calls;
    const double start = bench_now();
    return ours_resident_call(state) == PARTITA_OK ? bench_now() - start : NAN;
}

// Makes plan, filter, workspace and arrays; what is missing stays NULL.
static enum partita_status
ours_resident_create(struct ours_resident *o, struct contender *contender, const struct workload *w)
{
    const struct partita_problem problem = w->layer ? layer_problem(w) : workload_problem(w);
    const struct partita_options options = {.device = contender->device,
                                            .engine = contender->engine,
                                            .directions = o->direction,
                                            .log = {ours_set_reason, contender}};
    enum partita_status status = partita_plan_create(&problem, &options, &o->plan);
    if (status != PARTITA_OK) return status;
    o->arrays = resident_open(w);
    if (!o->arrays) return PARTITA_ERR_NOMEM;
    const size_t bytes = partita_plan_workspace(o->plan, o->direction);
    if (bytes && !o->two_signals && cudaMalloc(&o->workspace, bytes) != cudaSuccess)
        return PARTITA_ERR_NOMEM;
    if (o->two_signals || o->direction == PARTITA_BACKWARD_WEIGHT) return PARTITA_OK;
    return partita_filter_create(o->plan, o->arrays->h, &o->filter);
}

// Direct sums have the gate of sums; engines that transform may use the default error budget too.
static double ours_resident_gate(const struct workload *w, const char *engine)
{
    const bool sums = strncmp(engine, "cuda/direct", 11) == 0 || type_is_f64(w->signal);
    if (w->layer != NULL) return sums ? gate_layer(w) : fmax(gate_layer(w), DEFAULT_BUDGET);
    return sums ? gate_direct(w) : gate_transform(w);
}

// Whether a pass of direct sums might take seconds. The planner's variant may have more terms.
static bool ours_resident_is_slow(const struct contender *contender, const struct workload *w)
{
    if (contender->engine == NULL || strncmp(contender->engine, "cuda/direct", 11) != 0)
        return false;
    if (w->layer == NULL) return (double)w->n_out * (double)w->n_taps > 1e11; // products
    const struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    return (double)layer_terms(&s) > (strcmp(contender->engine, "cuda/direct") == 0 ? 5e12 : 1e12);
}

bool ours_resident(struct contender *contender, const struct workload *w)
{
    if (ours_resident_is_slow(contender, w)) {
        ours_set_reason(contender, "direct sums might take seconds");
        return false;
    }
    struct ours_resident *o = bench_allocate(sizeof *o);
    *o = (struct ours_resident){.direction = w->layer ? w->layer->direction : PARTITA_FORWARD,
                                .two_signals = w->lags > 0};
    const enum partita_status status = ours_resident_create(o, contender, w);
    if (status != PARTITA_OK) {
        if (contender->reason[0] == '\0') ours_set_reason(contender, partita_status_string(status));
        ours_resident_close(o);
        return false;
    }
    contender->state = o;
    contender->pass = ours_resident_pass;
    contender->fetch = resident_fetch;
    contender->fetches_samples = true;
    contender->close = ours_resident_close;
    contender->gate = ours_resident_gate(w, partita_plan_engine(o->plan, o->direction));
    contender->bytes = partita_plan_workspace(o->plan, o->direction);
    return true;
}
