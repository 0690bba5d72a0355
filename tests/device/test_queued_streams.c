// SPDX-License-Identifier: MIT
// Streams with arrays on the device and a queue of the caller's, on the stand-in, where queued work
// runs only when its queue is waited for: the bits are those of the stream of host arrays, with
// swaps and non-finite samples; nothing is allocated or waited for; a captured call continues the
// stream with every launch; states of queued streams are saved and cloned.
#include <math.h>

#include "device/arrays.h"
#include "support/problems.h"

enum { FRAMES = 1536, MAX_CHANNEL = 200, MAX_TAPS = 700, AT_SWAP = 250, FADE = 90 };

static const struct subject {
    const char *name;
    struct partita_problem problem;
    const char *device;
} subjects[] = {
    {"head", {STREAM(16), CHANNELS(2, 3), KERNEL(700)}, "cuda:0"},
    {"whole", {STREAM(16), .whole_blocks = true, KERNEL(700), LATENCY(64)}, "cuda:0"},
    {"whole-head", {STREAM(32), .whole_blocks = true, CHANNELS(2, 1), KERNEL(500)}, "cuda:0"},
    {"long-head", {STREAM(256), CHANNELS(2, 2), KERNEL(700)}, "cuda:1"},
    {"decimated", {STREAM(32), STRIDE(3), CHANNELS(1, 2), KERNEL(300)}, "cuda:0"},
    {"dilated", {STREAM(32), DILATION(2), KERNEL(150), LATENCY(9)}, "cuda:0"},
    {"f64", {STREAM(64), KERNEL(400), .signal = PARTITA_F64, .taps = PARTITA_F64}, "cuda:0"},
    {"complex", {STREAM(32), CHANNELS(2, 2), KERNEL(300), .signal = PARTITA_CF32}, "cuda:0"},
    {"complex-taps",
     {STREAM(32), KERNEL(300), .signal = PARTITA_CF32, .taps = PARTITA_CF32},
     "cuda:1"},
    {"groups", {STREAM(16), CHANNELS(5, 10), GROUPS(5), KERNEL(700)}, "cuda:0"},
    {"channels", {STREAM(64), CHANNELS(150, 150), GROUPS(150), KERNEL(120)}, "cuda:0"},
};
enum { N_SUBJECTS = sizeof subjects / sizeof *subjects };

// A plan, two filters, and the input in host memory and on the device.
struct queued {
    const struct subject *subject;
    struct partita_plan *plan;
    struct partita_filter *filters[3];
    size_t in, out, stride, unit, bytes; // unit: frames that calls are multiples of
    char *x, *device_x, *device_y;
    size_t y_bytes;
    cudaStream_t queue;
    struct log_lines lines;
};

static void open_queued(struct queued *q, const struct subject *subject)
{
    struct random random = random_start("queued");
    const struct partita_options options = {
        .engine = "cuda/partitioned", .device = subject->device, .log = log_into(&q->lines)};
    struct partita_problem problem = subject->problem;
    if (!problem.taps) problem.taps = PARTITA_F32;
    *q = (struct queued){.subject = subject};
    q->in = problem.in_channels ? problem.in_channels : 1;
    q->out = problem.out_channels ? problem.out_channels : 1;
    q->stride = problem.stride[0] ? problem.stride[0] : 1;
    q->unit = problem.whole_blocks ? problem.block : 1;
    q->bytes = partita_type_size(problem.signal);
    assert_ok(partita_plan_create(&problem, &options, &q->plan));
    const size_t n_taps = partita_plan_taps_count(q->plan);
    void *taps = malloc(n_taps * partita_type_size(problem.taps));
    for (int i = 0; i < 3; i++) {
        random_samples(&random, problem.taps, taps, n_taps);
        assert_ok(partita_filter_create(q->plan, taps, &q->filters[i]));
    }
    free(taps);
    q->x = malloc(q->in * FRAMES * q->bytes);
    random_samples(&random, problem.signal ? problem.signal : PARTITA_F32, q->x, q->in * FRAMES);
    for (size_t c = 0; c < q->in; c++) // the third quarter is silence
        memset(q->x + (c * FRAMES + FRAMES / 2) * q->bytes, 0, FRAMES / 4 * q->bytes);
    q->y_bytes = q->out * FRAMES * q->bytes;
    cudaSetDevice(!strcmp(subject->device, "cuda:1"));
    q->device_x = device_copy(q->x, q->in * FRAMES * q->bytes, 0);
    q->device_y = array_allocate(DEVICE, q->y_bytes);
    assert_int_equal(cudaStreamCreateWithFlags(&q->queue, cudaStreamNonBlocking), cudaSuccess);
    cudaSetDevice(0);
}

