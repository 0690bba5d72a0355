// SPDX-License-Identifier: MIT
// Batches in host memory in micro-batches (decision 27): every engine's results are right and the
// same from any memory; batches may exceed device memory; nothing is allocated twice; after a
// failure all memory is released.
#include "core/plan.h"

#include <complex.h>
#include <pthread.h>

#include "device/arrays.h"
#include "device/engines.h"
#include "support/allocators.h"
#include "support/layer_rig.h"

// Batches of layers and signals whose last micro-batch has fewer items than the others.
static const struct partita_problem batches[] = {
    {SIZE(9, 11), BATCH(7), CHANNELS(4, 6), GROUPS(2), KERNEL(3, 3), PAD(1, 1), RELU},
    {SIZE(12, 13), CORRELATE, BATCH(7), CHANNELS(2, 2), GROUPS(2), KERNEL(5, 5), PAD(2, 2)},
    {SIZE(16, 20), BATCH(7), KERNEL(7, 1), PAD(3), .separable = true},
    {LENGTH(500), BATCH(7), CHANNELS(2, 3), KERNEL(33), PAD_BEGIN(32)},
    {LENGTH(700), BATCH(7), KERNEL(300), PAD(299)},
};
// Smaller ones for tests with many repetitions.
static const struct partita_problem few_sums = {SIZE(4, 5), BATCH(5), KERNEL(2, 2)};
static const struct partita_problem few_sequences = {LENGTH(500), BATCH(5), KERNEL(9)};
// Other types.
static const struct partita_problem doubles = {SIZE(7, 9),     TYPES(F64, F64), BATCH(7),
                                               CHANNELS(2, 3), KERNEL(3, 2),    STRIDE(2, 1)};
static const struct partita_problem complex_sequences = {
    LENGTH(600), TYPES(CF32, CF32), BATCH(7), OUTPUTS(2), KERNEL(40), PAD_BEGIN(39)};
enum { N_BATCHES = sizeof batches / sizeof *batches };

// An engine and its batch.
struct subject {
    const char *engine;
    const struct partita_problem *problem;
    unsigned directions;
};

// Bytes of the arrays of one item.
static size_t item_bytes(const struct layer *layer)
{
    return (layer_bytes(layer, LAYER_X) + layer_bytes(layer, LAYER_Y)) / layer->problem.batch;
}

// Opens with a limit that leaves `items` items in a micro-batch; false if the engine refuses it.
static bool open_micro_batches(struct layer *layer, const struct subject *subject, size_t items,
                               struct random *random)
{
    struct layer whole;
    struct partita_options options = {.engine = subject->engine, .directions = subject->directions};
    layer_open(&whole, subject->problem, &options, random);
    options = layer_options(&options);
    options.workspace_limit = 4 * items * item_bytes(&whole);
    struct partita_plan *plan;
    bool split = false;
    if (partita_plan_create(subject->problem, &options, &plan) == PARTITA_OK) {
        split = plan->micro_batch &&
                (subject->directions == PARTITA_FORWARD ||
                 (plan->backward_data->micro_batch && plan->backward_weight->micro_batch));
        partita_plan_destroy(plan);
    }
    if (split) layer_open_copy(layer, &whole, &options);
    layer_close(&whole);
    if (split) assert_int_equal(layer->plan->micro_batch->shape.batch, items);
    return split;
}

// Micro-batches of 1, 2 and 3 of 7 items: of one size, with a last one that lacks one item, two
// items.
static void pieces(void **state)
{
    const struct subject *subject = *state;
    struct random random = random_start("pieces");
    struct layer layer;
    size_t split = 0;
    for (size_t items = 1; items <= 3; items++) {
        if (!open_micro_batches(&layer, subject, items, &random)) continue;
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
        assert_int_equal(hostdev_allocations(), 0);
        split += items > 1;
    }
    if (!split) fail_msg("%s has no micro-batches", subject->engine);
}

