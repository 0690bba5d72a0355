// SPDX-License-Identifier: MIT
// What the library does to others in its process, and they to it, on the stand-in: memory pools of
// others are not used, its own is emptied; captures by other threads go on; calls that are refused
// leave the device as it was; what cannot be used is refused with a reason.
#include "core/plan.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "device/arrays.h"
#include "support/allocators.h"

static const struct partita_problem strided = STRIDED_LAYER;
static const struct partita_problem sequences = {
    LENGTH(300), BATCH(6), CHANNELS(4, 6), GROUPS(2), KERNEL(33), PAD_BEGIN(32), RELU};
// Its windows exceed a thread block.
static const struct partita_problem long_sequences = {LENGTH(16560), CHANNELS(2, 2), GROUPS(2),
                                                      KERNEL(16500), PAD_BEGIN(40)};
static const struct partita_parts long_partitions = {.taps = 16384, .signal = 16384};

static const char *const devices[] = {"cuda:0", "cuda:1"};

static void use_stream(const char *device)
{
    enum { BLOCK = 32, TAPS = 200 };
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(TAPS)};
    const struct partita_options options = {.engine = "cuda/partitioned", .device = device};
    struct random random = random_start("stream");
    float x[TAPS], y[TAPS];
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    random_samples(&random, PARTITA_F32, x, TAPS);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, x, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    partita_stream_process(stream, (void *[]){y}, (const void *[]){x}, TAPS);
    assert_ok(partita_stream_status(stream));
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// A caller of everything that allocates.
static void use_device(const char *device)
{
    const struct partita_options options = {.device = device};
    struct random random = random_start("environment");
    struct layer layer;
    layer_open(&layer, &strided, &options, &random);
    layer_run(&layer);
    layer_run_in(&layer, LAYER_ALL, DEVICE, DEVICE);
    layer_close(&layer);
    use_stream(device);
}

// The first test of the program: a device that was opened once is not examined again.
static void without_pools(void **state)
{
    char text[256];
    (void)state;
    hostdev_pools(false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(partita_device_describe(devices[i], text, sizeof text),
                         PARTITA_ERR_DEVICE);
        assert_non_null(strstr(text, devices[i]));
        assert_non_null(strstr(text, "memory pools"));
    }
    hostdev_pools(true);
    assert_ok(partita_device_describe(devices[0], text, sizeof text));
}

static void examined_once(void **state)
{
    char text[256], again[256];
    (void)state;
    assert_ok(partita_device_describe(devices[1], text, sizeof text));
    hostdev_fail(0, cudaSuccess); // starts counting
    assert_ok(partita_device_describe(devices[1], again, sizeof again));
    assert_string_equal(text, again);
    use_device(devices[1]);
    assert_int_equal(hostdev_used().properties, 0);
}

static uint64_t pool_attribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
    uint64_t value = 1;
    assert_int_equal(cudaMemPoolGetAttribute(pool, attribute, &value), cudaSuccess);
    return value;
}

// Neither the pool that a process has from the start, nor one that another library has made the
// device's current one, has been used or set up in another way.
static void pools_of_others(void **state)
{
    cudaMemPool_t pools[4];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                               .location = {cudaMemLocationTypeDevice, i}};
        assert_int_equal(cudaDeviceGetDefaultMemPool(&pools[i], i), cudaSuccess);
        assert_int_equal(cudaMemPoolCreate(&pools[2 + i], &props), cudaSuccess);
        use_device(devices[i]);
        assert_int_equal(cudaDeviceSetMemPool(i, pools[2 + i]), cudaSuccess);
        use_device(devices[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pool_attribute(pools[i], cudaMemPoolAttrReleaseThreshold), 0);
        assert_int_equal(pool_attribute(pools[i], cudaMemPoolAttrReservedMemCurrent), 0);
        assert_int_equal(pool_attribute(pools[i], cudaMemPoolAttrUsedMemCurrent), 0);
    }
    for (int i = 2; i < 4; i++) cudaMemPoolDestroy(pools[i]);
    assert_int_equal(hostdev_allocations(), 0);
}

