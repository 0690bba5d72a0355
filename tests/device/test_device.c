// SPDX-License-Identifier: MIT
// What only devices have, on the stand-in: arrays in device memory, the same bits in any order of
// threads, an error at any call. Also that the stand-in itself detects violations.
#include "core/plan.h"
#include "cuda/direct/kernels.h"

#include "support/layer_rig.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/arrays.h"

static const struct partita_problem strided = STRIDED_LAYER, planes = DEPTHWISE_LAYER;
static const struct partita_problem pointwise = POINTWISE_LAYER;

static const struct partita_problem short_sequences = {
    LENGTH(300), BATCH(2), CHANNELS(4, 6), GROUPS(2), KERNEL(33), PAD_BEGIN(32), RELU};

// Windows that exceed a thread block.
static const struct partita_problem long_sequences = {LENGTH(16560), CHANNELS(2, 2), GROUPS(2),
                                                      KERNEL(16500), PAD_BEGIN(40)};
static const struct partita_parts long_partitions = {.taps = 16384, .signal = 16384};

// An engine and its problem.
struct subject {
    const char *name, *engine;
    const struct partita_problem *problem;
    size_t transform; // the largest that the engine may have; 0: direct sums
};

static const struct subject subjects[] = {
    {"cuda/direct:plain", "cuda/direct:plain", &strided, 0},
    {"cuda/direct:halo", "cuda/direct:halo", &strided, 0},
    {"cuda/gemm:panels", "cuda/gemm:panels", &strided, 0},
    {"cuda/gemm:in-place", "cuda/gemm:in-place", &pointwise, 0},
    {"cuda/winograd", "cuda/winograd", &strided, 0},
    {"cuda/tiles:complex", "cuda/tiles:complex", &strided, 0},
    {"cuda/tiles:gauss", "cuda/tiles:gauss", &strided, 0},
    {"cuda/tiles:fused", "cuda/tiles:fused", &planes, 0},
    {"cuda/overlap-save", "cuda/overlap-save", &short_sequences, 1024},
    {"cuda/overlap-save:1-sum", "cuda/overlap-save:1-sum", &short_sequences, 1024},
    {"cuda/overlap-save:2-sums", "cuda/overlap-save:2-sums", &short_sequences, 1024},
    {"cuda/blocks-long", "cuda/blocks", &long_sequences, 65536},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects, MAX_SAMPLES = 1 << 16 };

// With every array in device memory, also the workspace, nothing is allocated and the bits are
// those of host arrays.
static void device_arrays(void **state)
{
    struct random random = random_start("device-arrays");
    struct layer layer;
    struct partita_filter *filter;
    void *device[LAYER_ARRAYS], *workspace = NULL;
    const struct subject *subject = *state;
    layer_open(&layer, subject->problem, &(struct partita_options){.engine = subject->engine},
               &random);
    layer_run(&layer);
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        static float poison[MAX_SAMPLES];
        assert_true(layer.n[i] <= MAX_SAMPLES);
        device[i] =
            device_copy(i < LAYER_Y ? layer.array[i] : poison, layer.n[i] * sizeof(float), 0);
    }
    size_t bytes = 0;
    for (int d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2) {
        size_t needed = partita_plan_workspace(layer.plan, (enum partita_direction)d);
        if (needed > bytes) bytes = needed;
    }
    if (bytes) assert_int_equal(cudaMalloc(&workspace, bytes), cudaSuccess);
    assert_ok(filter_with_bias(layer.plan, device[LAYER_W], device[LAYER_BIAS], &filter));
    size_t n_allocations = hostdev_allocations();
    assert_ok(partita_forward(layer.plan, filter, device[LAYER_Y], device[LAYER_X],
                              &(struct partita_call){.workspace = workspace}));
    assert_ok(partita_backward_data(layer.plan, filter, device[LAYER_GX], device[LAYER_GY], NULL));
    assert_ok(partita_backward_weight(layer.plan, device[LAYER_GW], device[LAYER_X],
                                      device[LAYER_GY],
                                      &(struct partita_call){.workspace = workspace}));
    assert_ok(partita_backward_bias(layer.plan, device[LAYER_GB], device[LAYER_GY], NULL));
    assert_int_equal(hostdev_allocations(), n_allocations);
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++) {
        static float result[MAX_SAMPLES];
        cudaMemcpy(result, device[i], layer.n[i] * sizeof(float), cudaMemcpyDefault);
        assert_memory_equal(result, layer.array[i], layer.n[i] * sizeof(float));
    }
    for (int i = 0; i < LAYER_ARRAYS; i++) cudaFree(device[i]);
    cudaFree(workspace);
    partita_filter_destroy(filter);
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), 0);
}

