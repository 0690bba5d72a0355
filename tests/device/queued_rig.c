// SPDX-License-Identifier: MIT
#include "queued_rig.h"

static const struct partita_problem strided = STRIDED_LAYER, planes = DEPTHWISE_LAYER;
static const struct partita_problem pointwise = POINTWISE_LAYER;
static const struct partita_problem separable = {SIZE(20, 40), KERNEL(7, 7), PAD(3, 3),
                                                 .separable = true};
static const struct partita_problem sequences = {
    LENGTH(300), BATCH(2), CHANNELS(4, 6), GROUPS(2), KERNEL(33), PAD_BEGIN(32), RELU};
static const struct partita_problem lags = {LENGTH(700), CORRELATE, KERNEL(600), PAD_BEGIN(9),
                                            PAD_END(-91)};
static const struct partita_problem long_sequences = {LENGTH(16560), CHANNELS(2, 2), GROUPS(2),
                                                      KERNEL(16500), PAD_BEGIN(40)};

const struct queued_subject queued_subjects[N_QUEUED_SUBJECTS] = {
    {"direct:plain", "cuda/direct:plain", &strided, LAYER_ALL, {0}},
    {"direct:halo", "cuda/direct:halo", &strided, LAYER_ALL, {0}},
    {"separable", "cuda/separable", &separable, PARTITA_FORWARD | PARTITA_BACKWARD_DATA, {0}},
    {"winograd", "cuda/winograd", &strided, LAYER_ALL, {0}},
    {"tiles:complex", "cuda/tiles:complex", &strided, LAYER_ALL, {0}},
    {"tiles:gauss", "cuda/tiles:gauss", &strided, LAYER_ALL, {0}},
    {"tiles:fused", "cuda/tiles:fused", &planes, LAYER_ALL, {0}},
    {"gemm:panels", "cuda/gemm:panels", &strided, LAYER_ALL, {0}},
    {"gemm:in-place", "cuda/gemm:in-place", &pointwise, LAYER_ALL, {0}},
    {"overlap-save", "cuda/overlap-save", &sequences, LAYER_ALL, {0}},
    {"overlap-save:2-sums", "cuda/overlap-save:2-sums", &sequences, LAYER_ALL, {0}},
    {"overlap-add", "cuda/overlap-add", &sequences, PARTITA_FORWARD | PARTITA_BACKWARD_DATA, {0}},
    {"blocks", "cuda/blocks", &sequences, LAYER_ALL, {0}},
    {"blocks-lags", "cuda/blocks", &lags, PARTITA_FORWARD, {0}},
    {"blocks-imposed", "cuda/blocks", &sequences, PARTITA_FORWARD, {.taps = 16, .signal = 48}},
    // by cuFFT
    {"blocks-long",
     "cuda/blocks",
     &long_sequences,
     PARTITA_FORWARD,
     {.taps = 16384, .signal = 16384}},
};

// Separable taps: each a product of a factor of its row and one of its column.
static void make_separable(struct layer *layer)
{
    float *w = layer->array[LAYER_W];
    for (size_t i = 0; i < layer->n[LAYER_W]; i++)
        w[i] = (float)(1 + i % 7) * (float)(1 + i / 7 % 7) / 50;
}

void queued_run(struct queued *q, void *queue)
{
    struct layer *layer = &q->layer;
    void **a = q->array;
    const struct partita_call call = {.workspace = q->workspace, .queue = queue};
    assert_ok(partita_forward(layer->plan, layer->filter, a[LAYER_Y], a[LAYER_X], &call));
    if (q->subject->directions & PARTITA_BACKWARD_DATA)
        assert_ok(
            partita_backward_data(layer->plan, layer->filter, a[LAYER_GX], a[LAYER_GY], &call));
    if (q->subject->directions & PARTITA_BACKWARD_WEIGHT)
        assert_ok(
            partita_backward_weight(layer->plan, a[LAYER_GW], a[LAYER_X], a[LAYER_GY], &call));
    assert_ok(partita_backward_bias(layer->plan, a[LAYER_GB], a[LAYER_GY], &call));
}

static void results_home(struct queued *q, void **to)
{
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        assert_int_equal(
            cudaMemcpy(to[i], q->array[i], layer_bytes(&q->layer, i), cudaMemcpyDefault),
            cudaSuccess);
}

void queued_spoil(struct queued *q)
{
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        cudaMemsetAsync(q->array[i], 0xff, layer_bytes(&q->layer, i), cudaStreamPerThread);
    cudaStreamSynchronize(cudaStreamPerThread);
}

// A plan and a filter that have not been used.
static void renew_plan(struct queued *q, const struct partita_options *options)
{
    struct layer copy;
    const struct layer used = q->layer;
    layer_open_copy(&copy, &q->layer, options);
    q->layer.plan = copy.plan;
    q->layer.filter = copy.filter;
    copy.plan = used.plan;
    copy.filter = used.filter;
    layer_close(&copy);
}

void queued_open(struct queued *q, const struct queued_subject *subject)
{
    struct random random = random_start("queues");
    struct layer drawn;
    const struct partita_options options = {.engine = subject->engine,
                                            .directions = subject->directions,
                                            .parts = subject->parts,
                                            .log = log_into(&q->lines)};
    q->subject = subject;
    layer_open(&drawn, subject->problem,
               &(struct partita_options){.engine = "cuda/direct", .directions = PARTITA_FORWARD},
               &random);
    if (subject->problem->separable) make_separable(&drawn);
    layer_open_copy(&q->layer, &drawn, &options);
    layer_close(&drawn);
    size_t bytes = 1;
    for (int d = PARTITA_FORWARD; d <= PARTITA_BACKWARD_WEIGHT; d *= 2) {
        const size_t needed = partita_plan_workspace(q->layer.plan, (enum partita_direction)d);
        if (needed > bytes) bytes = needed;
    }
    for (int i = 0; i < LAYER_ARRAYS; i++)
        q->array[i] = device_copy(q->layer.array[i], layer_bytes(&q->layer, i), 0);
    q->workspace = array_allocate(DEVICE, bytes);
    assert_int_equal(cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking), cudaSuccess);
    queued_run(q, NULL);
    results_home(q, q->layer.array);
    queued_spoil(q);
    renew_plan(q, &options);
    hostdev_unload();
}

void queued_close(struct queued *q)
{
    for (int i = 0; i < LAYER_ARRAYS; i++) array_release(DEVICE, q->array[i]);
    array_release(DEVICE, q->workspace);
    cudaStreamDestroy(q->stream);
    layer_close(&q->layer);
    assert_int_equal(hostdev_allocations(), 0);
}

void queued_check(struct queued *q)
{
    void *home[LAYER_ARRAYS];
    for (int i = 0; i < LAYER_ARRAYS; i++) home[i] = malloc(layer_bytes(&q->layer, i));
    results_home(q, home);
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++)
        assert_memory_equal(home[i], q->layer.array[i], layer_bytes(&q->layer, i));
    for (int i = 0; i < LAYER_ARRAYS; i++) free(home[i]);
}

int queued_subject_count(void)
{
    const char *cufft = getenv("PARTITA_CUFFT");
    return cufft && strcmp(cufft, "none") != 0 ? N_QUEUED_SUBJECTS : N_QUEUED_SUBJECTS - 1;
}

void queued_refused_as(struct queued *q, enum partita_status status, const char *name)
{
    assert_int_equal(status, PARTITA_ERR_ARG);
    assert_non_null(strstr(q->lines.text, name));
    assert_int_equal(hostdev_queued(), 0);
}