static void release_queued(struct queued *q)
{
    for (int i = 0; i < 3; i++) partita_filter_destroy(q->filters[i]);
    partita_plan_destroy(q->plan);
    free(q->x);
    array_release(DEVICE, q->device_x);
    array_release(DEVICE, q->device_y);
    cudaStreamDestroy(q->queue);
}

static void close_queued(struct queued *q)
{
    release_queued(q);
    assert_int_equal(hostdev_allocations(), 0);
}

static struct partita_stream *open_stream(const struct queued *q)
{
    struct partita_stream *stream;
    assert_ok(partita_stream_open(q->plan, q->filters[0], &stream));
    return stream;
}

// Feeds frames [first, end), of host arrays or queued, with outputs at their places in y.
static void feed(const struct queued *q, struct partita_stream *stream, char *y, size_t first,
                 size_t end)
{
    const void *x_at[MAX_CHANNEL];
    void *y_at[MAX_CHANNEL];
    const bool queued = y == q->device_y;
    const size_t due = (first + q->stride - 1) / q->stride;
    for (size_t c = 0; c < q->in; c++)
        x_at[c] = (queued ? q->device_x : q->x) + (c * FRAMES + first) * q->bytes;
    for (size_t k = 0; k < q->out; k++) y_at[k] = y + (k * FRAMES + due) * q->bytes;
    const bool silent = first >= FRAMES / 2 && end <= FRAMES * 3 / 4;
    if (!queued) partita_stream_process(stream, y_at, silent ? NULL : x_at, end - first);
    else
        assert_ok(partita_stream_process_queued(stream, y_at, silent ? NULL : x_at, end - first,
                                                q->queue));
}

// The frames from `first` on, in the first half, to the end.
static void feed_rest(const struct queued *q, struct partita_stream *stream, size_t first)
{
    feed(q, stream, q->device_y, first, FRAMES / 2);
    feed(q, stream, q->device_y, FRAMES / 2, FRAMES * 3 / 4);
    feed(q, stream, q->device_y, FRAMES * 3 / 4, FRAMES);
}

// Outputs of the stream of host arrays, with a swap at AT_SWAP if there is a filter.
static char *expected(const struct queued *q, const struct partita_filter *swapped)
{
    struct partita_stream *stream = open_stream(q);
    const size_t at_swap = AT_SWAP / q->unit * q->unit;
    char *y = calloc(1, q->y_bytes);
    for (size_t at = 0, n; at < FRAMES; at += n) {
        n = at < at_swap ? at_swap - at : FRAMES - at;
        if (n > q->unit * 8) n = q->unit * 8;
        if (at == at_swap && swapped) assert_ok(partita_stream_swap(stream, swapped, FADE));
        feed(q, stream, y, at, at + n);
    }
    assert_ok(partita_stream_status(stream));
    partita_stream_close(stream);
    return y;
}

static void check_outputs(const struct queued *q, const char *y)
{
    char *home = malloc(q->y_bytes);
    assert_int_equal(cudaStreamSynchronize(q->queue), cudaSuccess);
    assert_int_equal(cudaMemcpy(home, q->device_y, q->y_bytes, cudaMemcpyDefault), cudaSuccess);
    for (size_t k = 0; k < q->out; k++) {
        const size_t row = k * FRAMES * q->bytes;
        assert_memory_equal(home + row, y + row, FRAMES / q->stride * q->bytes);
    }
    free(home);
}

