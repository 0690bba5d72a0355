// SPDX-License-Identifier: MIT
// Two devices, on the stand-in: every call gives the caller's current device back, also when it
// fails; work for one device uses no memory of the other; results are the same on both.
#include <pthread.h>

#include "device/arrays.h"

static const struct partita_problem strided = STRIDED_LAYER, planes = DEPTHWISE_LAYER;
static const struct partita_problem pointwise = POINTWISE_LAYER;
static const struct partita_problem sequences = {
    LENGTH(300), BATCH(2), CHANNELS(4, 6), GROUPS(2), KERNEL(33), PAD_BEGIN(32), RELU};
// Its windows exceed a thread block.
static const struct partita_problem long_sequences = {LENGTH(16560), CHANNELS(2, 2), GROUPS(2),
                                                      KERNEL(16500), PAD_BEGIN(40)};

static const struct subject {
    const char *engine;
    const struct partita_problem *problem;
    bool long_transforms;
} subjects[] = {
    {"cuda/direct", &strided, false},     {"cuda/gemm", &pointwise, false},
    {"cuda/winograd", &strided, false},   {"cuda/tiles:complex", &strided, false},
    {"cuda/tiles:fused", &planes, false}, {"cuda/overlap-save", &sequences, false},
    {"cuda/blocks", &sequences, false},   {"cuda/blocks", &long_sequences, true},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

static int current_device(void)
{
    int device = -1;
    cudaGetDevice(&device);
    return device;
}

static struct partita_options options_on(const struct subject *subject, const char *device)
{
    return (struct partita_options){.engine = subject->engine, .device = device};
}

// A plan of either device with either device current, its arrays in host memory, in the memory of
// its device, and in that of the other.
static void any_current_device(void **state)
{
    static const char *const names[] = {"cuda:0", "cuda:1"};
    const struct subject *subject = *state;
    struct random random = random_start("current");
    struct layer first, other;
    layer_open(&first, subject->problem, &(struct partita_options){.engine = subject->engine},
               &random);
    layer_run(&first);
    for (int of_plan = 0; of_plan < 2; of_plan++)
        for (int current = 0; current < 2; current++) {
            const struct partita_options options = options_on(subject, names[of_plan]);
            cudaSetDevice(current);
            layer_open_copy(&other, &first, &options);
            assert_int_equal(current_device(), current);
            layer_run(&other);
            assert_int_equal(current_device(), current);
            layer_same_bits(&first, &other);
            layer_run_in(&other, LAYER_ALL, DEVICE, DEVICE);
            assert_int_equal(current_device(), current);
            layer_same_bits(&first, &other);
            layer_close(&other);
            assert_int_equal(current_device(), current);
        }
    cudaSetDevice(0);
    layer_close(&first);
    assert_int_equal(hostdev_allocations(), 0);
}

// With the k-th call failing, for every k.
static void current_after_failure(void **state)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorIllegalAddress};
    const struct subject *subject = *state;
    const struct partita_options options = options_on(subject, "cuda:1");
    struct random random = random_start("failure");
    struct layer first;
    layer_open(&first, subject->problem, &(struct partita_options){.engine = subject->engine},
               &random);
    layer_run(&first);
    for (int e = 0; e < 2; e++)
        for (size_t k = 1; layer_attempt(&first, &options, k, errors[e]); k++)
            assert_int_equal(current_device(), 0);
    for (int e = 0; e < 2; e++)
        for (size_t k = 1, calls = k; calls >= k; k++) {
            struct partita_plan *plan = NULL;
            struct partita_filter *filter = NULL;
            hostdev_fail(k, errors[e]);
            if (partita_plan_create(subject->problem, &options, &plan) == PARTITA_OK)
                filter_with_bias(plan, first.array[LAYER_W], first.array[LAYER_BIAS], &filter);
            partita_filter_destroy(filter);
            partita_plan_destroy(plan);
            assert_int_equal(current_device(), 0);
            calls = hostdev_calls();
            hostdev_fail(0, cudaSuccess);
        }
    layer_close(&first);
    assert_int_equal(hostdev_allocations(), 0);
}

// One of two threads, each with the other's device current.
struct user {
    const struct layer *first;
    struct partita_options options;
    int current;
    struct layer layer;
    pthread_t thread;
    bool restored;
};

