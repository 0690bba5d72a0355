// SPDX-License-Identifier: MIT
// Ours on a CUDA device, arrays and workspace resident there: what is timed is the call, which waits for its result.
#include <cuda_runtime_api.h>

#include <math.h>
#include <stdlib.h>

#include "bench.h"

enum { X, H, Y, WORKSPACE, ARRAYS };

struct resident {
    struct partita_plan *plan;
    struct partita_filter *filter;
    void *array[ARRAYS]; // in the device's memory
    size_t bytes[ARRAYS];
};

// Bytes of x, w and y of forward, put where the direction has them.
static void size_arrays(struct resident *r, const struct partita_problem *p, enum partita_direction direction)
{
    const size_t scalar = partita_type_size(p->signal);
    size_t out[PARTITA_MAX_RANK], x = p->batch * p->in_channels, y = p->batch * p->out_channels;
    size_t w = p->out_channels * p->in_channels / (p->groups ? p->groups : 1);
    if (partita_problem_output_size(p, out) != PARTITA_OK) return;
    for (int a = 0; a < p->rank; a++) {
        x *= p->size[a];
        y *= out[a];
        w *= p->kernel[a] ? p->kernel[a] : 1;
    }
    const size_t forward[] = {x, w, y}, data[] = {y, w, x}, weight[] = {x, y, w};
    const size_t *sizes = direction == PARTITA_FORWARD ? forward : direction == PARTITA_BACKWARD_DATA ? data : weight;
    for (int i = 0; i < WORKSPACE; i++) r->bytes[i] = sizes[i] * scalar;
    r->bytes[WORKSPACE] = partita_plan_workspace(r->plan, direction);
}

static void close_resident(void *state)
{
    struct resident *r = state;
    partita_filter_destroy(r->filter);
    partita_plan_destroy(r->plan);
    for (int i = 0; i < ARRAYS; i++) cudaFree(r->array[i]);
    free(r);
}

static double pass(void *state, const struct workload *w, double *calls)
{
    struct resident *r = state;
    void **a = r->array;
    enum partita_status status;
    (void)calls;
    const double start = bench_now();
    if (w->layer->direction == PARTITA_FORWARD) status = partita_forward(r->plan, r->filter, a[Y], a[X], NULL);
    else if (w->layer->direction == PARTITA_BACKWARD_DATA)
        status = partita_backward_data(r->plan, r->filter, a[Y], a[X], NULL);
    else status = partita_backward_weight(r->plan, a[Y], a[X], a[H], a[WORKSPACE]);
    return status == PARTITA_OK ? bench_now() - start : NAN;
}

static bool fetch(void *state, const struct workload *w)
{
    struct resident *r = state;
    return cudaMemcpy(w->y, r->array[Y], r->bytes[Y], cudaMemcpyDefault) == cudaSuccess;
}

static bool move(struct resident *r, const struct workload *w)
{
    for (int i = 0; i < ARRAYS; i++)
        if (r->bytes[i] && cudaMalloc(&r->array[i], r->bytes[i]) != cudaSuccess) return false;
    return cudaMemcpy(r->array[X], w->x, r->bytes[X], cudaMemcpyDefault) == cudaSuccess &&
           cudaMemcpy(r->array[H], w->h, r->bytes[H], cudaMemcpyDefault) == cudaSuccess;
}

static void remember_line(void *user, const char *text)
{
    struct contender *contender = user;
    snprintf(contender->reason, sizeof contender->reason, "%s", text);
}

bool ours_layer_cuda(struct contender *contender, const struct workload *w)
{
    const enum partita_direction direction = w->layer->direction;
    const struct partita_problem problem = layer_problem(w);
    const struct partita_options options = {
        .engine = contender->engine, .device = "cuda:0", .directions = direction, .log = {remember_line, contender}};
    struct resident *r = bench_allocate(sizeof *r);
    *r = (struct resident){0};
    bool ready = partita_plan_create(&problem, &options, &r->plan) == PARTITA_OK;
    if (ready) {
        size_arrays(r, &problem, direction);
        ready = move(r, w);
        if (!ready) remember_line(contender, "no memory on the device");
    }
    if (ready && direction != PARTITA_BACKWARD_WEIGHT)
        ready = partita_filter_create(r->plan, r->array[H], &r->filter) == PARTITA_OK;
    if (!ready) {
        close_resident(r);
        return false;
    }
    contender->state = r;
    contender->pass = pass;
    contender->fetch = fetch;
    contender->close = close_resident;
    contender->gate = gate_layer(w);
    for (int i = 0; i < ARRAYS; i++) contender->bytes += r->bytes[i];
    return true;
}
