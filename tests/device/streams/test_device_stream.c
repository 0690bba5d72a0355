// SPDX-License-Identifier: MIT
// Streams on a device: the same bits in any order of threads; after an error at any call silence
// and a lasting status, no effect on other streams, and all memory released.
#include "support/stream_rig.h"

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

enum { TAPS = 700, FRAMES = 2700, SWAP_AT = 500, LATER = 300 };

// Several segments and a head; whole blocks and some latency; long quanta and a long head.
static const struct partita_problem problems[] = {
    {STREAM(16), CHANNELS(2, 3), KERNEL(TAPS)},
    {STREAM(16), .whole_blocks = true, KERNEL(TAPS), LATENCY(64)},
    {STREAM(512), CHANNELS(2, 3), KERNEL(TAPS)},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static const struct stream_case forced = {"cuda/partitioned", type_pairs, NULL};

static void any_order_same_bits(void **state)
{
    static const char *const orders[] = {"reverse", "1", "2", "3"};
    struct random random = random_start("orders");
    struct stream_rig rig;
    hostdev_order("forward");
    stream_rig_open_exactly(&rig, &forced, *state, NULL, 16 * 60, &random);
    char *y = stream_rig_alloc_output(&rig), *other = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 100, true}, &random);
    stream_rig_check_sampled(&rig, y, &random);
    for (int i = 0; i < 4; i++) {
        hostdev_order(orders[i]);
        stream_rig_replace_taps(&rig);
        stream_rig_feed(&rig, rig.stream, other, &(struct call_split){"", 100, true}, &random);
        assert_memory_equal(y, other, stream_rig_output_bytes(&rig));
    }
    hostdev_order(getenv("HOSTDEV_ORDER"));
    guarded_free(other);
    guarded_free(y);
    stream_rig_close(&rig);
}

// All calls of a caller of a stream.
struct stream_calls {
    const struct partita_problem *problem;
    struct partita_options options;
    size_t frames; // before the stream is reset; after the swap is over
    float x[2][FRAMES + LATER], y[3][FRAMES + LATER], w[2][6 * TAPS];
    struct partita_plan *plan;
    struct partita_filter *filters[3];
    struct partita_stream *stream, *clone;
    void *kept;
    enum partita_status status; // the first error of a call
    size_t failed;              // first frame after the stream's error
};

static void feed_frames(struct stream_calls *calls, size_t first, size_t end)
{
    for (size_t at = first, n; at < end; at += n) {
        n = end - at < 48 ? end - at : 48;
        const void *x[] = {calls->x[0] + at, calls->x[1] + at};
        void *y[] = {calls->y[0] + at, calls->y[1] + at, calls->y[2] + at};
        if (partita_stream_status(calls->stream) != PARTITA_OK && at < calls->failed)
            calls->failed = at;
        partita_stream_process(calls->stream, y, x, n);
    }
}

static bool succeeded(struct stream_calls *calls, enum partita_status status)
{
    if (calls->status == PARTITA_OK) calls->status = status;
    return status == PARTITA_OK;
}

static bool prepare(struct stream_calls *calls)
{
    const struct partita_path path = {.length = 300, .taps = calls->w[0]};
    return succeeded(calls, partita_plan_create(calls->problem, &calls->options, &calls->plan)) &&
           succeeded(calls, partita_filter_create(calls->plan, calls->w[0], &calls->filters[0])) &&
           succeeded(calls, partita_filter_create(calls->plan, calls->w[1], &calls->filters[1])) &&
           succeeded(calls, partita_filter_create_from(
                                calls->plan,
                                &(struct partita_taps){
                                    .base = calls->filters[1], .paths = &path, .path_count = 1},
                                &calls->filters[2])) &&
           succeeded(calls, partita_stream_open(calls->plan, calls->filters[0], &calls->stream));
}