static void *use_device(void *context)
{
    struct user *user = context;
    cudaSetDevice(user->current);
    layer_open_copy(&user->layer, user->first, &user->options);
    for (int i = 0; i < 3; i++) layer_run(&user->layer);
    user->restored = current_device() == user->current;
    return NULL;
}

static void both_at_once(void **state)
{
    const struct subject *subject = *state;
    struct random random = random_start("both");
    struct layer first;
    layer_open(&first, subject->problem, &(struct partita_options){.engine = subject->engine},
               &random);
    layer_run(&first);
    struct user users[] = {{.first = &first, options_on(subject, "cuda:0"), .current = 1},
                           {.first = &first, options_on(subject, "cuda:1"), .current = 0}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&users[i].thread, NULL, use_device, &users[i]), 0);
    for (int i = 0; i < 2; i++) {
        pthread_join(users[i].thread, NULL);
        assert_true(users[i].restored);
        layer_same_bits(&first, &users[i].layer);
        layer_close(&users[i].layer);
    }
    layer_close(&first);
    assert_int_equal(hostdev_allocations(), 0);
}

enum { TAPS = 200, BLOCK = 32, CALLS = 40 };

// Every call of a stream, with a swap, a clone and a reset; y is that of the clone.
static void use_stream(const char *device, const float *x, float *y)
{
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(TAPS)};
    struct partita_plan *plan;
    struct partita_filter *filter, *other;
    struct partita_stream *stream, *clone;
    const int current = current_device();
    assert_ok(partita_plan_create(
        &problem, &(struct partita_options){.engine = "cuda/partitioned", .device = device},
        &plan));
    assert_ok(partita_filter_create(plan, x, &filter));
    assert_ok(partita_filter_create(plan, x + TAPS, &other));
    assert_ok(partita_stream_open(plan, filter, &stream));
    for (size_t at = 0; at < CALLS * BLOCK; at += BLOCK) {
        partita_stream_process(stream, (void *[]){y + at}, (const void *[]){x + at}, BLOCK);
        if (at == 4 * BLOCK) assert_ok(partita_stream_swap(stream, other, BLOCK));
        assert_int_equal(current_device(), current);
    }
    assert_ok(partita_stream_clone(stream, &clone));
    partita_stream_reset(stream);
    assert_int_equal(current_device(), current);
    for (size_t at = 0; at < CALLS * BLOCK; at += BLOCK)
        partita_stream_process(clone, (void *[]){y + at}, (const void *[]){x + at}, BLOCK);
    assert_ok(partita_stream_status(clone));
    partita_stream_close(stream);
    partita_stream_close(clone);
    partita_filter_destroy(filter);
    partita_filter_destroy(other);
    partita_plan_destroy(plan);
    assert_int_equal(current_device(), current);
}

static void streams(void **state)
{
    float x[CALLS * BLOCK], y[2][CALLS * BLOCK];
    struct random random = random_start("streams");
    (void)state;
    random_samples(&random, PARTITA_F32, x, CALLS * BLOCK);
    use_stream("cuda:0", x, y[0]);
    use_stream("cuda:1", x, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    assert_int_equal(hostdev_allocations(), 0);
}

// The calls that the tests above do not make.
static void use_others(const char *device, struct random *random)
{
    const struct partita_options options = {.engine = "cuda/tiles:complex", .device = device};
    const int current = current_device();
    struct partita_saved *saved;
    struct layer layer;
    layer_open(&layer, &strided, &options, random);
    void **a = layer.array;
    assert_ok(partita_plan_prepare(layer.plan));
    assert_int_equal(current_device(), current);
    assert_ok(partita_filter_update(layer.filter, a[LAYER_W], a[LAYER_BIAS], NULL));
    assert_int_equal(current_device(), current);
    assert_ok(partita_saved_create(layer.plan, &saved));
    assert_int_equal(current_device(), current);
    const struct partita_call call = {.saved = saved};
    assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], &call));
    assert_ok(partita_backward_weight(layer.plan, a[LAYER_GW], NULL, a[LAYER_GY], &call));
    assert_int_equal(current_device(), current);
    partita_saved_destroy(saved);
    assert_int_equal(current_device(), current);
    partita_filter_destroy(layer.filter);
    assert_int_equal(current_device(), current);
    layer.filter = NULL;
    layer_close(&layer); // also of the device: its last plan
    assert_int_equal(current_device(), current);
}

