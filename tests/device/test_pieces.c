// SPDX-License-Identifier: MIT
// Batches in the host's memory, some items at a time (decision 27): every engine's results are
// right and the same from any memory; batches may be larger than the device's; nothing is made
// twice; a failure leaves nothing behind.
#include "core/plan.h"

#include <complex.h>
#include <pthread.h>

#include "device/arrays.h"
#include "device/device_engines.h"
#include "support/layer_rig.h"

// Batches of layers and signals whose last piece has fewer items than the others.
static const struct partita_problem batches[] = {
    {SIZE(9, 11), BATCH(7), CHANNELS(4, 6), GROUPS(2), KERNEL(3, 3), PAD(1, 1), RELU},
    {SIZE(12, 13), CORRELATE, BATCH(7), CHANNELS(2, 2), GROUPS(2), KERNEL(5, 5), PAD(2, 2)},
    {SIZE(16, 20), BATCH(7), KERNEL(7, 1), PAD(3), .separable = true},
    {LENGTH(500), BATCH(7), CHANNELS(2, 3), KERNEL(33), PAD_BEGIN(32)},
    {LENGTH(700), BATCH(7), KERNEL(300), PAD(299)},
};
// Smaller ones for what is done again and again.
static const struct partita_problem few_sums = {SIZE(4, 5), BATCH(5), KERNEL(2, 2)};
static const struct partita_problem few_lines = {LENGTH(500), BATCH(5), KERNEL(9)};
// Other types.
static const struct partita_problem doubles = {SIZE(7, 9),     TYPES(F64, F64), BATCH(7),
                                               CHANNELS(2, 3), KERNEL(3, 2),    STRIDE(2, 1)};
static const struct partita_problem complex_lines = {LENGTH(600), TYPES(CF32, CF32), BATCH(7),
                                                     OUTPUTS(2),  KERNEL(40),        PAD_BEGIN(39)};
enum { N_BATCHES = sizeof batches / sizeof *batches };

// An engine and the batch that it is tried on.
struct subject {
    const char *engine;
    const struct partita_problem *problem;
    unsigned directions;
};

// Bytes of the arrays of one item.
static size_t item_of(const struct layer *layer)
{
    return (layer_bytes(layer, LAYER_X) + layer_bytes(layer, LAYER_Y)) / layer->problem.batch;
}

// With a limit that leaves so many items to a piece; false if the engine cannot work in it.
static bool open_in_pieces(struct layer *layer, const struct subject *subject, size_t items,
                           struct random *random)
{
    struct layer whole;
    struct partita_options options = {.engine = subject->engine, .directions = subject->directions};
    layer_open(&whole, subject->problem, &options, random);
    options = layer_options(&options);
    options.workspace_limit = 4 * items * item_of(&whole);
    struct partita_plan *plan;
    bool cut = false;
    if (partita_plan_create(subject->problem, &options, &plan) == PARTITA_OK) {
        cut = plan->piece && (subject->directions == PARTITA_FORWARD ||
                              (plan->backward_data->piece && plan->backward_weight->piece));
        partita_plan_destroy(plan);
    }
    if (cut) layer_open_copy(layer, &whole, &options);
    layer_close(&whole);
    if (cut) assert_int_equal(layer->plan->piece->shape.batch, items);
    return cut;
}

// Of 7 items pieces of 1, 2 and 3: all of one size, one item short, two short.
static void pieces(void **state)
{
    const struct subject *subject = *state;
    struct random random = random_start("pieces");
    struct layer layer;
    size_t cut = 0;
    for (size_t items = 1; items <= 3; items++) {
        if (!open_in_pieces(&layer, subject, items, &random)) continue;
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
        assert_int_equal(hostdev_allocations(), 0);
        cut += items > 1;
    }
    if (!cut) fail_msg("%s is not cut into pieces", subject->engine);
}

