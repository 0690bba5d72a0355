// SPDX-License-Identifier: MIT
// A convolution layer that learns: weights, their gradients, and the objects of the library that
// run it.
#ifndef DIGITS_LAYER_H
#define DIGITS_LAYER_H

#include <partita/partita.h>

// Weights or bias: n values, the gradient of the loss with respect to them, and the velocity they
// move with.
struct parameters {
    size_t n;
    float *value, *gradient, *velocity;
};

struct layer {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter; // holds weights and bias; made again when they have changed
    struct parameters weight, bias;
    size_t n_y;    // outputs of a batch
    float *y, *gy; // [batch][out_channels][height][width], and the gradient with respect to it
    void *workspace;
};

// What every layer of a network is planned with. An engine that cannot run a layer leaves it to the
// planner.
struct wishes {
    const char *engine; // NULL: the planner's choice
    int threads;        // 0: all cores
};

// A reproducible number in [0, 1).
float random_uniform(uint64_t *state);

// Ends the program with a message if a call of the library failed, or if memory is NULL.
void must(enum partita_status status, const char *what);
void *allocate(size_t bytes);

// Plans a layer for all three directions and gives it random weights. Destroy it with
// layer_destroy.
void layer_create(struct layer *layer, const struct partita_problem *problem,
                  const struct wishes *wishes, uint64_t *random);
void layer_destroy(struct layer *layer);

// Computes layer->y from x.
void layer_forward(struct layer *layer, const float *x);

// From layer->gy the gradients with respect to weights, bias and, unless gx is NULL, the input.
// Changes gy: where ReLU has cut y off, nothing flows back.
void layer_backward(struct layer *layer, float *gx, const float *x);

// One step of stochastic gradient descent with momentum.
void layer_step(struct layer *layer, float rate, float momentum);

#endif