static void use_states(const char *device)
{
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(TAPS)};
    const int current = current_device();
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    float x[TAPS] = {1};
    assert_ok(partita_plan_create(
        &problem, &(struct partita_options){.engine = "cuda/partitioned", .device = device},
        &plan));
    assert_ok(partita_filter_create(plan, x, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    const size_t bytes = partita_stream_state_size(stream);
    void *saved = malloc(bytes);
    assert_ok(partita_stream_save(stream, saved));
    assert_int_equal(current_device(), current);
    assert_ok(partita_stream_restore(stream, saved, bytes));
    assert_int_equal(current_device(), current);
    free(saved);
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(current_device(), current);
}

static void other_calls(void **state)
{
    static const char *const names[] = {"cuda:0", "cuda:1"};
    struct random random = random_start("others");
    char text[256];
    (void)state;
    for (int of_plan = 0; of_plan < 2; of_plan++)
        for (int current = 0; current < 2; current++) {
            cudaSetDevice(current);
            assert_ok(partita_device_describe(names[of_plan], text, sizeof text));
            assert_int_equal(current_device(), current);
            use_others(names[of_plan], &random);
            use_states(names[of_plan]);
        }
    cudaSetDevice(0);
    assert_int_equal(hostdev_allocations(), 0);
}

static void use_spectra(const char *device, const float *x, float *y)
{
    const struct partita_options options = {.device = device};
    const int current = current_device();
    struct partita_spectrum *spectrum, *other;
    assert_ok(partita_spectrum_create(PARTITA_F32, x, 500, 64, &options, &spectrum));
    assert_ok(partita_spectrum_create(PARTITA_F32, x + 500, 200, 64, &options, &other));
    assert_int_equal(current_device(), current);
    assert_ok(partita_spectrum_convolve(y, spectrum, other, NULL));
    assert_ok(partita_spectrum_correlate(y + 699, spectrum, other, NULL));
    assert_int_equal(current_device(), current);
    partita_spectrum_destroy(spectrum);
    partita_spectrum_destroy(other);
    assert_int_equal(current_device(), current);
}

static void spectra(void **state)
{
    float x[700], y[2][2 * 699];
    struct random random = random_start("spectra");
    (void)state;
    random_samples(&random, PARTITA_F32, x, 700);
    use_spectra("cuda:0", x, y[0]);
    use_spectra("cuda:1", x, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    assert_int_equal(hostdev_allocations(), 0);
}

// A thread that never had a context: after calls of cuda:1 it has none, no context was made on the
// other device, and the thread's next call of the run-time finds cuda:0.
static void no_other_context(void **state)
{
    const struct partita_options options = {.engine = "cuda/direct", .device = "cuda:1"};
    struct random random = random_start("context");
    struct layer layer;
    (void)state;
    assert_false(hostdev_has_context(0)); // the first test of the program
    layer_open(&layer, &strided, &options, &random);
    layer_run(&layer);
    layer_close(&layer);
    assert_true(hostdev_has_context(1));
    assert_false(hostdev_has_context(0));
    assert_int_equal(current_device(), 0);
}

int main(void)
{
    static const struct promise promises[] = {{"any-current-device", any_current_device},
                                              {"current-after-failure", current_after_failure},
                                              {"both-at-once", both_at_once}};
    enum { N_PROMISES = sizeof promises / sizeof *promises };
    static struct CMUnitTest tests[N_SUBJECTS * N_PROMISES + 4];
    const char *cufft = getenv("PARTITA_CUFFT");
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    tests[n++] = named_test(no_other_context, NULL, "no-other-context");
    for (size_t s = 0; s < N_SUBJECTS; s++)
        for (size_t i = 0; i < N_PROMISES; i++)
            if (!subjects[s].long_transforms || (i == 0 && cufft && strcmp(cufft, "none") != 0))
                tests[n++] =
                    named_test(promises[i].run, &subjects[s], "%s%s/%s", subjects[s].engine,
                               subjects[s].long_transforms ? "-long" : "", promises[i].name);
    tests[n++] = named_test(streams, NULL, "streams");
    tests[n++] = named_test(other_calls, NULL, "other-calls");
    tests[n++] = named_test(spectra, NULL, "spectra");
    return run_test_list(tests, n);
}