static void clear_outputs(const struct queued *q)
{
    cudaMemsetAsync(q->device_y, 0, q->y_bytes, q->queue);
    cudaStreamSynchronize(q->queue);
}

// Calls of drawn lengths, a swap, silence; nothing runs before the queue is waited for, unless
// orders are random, and no call allocates or waits.
static void same_bits(void **state)
{
    static struct queued q;
    static const size_t longest[] = {9, 70, 600};
    struct random random = random_start("calls");
    open_queued(&q, *state);
    char *y = expected(&q, q.filters[1]);
    struct partita_stream *stream = open_stream(&q);
    const size_t at_swap = AT_SWAP / q.unit * q.unit;
    for (int i = 0; i < 3; i++) {
        clear_outputs(&q);
        hostdev_fail(0, cudaSuccess); // starts counting
        for (size_t at = 0, n; at < FRAMES; at += n) {
            const size_t end = at < at_swap          ? at_swap
                               : at < FRAMES / 2     ? FRAMES / 2
                               : at < FRAMES * 3 / 4 ? FRAMES * 3 / 4
                                                     : FRAMES;
            n = random_below(&random, longest[i]) / q.unit * q.unit;
            if (n > end - at || q.unit > longest[i]) n = end - at;
            if (at == at_swap && n) assert_ok(partita_stream_swap(stream, q.filters[1], FADE));
            feed(&q, stream, q.device_y, at, at + n);
        }
        assert_int_equal(hostdev_used().allocations, 0);
        assert_int_equal(hostdev_used().waits, 0);
        const char *order = getenv("HOSTDEV_ORDER");
        if (!order || !strcmp(order, "forward")) {
            assert_true(hostdev_queued() > 0);
            assert_true(partita_stream_swapping(stream));
        }
        check_outputs(&q, y);
        assert_false(partita_stream_swapping(stream));
        assert_int_equal(hostdev_queued(), 0);
        partita_stream_close(stream);
        stream = open_stream(&q);
    }
    partita_stream_close(stream);
    assert_int_equal(q.lines.n_lines, 0);
    free(y);
    close_queued(&q);
}

// Non-finite samples of one channel, within and across calls.
static void nonfinite(void **state)
{
    static struct queued q;
    open_queued(&q, *state);
    const enum partita_type type = q.subject->problem.signal;
    static const size_t at[] = {0, 37, 38, 255, 700};
    for (size_t i = 0; i < 5; i++)
        sample_put(type ? type : PARTITA_F32, q.x, at[i], i % 2 ? NAN : INFINITY);
    cudaMemcpy(q.device_x, q.x, q.in * FRAMES * q.bytes, cudaMemcpyDefault);
    char *y = expected(&q, q.filters[1]);
    struct partita_stream *stream = open_stream(&q);
    clear_outputs(&q);
    const size_t at_swap = AT_SWAP / q.unit * q.unit, step = q.unit > 1 ? q.unit : 25;
    for (size_t from = 0, n; from < FRAMES; from += n) {
        n = from < at_swap && from + step > at_swap ? at_swap - from : step;
        if (n > FRAMES - from) n = FRAMES - from;
        if (from == at_swap) assert_ok(partita_stream_swap(stream, q.filters[1], FADE));
        feed(&q, stream, q.device_y, from, from + n);
    }
    check_outputs(&q, y);
    partita_stream_close(stream);
    free(y);
    close_queued(&q);
}

