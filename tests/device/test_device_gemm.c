// SPDX-License-Identifier: MIT
// cuda/gemm on the stand-in beyond its results (test_layers.c): batches of any workspace, arrays
// that are not aligned to vectors, and the layers that it is chosen for.
#include "core/plan.h" // before the complex numbers of test.h

#include "device/arrays.h"
#include "support/layer_rig.h"

static const struct partita_problem problems[] = {
    {SIZE(9, 11), BATCH(3), CHANNELS(4, 6), GROUPS(2), KERNEL(3, 2), STRIDE(2, 3), PAD(1, 1), RELU},
    {SIZE(6, 8), CORRELATE, BATCH(3), CHANNELS(40, 30), GROUPS(2), RELU},
    POINTWISE_LAYER,
    {SIZE(7, 5), CHANNELS(90, 20), KERNEL(3, 3), PAD(1, 1)},
    {SIZE(7, 9, 4), BATCH(2), CHANNELS(3, 5), STRIDE(3, 2, 1)},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// From the least limit that the engine takes on, in steps of a half: batches of a few positions up
// to all of them. Forward and backward data have the same bits with every batch, as long as their
// terms have the same chunks.
static void every_batch(void **state)
{
    const struct partita_problem *problem = *state;
    struct random random = random_start("batches");
    struct layer whole;
    size_t hops = 0, last = 0;
    layer_open(&whole, problem, &(struct partita_options){.engine = "cuda/gemm"}, &random);
    layer_run(&whole);
    layer_check(&whole);
    for (size_t limit = 256; limit < 4 << 20; limit += limit / 2) {
        struct partita_options options = layer_options(&(struct partita_options){
            .engine = "cuda/gemm:panels", .directions = LAYER_ALL, .workspace_limit = limit});
        struct partita_plan *plan;
        struct layer layer;
        if (partita_plan_create(problem, &options, &plan) != PARTITA_OK) continue;
        for (unsigned d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2)
            assert_in_range(partita_plan_workspace(plan, (enum partita_direction)d), 1, limit);
        hops += plan->choice.hop != last;
        last = plan->choice.hop;
        partita_plan_destroy(plan);
        layer_open_copy(&layer, &whole, &options);
        layer_run(&layer);
        layer_check(&layer);
        layer_close(&layer);
    }
    assert_true(hops >= 2);
    layer_close(&whole);
}

// Samples in place, or through panels where an array is not aligned: the same bits.
static void unaligned_arrays(void **state)
{
    const struct partita_problem *problem = *state;
    struct random random = random_start("unaligned");
    struct layer layer;
    const struct partita_options options = {.engine = "cuda/gemm:in-place"};
    layer_open(&layer, problem, &options, &random);
    layer_run(&layer);
    layer_check(&layer);
    for (size_t first = 0; first < 4; first++) { // samples behind a boundary of 16 bytes
        const size_t bytes[] = {layer_bytes(&layer, LAYER_X), layer_bytes(&layer, LAYER_Y),
                                layer_bytes(&layer, LAYER_GX), layer_bytes(&layer, LAYER_GY)};
        char *x = device_copy(layer.array[LAYER_X], bytes[0], first * sizeof(float));
        void *y = device_copy(layer.array[LAYER_GY], bytes[1], 0);
        void *gx = device_copy(layer.array[LAYER_X], bytes[2], 0);
        char *gy = device_copy(layer.array[LAYER_GY], bytes[3], first * sizeof(float));
        x += first * sizeof(float);
        gy += first * sizeof(float);
        assert_ok(partita_forward(layer.plan, layer.filter, y, x, NULL));
        assert_ok(partita_backward_data(layer.plan, layer.filter, gx, gy, NULL));
        void *home = malloc(bytes[1] + bytes[2]);
        assert_int_equal(cudaMemcpy(home, y, bytes[1], cudaMemcpyDefault), cudaSuccess);
        assert_memory_equal(home, layer.array[LAYER_Y], bytes[1]);
        assert_int_equal(cudaMemcpy(home, gx, bytes[2], cudaMemcpyDefault), cudaSuccess);
        assert_memory_equal(home, layer.array[LAYER_GX], bytes[2]);
        free(home);
        void *const copies[] = {x - first * sizeof(float), y, gx, gy - first * sizeof(float)};
        for (int i = 0; i < 4; i++) array_release(DEVICE, copies[i]);
    }
    layer_close(&layer);
}

// The planner's engine for a direction; the layers are those of ResNet-50.
static void chosen(void **state)
{
    static const struct {
        struct partita_problem problem;
        const char *engine;
    } cases[] = {
        {{SIZE(56, 56), BATCH(64), CHANNELS(256, 64), RELU}, "cuda/gemm"},
        {{SIZE(14, 14), BATCH(64), CHANNELS(1024, 256)}, "cuda/gemm"},
        {{SIZE(56, 56), BATCH(64), CHANNELS(256, 512), STRIDE(2, 2)}, "cuda/gemm"},
        {{SIZE(7, 7), CHANNELS(2048, 512)}, "cuda/gemm"},
        {{SIZE(56, 56), CHANNELS(256, 64)}, "cuda/gemm"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct partita_plan *plan;
        const struct partita_options options = {.device = "cuda:0", .directions = LAYER_ALL};
        assert_ok(partita_plan_create(&cases[i].problem, &options, &plan));
        for (unsigned d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2)
            layer_assert_engine(partita_plan_engine(plan, (enum partita_direction)d),
                                cases[i].engine);
        partita_plan_destroy(plan);
    }
}

int main(void)
{
    static struct CMUnitTest tests[2 * N_PROBLEMS + 1];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t i = 0; i < N_PROBLEMS; i++)
        tests[n++] = named_test(every_batch, &problems[i], "every batch: problem %zu", i);
    for (size_t i = 1; i <= 2; i++)
        tests[n++] = named_test(unaligned_arrays, &problems[i], "unaligned arrays: problem %zu", i);
    tests[n++] = named_test(chosen, NULL, "chosen for 1 x 1 layers");
    return run_test_list(tests, n);
}
