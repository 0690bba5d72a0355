// SPDX-License-Identifier: MIT
// Arrays in device memory, on the stand-in and, in the suite gpu, on a real device: at any address
// that is aligned to a sample, mixed with host arrays, on a queue and in concurrent calls.
#include <cuda_runtime_api.h>
#include <pthread.h>

#include "support/layer_rig.h"

static const struct partita_problem strided = {SIZE(19, 23),   CORRELATE, BATCH(2),
                                               CHANNELS(6, 9), GROUPS(3), KERNEL(3, 5),
                                               STRIDE(1, 2),   PAD(1, 2), RELU};

// The same taps on a smaller problem: the same kernels with less shared memory.
static const struct partita_problem smaller = {SIZE(5, 7), CORRELATE,    CHANNELS(6, 9),
                                               GROUPS(3),  KERNEL(3, 5), PAD(1, 2)};

static const char *const engines[] = {"cuda/direct", "cuda/direct:plain", "cuda/direct:halo",
                                      "cuda/winograd", "cuda/gemm"};
enum {
    N_DEVICE_ENGINES = sizeof engines / sizeof *engines,
    FIRST = 1
}; // sample of an allocation that arrays begin at

static float *to_device(const float *from, size_t n)
{
    void *memory = NULL;
    assert_int_equal(cudaMalloc(&memory, (FIRST + n) * sizeof(float)), cudaSuccess);
    float *array = (float *)memory + FIRST;
    assert_int_equal(cudaMemcpy(array, from, n * sizeof(float), cudaMemcpyDefault), cudaSuccess);
    return array;
}

static void release(float *array)
{
    assert_int_equal(cudaFree(array - FIRST), cudaSuccess);
}

// Executes all directions with the arrays whose bits are set on the device, and compares with host
// arrays.
static void run_mixed(const struct layer *layer, unsigned on_device)
{
    struct partita_filter *filter;
    float *array[LAYER_ARRAYS];
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        float *copy = malloc((layer->n[i] + 1) * sizeof *copy);
        for (size_t k = 0; k < layer->n[i]; k++)
            copy[k] = i < LAYER_Y ? ((float *)layer->array[i])[k] : 1e30f;
        array[i] = on_device >> i & 1 ? to_device(copy, layer->n[i]) : copy;
        if (array[i] != copy) free(copy);
    }
    assert_ok(filter_with_bias(layer->plan, array[LAYER_W], array[LAYER_BIAS], &filter));
    assert_ok(partita_forward(layer->plan, filter, array[LAYER_Y], array[LAYER_X], NULL));
    assert_ok(partita_backward_data(layer->plan, filter, array[LAYER_GX], array[LAYER_GY], NULL));
    assert_ok(partita_backward_weight(layer->plan, array[LAYER_GW], array[LAYER_X], array[LAYER_GY],
                                      NULL));
    assert_ok(partita_backward_bias(layer->plan, array[LAYER_GB], array[LAYER_GY], NULL));
    partita_filter_destroy(filter);
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        float *home = malloc((layer->n[i] + 1) * sizeof *home);
        if (on_device >> i & 1) {
            assert_int_equal(
                cudaMemcpy(home, array[i], layer->n[i] * sizeof *home, cudaMemcpyDefault),
                cudaSuccess);
            release(array[i]);
        } else {
            memcpy(home, array[i], layer->n[i] * sizeof *home);
            free(array[i]);
        }
        assert_memory_equal(home, layer->array[i], layer->n[i] * sizeof *home);
        free(home);
    }
}

static void any_mixture(void **state)
{
    struct random random = random_start("mixture");
    struct layer layer;
    layer_open(&layer, &strided, &(struct partita_options){.engine = *state}, &random);
    layer_run(&layer);
    layer_check(&layer);
    run_mixed(&layer, 0xff);
    run_mixed(&layer, 0x55);
    run_mixed(&layer, 0xaa);
    layer_close(&layer);
}

static void run_on_queue(const struct layer *layer, float *const *array, void *workspace,
                         cudaStream_t stream)
{
    const struct partita_call call = {.workspace = workspace, .queue = stream};
    assert_ok(partita_forward(layer->plan, layer->filter, array[LAYER_Y], array[LAYER_X], &call));
    assert_ok(
        partita_backward_data(layer->plan, layer->filter, array[LAYER_GX], array[LAYER_GY], &call));
    assert_ok(partita_backward_weight(layer->plan, array[LAYER_GW], array[LAYER_X], array[LAYER_GY],
                                      &call));
    assert_ok(partita_backward_bias(layer->plan, array[LAYER_GB], array[LAYER_GY], &call));
}