// A captured call processes the next frames with each launch of its graph; calls between the
// launches continue the stream, and hand over a filter.
static void captured(void **state)
{
    static struct queued q;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    open_queued(&q, *state);
    const size_t unit = q.unit > 1 ? q.unit : q.stride, n = (40 / unit + 1) * unit;
    const size_t at_swap = AT_SWAP / q.unit * q.unit, outputs = n / q.stride;
    char *y = expected(&q, q.filters[1]), *scratch;
    const void *x_at[MAX_CHANNEL];
    void *y_at[MAX_CHANNEL];
    cudaSetDevice(!strcmp(q.subject->device, "cuda:1"));
    scratch = array_allocate(DEVICE, (q.in * n + q.out * outputs) * q.bytes);
    for (size_t c = 0; c < q.in; c++) x_at[c] = scratch + c * n * q.bytes;
    for (size_t k = 0; k < q.out; k++) y_at[k] = scratch + (q.in * n + k * outputs) * q.bytes;
    struct partita_stream *stream = open_stream(&q);
    clear_outputs(&q);
    hostdev_fail(0, cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(q.queue, cudaStreamCaptureModeGlobal), cudaSuccess);
    assert_ok(partita_stream_process_queued(stream, y_at, x_at, n, q.queue));
    if (q.stride > 1)
        assert_int_equal(partita_stream_process_queued(stream, y_at, x_at, 1, q.queue),
                         PARTITA_ERR_ARG);
    assert_int_equal(cudaStreamEndCapture(q.queue, &graph), cudaSuccess);
    assert_int_equal(hostdev_used().allocations, 0);
    assert_int_equal(hostdev_used().waits, 0);
    assert_int_equal(hostdev_queued(), 0);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    // The graph has no silence: it ends where that begins.
    size_t at = 0;
    for (int i = 0; at + n <= FRAMES / 2; i++, at += n) {
        if (at <= at_swap && at_swap < at + n) {
            feed(&q, stream, q.device_y, at, at_swap);
            assert_ok(partita_stream_swap(stream, q.filters[1], FADE));
            feed(&q, stream, q.device_y, at_swap, at_swap); // takes the filter
            if (at < at_swap) feed(&q, stream, q.device_y, at_swap, at + n);
            if (at < at_swap) continue;
        } else if (i % 3 == 0) {
            feed(&q, stream, q.device_y, at, at + n);
            continue;
        }
        for (size_t c = 0; c < q.in; c++)
            cudaMemcpyAsync((void *)(uintptr_t)x_at[c], q.device_x + (c * FRAMES + at) * q.bytes,
                            n * q.bytes, cudaMemcpyDefault, q.queue);
        assert_int_equal(cudaGraphLaunch(exec, q.queue), cudaSuccess);
        for (size_t k = 0; k < q.out; k++)
            cudaMemcpyAsync(q.device_y + (k * FRAMES + at / q.stride) * q.bytes, y_at[k],
                            outputs * q.bytes, cudaMemcpyDefault, q.queue);
    }
    feed_rest(&q, stream, at);
    check_outputs(&q, y);
    assert_false(partita_stream_swapping(stream));
    partita_stream_close(stream);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    array_release(DEVICE, scratch);
    cudaSetDevice(0);
    free(y);
    close_queued(&q);
}

// Saved, restored into a new stream, cloned, reset.
static void states(void **state)
{
    static struct queued q;
    struct partita_stream *other, *clone;
    open_queued(&q, *state);
    const size_t half = FRAMES / 4 / q.unit * q.unit;
    char *y = expected(&q, NULL);
    struct partita_stream *stream = open_stream(&q);
    void *saved = malloc(partita_stream_state_size(stream));
    clear_outputs(&q);
    feed(&q, stream, q.device_y, 0, half);
    cudaStreamSynchronize(q.queue);
    assert_ok(partita_stream_save(stream, saved));
    other = open_stream(&q);
    feed(&q, other, q.device_y, 0, half);
    cudaStreamSynchronize(q.queue);
    assert_ok(partita_stream_restore(other, saved, partita_stream_state_size(stream)));
    assert_ok(partita_stream_clone(other, &clone));
    struct partita_stream *const each[] = {stream, other, clone};
    for (int i = 0; i < 3; i++) {
        feed_rest(&q, each[i], half);
        check_outputs(&q, y);
    }
    // A reset ends a swap that has begun without a fade.
    for (int i = 0; i < 2; i++) {
        feed(&q, clone, q.device_y, 0, half);
        cudaStreamSynchronize(q.queue);
        assert_ok(partita_stream_swap(clone, q.filters[i], FADE));
        feed(&q, clone, q.device_y, 0, half);
        cudaStreamSynchronize(q.queue);
        assert_int_equal(partita_stream_save(clone, saved),
                         partita_stream_swapping(clone) ? PARTITA_ERR_STATE : PARTITA_OK);
        partita_stream_reset(clone);
        assert_false(partita_stream_swapping(clone));
    }
    assert_ok(partita_stream_swap(clone, q.filters[0], 0));
    partita_stream_close(stream);
    partita_stream_close(other);
    partita_stream_close(clone);
    free(saved);
    free(y);
    close_queued(&q);
}