// With arrays in any memory the bits are those of pageable ones. This does not hold if nothing is
// split because all arrays are on the device: gradients of taps then have another order of sums,
// and tiles other pairs.
static void any_memory_same_bits(void **state)
{
    static const enum memory memories[][2] = {{PINNED, PINNED},
                                              {PINNED, PAGEABLE},
                                              {DEVICE, PAGEABLE},
                                              {PAGEABLE, DEVICE},
                                              {DEVICE, DEVICE}};
    const struct subject *subject = *state;
    struct random random = random_start("memory");
    struct layer first, other;
    size_t items = 3;
    while (items && !open_micro_batches(&first, subject, items, &random)) items--;
    assert_true(items > 1);
    layer_run_in(&first, subject->directions, PAGEABLE, PAGEABLE);
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        const bool whole = memories[i][0] == DEVICE && memories[i][1] == DEVICE;
        const struct partita_options options = {.engine = subject->engine,
                                                .directions = subject->directions,
                                                .workspace_limit = 4 * items * item_bytes(&first)};
        layer_open_copy(&other, &first, &options);
        layer_run_in(&other, subject->directions, memories[i][0], memories[i][1]);
        for (int a = LAYER_Y; a < LAYER_ARRAYS && !(whole && layer_transforms_pairs(&first)); a++)
            if (!(memories[i][0] == DEVICE && a >= LAYER_GW))
                assert_memory_equal(first.array[a], other.array[a], layer_bytes(&first, a));
        layer_close(&other);
    }
    layer_close(&first);
    assert_int_equal(hostdev_allocations(), 0);
}

// call.accumulate adds the results of the same call in any memory: bit by bit.
static void sums(void **state)
{
    static const enum memory memories[][2] = {{PAGEABLE, PAGEABLE}, {PINNED, PINNED},
                                              {DEVICE, PAGEABLE},   {PAGEABLE, DEVICE},
                                              {DEVICE, DEVICE},     {PAGEABLE, MISALIGNED}};
    const struct subject *subject = *state;
    struct random random = random_start("sums");
    struct subject linear = *subject;
    struct partita_problem problem = *subject->problem;
    struct layer layer;
    problem.activation = PARTITA_LINEAR;
    linear.problem = &problem;
    size_t items = 3;
    while (items && !open_micro_batches(&layer, &linear, items, &random)) items--;
    assert_true(items > 1);
    for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) {
        void *before[LAYER_ARRAYS] = {0}, *plain[LAYER_ARRAYS] = {0};
        layer_run_in(&layer, subject->directions, memories[i][0], memories[i][1]);
        for (int a = LAYER_Y; a < LAYER_ARRAYS; a++) {
            before[a] = malloc(layer_bytes(&layer, a));
            plain[a] = layer.array[a];
            layer.array[a] = guarded_alloc(layer_bytes(&layer, a), 0);
            random_samples(&random, problem.signal, before[a], layer.n[a]);
            memcpy(layer.array[a], before[a], layer_bytes(&layer, a));
        }
        layer_add_in(&layer, subject->directions, memories[i][0], memories[i][1]);
        for (int a = LAYER_Y; a < LAYER_ARRAYS; a++) {
            void *sum = layer.array[a];
            layer.array[a] = plain[a];
            layer_add(&layer, (enum layer_array)a, before[a], before[a]);
            if (a == LAYER_Y || subject->directions != PARTITA_FORWARD)
                assert_memory_equal(sum, before[a], layer_bytes(&layer, a));
            free(before[a]);
            guarded_free(sum);
        }
    }
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), 0);
}