// Feeds the stream with a swap, saves and restores its state, clones and resets it.
static void use_stream(struct stream_calls *calls)
{
    if (!prepare(calls)) return;
    feed_frames(calls, 0, SWAP_AT);
    assert_ok(partita_stream_swap(calls->stream, calls->filters[2], 100));
    feed_frames(calls, SWAP_AT, calls->frames);
    assert_false(partita_stream_swapping(calls->stream));
    const size_t size = partita_stream_state_size(calls->stream);
    calls->kept = malloc(size);
    if (succeeded(calls, partita_stream_save(calls->stream, calls->kept))) {
        succeeded(calls, partita_stream_restore(calls->stream, calls->kept, size));
        succeeded(calls, partita_stream_clone(calls->stream, &calls->clone));
    }
    partita_stream_reset(calls->stream);
    feed_frames(calls, calls->frames, calls->frames + LATER);
    succeeded(calls, partita_stream_status(calls->stream));
}

static void close_calls(struct stream_calls *calls)
{
    partita_stream_close(calls->clone);
    partita_stream_close(calls->stream);
    for (int i = 0; i < 3; i++) partita_filter_destroy(calls->filters[i]);
    partita_plan_destroy(calls->plan);
    free(calls->kept);
}

static void open_calls(struct stream_calls *calls, const struct partita_problem *problem)
{
    struct random random = random_start("errors");
    const size_t frames = problem->block > 16 ? FRAMES : 1500;
    *calls = (struct stream_calls){.problem = problem,
                                   .options = {.engine = "cuda/partitioned", .device = "cuda:0"},
                                   .frames = frames,
                                   .failed = frames + LATER};
    random_samples(&random, PARTITA_F32, calls->x, sizeof calls->x / sizeof(float));
    random_samples(&random, PARTITA_F32, calls->w, sizeof calls->w / sizeof(float));
    memset(calls->y, 0xff, sizeof calls->y);
}

// Outputs equal those without errors up to some frame and are zero from there on.
static void check_outputs(const struct stream_calls *good, const struct stream_calls *calls)
{
    const size_t outputs = calls->problem->out_channels ? calls->problem->out_channels : 1;
    for (size_t k = 0; k < outputs; k++) {
        size_t same = 0;
        while (same < calls->frames + LATER &&
               !memcmp(&good->y[k][same], &calls->y[k][same], sizeof(float)))
            same++;
        if (partita_stream_status(calls->stream) == PARTITA_OK)
            assert_int_equal(same, calls->frames + LATER);
        for (size_t i = same; i < calls->frames + LATER; i++) assert_true(calls->y[k][i] == 0);
        for (size_t i = calls->failed; i < calls->frames + LATER; i++)
            assert_true(calls->y[k][i] == 0);
    }
}

// Lines but those of calls that a failed stream refuses, which are one each.
static int reasons(const struct log_lines *lines)
{
    int refused = 0;
    for (const char *at = lines->text; (at = strstr(at, ": the stream has failed")); at++)
        refused++;
    return lines->n_lines - refused;
}

// A failing CUDA call is reported as a status. All of the first calls fail in turn, then one in
// eleven.
static void error_at_any_call(const struct partita_problem *problem, cudaError_t error,
                              enum partita_status expected)
{
    static struct stream_calls good, calls;
    struct log_lines lines;
    open_calls(&good, problem);
    use_stream(&good);
    assert_ok(good.status);
    const size_t kept = hostdev_allocations();
    for (size_t k = 1;; k += k < 60 ? 1 : 11) {
        open_calls(&calls, problem);
        calls.options.log = log_into(&lines);
        hostdev_fail(k, error);
        use_stream(&calls);
        const bool reached = hostdev_calls() >= k;
        if (calls.stream) check_outputs(&good, &calls);
        if (calls.status != PARTITA_OK) assert_true(calls.status == expected || !calls.plan);
        if (calls.stream && partita_stream_status(calls.stream) != PARTITA_OK)
            assert_int_equal(partita_stream_save(calls.stream, calls.kept), expected);
        if (expected == PARTITA_ERR_DEVICE && calls.plan && calls.status != PARTITA_OK)
            assert_int_equal(reasons(&lines), 1);
        if (expected == PARTITA_ERR_NOMEM && calls.plan)
            assert_int_equal(reasons(&lines), 0); // the device is not lost
        hostdev_fail(0, cudaSuccess);
        close_calls(&calls);
        assert_int_equal(hostdev_allocations(), kept);
        if (!reached) break;
    }
    assert_ok(calls.status);
    feed_frames(&good, good.frames, good.frames + LATER); // others are not affected
    assert_ok(partita_stream_status(good.stream));
    close_calls(&good);
    assert_int_equal(hostdev_allocations(), 0);
}