// A state that is saved before the first frame holds nothing of the filter of its stream.
static void state_without_frames(void **state)
{
    static struct queued q;
    struct partita_stream *saver;
    open_queued(&q, *state);
    char *y = expected(&q, NULL);
    assert_ok(partita_stream_open(q.plan, q.filters[1], &saver));
    struct partita_stream *stream = open_stream(&q);
    const size_t bytes = partita_stream_state_size(saver);
    void *saved = malloc(bytes);
    assert_ok(partita_stream_save(saver, saved));
    assert_ok(partita_stream_restore(stream, saved, bytes));
    partita_stream_close(saver);
    clear_outputs(&q);
    feed_rest(&q, stream, 0);
    check_outputs(&q, y);
    partita_stream_close(stream);
    free(saved);
    free(y);
    close_queued(&q);
}

// After a failure at any call the status lasts, and nothing waits for a swap.
static void lost_device(void **state)
{
    static struct queued q;
    open_queued(&q, *state);
    void *y_at[MAX_CHANNEL];
    for (size_t k = 0; k < q.out; k++) y_at[k] = q.device_y + k * FRAMES * q.bytes;
    const size_t n = 64 / q.unit * q.unit;
    for (size_t k = 1;; k++) {
        struct queued opened;
        open_queued(&opened, *state);
        struct partita_stream *stream = open_stream(&opened);
        assert_ok(partita_stream_process_queued(stream, y_at, NULL, n, q.queue));
        cudaStreamSynchronize(q.queue);
        assert_ok(partita_stream_swap(stream, opened.filters[1], 10));
        hostdev_fail(k, cudaErrorIllegalAddress);
        const enum partita_status status =
            partita_stream_process_queued(stream, y_at, NULL, n, q.queue);
        const bool reached = hostdev_calls() >= k;
        if (reached) {
            assert_int_equal(status, PARTITA_ERR_DEVICE);
            assert_int_equal(partita_stream_process_queued(stream, y_at, NULL, n, q.queue),
                             PARTITA_ERR_DEVICE);
            assert_int_equal(partita_stream_status(stream), PARTITA_ERR_DEVICE);
            assert_false(partita_stream_swapping(stream));
            assert_int_equal(opened.lines.n_lines, 1);
        } else assert_ok(status);
        hostdev_fail(0, cudaSuccess);
        cudaStreamSynchronize(q.queue);
        partita_stream_close(stream);
        release_queued(&opened);
        if (!reached) break;
    }
    close_queued(&q);
}

