// SPDX-License-Identifier: MIT
// A layer ready to execute in all directions: random arrays, plan and filter, the oracle's results
// and their gates. Also the device under test.
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
    void *array[LAYER_ARRAYS];      // guarded, of the problem's type; results start as NaN
    double *expected[LAYER_ARRAYS]; // inputs as doubles; results are NULL until layer_check
    size_t transform;               // the largest that the engine may have; 0: direct sums
};

// The device under test: PARTITA_TEST_DEVICE in the environment, else "cpu". Prints its name. If it
// is missing, prints why and that the program is skipped; with PARTITA_CUDA_MODULE in the
// environment a missing device is a failure.
enum layer_device { LAYER_DEVICE_READY, LAYER_DEVICE_SKIP, LAYER_DEVICE_MISSING };
enum layer_device layer_device_check(void);

// Whether an engine such as "cuda/direct" belongs to the device under test.
bool layer_has_engine(const char *engine);

// Whether PARTITA_CUDA_MODULE names a stand-in for a device, which computes thread by thread: tests
// have fewer and smaller problems then. layer_repeats: the number of repetitions, of n.
bool layer_on_stand_in(void);
int layer_repeats(int n);

// Whether PARTITA_TEST_BRIEF requests only f32, small problems and one repetition: for runs that
// differ from others only in the order of threads.
bool layer_is_brief(void);

// The options, with the device under test for its engines.
struct partita_options layer_options(const struct partita_options *options);

// All directions.
enum { LAYER_ALL = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT };

// Whether an engine has all directions of a problem. cpu/direct and cuda/direct must; others may
// refuse.
bool layer_is_served(const char *engine, const struct partita_problem *problem);

// Edge of the tiles that forward transforms; 0: it has no transform. Whether it transforms two
// tiles together, so that a NaN in one reaches the other.
size_t layer_edge(const struct layer *layer);
bool layer_transforms_pairs(const struct layer *layer);

// Draws inputs of the problem's type and fills results with NaN.
void layer_open(struct layer *layer, const struct partita_problem *problem,
                const struct partita_options *options, struct random *random);
// The same with another layer's inputs.
void layer_open_copy(struct layer *layer, const struct layer *other,
                     const struct partita_options *options);
void layer_close(struct layer *layer); // checks the guard bytes

// Executes all three directions and the gradient of the bias; the calls allocate their workspace.
void layer_run(struct layer *layer);

// The same, twice, with transforms that forward saves for backward weight; before the first
// forward, backward weight must be refused. `guarded`: the caller allocates the workspaces of these
// calls, exactly as large as required.
void layer_run_saved(struct layer *layer, bool guarded);

// Fails unless every result is within its gate of the oracle.
void layer_check(struct layer *layer);

// Fails unless all results of two layers have the same bits.
void layer_same_bits(const struct layer *a, const struct layer *b);

// Draws a valid layer of any rank with few products; all parameters are random, and some outputs
// may depend on no sample.
struct partita_problem layer_random(struct random *random);

// The problem in a form that the engine can serve: for depthwise engines each input channel becomes
// a group with about as many output channels as before; for others nothing changes.
struct partita_problem layer_suit_engine(const char *engine, const struct partita_problem *problem);

// Multiply-adds of the direct sums.
double layer_products(const struct partita_problem *problem);

double layer_sample(const struct layer *layer, enum layer_array array, size_t i);

#endif
