// SPDX-License-Identifier: MIT
// partita_filter_update on a queue of the caller's, on the stand-in: the calls that follow use the
// new taps; nothing is allocated or waited for; the queue may be captured into a graph; what cannot
// be queued is refused by name.
#include "queued_rig.h"

// Fills the filter with taps and a bias of ones, through host memory.
static void spoil_filter(struct queued *q)
{
    const size_t taps = q->layer.n[LAYER_W], biases = q->layer.n[LAYER_BIAS];
    float *ones = malloc((taps + biases) * sizeof *ones);
    for (size_t i = 0; i < taps + biases; i++) ones[i] = 1;
    assert_ok(partita_filter_update(q->layer.filter, ones, ones, NULL));
    free(ones);
}

static enum partita_status update_filter(struct queued *q)
{
    const struct partita_call call = {.workspace = q->workspace, .queue = q->stream};
    return partita_filter_update(q->layer.filter, q->array[LAYER_W], q->array[LAYER_BIAS], &call);
}

// An update and the calls that use it, queued together: nothing is allocated or waited for.
static void updated(void **state)
{
    static struct queued q;
    queued_open(&q, *state);
    spoil_filter(&q);
    assert_ok(partita_plan_prepare(q.layer.plan));
    hostdev_fail(0, cudaSuccess);        // starts counting
    if (q.subject->problem->separable) { // whose taps are factored on the host
        assert_int_equal(update_filter(&q), PARTITA_ERR_UNSUPPORTED);
        assert_non_null(strstr(q.lines.text, "problem.separable"));
        assert_int_equal(hostdev_queued(), 0);
        assert_ok(
            partita_filter_update(q.layer.filter, q.array[LAYER_W], q.array[LAYER_BIAS], NULL));
    } else {
        assert_ok(update_filter(&q));
        assert_int_equal(hostdev_used().allocations, 0);
        assert_int_equal(hostdev_used().waits, 0);
    }
    queued_run(&q, q.stream);
    assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
    queued_check(&q);
    queued_close(&q);
}

// A graph of an update and the calls that use it, which reads other taps in each launch.
static void updates_captured(void **state)
{
    static struct queued q;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    queued_open(&q, *state);
    const size_t bytes = layer_bytes(&q.layer, LAYER_W);
    if (q.subject->problem->separable) {
        queued_close(&q);
        return;
    }
    spoil_filter(&q);
    cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal);
    assert_int_equal(update_filter(&q), PARTITA_ERR_STATE);
    assert_non_null(strstr(q.lines.text, "partita_plan_prepare"));
    assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
    cudaGraphDestroy(graph);
    assert_ok(partita_plan_prepare(q.layer.plan));
    assert_int_equal(cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_ok(update_filter(&q));
    queued_run(&q, q.stream);
    assert_int_equal(cudaStreamEndCapture(q.stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    for (int right = 0; right < 2; right++) {
        if (right) cudaMemcpy(q.array[LAYER_W], q.layer.array[LAYER_W], bytes, cudaMemcpyDefault);
        else cudaMemsetAsync(q.array[LAYER_W], 0, bytes, q.stream);
        queued_spoil(&q);
        assert_int_equal(cudaGraphLaunch(exec, q.stream), cudaSuccess);
        assert_int_equal(cudaStreamSynchronize(q.stream), cudaSuccess);
    }
    queued_check(&q);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    queued_close(&q);
}

// Arrays that a queued update cannot use, by name; the filter keeps its taps.
static void refusals(void **state)
{
    static struct queued q;
    (void)state;
    queued_open(&q, &queued_subjects[3]);
    struct partita_filter *filter = q.layer.filter;
    char *w = q.array[LAYER_W];
    const struct partita_call call = {.workspace = q.workspace, .queue = q.stream};
    float *host = malloc(layer_bytes(&q.layer, LAYER_W));
    cudaSetDevice(1);
    void *elsewhere = array_allocate(DEVICE, layer_bytes(&q.layer, LAYER_W));
    cudaSetDevice(0);
    queued_refused_as(&q, partita_filter_update(filter, host, NULL, &call), ": taps is not in");
    queued_refused_as(&q, partita_filter_update(filter, elsewhere, NULL, &call),
                      ": taps is not in");
    queued_refused_as(&q, partita_filter_update(filter, w + 1, NULL, &call),
                      ": taps is not aligned");
    queued_refused_as(&q, partita_filter_update(filter, w, host, &call), ": bias is not in");
    queued_run(&q, q.stream);
    cudaStreamSynchronize(q.stream);
    queued_check(&q);
    free(host);
    array_release(DEVICE, elsewhere);
    queued_close(&q);
}

// Transforms by cuFFT need a workspace.
static void workspace_of_transforms(void **state)
{
    static struct queued q;
    (void)state;
    queued_open(&q, &queued_subjects[N_QUEUED_SUBJECTS - 1]);
    const struct partita_call call = {.queue = q.stream};
    queued_refused_as(&q, partita_filter_update(q.layer.filter, q.array[LAYER_W], NULL, &call),
                      ": call.workspace is not in");
    queued_close(&q);
}

int main(void)
{
    static struct CMUnitTest tests[2 * N_QUEUED_SUBJECTS + 2];
    const int n_subjects = queued_subject_count();
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (int s = 0; s < n_subjects; s++) {
        const struct queued_subject *subject = &queued_subjects[s];
        tests[n++] = named_test(updated, subject, "%s/updated", subject->name);
        tests[n++] = named_test(updates_captured, subject, "%s/captured", subject->name);
    }
    tests[n++] = named_test(refusals, NULL, "refusals");
    if (n_subjects == N_QUEUED_SUBJECTS)
        tests[n++] = named_test(workspace_of_transforms, NULL, "workspace-of-transforms");
    return run_test_list(tests, n);
}