// Complex sequences in micro-batches have the bits of the whole batch on the device.
static void complex_samples(void **state)
{
    enum { X = 7 * 600, Y = 7 * 2 * 600, LIMIT = 4 * 3 * (600 + 2 * 600) * 8 };
    static float complex x[X], w[2 * 40], y[Y], whole[Y];
    struct random random = random_start("complex");
    struct partita_plan *plan;
    struct partita_filter *filter;
    const struct partita_options options = {.device = "cuda:0",
                                            .engine = *state,
                                            .workspace_limit = LIMIT,
                                            .directions = PARTITA_FORWARD};
    random_samples(&random, PARTITA_CF32, x, X);
    random_samples(&random, PARTITA_CF32, w, 2 * 40);
    assert_ok(partita_plan_create(&complex_sequences, &options, &plan));
    assert_non_null(plan->micro_batch);
    assert_int_equal(plan->micro_batch->shape.batch, 3);
    char text[4096];
    partita_plan_explain(plan, text, sizeof text);
    assert_non_null(strstr(text, "3 items of the batch at a time"));
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_forward(plan, filter, y, x, NULL));
    void *device_x = array_allocate(DEVICE, sizeof x), *device_y = array_allocate(DEVICE, sizeof y);
    cudaMemcpy(device_x, x, sizeof x, cudaMemcpyDefault);
    assert_ok(partita_forward(plan, filter, device_y, device_x, NULL));
    cudaMemcpy(whole, device_y, sizeof whole, cudaMemcpyDefault);
    assert_memory_equal(y, whole, sizeof y);
    array_release(DEVICE, device_x);
    array_release(DEVICE, device_y);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(hostdev_allocations(), 0);
}

// One of several concurrent calls of a plan.
struct caller {
    const struct layer *layer;
    void *y;
    enum partita_status status;
    pthread_t thread;
};

static void *call(void *context)
{
    struct caller *caller = context;
    const struct layer *layer = caller->layer;
    caller->status =
        partita_forward(layer->plan, layer->filter, caller->y, layer->array[LAYER_X], NULL);
    return NULL;
}

static void several_callers(void **state)
{
    enum { CALLERS = 4 };
    const struct subject subject = {"cuda/direct", &batches[0], LAYER_ALL};
    struct random random = random_start("callers");
    struct layer layer;
    struct caller callers[CALLERS];
    (void)state;
    assert_true(open_micro_batches(&layer, &subject, 2, &random));
    layer_run(&layer);
    const size_t bytes = layer_bytes(&layer, LAYER_Y);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.layer = &layer, .y = calloc(1, bytes)};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_ok(callers[i].status);
        assert_memory_equal(callers[i].y, layer.array[LAYER_Y], bytes);
        free(callers[i].y);
    }
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), 0);
}

// After the first call no memory is allocated, pinned or other; the plan releases that of the first
// one.
static void memory_is_kept(void **state)
{
    (void)state;
    static const size_t limits[] = {0, 4 * 2 * 99 * 10 * sizeof(float)}; // none; with micro-batches
    for (size_t i = 0; i < 2; i++) {
        struct random random = random_start("kept");
        struct meter meter = {0};
        struct layer layer;
        layer_open(&layer, &batches[0],
                   &(struct partita_options){.engine = "cuda/direct",
                                             .directions = LAYER_ALL,
                                             .workspace_limit = limits[i],
                                             .allocator = meter_allocator(&meter)},
                   &random);
        assert_true(!layer.plan->micro_batch == !limits[i]);
        const size_t before = hostdev_allocations();
        layer_run(&layer);
        const size_t after = hostdev_allocations(), blocks = meter.n_allocated;
        assert_true(after > before);
        layer_run(&layer);
        assert_int_equal(hostdev_allocations(), after);
        assert_int_equal(meter.n_allocated, blocks);
        layer_close(&layer);
        assert_int_equal(hostdev_allocations(), 0);
    }
}

// A batch that exceeds device memory is computed within a limit.
static void larger_than_memory(void **state)
{
    const struct partita_problem problem = {SIZE(32, 32), BATCH(40), KERNEL(1, 1)};
    struct random random = random_start("larger");
    struct layer layer;
    (void)state;
    const size_t item = 2 * sizeof(float) * 32 * 32, limit = 8 * item;
    hostdev_memory(limit + 1024); // the taps, besides the arrays
    layer_open(&layer, &problem,
               &(struct partita_options){.engine = "cuda/direct:plain",
                                         .directions = LAYER_ALL,
                                         .workspace_limit = limit},
               &random);
    layer_run(&layer);
    layer_check(&layer);
    layer_close(&layer);
    layer_open(&layer, &problem, &(struct partita_options){.engine = "cuda/direct:plain"}, &random);
    assert_int_equal(
        partita_forward(layer.plan, layer.filter, layer.array[LAYER_Y], layer.array[LAYER_X], NULL),
        PARTITA_ERR_NOMEM);
    layer_close(&layer);
    hostdev_memory(0);
    assert_int_equal(hostdev_allocations(), 0);
}

