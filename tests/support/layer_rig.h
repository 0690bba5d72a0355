// SPDX-License-Identifier: MIT
// A layer set up to run in all directions: random arrays, plan and filter, the oracle's answers and
// their gates.
#ifndef PARTITA_TEST_LAYER_RIG_H
#define PARTITA_TEST_LAYER_RIG_H

#include "support/test.h"

enum layer_array {
    LAYER_X,
    LAYER_W,
    LAYER_BIAS,
    LAYER_GY,
    LAYER_Y,
    LAYER_GX,
    LAYER_GW,
    LAYER_GB,
    LAYER_ARRAYS
};

struct layer {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    size_t n[LAYER_ARRAYS];         // samples
    void *array[LAYER_ARRAYS];      // guarded, of the problem's type; results begin as NaN
    double *expected[LAYER_ARRAYS]; // the inputs as doubles; results NULL until layer_check
    size_t transform;               // as long as the engine's may be; 0: it sums
};

// The device under test: PARTITA_TEST_DEVICE in the environment, else "cpu". Prints its name; where
// it is missing, that the subject is skipped and why, unless PARTITA_CUDA_MODULE promises one: then
// the subject fails.
enum layer_device { LAYER_DEVICE_READY, LAYER_DEVICE_SKIP, LAYER_DEVICE_MISSING };
enum layer_device layer_device_check(void);

// Whether an engine, "cuda/direct", is of the device under test.
bool layer_has_engine(const char *engine);

// Whether PARTITA_CUDA_MODULE names a stand-in for a device, which computes thread by thread:
// problems are fewer and smaller there.
bool layer_on_stand_in(void);
int layer_repeats(int n);

// Whether PARTITA_TEST_BRIEF asks for f32 and small problems alone and one of each repetition: for
// runs that repeat others in another order of threads.
bool layer_is_brief(void);

// The options, with the device under test for its engines.
struct partita_options layer_options(const struct partita_options *options);

enum {
    LAYER_ALL = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT
}; // directions

// Whether an engine runs all directions of a problem on its device. cpu/direct and cuda/direct have
// to; others may refuse.
bool layer_is_served(const char *engine, const struct partita_problem *problem);

// Edge of the tiles that forward transforms; 0: it transforms none. Whether it transforms two of
// them together: what is no number in one reaches the other.
size_t layer_edge(const struct layer *layer);
bool layer_transforms_pairs(const struct layer *layer);

// Draws inputs of the problem's type; results are NaN.
void layer_open(struct layer *layer, const struct partita_problem *problem,
                const struct partita_options *options, struct random *random);
// The same with another layer's inputs.
void layer_open_copy(struct layer *layer, const struct layer *other,
                     const struct partita_options *options);
void layer_close(struct layer *layer); // checks the guards

// All three directions and the gradient of the bias; the calls allocate their workspace.
void layer_run(struct layer *layer);

// The same with transforms that forward saves for backward weight, twice over; without any,
// backward weight is refused. `guarded`: workspaces of those calls are the caller's, of no byte
// more than was asked for.
void layer_run_saved(struct layer *layer, bool guarded);

// Fails unless every result is within its gate of the oracle.
void layer_check(struct layer *layer);

// Fails unless all results of two layers are the same bits.
void layer_same_bits(const struct layer *a, const struct layer *b);

// A layer of every rank, few products, all parameters random: well formed, also where no output
// sees a sample.
struct partita_problem layer_random(struct random *random);

// The problem as the engine can serve it: for depthwise engines each input channel becomes a group
// of its own, with about as many output channels as there were; other engines take it as it is.
struct partita_problem layer_suit_engine(const char *engine, const struct partita_problem *problem);

// Multiply-adds of the direct sums.
double layer_products(const struct partita_problem *problem);

double layer_sample(const struct layer *layer, enum layer_array array, size_t i);

#endif
