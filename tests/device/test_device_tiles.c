// SPDX-License-Identifier: MIT
// cuda/tiles on the stand-in with every variant that the planner may choose (size of tiles,
// product, batches of positions), which test_layers.c has only where they are the cheapest;
// transforms that forward saves for backward weight.
#include "core/plan.h" // before the complex numbers of test.h

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

static const struct partita_problem problems[] = {
    {SIZE(23, 29), CORRELATE, BATCH(4), CHANNELS(3, 9), KERNEL(5, 3), PAD(2, 1), RELU},
    {SIZE(31, 28), BATCH(3), CHANNELS(6, 8), GROUPS(2), KERNEL(4, 5), STRIDE(2, 3), DILATION(1, 2),
     PAD_BEGIN(3, 0), PAD_END(0, 4)},
    {SIZE(13, 9), CHANNELS(3, 2), KERNEL(11, 9), PAD_BEGIN(10, 8)},
    {SIZE(211), BATCH(2), CHANNELS(2, 3), KERNEL(37)},
    {SIZE(7, 9, 11), CHANNELS(3, 5), KERNEL(2, 3, 2), PAD_BEGIN(1, 1, 1)},
    {SIZE(20, 19), BATCH(3), CHANNELS(3, 6), GROUPS(3), KERNEL(7, 6), STRIDE(1, 2), PAD(3, 3),
     RELU},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct variant_case {
    size_t problem;
    enum partita_type type;
};

static const char *const variants[] = {"cuda/tiles:complex", "cuda/tiles:gauss",
                                       "cuda/tiles:fused"};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

// Makes a plan of one direction again with a size of tiles and a workspace; false if there is none.
static bool remake(struct partita_plan *plan, size_t transform, size_t workspace)
{
    const struct request request = {.shape = &plan->shape,
                                    .direction = plan->direction,
                                    .device = plan->device,
                                    .transform = transform,
                                    .workspace_limit = workspace};
    struct estimate estimate = {0};
    plan->engine->estimate(&request, &estimate);
    if (!estimate.applicable) return false;
    assert_true(estimate.shared <= workspace);
    plan_destroy_state(plan);
    plan->choice = estimate;
    assert_ok(plan_create_state(plan, &request));
    return true;
}

static bool remake_all(struct layer *layer, size_t transform, size_t workspace)
{
    bool made = remake(layer->plan, transform, workspace);
    made = remake(layer->plan->backward_data, transform, workspace) || made;
    made = remake(layer->plan->backward_weight, transform, workspace) || made;
    if (!made) return false;
    partita_filter_destroy(layer->filter);
    assert_ok(filter_with_bias(layer->plan, layer->array[LAYER_W], layer->array[LAYER_BIAS],
                               &layer->filter));
    return true;
}

static struct partita_problem problem_of(const struct variant_case *c)
{
    struct partita_problem problem = problems[c->problem];
    problem.signal = problem.taps = c->type;
    return problem;
}

static void every_variant(void **state)
{
    const struct variant_case *c = *state;
    static const size_t transforms[] = {6, 8, 12, 16, 27, 32, 48},
                        workspaces[] = {SIZE_MAX, 300000};
    const struct partita_problem problem = problem_of(c);
    struct random random = random_start("ways");
    int n_made = 0;
    for (int v = 0; v < N_VARIANTS; v++) {
        const struct partita_options options = {.engine = variants[v], .directions = LAYER_ALL};
        struct layer layer;
        if (v == N_VARIANTS - 1 && problem.groups != problem.in_channels) continue;
        layer_open(&layer, &problem, &options, &random);
        for (size_t i = 0; i < 2 * sizeof transforms / sizeof *transforms; i++) {
            if (!remake_all(&layer, transforms[i / 2], workspaces[i % 2])) continue;
            n_made++;
            layer_run(&layer);
            layer_check(&layer);
        }
        layer_close(&layer);
    }
    assert_true(n_made >= 4);
}

// Imposes several batches of tiles on a layer if its taps fit small ones.
static void impose_batches(struct layer *layer)
{
    if (!remake_all(layer, 12, 200000)) remake_all(layer, 48, 200000);
}

// With transforms saved by forward, y has the same bits and gw is within its gate, also at the
// second call; with host arrays and workspaces of the calls.
static void saved_transforms(void **state)
{
    const struct variant_case *c = *state;
    const struct partita_problem problem = problem_of(c);
    struct random random = random_start("saved");
    for (int v = 0; v < N_VARIANTS - 1; v++) {
        const struct partita_options options = {.engine = variants[v], .directions = LAYER_ALL};
        struct layer layer, other;
        layer_open(&layer, &problem, &options, &random);
        impose_batches(&layer);
        layer_run(&layer);
        layer_open_copy(&other, &layer, &options);
        impose_batches(&other);
        void **a = other.array;
        // Allocates what the plan keeps.
        assert_ok(partita_backward_bias(other.plan, a[LAYER_GB], a[LAYER_GY], NULL));
        const size_t kept = hostdev_allocations();
        layer_run_saved(&other, false);
        assert_int_equal(hostdev_allocations(), kept);
        layer_check(&other);
        const size_t scalar = partita_type_size(c->type);
        assert_memory_equal(layer.array[LAYER_Y], other.array[LAYER_Y], layer.n[LAYER_Y] * scalar);
        layer_close(&other);
        layer_close(&layer);
    }
}

// A single kernel stores no spectra that could be saved.
static void saved_refusals(void **state)
{
    (void)state;
    struct random random = random_start("refusals");
    struct layer layer;
    struct partita_saved *saved = NULL;
    struct log_lines lines;
    layer_open(&layer, &problems[5],
               &(struct partita_options){.engine = "cuda/tiles:fused", .log = log_into(&lines)},
               &random);
    assert_int_equal(partita_saved_bytes(layer.plan), 0);
    assert_int_equal(partita_saved_create(layer.plan, &saved), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "cuda/tiles"));
    assert_null(saved);
    layer_close(&layer);
}

