// SPDX-License-Identifier: MIT
// Calls on a queue of the caller's, on the stand-in, where queued work runs only when its stream is
// waited for: the bits are those of calls without a queue; nothing is allocated or waited for; the
// queue may be captured into a graph; arrays elsewhere are refused by name.
#include <pthread.h>

#include "queued_rig.h"

#include <partita/advanced.h>

// Nothing has run when the calls return, unless orders are random; and no call allocates or waits.
static void same_bits(void **state)
{
    static struct queued q;
    queued_open(&q, *state);
    assert_ok(partita_plan_prepare(q.layer.plan));
    hostdev_fail(0, cudaSuccess); // starts counting
    for (int i = 0; i < 2; i++) {
        queued_run(&q, q.stream);
        assert_int_equal(hostdev_used().allocations, 0);
        assert_int_equal(hostdev_used().waits, 0);
    }
    const char *order = getenv("HOSTDEV_ORDER");
    if (!order || !strcmp(order, "forward")) assert_true(hostdev_queued() > 0);
    assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
    assert_int_equal(hostdev_queued(), 0);
    queued_check(&q);
    assert_int_equal(q.lines.n_lines, 0);
    queued_close(&q);
}

// Between work of another library on its queue, as in PyTorch, whose streams do not wait for any
// other: what writes the operands was queued just before and has not run, what reads the results
// and then overwrites them is queued just behind.
static void between_others_work(void **state)
{
    static struct queued q;
    void *array[LAYER_ARRAYS];
    queued_open(&q, *state);
    assert_ok(partita_plan_prepare(q.layer.plan));
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        const size_t bytes = layer_bytes(&q.layer, i);
        array[i] = device_copy(q.layer.array[i], bytes, 0);
        if (i >= LAYER_Y) continue;
        cudaMemsetAsync(q.array[i], 0xff, bytes, q.stream);
        cudaMemcpyAsync(q.array[i], array[i], bytes, cudaMemcpyDefault, q.stream);
    }
    queued_run(&q, q.stream);
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++) {
        const size_t bytes = layer_bytes(&q.layer, i);
        cudaMemcpyAsync(array[i], q.array[i], bytes, cudaMemcpyDefault, q.stream);
        cudaMemsetAsync(q.array[i], 0xff, bytes, q.stream);
    }
    assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
    for (int i = 0; i < LAYER_ARRAYS; i++) {
        array_release(DEVICE, q.array[i]);
        q.array[i] = array[i];
    }
    queued_check(&q);
    queued_close(&q);
}

// The first call prepares its direction itself.
static void unprepared(void **state)
{
    static struct queued q;
    queued_open(&q, *state);
    queued_run(&q, q.stream);
    assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
    queued_check(&q);
    queued_close(&q);
}