static void any_order_same_bits(void **state)
{
    static const char *const orders[] = {"reverse", "1", "2", "3"};
    struct random random = random_start("order");
    struct layer first, other;
    hostdev_order("forward");
    const struct subject *subject = *state;
    const struct partita_options options = {.engine = subject->engine};
    layer_open(&first, subject->problem, &options, &random);
    layer_run(&first);
    for (int i = 0; i < 4; i++) {
        hostdev_order(orders[i]);
        layer_open_copy(&other, &first, &options);
        layer_run(&other);
        layer_same_bits(&first, &other);
        layer_close(&other);
    }
    layer_close(&first);
    hostdev_order(getenv("HOSTDEV_ORDER"));
}

static void describe(void **state)
{
    char text[256];
    (void)state;
    assert_ok(partita_device_describe("cuda", text, sizeof text));
    assert_non_null(strstr(text, "hostdev"));
    assert_int_equal(partita_device_describe("cuda:2", text, sizeof text), PARTITA_ERR_DEVICE);
    assert_non_null(strstr(text, "cuda:1"));
    assert_int_equal(partita_device_describe("cuda:", text, sizeof text), PARTITA_ERR_DEVICE);
    assert_int_equal(partita_device_describe("cuda:0x", text, sizeof text), PARTITA_ERR_DEVICE);
    assert_int_equal(partita_device_describe("cuda:99999", text, sizeof text), PARTITA_ERR_DEVICE);
    assert_ok(partita_device_describe("cpu", text, sizeof text));
    assert_int_equal(partita_device_describe(NULL, text, sizeof text), PARTITA_ERR_ARG);
    hostdev_fail(1, cudaErrorNoDevice);
    assert_int_equal(partita_device_describe("cuda", text, sizeof text), PARTITA_ERR_DEVICE);
    assert_non_null(strstr(text, "no CUDA device"));
    hostdev_fail(0, cudaSuccess);
}

// Plans that a device cannot have are refused with a reason.
static void refusals(void **state)
{
    (void)state;
    struct log_lines lines;
    struct partita_plan *plan = NULL;
    struct partita_options options = {.device = "cuda:0", .log = log_into(&lines)};
    struct partita_problem problem = {LENGTH(PARTITA_UNBOUNDED), KERNEL(3)};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "streams"));
    options.log = log_into(&lines);
    options.engine = "cuda/direct";
    problem = (struct partita_problem){LENGTH(50), .signal = PARTITA_CF32, .taps = PARTITA_F32,
                                       KERNEL(3)};
    options.engine = "cuda/direct";
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "real"));
    options.log = log_into(&lines);
    problem =
        (struct partita_problem){LENGTH(50), .signal = PARTITA_F16, .taps = PARTITA_F16, KERNEL(3)};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "f16"));
    options.log = log_into(&lines);
    options.engine = "cpu/direct";
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_ARG);
    options.log = log_into(&lines);
    problem = (struct partita_problem){SIZE(9, 9), KERNEL(3, 3), PAD(1, 1), BOUNDARY(WRAP)};
    assert_int_equal(partita_plan_create(&problem, &options, &plan), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "problem.boundary: on the CPU only"));
    assert_null(plan);
}

