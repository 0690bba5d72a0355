// SPDX-License-Identifier: MIT
// A trainable convolution layer: weights, their gradients, and the library's plan and filter.
#ifndef DIGITS_LAYER_H
#define DIGITS_LAYER_H

#include <partita/partita.h>

// Weights or bias: n values, the gradient of the loss with respect to them, and their velocity
// (momentum).
struct parameters {
    size_t n;
    float *value, *gradient, *velocity;
};

struct layer {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter; // copies of weights and bias; recreated when they change
    struct parameters weight, bias;
    size_t n_y;    // outputs of a batch
    float *y, *gy; // [batch][out_channels][height][width], and the gradient with respect to it
    void *workspace;
};

// Planning options of all layers. If the engine does not support a layer, the planner chooses
// another.
struct planning {
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
                  const struct planning *planning, uint64_t *random);
void layer_destroy(struct layer *layer);

// Computes layer->y from x.
void layer_forward(struct layer *layer, const float *x);

// Computes the gradients with respect to weights, bias and, unless gx is NULL, the input from
// layer->gy. Changes gy: it is set to 0 where ReLU has set y to 0.
void layer_backward(struct layer *layer, float *gx, const float *x);

// One step of stochastic gradient descent with momentum.
void layer_step(struct layer *layer, float rate, float momentum);

#endif