// Memory that calls released stays for later calls while there is a plan of the device; then others
// have it.
static void memory_is_returned(void **state)
{
    enum { BYTES = 64 << 20 };
    const struct partita_options options = {.device = "cuda:0"};
    struct partita_plan *plan, *other;
    void *memory;
    (void)state;
    assert_ok(partita_plan_create(&strided, &options, &plan));
    assert_ok(partita_plan_create(&sequences, &options, &other));
    assert_ok(plan->device->reserve(plan, BYTES, &memory));
    plan->device->release(plan, memory);
    cudaStreamSynchronize(cudaStreamPerThread);
    assert_true(hostdev_kept(0) >= BYTES);
    partita_plan_destroy(plan);
    cudaStreamSynchronize(cudaStreamPerThread);
    assert_true(hostdev_kept(0) >= BYTES);
    partita_plan_destroy(other);
    assert_int_equal(hostdev_allocations(), 0);
    assert_int_equal(hostdev_kept(0), 0);
    use_device("cuda:0"); // the pool is there again
    assert_int_equal(hostdev_allocations(), 0);
    assert_int_equal(hostdev_kept(0), 0);
}

static void *make_and_destroy_filter(void *context)
{
    static const float taps[128 * 128 * 25];
    const struct partita_plan *plan = context;
    struct partita_filter *filter;
    assert_int_equal(partita_plan_taps_count(plan), sizeof taps / sizeof *taps);
    assert_ok(partita_filter_create(plan, taps, &filter));
    partita_filter_destroy(filter);
    return NULL;
}

// Other threads' releases may still be queued when the last plan is destroyed.
static void memory_of_threads_is_returned(void **state)
{
    static const struct partita_problem problem = {SIZE(16, 16), CHANNELS(128, 128), KERNEL(5, 5)};
    const struct partita_options options = {.engine = "cuda/direct", .device = "cuda:0"};
    struct partita_plan *plan;
    pthread_t thread;
    (void)state;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_int_equal(pthread_create(&thread, NULL, make_and_destroy_filter, plan), 0);
    pthread_join(thread, NULL);
    partita_plan_destroy(plan);
    assert_int_equal(hostdev_allocations(), 0); // runs what is queued
    assert_int_equal(hostdev_kept(0), 0);
}

static void *use_from_host(void *context)
{
    struct random random = random_start("capture");
    (void)context;
    for (int i = 0; i < 2; i++) {
        struct layer layer;
        layer_open(&layer, &strided, &(struct partita_options){.device = devices[i]}, &random);
        layer_run(&layer);
        layer_close(&layer);
        use_stream(devices[i]);
    }
    return NULL;
}

