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

// Fails unless `engine` is the one that was asked for by NAME or NAME:VARIANT.
void layer_assert_engine(const char *engine, const char *asked);

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

// One result, of all arrays of a layer, which may be copies elsewhere, with call.accumulate or what
// else a call may have.
enum partita_status layer_call(const struct layer *layer, enum layer_array result,
                               void *const arrays[LAYER_ARRAYS], const struct partita_call *call);

// The sums that a result with call.accumulate leaves in an array that holds `before`: to[i] =
// before[i] + result[i], each rounded once; of two bytes the sum in f32.
void layer_add(const struct layer *layer, enum layer_array result, void *to, const void *before);

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

// The problem with `type` for signal and taps.
struct partita_problem problem_of_type(const struct partita_problem *problem,
                                       enum partita_type type);

// The engines of layers on all devices.
enum { N_LAYER_ENGINES = 15 };
extern const char *const layer_engines[N_LAYER_ENGINES];

// Fails unless the arrays of inputs are unchanged.
void layer_check_inputs(const struct layer *layer);

// Executes a layer with these options and the inputs of `first`; fails unless all results have the
// same bits.
void layer_check_copy(const struct layer *first, const struct partita_options *options);

// Executes `other`, a copy of `layer`, twice with guarded workspaces of exactly the required size,
// in which the second call finds what the first one wrote; fails unless all results have the bits
// of `layer`.
void layer_check_workspace(const struct layer *layer, struct layer *other);

// Plans with the workspace limits first, first * factor, .. below `end`, which replace that of the
// options. Each plan is refused or stays within its limit in every direction, and its results are
// right; no plan is refused after a smaller limit was accepted. Returns the number of plans.
struct layer_limits {
    size_t first, end, factor;
    size_t transform; // the largest that the engine may have; 0: direct sums
};
int layer_check_limits(const struct partita_problem *problem, const struct partita_options *options,
                       const struct layer_limits *limits, struct random *random);

// Executes a layer without bias and activation, so that it is linear in x and in w, and fails
// unless <gy, A x> = <A' gy, x> = <gw, w>. The gate is relative to the products of the arrays'
// norms.
void layer_check_transpose(struct layer *layer, double gate);

// The sum over the products of two arrays of the same size.
double layer_dot(const struct layer *layer, enum layer_array a, enum layer_array b);

// Multiply-adds of the direct sums.
double layer_products(const struct partita_problem *problem);

double layer_sample(const struct layer *layer, enum layer_array array, size_t i);

#endif