// Direct sums have no transforms to save: refused with a reason.
static void nothing_to_save(void **state)
{
    (void)state;
    struct log_lines lines;
    struct partita_plan *plan;
    struct partita_saved *saved = NULL;
    assert_ok(partita_plan_create(&strided,
                                  &(struct partita_options){.device = "cuda:0",
                                                            .engine = "cuda/direct",
                                                            .directions = LAYER_ALL,
                                                            .log = log_into(&lines)},
                                  &plan));
    assert_int_equal(partita_saved_bytes(plan), 0);
    assert_int_equal(partita_saved_create(plan, &saved), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "saved transforms"));
    assert_non_null(strstr(lines.text, "cuda/tiles"));
    assert_null(saved);
    partita_plan_destroy(plan);
}

// Whether a signal ends a process that does this.
static bool ends(void (*act)(void))
{
    pid_t child = fork();
    if (child == 0) {
        int quiet = dup(STDERR_FILENO);
        (void)quiet;
        close(STDERR_FILENO);
        signal(SIGSEGV, SIG_DFL); // without a sanitizer's report
        signal(SIGABRT, SIG_DFL);
        act();
        _exit(0);
    }
    int status = 0;
    assert_true(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
}

static void read_device_memory(void)
{
    void *memory = NULL;
    cudaMalloc(&memory, 64);
    cudaStreamSynchronize(cudaStreamPerThread);
    *(volatile char *)memory;
}

static void copy_too_much(void)
{
    static char host[128];
    void *memory = NULL;
    cudaMalloc(&memory, 64);
    cudaMemcpy(memory, host, 65, cudaMemcpyDefault);
}

static void release_twice(void)
{
    void *memory = NULL;
    cudaMalloc(&memory, 64);
    cudaFree(memory);
    cudaFree(memory);
}

static void do_nothing_wrong(void)
{
    static char host[128];
    void *memory = NULL;
    cudaMalloc(&memory, 64);
    cudaMemcpy(memory, host, 64, cudaMemcpyDefault);
    cudaFree(memory);
}

static void stand_in_detects(void **state)
{
    (void)state;
    assert_true(ends(read_device_memory));
    assert_true(ends(copy_too_much));
    assert_true(ends(release_twice));
    assert_false(ends(do_nothing_wrong));
}

// No sample may have a product with tap 0, or with any tap: the cost of the gradient is still
// finite.
static void gradients_of_few(void **state)
{
    static const char *const engines[] = {"cuda/direct:plain", "cuda/direct:halo"};
    (void)state;
    for (size_t e = 0; e < sizeof engines / sizeof *engines; e++)
        for (size_t taps = 1; taps <= 2; taps++) {
            const struct partita_problem problem = {LENGTH(2), KERNEL(taps), STRIDE(3),
                                                    PAD_BEGIN(1)};
            struct random random = random_start("few");
            struct layer layer;
            layer_open(&layer, &problem,
                       &(struct partita_options){.engine = engines[e], .directions = LAYER_ALL},
                       &random);
            const struct estimate *choice = &layer.plan->backward_data->choice;
            assert_true(isfinite(choice->seconds) && choice->seconds > 0 && choice->hop <= 1);
            layer_run(&layer);
            layer_check(&layer);
            layer_close(&layer);
        }
}

// A variant that estimate would refuse is also refused by the call, and the plan does not change.
static void tiles_that_do_not_fit(void **state)
{
    const struct partita_problem problem = {SIZE(70010), KERNEL(2), DILATION(70000)};
    struct random random = random_start("cut");
    struct layer layer;
    (void)state;
    layer_open(&layer, &problem,
               &(struct partita_options){.engine = "cuda/direct:plain", .directions = LAYER_ALL},
               &random);
    void **a = layer.array;
    layer.plan->choice.variant = CUDA_DIRECT_HALO;
    assert_int_equal(partita_forward(layer.plan, layer.filter, a[LAYER_Y], a[LAYER_X], NULL),
                     PARTITA_ERR_UNSUPPORTED);
    layer.plan->choice.variant = CUDA_DIRECT_PLAIN;
    layer_run(&layer);
    layer_check(&layer);
    layer_close(&layer);
}

static void plan_without_cufft(void)
{
    struct log_lines log;
    struct partita_plan *plan = NULL;
    const struct partita_options options = {.engine = "cuda/blocks",
                                            .device = "cuda:0",
                                            .log = log_into(&log),
                                            .directions = PARTITA_FORWARD,
                                            .parts = long_partitions};
    const struct partita_options short_options = {.engine = "cuda/blocks", .device = "cuda:0"};
    setenv("PARTITA_CUFFT", "/nowhere", 1);
    const bool refused =
        partita_plan_create(&long_sequences, &options, &plan) == PARTITA_ERR_UNSUPPORTED;
    if (!refused || !strstr(log.text, "cuFFT")) abort();
    if (partita_plan_create(&short_sequences, &short_options, &plan) != PARTITA_OK)
        abort(); // which needs no cuFFT
    partita_plan_destroy(plan);
}

static void without_cufft(void **state)
{
    (void)state;
    assert_false(ends(plan_without_cufft));
}

// Sizes for which cuFFT makes no plan are refused; the device is not reported as lost.
static void plans_that_cufft_refuses(void **state)
{
    static const struct {
        int result;
        enum partita_status status;
    } cases[] = {{4, PARTITA_ERR_UNSUPPORTED},
                 {5, PARTITA_ERR_DEVICE},
                 {7, PARTITA_ERR_DEVICE},
                 {8, PARTITA_ERR_UNSUPPORTED},
                 {16, PARTITA_ERR_UNSUPPORTED}};
    (void)state;
    void *cufft = dlopen(getenv("PARTITA_CUFFT"), RTLD_NOW | RTLD_LOCAL), *symbol;
    void (*refuse)(int result);
    assert_non_null(cufft);
    assert_non_null(symbol = dlsym(cufft, "hostdev_cufft_refuse"));
    memcpy(&refuse, &symbol, sizeof refuse);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_lines lines;
        struct partita_plan *plan;
        const struct partita_options options = {.engine = "cuda/blocks",
                                                .device = "cuda:0",
                                                .log = log_into(&lines),
                                                .parts = long_partitions};
        refuse(cases[i].result);
        assert_int_equal(partita_plan_create(&long_sequences, &options, &plan), cases[i].status);
        refuse(0);
        assert_non_null(strstr(lines.text, "cuFFT"));
        assert_null(strstr(lines.text, "cuda:0"));
    }
    dlclose(cufft);
}