static void refusals(void **state)
{
    static struct queued q;
    float host[64] = {0};
    cudaStream_t elsewhere;
    (void)state;
    open_queued(&q, &subjects[0]);
    struct partita_stream *stream = open_stream(&q);
    char *x = q.device_x, *y = q.device_y;
    void *good[] = {y, y + 400, y + 800}, *bad[] = {y, host, y + 800}, *odd[] = {y, y + 1, y};
    const void *x_good[] = {x, x + 400}, *x_bad[] = {x, host};
    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&elsewhere, cudaStreamNonBlocking);
    cudaSetDevice(0);
    assert_int_equal(partita_stream_process_queued(NULL, good, x_good, 9, q.queue),
                     PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_process_queued(stream, good, x_good, 9, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_process_queued(stream, good, x_bad, 9, q.queue),
                     PARTITA_ERR_ARG);
    assert_non_null(strstr(q.lines.text, "x[1] is not in"));
    assert_int_equal(partita_stream_process_queued(stream, bad, x_good, 9, q.queue),
                     PARTITA_ERR_ARG);
    assert_non_null(strstr(q.lines.text, "y[1] is not in"));
    assert_int_equal(partita_stream_process_queued(stream, odd, x_good, 9, q.queue),
                     PARTITA_ERR_ARG);
    assert_non_null(strstr(q.lines.text, "y[1] is not aligned"));
    assert_ok(partita_stream_swap(stream, q.filters[1], 0));
    assert_int_equal(partita_stream_process_queued(stream, good, x_good, 9, elsewhere),
                     PARTITA_ERR_ARG);
    assert_ok(partita_stream_status(stream));
    assert_int_equal(hostdev_queued(), 0);
    // No refusal has changed the stream, and the filter is not lost.
    char *expect = expected(&q, NULL);
    assert_ok(partita_stream_swap(stream, q.filters[0], 0));
    clear_outputs(&q);
    feed_rest(&q, stream, 0);
    check_outputs(&q, expect);
    assert_false(partita_stream_swapping(stream));
    free(expect);
    partita_stream_close(stream);
    cudaStreamDestroy(elsewhere);
    close_queued(&q);
}

// Arrays of host and device in turn.
static void mixed(void **state)
{
    static struct queued q;
    (void)state;
    open_queued(&q, &subjects[0]);
    struct partita_stream *stream = open_stream(&q);
    float host[3][20];
    void *y_at[] = {host[0], host[1], host[2]};
    void *device_y[] = {q.device_y, q.device_y, q.device_y};
    const void *x_at[] = {q.x, q.x};
    // A refused call leaves a new stream to the host's arrays.
    assert_int_equal(partita_stream_process_queued(stream, y_at, x_at, 20, q.queue),
                     PARTITA_ERR_ARG);
    partita_stream_process(stream, y_at, x_at, 20);
    assert_null(strstr(q.lines.text, "partita_stream_reset"));
    partita_stream_reset(stream);
    memset(host, 0xff, sizeof host);
    assert_ok(partita_stream_process_queued(stream, device_y, NULL, 20, q.queue));
    partita_stream_process(stream, y_at, x_at, 20);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 20; i++) assert_true(host[k][i] == 0);
    assert_non_null(strstr(q.lines.text, "partita_stream_reset"));
    cudaStreamSynchronize(q.queue);
    partita_stream_reset(stream);
    partita_stream_process(stream, y_at, x_at, 20);
    assert_true(host[0][5] != 0);
    assert_int_equal(partita_stream_process_queued(stream, device_y, NULL, 20, q.queue),
                     PARTITA_ERR_STATE);
    partita_stream_close(stream);
    close_queued(&q);
}

int main(void)
{
    static const struct promise promises[] = {{"same-bits", same_bits},
                                              {"nonfinite", nonfinite},
                                              {"captured", captured},
                                              {"states", states}};
    enum { N_PROMISES = sizeof promises / sizeof *promises };
    static struct CMUnitTest tests[N_SUBJECTS * N_PROMISES + 4];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t s = 0; s < (layer_is_brief() ? 3 : N_SUBJECTS); s++)
        for (size_t i = 0; i < N_PROMISES; i++)
            tests[n++] = named_test(promises[i].run, &subjects[s], "%s/%s", subjects[s].name,
                                    promises[i].name);
    tests[n++] = named_test(state_without_frames, &subjects[0], "state-without-frames");
    tests[n++] = named_test(lost_device, &subjects[0], "lost-device");
    tests[n++] = named_test(refusals, NULL, "refusals");
    tests[n++] = named_test(mixed, NULL, "mixed");
    return run_test_list(tests, n);
}
