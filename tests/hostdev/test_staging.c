// SPDX-License-Identifier: MIT
// Arrays in the host's memory on their way to the device and back (decision 27): every chunk arrives, whatever runs
// ahead or lags behind; pinned arrays go directly; nothing is made twice; a failure leaves nothing behind.
#include "cuda/staging.h"

#include "../layer_rig.h"
#include "hostdev.h"

enum { CHUNK = 1000, MOST_BYTES = 6 * CHUNK };

static struct partita_plan plan_on_device(void)
{
    char text[160];
    struct partita_plan plan = {.direction = PARTITA_FORWARD};
    assert_int_equal(cuda_open(0, text, sizeof text, &plan.device), PARTITA_OK);
    return plan;
}

static void draw(struct random *random, unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)random_bits(random);
}

// There on one stream, back on another one, which waits for an event alone. What was staged may be overwritten at once.
static enum partita_status there_and_back(const struct partita_plan *plan, struct cuda_staging *staging, void *device,
                                          unsigned char *to, unsigned char *from, size_t bytes)
{
    cudaEvent_t arrived = staging->event[CUDA_ARRIVED][0];
    enum partita_status status = cuda_stage_in(plan, staging, staging->in, device, from, bytes);
    memset(from, 0, bytes);
    if (status == PARTITA_OK) status = CU(plan, cudaEventRecord(arrived, staging->in));
    if (status == PARTITA_OK) status = CU(plan, cudaStreamWaitEvent(staging->out, arrived, 0));
    return status == PARTITA_OK ? cuda_stage_out(plan, staging, staging->out, to, device, bytes) : status;
}

static void chunks(void **state)
{
    static const size_t sizes[] = {0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK + 7, MOST_BYTES};
    struct random random = random_start("chunks");
    struct partita_plan plan = plan_on_device();
    struct cuda_staging *staging;
    void *device = NULL;
    (void)state;
    assert_ok(cuda_staging_create(&plan, CHUNK, &staging));
    assert_int_equal(cudaMalloc(&device, MOST_BYTES), cudaSuccess);
    for (size_t turn = 0; turn < 4; turn++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned char from[MOST_BYTES], kept[MOST_BYTES], to[MOST_BYTES + 1] = {0};
            draw(&random, from, sizes[i]);
            memcpy(kept, from, sizes[i]);
            assert_ok(there_and_back(&plan, staging, device, to, from, sizes[i]));
            assert_memory_equal(to, kept, sizes[i]);
            assert_int_equal(to[sizes[i]], 0);
        }
    cuda_staging_destroy(&plan, staging);
    cudaFree(device);
    plan.device->close(plan.device);
    assert_int_equal(hostdev_allocations(), 0);
}

// With the k-th call failing, for every k: a status, or no harm.
static void failing_chunks(void **state)
{
    static const cudaError_t errors[] = {cudaErrorMemoryAllocation, cudaErrorIllegalAddress};
    struct random random = random_start("failing-chunks");
    (void)state;
    for (size_t e = 0; e < 2; e++)
        for (size_t k = 1, calls = k; calls >= k; k++) {
            struct partita_plan plan = plan_on_device();
            struct cuda_staging *staging = NULL;
            unsigned char from[MOST_BYTES], kept[MOST_BYTES], to[MOST_BYTES];
            void *device = NULL;
            assert_int_equal(cudaMalloc(&device, MOST_BYTES), cudaSuccess);
            draw(&random, from, MOST_BYTES);
            memcpy(kept, from, MOST_BYTES);
            hostdev_fail(k, errors[e]);
            enum partita_status status = cuda_staging_create(&plan, CHUNK, &staging);
            if (status == PARTITA_OK) status = there_and_back(&plan, staging, device, to, from, MOST_BYTES);
            calls = hostdev_calls();
            if (status == PARTITA_OK) assert_memory_equal(to, kept, MOST_BYTES);
            else assert_int_equal(status, e ? PARTITA_ERR_DEVICE : PARTITA_ERR_NOMEM);
            assert_int_equal(status == PARTITA_OK, calls < k);
            hostdev_fail(0, cudaSuccess);
            if (staging) cuda_staging_destroy(&plan, staging);
            cudaFree(device);
            plan.device->close(plan.device);
            assert_int_equal(hostdev_allocations(), 0);
        }
}