// All that a caller does, from the first plan of a device in the process to the last, while another
// thread captures a stream in the mode that also forbids this thread's allocations and waits: the
// capture goes on.
static void captured_by_another(void **state)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    pthread_t thread;
    (void)state;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_int_equal(pthread_create(&thread, NULL, use_from_host, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    assert_int_equal(hostdev_allocations(), 0);
}

// A call that is refused at any point is that call's failure alone: the next one succeeds.
static const struct {
    cudaError_t error;
    enum partita_status status;
} refused[] = {
    {cudaErrorInvalidValue, PARTITA_ERR_ARG},
    {cudaErrorInvalidResourceHandle, PARTITA_ERR_ARG},
    {cudaErrorInvalidConfiguration, PARTITA_ERR_UNSUPPORTED},
    {cudaErrorLaunchOutOfResources, PARTITA_ERR_UNSUPPORTED},
    {cudaErrorInvalidDeviceFunction, PARTITA_ERR_UNSUPPORTED},
    {cudaErrorNoKernelImageForDevice, PARTITA_ERR_UNSUPPORTED},
    {cudaErrorUnsupportedPtxVersion, PARTITA_ERR_UNSUPPORTED},
    {cudaErrorNotSupported, PARTITA_ERR_UNSUPPORTED},
    {cudaErrorMemoryAllocation, PARTITA_ERR_NOMEM},
    {cudaErrorStreamCaptureUnsupported, PARTITA_ERR_STATE},
    {cudaErrorStreamCaptureWrongThread, PARTITA_ERR_STATE},
};
enum { N_REFUSED = sizeof refused / sizeof *refused };

struct subject {
    const char *engine;
    const struct partita_problem *problem;
    size_t workspace_limit;
};

static const struct subject subjects[] = {
    {"cuda/direct", &strided, 0},
    {"cuda/tiles", &strided, 0},
    {"cuda/overlap-save", &sequences, 0},
    {"cuda/direct", &sequences, 1 << 16}, // in micro-batches
};

static struct partita_options options_of(const struct subject *subject)
{
    return (struct partita_options){.engine = subject->engine,
                                    .device = "cuda:0",
                                    .directions = LAYER_ALL,
                                    .workspace_limit = subject->workspace_limit};
}

static void refused_calls(void **state)
{
    const struct subject *subject = *state;
    const struct partita_options options = options_of(subject);
    struct random random = random_start("refused");
    struct layer layer;
    layer_open(&layer, subject->problem, &options, &random);
    if (subject->workspace_limit) assert_non_null(layer.plan->micro_batch);
    layer_run(&layer);
    void **a = layer.array;
    const size_t bytes = layer_bytes(&layer, LAYER_Y);
    void *expected = malloc(bytes);
    memcpy(expected, a[LAYER_Y], bytes);
    for (size_t e = 0; e < N_REFUSED; e++) {
        bool failed = true;
        for (size_t k = 1; failed; k++) {
            memset(a[LAYER_Y], 0xff, bytes);
            hostdev_fail(k, refused[e].error);
            const enum partita_status status =
                partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL);
            failed = hostdev_calls() >= k;
            hostdev_fail(0, cudaSuccess);
            if (!failed) assert_ok(status);
            if (status == PARTITA_OK) assert_memory_equal(a[LAYER_Y], expected, bytes);
            else assert_int_equal(status, refused[e].status);
            assert_ok(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL));
            assert_memory_equal(a[LAYER_Y], expected, bytes);
        }
    }
    free(expected);
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), 0);
}

// Whatever fails while a filter is made, nothing that is still queued reads the caller's taps.
static void taps_are_free(void **state)
{
    const struct subject *subject = *state;
    const struct partita_options options = options_of(subject);
    struct random random = random_start("taps");
    struct layer layer;
    layer_open(&layer, subject->problem, &options, &random);
    void *taps = device_copy(layer.array[LAYER_W], layer_bytes(&layer, LAYER_W), 0);
    void *bias = device_copy(layer.array[LAYER_BIAS], layer_bytes(&layer, LAYER_BIAS), 0);
    bool failed = true;
    for (size_t k = 1; failed; k++) {
        struct partita_filter *filter = NULL;
        hostdev_fail(k, cudaErrorMemoryAllocation);
        const enum partita_status status = filter_with_bias(layer.plan, taps, bias, &filter);
        assert_int_equal(hostdev_queued(), 0);
        const enum partita_status updated =
            status == PARTITA_OK ? partita_filter_update(filter, taps, bias, NULL) : status;
        assert_int_equal(hostdev_queued(), 0);
        failed = hostdev_calls() >= k;
        assert_true(failed || updated == PARTITA_OK);
        hostdev_fail(0, cudaSuccess);
        partita_filter_destroy(filter);
    }
    array_release(DEVICE, taps);
    array_release(DEVICE, bias);
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), 0);
}

// Rows that do not depend on each other are taken in turn where they would need gigabytes at once,
// and so are the blocks of a row that is much longer than its taps. A gradient, whose sums are of
// all taps, has what it needs.
static void workspace_of_blocks(void **state)
{
    static const struct partita_problem rows = {LENGTH(16384), BATCH(64),     CHANNELS(768, 768),
                                                GROUPS(768),   KERNEL(16384), PAD_BEGIN(16383)};
    static const struct partita_problem one = {LENGTH(1 << 29), KERNEL(16384), PAD_BEGIN(16383)};
    static const struct partita_problem taps = {LENGTH(1 << 18), CHANNELS(64, 64), KERNEL(1 << 18),
                                                PAD_BEGIN((1 << 18) - 1)};
    const struct partita_options options = {.engine = "cuda/blocks", .device = "cuda:0"};
    struct partita_plan *plan;
    (void)state;
    assert_ok(partita_plan_create(&rows, &options, &plan));
    for (int d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2) {
        const size_t bytes = partita_plan_workspace(plan, (enum partita_direction)d);
        assert_true(bytes > 0 && bytes <= (size_t)1 << 30);
    }
    partita_plan_destroy(plan);
    assert_ok(partita_plan_create(&one, &options, &plan));
    const size_t bytes = partita_plan_workspace(plan, PARTITA_FORWARD);
    assert_true(bytes > (size_t)1 << 28 && bytes <= (size_t)1 << 30);
    partita_plan_destroy(plan);
    assert_ok(partita_plan_create(&taps, &options, &plan));
    assert_true(partita_plan_workspace(plan, PARTITA_BACKWARD_WEIGHT) > (size_t)1 << 30);
    partita_plan_destroy(plan);
}