// Wherever the arrays are, the bits are those of pageable ones. Not where nothing is cut, all that
// is long being the device's: gradients of taps are then summed in another order, and tiles
// transformed in other pairs.
static void any_memory_same_bits(void **state)
{
    static const enum memory ways[][2] = {{PINNED, PINNED},
                                          {PINNED, PAGEABLE},
                                          {DEVICE, PAGEABLE},
                                          {PAGEABLE, DEVICE},
                                          {DEVICE, DEVICE}};
    const struct subject *subject = *state;
    struct random random = random_start("memory");
    struct layer first, other;
    size_t items = 3;
    while (items && !open_in_pieces(&first, subject, items, &random)) items--;
    assert_true(items > 1);
    layer_run_in(&first, subject->directions, PAGEABLE, PAGEABLE);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const bool whole = ways[i][0] == DEVICE && ways[i][1] == DEVICE;
        const struct partita_options options = {.engine = subject->engine,
                                                .directions = subject->directions,
                                                .workspace_limit = 4 * items * item_of(&first)};
        layer_open_copy(&other, &first, &options);
        layer_run_in(&other, subject->directions, ways[i][0], ways[i][1]);
        for (int a = LAYER_Y; a < LAYER_ARRAYS && !(whole && layer_transforms_pairs(&first)); a++)
            if (!(ways[i][0] == DEVICE && a >= LAYER_GW))
                assert_memory_equal(first.array[a], other.array[a], layer_bytes(&first, a));
        layer_close(&other);
    }
    layer_close(&first);
    assert_int_equal(hostdev_allocations(), 0);
}

// Complex lines in pieces have the bits of the whole batch on the device.
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
    assert_ok(partita_plan_create(&complex_lines, &options, &plan));
    assert_non_null(plan->piece);
    assert_int_equal(plan->piece->shape.batch, 3);
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

// One of several calls on a plan at the same time.
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
    assert_true(open_in_pieces(&layer, &subject, 2, &random));
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

static size_t n_blocks; // of the host's memory that were asked for

static void *count_allocate(void *context, size_t bytes)
{
    (void)context;
    n_blocks++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void count_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

// From the second call on nothing is allocated, neither pinned nor otherwise; what the first one
// made goes with the plan.
static void kept(void **state)
{
    (void)state;
    static const size_t limits[] = {0, 4 * 2 * 99 * 10 * sizeof(float)}; // as they are; in pieces
    for (size_t i = 0; i < 2; i++) {
        struct random random = random_start("kept");
        struct layer layer;
        layer_open(&layer, &batches[0],
                   &(struct partita_options){
                       .engine = "cuda/direct",
                       .directions = LAYER_ALL,
                       .workspace_limit = limits[i],
                       .allocator = {.allocate = count_allocate, .release = count_release}},
                   &random);
        assert_true(!layer.plan->piece == !limits[i]);
        const size_t before = hostdev_allocations();
        layer_run(&layer);
        const size_t after = hostdev_allocations(), blocks = n_blocks;
        assert_true(after > before);
        layer_run(&layer);
        assert_int_equal(hostdev_allocations(), after);
        assert_int_equal(n_blocks, blocks);
        layer_close(&layer);
        assert_int_equal(hostdev_allocations(), 0);
    }
}

// A batch that the device's memory does not hold: within a limit it runs, from the device's memory
// it could not.
static void larger_than_memory(void **state)
{
    const struct partita_problem problem = {SIZE(32, 32), BATCH(40), KERNEL(1, 1)};
    struct random random = random_start("larger");
    struct layer layer;
    (void)state;
    const size_t item = 2 * sizeof(float) * 32 * 32, limit = 8 * item;
    hostdev_memory(limit + 1024); // beside the arrays there are the taps
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
    struct layer right;
    assert_true(open_in_pieces(&right, subject, 3, &random));
    const struct partita_options options = {.engine = subject->engine,
                                            .directions = LAYER_ALL,
                                            .workspace_limit = 4 * 3 * item_of(&right)};
    layer_run(&right);
    for (size_t e = 0; e < 2; e++)
        for (size_t k = 1; layer_attempt(&right, &options, k, errors[e]); k++) {
        }
    layer_close(&right);
    assert_int_equal(hostdev_allocations(), 0);
}

// The engines of the device, each with the first batch that it serves, in all directions or forward
// alone.
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
    static const struct subject failing[N_FAILING] = {{"cuda/direct:plain", &few_sums, LAYER_ALL},
                                                      {"cuda/overlap-save", &few_lines, LAYER_ALL}};
    static struct CMUnitTest tests[ALONE + 2 * (OTHER_TYPES + MAX_DEVICE_ENGINES) + N_FAILING] = {
        cmocka_unit_test(kept),
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
    }
    for (size_t i = 0; i < N_FAILING && !layer_is_brief(); i++)
        tests[n++] =
            named_test(failing_pieces, &failing[i], "%s/failing-pieces", failing[i].engine);
    return run_test_list(tests, n);
}