static void captured(void **state)
{
    static struct queued q;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    queued_open(&q, *state);
    assert_ok(partita_plan_prepare(q.layer.plan));
    assert_int_equal(cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    queued_run(&q, q.stream);
    assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
    assert_int_equal(hostdev_queued(), 0);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int i = 0; i < 2; i++) {
        queued_spoil(&q);
        assert_int_equal(cudaGraphLaunch(exec, q.stream), cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
        queued_check(&q);
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    queued_close(&q);
}

// With call.accumulate each launch of a graph adds the results once more. Layers with an
// activation: gradients.
static void captured_sums(void **state)
{
    static struct queued q;
    struct random random = random_start("sums");
    queued_open(&q, *state);
    const struct layer *layer = &q.layer;
    assert_ok(partita_plan_prepare(layer->plan));
    for (int i = LAYER_Y; i < LAYER_ARRAYS; i++) {
        const enum partita_direction direction = (enum partita_direction)(1 << (i - LAYER_Y));
        const size_t bytes = layer_bytes(layer, i);
        if (i == LAYER_Y ? layer->problem.activation
                         : i < LAYER_GB && !(q.subject->directions & direction))
            continue;
        const size_t plain = i == LAYER_GB ? 0 : partita_plan_workspace(layer->plan, direction);
        struct partita_call call = {.queue = q.stream, .accumulate = true};
        call.workspace = array_allocate(DEVICE, (plain + 63) / 64 * 64 + bytes);
        void *sum = malloc(bytes), *expected = malloc(bytes);
        cudaGraph_t graph;
        cudaGraphExec_t exec;
        random_samples(&random, layer->problem.signal, expected, layer->n[i]);
        assert_int_equal(cudaMemcpy(q.array[i], expected, bytes, cudaMemcpyDefault), cudaSuccess);
        hostdev_fail(0, cudaSuccess); // starts counting
        cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal);
        assert_ok(layer_call(layer, (enum layer_array)i, q.array, &call));
        assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
        assert_int_equal(hostdev_used().allocations, 0);
        cudaGraphInstantiate(&exec, graph, 0);
        for (int launch = 0; launch < 2; launch++) {
            layer_add(layer, (enum layer_array)i, expected, expected);
            cudaGraphLaunch(exec, q.stream);
            assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
            cudaMemcpy(sum, q.array[i], bytes, cudaMemcpyDefault);
            assert_memory_equal(sum, expected, bytes);
        }
        cudaGraphExecDestroy(exec);
        cudaGraphDestroy(graph);
        array_release(DEVICE, call.workspace);
        free(sum);
        free(expected);
    }
    queued_close(&q);
}

// Captured without preparation: refused, and the capture goes on.
static void captured_unprepared(void **state)
{
    static struct queued q;
    cudaGraph_t graph;
    queued_open(&q, *state);
    const struct partita_call call = {.workspace = q.workspace, .queue = q.stream};
    assert_int_equal(cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_int_equal(
        partita_forward(q.layer.plan, q.layer.filter, q.array[LAYER_Y], q.array[LAYER_X], &call),
        PARTITA_ERR_STATE);
    assert_non_null(strstr(q.lines.text, "partita_plan_prepare"));
    assert_int_equal(
        partita_backward_bias(q.layer.plan, q.array[LAYER_GB], q.array[LAYER_GY], &call),
        PARTITA_ERR_STATE);
    assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    queued_run(&q, q.stream); // the device is not lost
    assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
    queued_check(&q);
    queued_close(&q);
}

// Two threads with one plan and filter, each with its own queue, workspace and result.
struct user {
    struct queued *q;
    void *y, *workspace;
    cudaStream_t stream;
    pthread_t thread;
};

static void *use_queue(void *context)
{
    struct user *user = context;
    struct layer *layer = &user->q->layer;
    const struct partita_call call = {.workspace = user->workspace, .queue = user->stream};
    for (int i = 0; i < 3; i++)
        assert_ok(
            partita_forward(layer->plan, layer->filter, user->y, user->q->array[LAYER_X], &call));
    return NULL;
}

static void two_queues(void **state)
{
    static struct queued q;
    struct user users[2];
    queued_open(&q, *state);
    const size_t bytes = layer_bytes(&q.layer, LAYER_Y);
    const size_t workspace = partita_plan_workspace(q.layer.plan, PARTITA_FORWARD);
    for (int i = 0; i < 2; i++) {
        users[i] = (struct user){.q = &q,
                                 .y = array_allocate(DEVICE, bytes),
                                 .workspace = array_allocate(DEVICE, workspace + 1)};
        cudaStreamCreateWithFlags(&users[i].stream, cudaStreamNonBlocking);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&users[i].thread, NULL, use_queue, &users[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(users[i].thread, NULL);
    void *home = malloc(bytes);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cudaStreamSynchronize(users[i].stream), cudaSuccess);
        cudaMemcpy(home, users[i].y, bytes, cudaMemcpyDefault);
        assert_memory_equal(home, q.layer.array[LAYER_Y], bytes);
        array_release(DEVICE, users[i].y);
        array_release(DEVICE, users[i].workspace);
        cudaStreamDestroy(users[i].stream);
    }
    free(home);
    queued_close(&q);
}

// Arrays that a queued call cannot use, by name.
static void refusals(void **state)
{
    static struct queued q;
    float *host;
    void *elsewhere;
    (void)state;
    queued_open(&q, &queued_subjects[3]); // with a workspace
    const struct partita_plan *plan = q.layer.plan;
    const struct partita_filter *filter = q.layer.filter;
    void **a = q.array;
    const struct partita_call call = {.workspace = q.workspace, .queue = q.stream};
    host = malloc(layer_bytes(&q.layer, LAYER_X));
    cudaSetDevice(1);
    elsewhere = array_allocate(DEVICE, layer_bytes(&q.layer, LAYER_Y));
    cudaSetDevice(0);
    queued_refused_as(&q, partita_forward(plan, filter, a[LAYER_Y], host, &call), ": x is not in");
    queued_refused_as(&q, partita_forward(plan, filter, elsewhere, a[LAYER_X], &call),
                      ": y is not in");
    queued_refused_as(&q, partita_backward_data(plan, filter, host, a[LAYER_GY], &call),
                      ": gx is not in");
    queued_refused_as(&q, partita_backward_data(plan, filter, a[LAYER_GX], host, &call),
                      ": gy is not in");
    queued_refused_as(&q, partita_backward_weight(plan, host, a[LAYER_X], a[LAYER_GY], &call),
                      ": gw is not in");
    queued_refused_as(&q, partita_backward_weight(plan, a[LAYER_GW], a[LAYER_X], host, &call),
                      ": gy is not in");
    queued_refused_as(&q, partita_backward_bias(plan, host, a[LAYER_GY], &call), ": gb is not in");
    queued_refused_as(&q,
                      partita_forward(plan, filter, a[LAYER_Y], a[LAYER_X],
                                      &(struct partita_call){.queue = q.stream}),
                      ": call.workspace is not in");
    queued_run(&q, q.stream); // the device is not lost
    cudaStreamSynchronize(q.stream);
    queued_check(&q);
    free(host);
    array_release(DEVICE, elsewhere);
    queued_close(&q);
}

// Saved transforms, which are prepared when the object is made.
static void saved_transforms(void **state)
{
    static struct queued q;
    struct partita_saved *saved;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    queued_open(&q, *state);
    const struct partita_plan *plan = q.layer.plan;
    void **a = q.array;
    const size_t bytes = layer_bytes(&q.layer, LAYER_GW);
    void *expected = malloc(bytes), *result = malloc(bytes), *workspace;
    assert_ok(partita_saved_create(plan, &saved));
    workspace = array_allocate(DEVICE, partita_saved_workspace(saved));
    const struct partita_call forward = {.workspace = q.workspace,
                                         .saved = saved,
                                         .queue = q.stream},
                              weight = {.workspace = workspace, .saved = saved, .queue = q.stream};
    assert_ok(partita_plan_prepare(plan));
    cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal);
    assert_ok(partita_forward(plan, q.layer.filter, a[LAYER_Y], a[LAYER_X], &forward));
    assert_ok(partita_backward_weight(plan, a[LAYER_GW], NULL, a[LAYER_GY], &weight));
    assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
    assert_ok(partita_forward(plan, q.layer.filter, a[LAYER_Y], a[LAYER_X],
                              &(struct partita_call){.saved = saved}));
    assert_ok(partita_backward_weight(plan, a[LAYER_GW], NULL, a[LAYER_GY],
                                      &(struct partita_call){.saved = saved}));
    cudaMemcpy(expected, a[LAYER_GW], bytes, cudaMemcpyDefault);
    queued_spoil(&q);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphLaunch(exec, q.stream);
    cudaStreamSynchronize(q.stream);
    cudaMemcpy(result, a[LAYER_GW], bytes, cudaMemcpyDefault);
    assert_memory_equal(result, expected, bytes);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    array_release(DEVICE, workspace);
    partita_saved_destroy(saved);
    free(expected);
    free(result);
    queued_close(&q);
}

// A queue of another device is refused when work is put on it.
static void queue_of_another_device(void **state)
{
    static struct queued q;
    cudaStream_t other;
    (void)state;
    queued_open(&q, &queued_subjects[0]);
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaSetDevice(0);
    const struct partita_call call = {.workspace = q.workspace, .queue = other};
    assert_int_equal(
        partita_forward(q.layer.plan, q.layer.filter, q.array[LAYER_Y], q.array[LAYER_X], &call),
        PARTITA_ERR_ARG);
    queued_run(&q, q.stream);
    cudaStreamSynchronize(q.stream);
    queued_check(&q);
    cudaStreamDestroy(other);
    queued_close(&q);
}

// Everything that allocates and waits, while the thread captures a queue of its own in the
// strictest mode: the library's streams take no part, and the capture goes on.
static void others_while_capturing(void **state)
{
    static const struct partita_problem problem = {STREAM(32), KERNEL(200)};
    static struct queued q;
    const struct partita_options options = {.engine = "cuda/partitioned", .device = "cuda:0"};
    struct random random = random_start("capturing");
    float x[200], y[200];
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    struct layer other;
    cudaGraph_t graph;
    (void)state;
    random_samples(&random, PARTITA_F32, x, 200);
    queued_open(&q, &queued_subjects[0]);
    assert_ok(partita_plan_prepare(q.layer.plan));
    assert_int_equal(cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    queued_run(&q, q.stream);
    layer_open_copy(&other, &q.layer, &(struct partita_options){.engine = "cuda/direct"});
    layer_run(&other); // through pinned memory
    layer_close(&other);
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, x, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    partita_stream_process(stream, (void *[]){y}, (const void *[]){x}, 200);
    assert_ok(partita_stream_status(stream));
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    queued_close(&q);
}

static void no_queues_of_the_cpu(void **state)
{
    const struct partita_problem problem = {LENGTH(10), KERNEL(3)};
    struct log_lines lines;
    const struct partita_options options = {.log = log_into(&lines)};
    struct partita_plan *plan;
    struct partita_filter *filter;
    float x[10] = {1}, w[3] = {1}, y[8];
    (void)state;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_plan_prepare(plan));
    assert_int_equal(partita_plan_prepare(NULL), PARTITA_ERR_ARG);
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_int_equal(
        partita_forward(plan, filter, y, x, &(struct partita_call){.queue = cudaStreamPerThread}),
        PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "call.queue"));
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

static void no_queued_streams_of_the_cpu(void **state)
{
    const struct partita_problem problem = {STREAM(16), KERNEL(3)};
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    float w[3] = {1}, x[16] = {1};
    void *at[] = {x};
    (void)state;
    assert_ok(partita_plan_create(&problem, NULL, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    assert_int_equal(partita_stream_process_queued(stream, at, at, 16, cudaStreamPerThread),
                     PARTITA_ERR_UNSUPPORTED);
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
}

// Queued calls of streams count in the statistics.
static void queued_stream_statistics(void **state)
{
    const struct partita_problem problem = {STREAM(16), KERNEL(100)};
    const struct partita_options options = {
        .engine = "cuda/partitioned", .device = "cuda:0", .sample_rate = 48000};
    struct partita_stream_stats stats;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    float w[100] = {1};
    (void)state;
    void *y = array_allocate(DEVICE, 16 * sizeof(float));
    assert_ok(partita_plan_create(&problem, &options, &plan));
    assert_ok(partita_filter_create(plan, w, &filter));
    assert_ok(partita_stream_open(plan, filter, &stream));
    for (int i = 0; i < 5; i++)
        assert_ok(partita_stream_process_queued(stream, (void *[]){y}, NULL, i ? 16 : 0,
                                                cudaStreamPerThread));
    assert_ok(partita_stream_stats(stream, &stats));
    assert_int_equal(stats.calls, 4);
    cudaStreamSynchronize(cudaStreamPerThread);
    partita_stream_close(stream);
    partita_filter_destroy(filter);
    partita_plan_destroy(plan);
    array_release(DEVICE, y);
}

int main(void)
{
    static const struct promise promises[] = {
        {"same-bits", same_bits},         {"between-others-work", between_others_work},
        {"unprepared", unprepared},       {"captured", captured},
        {"captured-sums", captured_sums}, {"captured-unprepared", captured_unprepared},
        {"two-queues", two_queues}};
    enum { N_PROMISES = sizeof promises / sizeof *promises };
    static struct CMUnitTest tests[N_QUEUED_SUBJECTS * N_PROMISES + 8];
    const int n_subjects = queued_subject_count();
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (int s = 0; s < n_subjects; s++)
        for (size_t i = 0; i < N_PROMISES; i++)
            tests[n++] = named_test(promises[i].run, &queued_subjects[s], "%s/%s",
                                    queued_subjects[s].name, promises[i].name);
    for (int s = 4; s < 6; s++)
        tests[n++] =
            named_test(saved_transforms, &queued_subjects[s], "%s/saved", queued_subjects[s].name);
    tests[n++] = named_test(refusals, NULL, "refusals");
    tests[n++] = named_test(queue_of_another_device, NULL, "queue-of-another-device");
    tests[n++] = named_test(others_while_capturing, NULL, "others-while-capturing");
    tests[n++] = named_test(queued_stream_statistics, NULL, "queued-stream-statistics");
    tests[n++] = named_test(no_queued_streams_of_the_cpu, NULL, "no-queued-streams-of-the-cpu");
    tests[n++] = named_test(no_queues_of_the_cpu, NULL, "no-queues-of-the-cpu");
    return run_test_list(tests, n);
}