static void failing_pieces(void **state)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorIllegalAddress};
    const struct subject *subject = *state;
    struct random random = random_start("failing-pieces");
    struct layer reference;
    assert_true(open_micro_batches(&reference, subject, 3, &random));
    const struct partita_options options = {.engine = subject->engine,
                                            .directions = LAYER_ALL,
                                            .workspace_limit = 4 * 3 * item_bytes(&reference)};
    layer_run(&reference);
    for (size_t e = 0; e < 2; e++)
        for (size_t k = 1; layer_attempt(&reference, &options, k, errors[e]); k++) {
        }
    layer_close(&reference);
    assert_int_equal(hostdev_allocations(), 0);
}

// The engines of the device, each with the first batch that it serves, in all directions or only
// forward.
static size_t list_subjects(struct subject ret[MAX_DEVICE_ENGINES])
{
    static struct engine_name names[MAX_DEVICE_ENGINES];
    const size_t n_names = list_device_engines(names);
    size_t n = 0;
    for (size_t e = 0; e < n_names; e++)
        for (size_t i = 0; i < 2 * (size_t)N_BATCHES; i++) {
            const struct partita_options options = {.device = "cuda:0",
                                                    .engine = names[e].text,
                                                    .directions = i < N_BATCHES ? LAYER_ALL
                                                                                : PARTITA_FORWARD};
            struct partita_plan *one;
            if (partita_plan_create(&batches[i % N_BATCHES], &options, &one) != PARTITA_OK)
                continue;
            partita_plan_destroy(one);
            ret[n++] = (struct subject){names[e].text, &batches[i % N_BATCHES], options.directions};
            break;
        }
    return n;
}

int main(void)
{
    enum { ALONE = 5, N_FAILING = 2, OTHER_TYPES = 1 };
    static const struct subject failing[N_FAILING] = {
        {"cuda/direct:plain", &few_sums, LAYER_ALL},
        {"cuda/overlap-save", &few_sequences, LAYER_ALL}};
    static struct CMUnitTest tests[ALONE + 3 * (OTHER_TYPES + MAX_DEVICE_ENGINES) + N_FAILING] = {
        {.name = "kept", .test_func = memory_is_kept},
        cmocka_unit_test(larger_than_memory),
        cmocka_unit_test(several_callers),
    };
    tests[3] =
        named_test(complex_samples, "cuda/overlap-save", "cuda/overlap-save/complex-samples");
    tests[4] = named_test(complex_samples, "cuda/blocks", "cuda/blocks/complex-samples");
    static struct subject subjects[OTHER_TYPES + MAX_DEVICE_ENGINES] = {
        {"cuda/direct", &doubles, LAYER_ALL}};
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    const size_t n_subjects = OTHER_TYPES + list_subjects(subjects + OTHER_TYPES);
    size_t n = ALONE;
    for (size_t i = 0; i < n_subjects; i++) {
        const struct subject *subject = &subjects[i];
        const char *type = partita_type_name(subject->problem->signal);
        const bool all = subject->directions == LAYER_ALL;
        if (all) tests[n++] = named_test(pieces, subject, "%s/pieces %s", subject->engine, type);
        tests[n++] = named_test(any_memory_same_bits, subject, "%s/any-memory-same-bits %s",
                                subject->engine, type);
        tests[n++] = named_test(sums, subject, "%s/sums %s", subject->engine, type);
    }
    for (size_t i = 0; i < N_FAILING && !layer_is_brief(); i++)
        tests[n++] =
            named_test(failing_pieces, &failing[i], "%s/failing-pieces", failing[i].engine);
    return run_test_list(tests, n);
}