// All calls of a caller of saved transforms, up to the first failure.
static enum partita_status use_saved(struct layer *layer, struct partita_saved **saved)
{
    void **a = layer->array;
    enum partita_status status = partita_saved_create(layer->plan, saved);
    if (status == PARTITA_OK)
        status = partita_forward(layer->plan, layer->filter, a[LAYER_Y], a[LAYER_X],
                                 &(struct partita_call){.saved = *saved});
    if (status == PARTITA_OK)
        status = partita_backward_weight(layer->plan, a[LAYER_GW], NULL, a[LAYER_GY],
                                         &(struct partita_call){.saved = *saved});
    return status;
}

// An error at any call is returned as a status, and all memory is released.
static void saved_without_memory(void **state)
{
    (void)state;
    struct random random = random_start("saved-errors");
    struct layer layer;
    layer_open(&layer, &problems[0],
               &(struct partita_options){.engine = "cuda/tiles:complex", .directions = LAYER_ALL},
               &random);
    assert_ok(
        partita_backward_bias(layer.plan, layer.array[LAYER_GB], layer.array[LAYER_GY], NULL));
    const size_t kept = hostdev_allocations();
    for (size_t k = 1;; k++) {
        struct partita_saved *saved = NULL;
        hostdev_fail(k, cudaErrorMemoryAllocation);
        const enum partita_status status = use_saved(&layer, &saved);
        const bool failed = hostdev_calls() >= k;
        hostdev_fail(0, cudaSuccess);
        assert_true(status == PARTITA_OK || (failed && status == PARTITA_ERR_NOMEM));
        partita_saved_destroy(saved);
        assert_int_equal(hostdev_allocations(), kept);
        if (!failed) break;
    }
    layer_close(&layer);
}

int main(void)
{
    static struct variant_case cases[2][N_PROBLEMS];
    static struct CMUnitTest tests[4 * N_PROBLEMS + 2];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (int f64 = 0; f64 < (layer_is_brief() ? 1 : 2); f64++)
        for (size_t i = 0; i < N_PROBLEMS; i++) {
            const char *type = f64 ? "f64" : "f32";
            cases[f64][i] = (struct variant_case){i, f64 ? PARTITA_F64 : PARTITA_F32};
            tests[n++] =
                named_test(every_variant, &cases[f64][i], "every way: %s: problem %zu", type, i);
            tests[n++] = named_test(saved_transforms, &cases[f64][i],
                                    "saved transforms: %s: problem %zu", type, i);
        }
    tests[n++] = named_test(saved_refusals, NULL, "saved transforms: refusals");
    tests[n++] = named_test(saved_without_memory, NULL, "saved transforms: no memory at any call");
    return run_test_list(tests, n);
}