// Batches of layers and signals whose last group has fewer items than the others.
static const struct partita_problem batches[] = {
    {.rank = 2,
     .batch = 7,
     .in_channels = 4,
     .out_channels = 6,
     .groups = 2,
     .kernel = {3, 3},
     .size = {9, 11},
     .pad_begin = {1, 1},
     .pad_end = {1, 1},
     .activation = PARTITA_RELU},
    {.rank = 2,
     .op = PARTITA_CORRELATE,
     .batch = 7,
     .in_channels = 2,
     .out_channels = 2,
     .groups = 2,
     .kernel = {5, 5},
     .size = {12, 13},
     .pad_begin = {2, 2},
     .pad_end = {2, 2}},
    {.rank = 2, .batch = 7, .kernel = {7, 7}, .size = {16, 20}, .pad_begin = {3, 3}, .pad_end = {3, 3}, .separable = true},
    {.batch = 7, .in_channels = 2, .out_channels = 3, .kernel = {33}, .size = {500}, .pad_begin = {32}},
    {.batch = 7, .kernel = {300}, .size = {700}, .pad_begin = {299}, .pad_end = {299}},
};
enum { N_BATCHES = sizeof batches / sizeof *batches, MOST_ENGINES = 32 };

// An engine and the batch that it is tried on.
struct subject {
    const char *engine;
    const struct partita_problem *problem;
};

// Bytes of the arrays of one item.
static size_t item_of(const struct layer *layer)
{
    return (layer->n[LAYER_X] + layer->n[LAYER_Y]) * sizeof(float) / layer->problem.batch;
}

// With the least limit that the engine can work in: then groups are as small as they get.
static bool open_in_groups(struct layer *layer, const struct subject *subject, struct random *random)
{
    struct layer whole;
    const struct partita_options free = {.engine = subject->engine, .directions = LAYER_ALL};
    layer_open(&whole, subject->problem, &free, random);
    bool cut = false;
    for (size_t items = 1; items <= 3 && !cut; items++) {
        struct partita_plan *plan;
        struct partita_options options = layer_options(&free);
        options.workspace_limit = 4 * items * item_of(&whole);
        if (partita_plan_create(subject->problem, &options, &plan) != PARTITA_OK) continue;
        cut = plan->group && plan->backward_data->group && plan->backward_weight->group;
        partita_plan_destroy(plan);
        if (cut) layer_open_like(layer, &whole, &options);
    }
    layer_close(&whole);
    return cut;
}

static void groups(void **state)
{
    const struct subject *subject = *state;
    struct random random = random_start("groups");
    struct layer layer;
    if (!open_in_groups(&layer, subject, &random)) fail_msg("%s is not cut into groups", subject->engine);
    print_message("%s: %zu %zu %zu\n", subject->engine, layer.plan->group->shape.batch, layer.plan->backward_data->group->shape.batch, layer.plan->backward_weight->group->shape.batch);
    layer_run(&layer);
    layer_check(&layer);
    layer_close(&layer);
    assert_int_equal(hostdev_allocations(), 0);
}

// The engines of the device, each with the first batch that it serves in all directions.
static size_t list_subjects(struct subject ret[MOST_ENGINES])
{
    struct partita_plan *plan;
    size_t n = 0;
    if (partita_plan_create(&batches[0], &(struct partita_options){.device = "cuda:0"}, &plan) != PARTITA_OK) return 0;
    for (size_t e = 0; plan->engines[e] && n < MOST_ENGINES; e++)
        for (size_t i = 0; i < N_BATCHES; i++) {
            if (!layer_served(plan->engines[e]->name, &batches[i])) continue;
            ret[n++] = (struct subject){plan->engines[e]->name, &batches[i]};
            break;
        }
    partita_plan_destroy(plan);
    return n;
}

int main(void)
{
    static struct CMUnitTest tests[2 + MOST_ENGINES] = {
        cmocka_unit_test(chunks),
        cmocka_unit_test(failing_chunks),
    };
    static struct subject subjects[MOST_ENGINES];
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    const size_t n = list_subjects(subjects);
    for (size_t i = 0; i < n; i++) tests[2 + i] = named_test(groups, &subjects[i], "%s/groups", subjects[i].engine);
    return run_test_list(tests, 2 + n);
}
