// SPDX-License-Identifier: MIT
#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

float random_uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-24f;
}

void must(enum partita_status status, const char *what)
{
    if (status == PARTITA_OK) return;
    fprintf(stderr, "digits: %s: %s\n", what, partita_status_string(status));
    exit(1);
}

// Zeroed memory with the alignment of workspaces.
void *allocate(size_t bytes)
{
    const size_t rounded = (bytes + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, rounded);
    must(memory ? PARTITA_OK : PARTITA_ERR_NOMEM, "memory");
    return memset(memory, 0, rounded);
}

static void parameters_create(struct parameters *p, size_t n)
{
    p->n = n;
    p->value = allocate(n * sizeof(float));
    p->gradient = allocate(n * sizeof(float));
    p->velocity = allocate(n * sizeof(float));
}

static void parameters_destroy(struct parameters *p)
{
    free(p->value);
    free(p->gradient);
    free(p->velocity);
}

static void parameters_step(struct parameters *p, float rate, float momentum)
{
    for (size_t i = 0; i < p->n; i++) {
        p->velocity[i] = momentum * p->velocity[i] - rate * p->gradient[i];
        p->value[i] += p->velocity[i];
    }
}

// The filter has its own copies of taps and bias, transformed or packed for its engine.
static void make_filter(struct layer *layer)
{
    must(partita_filter_create_from(
             layer->plan,
             &(struct partita_taps){.dense = layer->weight.value,
                                    .dense_count = partita_plan_taps_count(layer->plan),
                                    .bias = layer->bias.value},
             &layer->filter),
         "filter");
}

// Prints why the library cannot create a plan.
static void say(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "digits: %s\n", text);
}

static void make_plan(struct layer *layer, const struct planning *planning)
{
    struct partita_options options = {
        .engine = planning->engine,
        .threads = planning->threads,
        .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
        .log = {say, NULL},
    };
    enum partita_status status = partita_plan_create(&layer->problem, &options, &layer->plan);
    if (status == PARTITA_ERR_UNSUPPORTED && options.engine) {
        options.engine = NULL;
        status = partita_plan_create(&layer->problem, &options, &layer->plan);
    }
    must(status, "plan");
}

// One workspace for all directions, since they run one after another.
static size_t workspace_size(const struct partita_plan *plan)
{
    static const enum partita_direction directions[] = {PARTITA_FORWARD, PARTITA_BACKWARD_DATA,
                                                        PARTITA_BACKWARD_WEIGHT};
    size_t most = 0;
    for (size_t i = 0; i < 3; i++) {
        const size_t bytes = partita_plan_workspace(plan, directions[i]);
        if (bytes > most) most = bytes;
    }
    return most;
}

void layer_create(struct layer *layer, const struct partita_problem *problem,
                  const struct planning *planning, uint64_t *random)
{
    const size_t taps_per_output = problem->in_channels * problem->kernel[0] * problem->kernel[1];
    // Keeps the scale of the signals (He et al. 2015).
    const float range = sqrtf(6 / (float)taps_per_output);
    size_t size[PARTITA_MAX_RANK];
    *layer = (struct layer){.problem = *problem};
    make_plan(layer, planning);
    must(partita_problem_output_size(problem, size), "output size");
    layer->n_y = problem->batch * problem->out_channels * size[0] * size[1];
    layer->y = allocate(layer->n_y * sizeof(float));
    layer->gy = allocate(layer->n_y * sizeof(float));
    layer->workspace = allocate(workspace_size(layer->plan));
    parameters_create(&layer->weight, problem->out_channels * taps_per_output);
    parameters_create(&layer->bias, problem->out_channels);
    for (size_t i = 0; i < layer->weight.n; i++)
        layer->weight.value[i] = range * (2 * random_uniform(random) - 1);
    // For blank parts of the image the output is the bias. It is well above zero, so that rounding
    // does not decide whether ReLU passes it.
    for (size_t i = 0; i < layer->bias.n; i++) layer->bias.value[i] = 0.1f;
    make_filter(layer);
}

void layer_destroy(struct layer *layer)
{
    partita_filter_destroy(layer->filter);
    partita_plan_destroy(layer->plan);
    parameters_destroy(&layer->weight);
    parameters_destroy(&layer->bias);
    free(layer->y);
    free(layer->gy);
    free(layer->workspace);
}

void layer_forward(struct layer *layer, const float *x)
{
    must(partita_forward(layer->plan, layer->filter, layer->y, x,
                         &(struct partita_call){.workspace = layer->workspace}),
         "forward");
}

void layer_backward(struct layer *layer, float *gx, const float *x)
{
    if (layer->problem.activation == PARTITA_RELU)
        for (size_t i = 0; i < layer->n_y; i++)
            if (layer->y[i] == 0) layer->gy[i] = 0;
    must(partita_backward_weight(layer->plan, layer->weight.gradient, x, layer->gy,
                                 &(struct partita_call){.workspace = layer->workspace}),
         "weights");
    must(partita_backward_bias(layer->plan, layer->bias.gradient, layer->gy, NULL), "bias");
    if (gx)
        must(partita_backward_data(layer->plan, layer->filter, gx, layer->gy,
                                   &(struct partita_call){.workspace = layer->workspace}),
             "data");
}

void layer_step(struct layer *layer, float rate, float momentum)
{
    parameters_step(&layer->weight, rate, momentum);
    parameters_step(&layer->bias, rate, momentum);
    must(partita_filter_update(layer->filter, layer->weight.value, layer->bias.value,
                               &(struct partita_call){.workspace = layer->workspace}),
         "update");
}