// Queued work is not done before somebody waits for it.
static void queued_work_waits(void **state)
{
    (void)state;
    float host = 1, *device = device_copy(&(float){2}, sizeof(float), 0);
    assert_int_equal(
        cudaMemcpyAsync(&host, device, sizeof host, cudaMemcpyDefault, cudaStreamPerThread),
        cudaSuccess);
    assert_true(host == 1);
    cudaStreamSynchronize(cudaStreamPerThread);
    assert_true(host == 2);
    cudaFree(device);
}

int main(void)
{
    static const struct promise promises[] = {{"device-arrays", device_arrays},
                                              {"any-order-same-bits", any_order_same_bits}};
    static struct CMUnitTest tests[2 * N_SUBJECTS + 9];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    tests[n++] = named_test(without_cufft, NULL, "without-cufft"); // before it is opened
    for (size_t e = 0; e < N_SUBJECTS; e++)
        for (size_t i = 0; i < 2; i++)
            tests[n++] = named_test(promises[i].run, &subjects[e], "%s/%s", subjects[e].name,
                                    promises[i].name);
    tests[n++] = named_test(describe, NULL, "describe");
    tests[n++] = named_test(refusals, NULL, "refusals");
    tests[n++] = named_test(gradients_of_few, NULL, "gradients-of-few");
    tests[n++] = named_test(tiles_that_do_not_fit, NULL, "tiles-that-do-not-fit");
    tests[n++] = named_test(plans_that_cufft_refuses, NULL, "plans-that-cufft-refuses");
    tests[n++] = named_test(nothing_to_save, NULL, "nothing-to-save");
    tests[n++] = named_test(stand_in_detects, NULL, "stand-in-catches");
    tests[n++] = named_test(queued_work_waits, NULL, "queued-work-waits");
    return run_test_list(tests, n);
}