// Copies of pageable arrays have as many threads as a call on the CPU, but at most 8. (The test's
// environment asks OpenMP for 12.)
static void threads_that_copy(void **state)
{
    static const struct partita_problem large = {SIZE(512, 512), CHANNELS(256, 256), KERNEL(5, 5)};
    const struct partita_options on_cpu = {.directions = PARTITA_FORWARD},
                                 on_device = {.directions = PARTITA_FORWARD, .device = "cuda:0"},
                                 two = {.device = "cuda:0", .threads = 2};
    struct partita_plan *plan;
    (void)state;
    assert_ok(partita_plan_create(&large, &on_cpu, &plan));
    const int threads = plan->threads;
    partita_plan_destroy(plan);
    assert_true(threads == 12 || threads == 1); // 1: without OpenMP
    assert_ok(partita_plan_create(&strided, &on_device, &plan));
    assert_int_equal(plan->threads, threads > 8 ? 8 : 1);
    partita_plan_destroy(plan);
    assert_ok(partita_plan_create(&strided, &two, &plan));
    assert_int_equal(plan->threads, 2);
    partita_plan_destroy(plan);
}

typedef void refuse_fn(int result);

static refuse_fn *refusal_of(const char *library)
{
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL), *symbol;
    refuse_fn *refuse;
    assert_non_null(opened);
    assert_non_null(symbol = dlsym(opened, "hostdev_cufft_refuse"));
    memcpy(&refuse, &symbol, sizeof refuse);
    return refuse;
}

// A cuFFT that finds no driver of its version makes no plans: the next one is used.
static void next_cufft(void **state)
{
    enum { SETUP_FAILED = 7 };
    char names[4096], *second;
    struct log_lines lines;
    const struct partita_options options = {.engine = "cuda/blocks",
                                            .device = "cuda:0",
                                            .directions = LAYER_ALL,
                                            .parts = long_partitions,
                                            .log = log_into(&lines)};
    struct random random = random_start("cufft");
    struct layer first, other;
    (void)state;
    snprintf(names, sizeof names, "%s", getenv("PARTITA_CUFFT"));
    assert_non_null(second = strchr(names, ':'));
    *second++ = '\0';
    refuse_fn *const refuse[] = {refusal_of(names), refusal_of(second)};
    layer_open(&first, &long_sequences, &options, &random);
    refuse[0](SETUP_FAILED);
    layer_open_copy(&other, &first, &options);
    layer_run(&first); // with the plans that it has
    layer_run(&other);
    layer_same_bits(&first, &other);
    assert_int_equal(lines.n_lines, 0);
    refuse[1](SETUP_FAILED);
    struct partita_plan *plan;
    assert_int_equal(partita_plan_create(&long_sequences, &options, &plan), PARTITA_ERR_DEVICE);
    assert_non_null(strstr(lines.text, "cuFFT"));
    for (int i = 0; i < 2; i++) refuse[i](0);
    layer_close(&first);
    layer_close(&other);
    assert_int_equal(hostdev_allocations(), 0);
}