// Calls on a queue, then captured into a graph that is launched twice: the same bits.
static void on_a_queue(void **state)
{
    struct random random = random_start("queue");
    struct layer layer;
    float *array[LAYER_ARRAYS];
    void *workspace = NULL;
    size_t bytes = 1;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    layer_open(&layer, &strided, &(struct partita_options){.engine = *state}, &random);
    for (int d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2) {
        const size_t needed = partita_plan_workspace(layer.plan, (enum partita_direction)d);
        if (needed > bytes) bytes = needed;
    }
    assert_int_equal(cudaMalloc(&workspace, bytes), cudaSuccess);
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    for (int i = 0; i < LAYER_ARRAYS; i++) array[i] = to_device(layer.array[i], layer.n[i]);
    assert_ok(partita_plan_prepare(layer.plan));
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    run_on_queue(&layer, array, workspace, stream);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    layer_run(&layer);
    for (int launch = 0; launch < 3; launch++) {
        for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
            assert_int_equal(cudaMemsetAsync(array[i], 0xff, layer.n[i] * sizeof(float), stream),
                             cudaSuccess);
        if (launch) assert_int_equal(cudaGraphLaunch(exec, stream), cudaSuccess);
        else run_on_queue(&layer, array, workspace, stream);
        assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
        for (int i = LAYER_Y; i < LAYER_ARRAYS; i++) {
            float *home = malloc(layer.n[i] * sizeof *home);
            cudaMemcpy(home, array[i], layer.n[i] * sizeof *home, cudaMemcpyDefault);
            assert_memory_equal(home, layer.array[i], layer.n[i] * sizeof *home);
            free(home);
        }
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    for (int i = 0; i < LAYER_ARRAYS; i++) release(array[i]);
    cudaFree(workspace);
    cudaStreamDestroy(stream);
    layer_close(&layer);
}

// One of several callers of a plan, with its own taps.
struct caller {
    const struct partita_plan *plan;
    const float *x;
    float taps[9 * 2 * 15], bias[9], y[2 * 9 * 19 * 12];
    const float *expected;
    pthread_t thread;
    bool same;
};

static void *call(void *context)
{
    struct caller *caller = context;
    struct partita_filter *filter = NULL;
    caller->same =
        filter_with_bias(caller->plan, caller->taps, caller->bias, &filter) == PARTITA_OK;
    for (int i = 0; i < 8 && caller->same; i++) {
        memset(caller->y, 0xff, sizeof caller->y);
        caller->same =
            partita_forward(caller->plan, filter, caller->y, caller->x, NULL) == PARTITA_OK &&
            (!caller->expected || !memcmp(caller->y, caller->expected, sizeof caller->y));
    }
    partita_filter_destroy(filter);
    return NULL;
}

// A caller has the same results alone as beside others with other taps and a plan of another
// problem.
static void concurrent_callers(void **state)
{
    enum { CALLERS = 4, PLANS = 2 };
    static struct caller alone[CALLERS], beside[CALLERS];
    struct random random = random_start("callers");
    struct layer layers[PLANS];
    for (int i = 0; i < PLANS; i++) {
        layer_open(&layers[i], i ? &smaller : &strided, &(struct partita_options){.engine = *state},
                   &random);
        assert_int_equal(layers[i].n[LAYER_W], sizeof alone->taps / sizeof(float));
        assert_true(layers[i].n[LAYER_Y] <= sizeof alone->y / sizeof(float));
    }
    for (int i = 0; i < CALLERS; i++) {
        const struct layer *layer = &layers[i % PLANS];
        alone[i] = (struct caller){.plan = layer->plan, .x = layer->array[LAYER_X]};
        random_samples(&random, PARTITA_F32, alone[i].taps, layer->n[LAYER_W]);
        random_samples(&random, PARTITA_F32, alone[i].bias, layer->n[LAYER_BIAS]);
        call(&alone[i]);
        assert_true(alone[i].same);
        beside[i] = alone[i];
        beside[i].expected = alone[i].y;
    }
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&beside[i].thread, NULL, call, &beside[i]), 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(beside[i].thread, NULL);
    for (int i = 0; i < CALLERS; i++) assert_true(beside[i].same);
    for (int i = 0; i < PLANS; i++) layer_close(&layers[i]);
}

int main(void)
{
    static struct CMUnitTest tests[3 * N_DEVICE_ENGINES];
    size_t n = 0;
    enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_DEVICE_ENGINES; e++) {
        tests[n++] = named_test(any_mixture, engines[e], "%s/any-mixture", engines[e]);
        tests[n++] = named_test(on_a_queue, engines[e], "%s/queue", engines[e]);
        tests[n++] = named_test(concurrent_callers, engines[e], "%s/callers-at-once", engines[e]);
    }
    return run_test_list(tests, n);
}
