// SPDX-License-Identifier: MIT
// cuda/blocks beyond its results (test_blocks.c, test_batches.c, test_engines.c on the stand-in):
// arrays in device memory at any address, taps read there without a filter, the same bits in any
// order of threads, an error at any call, concurrent calls that share a plan.
#include "support/rig.h"

#include "support/layer_rig.h"

#include <stdio.h>

#include "device/arrays.h"

struct block_case {
    const char *name;
    struct partita_problem problem;
    size_t taps, signal; // imposed partition sizes; 0: none
    bool needs_cufft;
};

// Each schedule, with transforms in a thread block and by cuFFT.
static const struct block_case cases[] = {
    {"pairs", {LENGTH(700), BATCH(2), CHANNELS(2, 1), KERNEL(300), PAD_BEGIN(299)}, 64, 64, false},
    {"pairs-complex", {LENGTH(700), TYPES(CF32, CF32), CORRELATE, KERNEL(300)}, 64, 64, false},
    {"pairs-long", {LENGTH(20100), KERNEL(20000), PAD_BEGIN(3)}, 16384, 16384, true},
    {"divisions",
     {LENGTH(700), BATCH(2), CHANNELS(2, 1), KERNEL(300), PAD_BEGIN(299)},
     20,
     36,
     false},
    {"divisions-complex", {LENGTH(700), TYPES(CF32, CF32), CORRELATE, KERNEL(300)}, 36, 8, false},
    {"divisions-long", {LENGTH(20100), KERNEL(20000), PAD_BEGIN(3)}, 12000, 9000, true},
    {"lags", {LENGTH(30010), CORRELATE, KERNEL(30000), PAD(20)}, 0, 0, false},
    {"lags-complex", {LENGTH(9010), TYPES(CF32, CF32), CORRELATE, KERNEL(9000)}, 0, 0, false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static struct partita_options options_of(const struct block_case *c)
{
    return (struct partita_options){
        .engine = "cuda/blocks", .device = "cuda:0", .parts = {c->taps, c->signal, false}};
}

// With every array in device memory, one scalar past its alignment, the bits are those of host
// arrays, and only filters allocate.
static void device_arrays(void **state)
{
    const struct block_case *c = *state;
    enum { OFFSET = sizeof(float) };
    const struct partita_options options = options_of(c);
    struct random random = random_start(c->name);
    struct rig rig;
    struct partita_filter *filter;
    rig_open(&rig, &c->problem, &options, &random);
    assert_true(rig.plan->choice.from_taps == !c->taps); // windows of lags read the taps directly
    rig_forward(&rig);
    rig_check(&rig);
    const size_t y_bytes = rig.n_y * rig.sample_bytes, w_bytes = rig.n_w * rig.sample_bytes;
    char *x = device_copy(rig.x, rig.n_x * rig.sample_bytes, OFFSET),
         *w = device_copy(rig.w, w_bytes, OFFSET), *y = NULL;
    void *workspace = NULL;
    assert_int_equal(cudaMalloc((void **)&y, y_bytes + OFFSET), cudaSuccess);
    assert_int_equal(cudaMalloc(&workspace, partita_plan_workspace(rig.plan, PARTITA_FORWARD)),
                     cudaSuccess);
    assert_ok(partita_filter_create(rig.plan, w + OFFSET, &filter));
    size_t n_allocations = hostdev_allocations();
    assert_ok(partita_forward(rig.plan, filter, y + OFFSET, x + OFFSET,
                              &(struct partita_call){.workspace = workspace}));
    assert_int_equal(hostdev_allocations(), n_allocations);
    char *result = malloc(y_bytes);
    cudaMemcpy(result, y + OFFSET, y_bytes, cudaMemcpyDefault);
    assert_memory_equal(result, rig.y, y_bytes);
    memset(result, 0xff, y_bytes);
    cudaMemcpy(y + OFFSET, result, y_bytes, cudaMemcpyDefault);
    assert_ok(partita_forward(rig.plan, NULL, y + OFFSET, x + OFFSET,
                              &(struct partita_call){.taps = w + OFFSET}));
    cudaMemcpy(result, y + OFFSET, y_bytes, cudaMemcpyDefault);
    assert_memory_equal(result, rig.y, y_bytes);
    free(result);
    partita_filter_destroy(filter);
    cudaFree(x), cudaFree(w), cudaFree(y), cudaFree(workspace);
    rig_close(&rig);
    assert_int_equal(hostdev_allocations(), 0);
}

static void any_order_same_bits(void **state)
{
    static const char *const orders[] = {"reverse", "1", "2", "3"};
    const struct block_case *c = *state;
    const struct partita_options options = options_of(c);
    struct random random = random_start(c->name);
    struct rig first;
    hostdev_order("forward");
    rig_open(&first, &c->problem, &options, &random);
    rig_forward(&first);
    for (int i = 0; i < 4; i++) {
        hostdev_order(orders[i]);
        rig_check_copy(&first, &options);
    }
    rig_close(&first);
    hostdev_order(getenv("HOSTDEV_ORDER"));
}

// With arrays in device memory, which are not split for any limit.
static void forward_on_device(const struct rig *rig)
{
    const size_t bytes = rig->n_y * rig->sample_bytes;
    void *x = device_copy(rig->x, rig->n_x * rig->sample_bytes, 0),
         *y = device_copy(rig->y, bytes, 0);
    assert_ok(partita_forward(rig->plan, rig->filter, y, x, NULL));
    assert_int_equal(cudaMemcpy(rig->y, y, bytes, cudaMemcpyDefault), cudaSuccess);
    cudaFree(x), cudaFree(y);
}

// With less workspace there are fewer channels, then fewer intervals at a time, with the same bits,
// or a refusal with a reason.
static void intervals_in_chunks(void **state)
{
    const struct block_case *c = *state;
    struct partita_options options = options_of(c);
    struct random random = random_start(c->name);
    struct log_lines lines;
    struct rig first, other;
    size_t served = 0;
    rig_open(&first, &c->problem, &options, &random);
    rig_forward(&first);
    rig_check(&first);
    options.log = log_into(&lines);
    for (size_t limit = first.plan->choice.shared;; limit -= limit / 32, served++) {
        struct partita_plan *plan;
        options.workspace_limit = limit;
        const enum partita_status status = partita_plan_create(&c->problem, &options, &plan);
        if (status == PARTITA_ERR_UNSUPPORTED) break;
        assert_ok(status);
        assert_true(plan->choice.shared <= limit);
        partita_plan_destroy(plan);
        rig_open_with(&other, &c->problem, &options, first.x, first.w);
        forward_on_device(&other);
        assert_memory_equal(first.y, other.y, first.n_y * first.sample_bytes);
        rig_close(&other);
    }
    assert_true(served >= 3);
    assert_non_null(strstr(lines.text, "do not fit the workspace limit"));
    rig_close(&first);
}

// A plan and a filter with their inputs, for failing and concurrent calls.
struct objects {
    const struct block_case *c;
    const struct rig *inputs;
    struct partita_plan *plan;
    struct partita_filter *filter;
};

// Makes plan and filter unless they are there.
static enum partita_status objects_compute(void *context, void *y)
{
    struct objects *o = context;
    struct log_lines lines;
    struct partita_options options = options_of(o->c);
    enum partita_status status = PARTITA_OK;
    options.log = log_into(&lines);
    if (!o->plan) status = partita_plan_create(&o->c->problem, &options, &o->plan);
    if (status == PARTITA_OK && !o->filter)
        status = partita_filter_create(o->plan, o->inputs->w, &o->filter);
    if (status == PARTITA_OK) status = partita_forward(o->plan, o->filter, y, o->inputs->x, NULL);
    if (status == PARTITA_OK)
        status = partita_forward(o->plan, NULL, y, o->inputs->x,
                                 &(struct partita_call){.taps = o->inputs->w});
    return status;
}

static bool objects_usable(const void *context)
{
    const struct objects *o = context;
    return o->plan;
}

static void objects_release(void *context)
{
    struct objects *o = context;
    partita_filter_destroy(o->filter);
    partita_plan_destroy(o->plan);
    o->filter = NULL;
    o->plan = NULL;
}

// Other plans are not affected by a failure.
static void error_at_any_call(const struct block_case *c, cudaError_t error)
{
    const struct partita_options options = options_of(c);
    struct random random = random_start(c->name);
    struct rig rig;
    rig_open(&rig, &c->problem, &options, &random);
    rig_forward(&rig);
    const size_t bytes = rig.n_y * rig.sample_bytes;
    void *expected = malloc(bytes);
    memcpy(expected, rig.y, bytes);
    struct objects objects = {.c = c, .inputs = &rig};
    check_failing_calls(&(struct failing_calls){&objects, objects_compute, objects_usable,
                                                objects_release, expected, bytes},
                        error);
    rig_forward(&rig);
    assert_memory_equal(rig.y, expected, bytes);
    free(expected);
    rig_close(&rig);
}

static void lost_device(void **state)
{
    error_at_any_call(*state, cudaErrorIllegalAddress);
}

static void no_memory(void **state)
{
    error_at_any_call(*state, cudaErrorMemoryAllocation);
}

// Concurrent calls share plan and filter, each with a plan of cuFFT of its own.
static void calls_at_once(void **state)
{
    const struct block_case *c = *state;
    const struct partita_options options = options_of(c);
    struct random random = random_start(c->name);
    struct rig rig;
    rig_open(&rig, &c->problem, &options, &random);
    rig_forward(&rig);
    struct objects objects = {c, &rig, rig.plan, rig.filter};
    check_concurrent_calls(&(struct failing_calls){&objects, objects_compute, objects_usable, NULL,
                                                   rig.y, rig.n_y * rig.sample_bytes});
    rig_close(&rig);
}

// A device with less shared memory, as most have, does not have the windows of lags that are best
// on others.
static void small_device(void **state)
{
    static const struct block_case c = {
        "lags", {LENGTH(30999), CORRELATE, KERNEL(30000)}, 0, 0, false};
    struct partita_options options = options_of(&c);
    struct random random = random_start("small-device");
    struct rig rig;
    (void)state;
    rig_open(&rig, &c.problem, &options, &random);
    assert_true(rig.plan->choice.from_taps && rig.plan->choice.transform == 16384);
    rig_close(&rig);
    hostdev_shared(99 << 10);
    options.device = "cuda:1"; // which has not been opened before
    rig_open(&rig, &c.problem, &options, &random);
    rig_forward(&rig);
    rig_check(&rig);
    rig_close(&rig);
    hostdev_shared(0);
}

int main(void)
{
    static const struct promise promises[] = {{"device-arrays", device_arrays},
                                              {"any-order-same-bits", any_order_same_bits},
                                              {"lost-device", lost_device},
                                              {"no-memory", no_memory},
                                              {"calls-at-once", calls_at_once}};
    enum { N_PROMISES = sizeof promises / sizeof *promises };
    static struct CMUnitTest tests[N_CASES * (N_PROMISES + 1) + 1];
    const char *cufft = getenv("PARTITA_CUFFT");
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t w = 0; w < N_CASES; w++)
        for (size_t i = 0; i < N_PROMISES; i++)
            if (!cases[w].needs_cufft || !cufft || strcmp(cufft, "none") != 0)
                tests[n++] = named_test(promises[i].run, &cases[w], "%s/%s", cases[w].name,
                                        promises[i].name);
    for (size_t w = 0; w < N_CASES; w++)
        if (cases[w].taps != cases[w].signal && !cases[w].needs_cufft)
            tests[n++] =
                named_test(intervals_in_chunks, &cases[w], "%s/intervals-in-runs", cases[w].name);
    tests[n++] = named_test(small_device, NULL, "small-device");
    return run_test_list(tests, n);
}