// A stream has no copy of its device memory on the host; only cloning makes one, for as long as it
// takes.
static void host_memory_of_streams(void **state)
{
    enum { BLOCK = 64, TAPS = 20000 };
    const struct partita_problem problem = {STREAM(BLOCK), KERNEL(TAPS)};
    struct meter meter = {0};
    const struct partita_options options = {
        .engine = "cuda/partitioned", .device = "cuda:0", .allocator = meter_allocator(&meter)};
    struct random random = random_start("host-memory");
    static float x[TAPS], y[2][BLOCK];
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream, *clone;
    (void)state;
    random_samples(&random, PARTITA_F32, x, TAPS);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, x, &filter));
    const size_t before = meter.bytes_live;
    assert_ok(partita_stream_open(plan, filter, &stream));
    const size_t bytes = partita_stream_state_size(stream),
                 stream_bytes = meter.bytes_live - before;
    assert_true(stream_bytes < bytes / 4);
    for (size_t at = 0; at < TAPS / 2; at += BLOCK)
        partita_stream_process(stream, (void *[]){y[0]}, (const void *[]){x + at}, BLOCK);
    enum partita_status status = PARTITA_ERR_NOMEM;
    for (size_t k = 1; status != PARTITA_OK; k++) {
        const size_t live = meter.bytes_live;
        meter.fail_at = meter.n_allocated + k;
        status = partita_stream_clone(stream, &clone);
        if (status == PARTITA_OK) break;
        assert_int_equal(status, PARTITA_ERR_NOMEM);
        assert_int_equal(meter.bytes_live, live);
    }
    meter.fail_at = 0;
    assert_int_equal(meter.bytes_live - before, 2 * stream_bytes);
    partita_stream_process(stream, (void *[]){y[0]}, (const void *[]){x}, BLOCK);
    partita_stream_process(clone, (void *[]){y[1]}, (const void *[]){x}, BLOCK);
    assert_memory_equal(y[0], y[1], sizeof *y);
    partita_stream_close(stream);
    partita_stream_close(clone);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(meter.n_live, 0);
    assert_int_equal(hostdev_allocations(), 0);
}

static void modules_of_other_builds(void **state)
{
    static const char *const foreign[] = {"FOREIGN_SOURCES_MODULE", "FOREIGN_STRUCTS_MODULE"};
    char module[4096], text[256];
    (void)state;
    snprintf(module, sizeof module, "%s", getenv("PARTITA_CUDA_MODULE"));
    for (int i = 0; i < 2; i++) {
        assert_non_null(getenv(foreign[i]));
        setenv("PARTITA_CUDA_MODULE", getenv(foreign[i]), 1);
        assert_int_equal(partita_device_describe("cuda:0", text, sizeof text), PARTITA_ERR_DEVICE);
        assert_non_null(strstr(text, "not built from the sources"));
    }
    setenv("PARTITA_CUDA_MODULE", module, 1);
    assert_ok(partita_device_describe("cuda:0", text, sizeof text));
}

int main(void)
{
    enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };
    static struct CMUnitTest tests[2 * N_SUBJECTS + 11];
    const char *cufft = getenv("PARTITA_CUFFT");
    size_t n = 0;
    tests[n++] = named_test(without_pools, NULL, "without-pools");
    tests[n++] = named_test(captured_by_another, NULL, "captured-by-another");
    tests[n++] = named_test(examined_once, NULL, "examined-once");
    tests[n++] = named_test(pools_of_others, NULL, "pools-of-others");
    tests[n++] = named_test(memory_is_returned, NULL, "memory-is-returned");
    tests[n++] = named_test(memory_of_threads_is_returned, NULL, "memory-of-threads-is-returned");
    for (size_t s = 0; s < N_SUBJECTS; s++) {
        const char *split = subjects[s].workspace_limit ? "-split" : "";
        tests[n++] = named_test(refused_calls, &subjects[s], "%s%s/refused-calls",
                                subjects[s].engine, split);
        tests[n++] = named_test(taps_are_free, &subjects[s], "%s%s/taps-are-free",
                                subjects[s].engine, split);
    }
    tests[n++] = named_test(workspace_of_blocks, NULL, "workspace-of-blocks");
    tests[n++] = named_test(threads_that_copy, NULL, "threads-that-copy");
    if (cufft && strchr(cufft, ':')) tests[n++] = named_test(next_cufft, NULL, "next-cufft");
    tests[n++] = named_test(host_memory_of_streams, NULL, "host-memory-of-streams");
    tests[n++] = named_test(modules_of_other_builds, NULL, "modules-of-other-builds");
    return run_test_list(tests, n);
}