static void lost_device(void **state)
{
    error_at_any_call(*state, cudaErrorIllegalAddress, PARTITA_ERR_DEVICE);
}

static void no_memory(void **state)
{
    error_at_any_call(*state, cudaErrorMemoryAllocation, PARTITA_ERR_NOMEM);
}

// When a stream that failed during a swap reports that the swap is over, no queued work reads the
// old filter.
static void swap_over_by_failure(void **state)
{
    static struct stream_calls calls;
    for (size_t late = 0; late < 20; late++) {
        open_calls(&calls, *state);
        assert_true(prepare(&calls));
        feed_frames(&calls, 0, SWAP_AT);
        assert_ok(partita_stream_swap(calls.stream, calls.filters[1], 100));
        feed_frames(&calls, SWAP_AT, SWAP_AT + 48 * late);
        hostdev_fail(1, cudaErrorMemoryAllocation);
        feed_frames(&calls, SWAP_AT + 48 * late, calls.frames + LATER);
        hostdev_fail(0, cudaSuccess);
        assert_int_equal(partita_stream_status(calls.stream), PARTITA_ERR_NOMEM);
        assert_false(partita_stream_swapping(calls.stream));
        assert_int_equal(hostdev_queued(), 0);
        close_calls(&calls);
    }
}

static void status_of_nothing(void **state)
{
    (void)state;
    assert_int_equal(partita_stream_status(NULL), PARTITA_ERR_ARG);
}

// A quantum has one launch and one wait, after queries of the device.
static void few_calls_a_quantum(void **state)
{
    enum { TICKS = 20 };
    struct partita_problem problem = {STREAM(64), KERNEL(400)};
    struct random random = random_start("calls");
    struct stream_rig rig;
    (void)state;
    stream_rig_open_exactly(&rig, &forced, &problem, NULL, 64 * TICKS, &random);
    char *y = stream_rig_alloc_output(&rig);
    hostdev_fail(0, cudaSuccess); // starts counting
    stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 64, false}, &random);
    assert_true(hostdev_calls() >= 2 * TICKS - 1 && hostdev_calls() <= 8 * TICKS);
    guarded_free(y);
    stream_rig_close(&rig);
}

int main(void)
{
    static const struct promise promises[] = {{"any-order-same-bits", any_order_same_bits},
                                              {"lost-device", lost_device},
                                              {"no-memory", no_memory},
                                              {"swap-over-by-failure", swap_over_by_failure}};
    enum { N_PROMISES = sizeof promises / sizeof *promises };
    static struct CMUnitTest tests[N_PROMISES * N_PROBLEMS + 2];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t p = 0; p < N_PROBLEMS; p++)
        for (size_t i = 0; i < N_PROMISES; i++)
            tests[n++] = named_test(promises[i].run, &problems[p], "%s-%zu", promises[i].name, p);
    tests[n++] = named_test(status_of_nothing, NULL, "status-of-nothing");
    tests[n++] = named_test(few_calls_a_quantum, NULL, "few-calls-a-quantum");
    return run_test_list(tests, n);
}
