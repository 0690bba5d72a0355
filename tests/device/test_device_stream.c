// SPDX-License-Identifier: MIT
// Streams of a device where it is unkind: the same bits in any order of threads, an error at any
// call, silence and a lasting status from there on, other streams unharmed, nothing left behind.
#include "support/stream_rig.h"

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

enum { TAPS = 700, FRAMES = 2700, SWAP_AT = 500, LATER = 300 };

// Ticks of 16 frames, several levels, a head; whole blocks and some latency; a head that is a
// stream of the CPU's.
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

// Everything a caller does with a stream.
struct life {
    const struct partita_problem *problem;
    struct partita_options options;
    size_t frames; // before the stream is reset; after the swap is over
    float x[2][FRAMES + LATER], y[3][FRAMES + LATER], w[2][6 * TAPS];
    struct partita_plan *plan;
    struct partita_filter *filters[3];
    struct partita_stream *stream, *clone;
    void *kept;
    enum partita_status status; // the first bad one of the calls that return one
    size_t failed;              // first frame that was fed after the stream's status was bad
};

static void feed(struct life *life, size_t first, size_t end)
{
    for (size_t at = first, n; at < end; at += n) {
        n = end - at < 48 ? end - at : 48;
        const void *x[] = {life->x[0] + at, life->x[1] + at};
        void *y[] = {life->y[0] + at, life->y[1] + at, life->y[2] + at};
        if (partita_stream_status(life->stream) != PARTITA_OK && at < life->failed)
            life->failed = at;
        partita_stream_process(life->stream, y, x, n);
    }
}

static bool well(struct life *life, enum partita_status status)
{
    if (life->status == PARTITA_OK) life->status = status;
    return status == PARTITA_OK;
}

static bool prepare(struct life *life)
{
    const struct partita_cell cell = {.length = 300, .taps = life->w[0]};
    return well(life, partita_plan_create(life->problem, &life->options, &life->plan)) &&
           well(life, partita_filter_create(life->plan, life->w[0], &life->filters[0])) &&
           well(life, partita_filter_create(life->plan, life->w[1], &life->filters[1])) &&
           well(life, partita_filter_edit(life->filters[1], &cell, 1, &life->filters[2])) &&
           well(life, partita_stream_open(life->plan, life->filters[0], &life->stream));
}

// A run with a swap on the way, a state saved and restored, a clone, a reset.
static void live(struct life *life)
{
    if (!prepare(life)) return;
    feed(life, 0, SWAP_AT);
    assert_ok(partita_stream_swap(life->stream, life->filters[2], 100));
    feed(life, SWAP_AT, life->frames);
    assert_false(partita_stream_swapping(life->stream));
    const size_t size = partita_stream_state_size(life->stream);
    life->kept = malloc(size);
    if (well(life, partita_stream_save(life->stream, life->kept))) {
        well(life, partita_stream_restore(life->stream, life->kept, size));
        well(life, partita_stream_clone(life->stream, &life->clone));
    }
    partita_stream_reset(life->stream);
    feed(life, life->frames, life->frames + LATER);
    well(life, partita_stream_status(life->stream));
}

static void close_life(struct life *life)
{
    partita_stream_close(life->clone);
    partita_stream_close(life->stream);
    for (int i = 0; i < 3; i++) partita_filter_destroy(life->filters[i]);
    partita_plan_destroy(life->plan);
    free(life->kept);
}

static void open_life(struct life *life, const struct partita_problem *problem)
{
    struct random random = random_start("errors");
    const size_t frames = problem->block > 16 ? FRAMES : 1500;
    *life = (struct life){.problem = problem,
                          .options = {.engine = "cuda/partitioned", .device = "cuda:0"},
                          .frames = frames,
                          .failed = frames + LATER};
    random_samples(&random, PARTITA_F32, life->x, sizeof life->x / sizeof(float));
    random_samples(&random, PARTITA_F32, life->w, sizeof life->w / sizeof(float));
    memset(life->y, 0xff, sizeof life->y);
}

// Outputs are those of a run without errors up to some frame, and zeros from there on.
static void check_outputs(const struct life *good, const struct life *life)
{
    const size_t outputs = life->problem->out_channels ? life->problem->out_channels : 1;
    for (size_t k = 0; k < outputs; k++) {
        size_t same = 0;
        while (same < life->frames + LATER &&
               !memcmp(&good->y[k][same], &life->y[k][same], sizeof(float)))
            same++;
        if (partita_stream_status(life->stream) == PARTITA_OK)
            assert_int_equal(same, life->frames + LATER);
        for (size_t i = same; i < life->frames + LATER; i++) assert_true(life->y[k][i] == 0);
        for (size_t i = life->failed; i < life->frames + LATER; i++)
            assert_true(life->y[k][i] == 0);
    }
}

// A failure of a CUDA call comes back as a status; the first ones are all tried, then one in
// eleven.
static void error_at_any_call(const struct partita_problem *problem, cudaError_t error,
                              enum partita_status expected)
{
    static struct life good, life;
    struct log_lines lines;
    open_life(&good, problem);
    live(&good);
    assert_ok(good.status);
    const size_t kept = hostdev_allocations();
    for (size_t k = 1;; k += k < 60 ? 1 : 11) {
        open_life(&life, problem);
        life.options.log = log_into(&lines);
        hostdev_fail(k, error);
        live(&life);
        const bool reached = hostdev_calls() >= k;
        if (life.stream) check_outputs(&good, &life);
        if (life.status != PARTITA_OK) assert_true(life.status == expected || !life.plan);
        if (life.stream && partita_stream_status(life.stream) != PARTITA_OK)
            assert_int_equal(partita_stream_save(life.stream, life.kept), expected);
        if (expected == PARTITA_ERR_DEVICE && life.plan && life.status != PARTITA_OK)
            assert_int_equal(lines.n_lines, 1);
        if (expected == PARTITA_ERR_NOMEM && life.plan)
            assert_int_equal(lines.n_lines, 0); // the device is not lost
        hostdev_fail(0, cudaSuccess);
        close_life(&life);
        assert_int_equal(hostdev_allocations(), kept);
        if (!reached) break;
    }
    assert_ok(life.status);
    feed(&good, good.frames, good.frames + LATER); // others are unharmed
    assert_ok(partita_stream_status(good.stream));
    close_life(&good);
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

// Once a stream that failed in the midst of a swap says that the swap is over, nothing is queued
// any more that would read the old filter.
static void swap_over_by_failure(void **state)
{
    static struct life life;
    for (size_t late = 0; late < 20; late++) {
        open_life(&life, *state);
        assert_true(prepare(&life));
        feed(&life, 0, SWAP_AT);
        assert_ok(partita_stream_swap(life.stream, life.filters[1], 100));
        feed(&life, SWAP_AT, SWAP_AT + 48 * late);
        hostdev_fail(1, cudaErrorMemoryAllocation);
        feed(&life, SWAP_AT + 48 * late, life.frames + LATER);
        hostdev_fail(0, cudaSuccess);
        assert_int_equal(partita_stream_status(life.stream), PARTITA_ERR_NOMEM);
        assert_false(partita_stream_swapping(life.stream));
        assert_int_equal(hostdev_queued(), 0);
        close_life(&life);
    }
}

static void status_of_nothing(void **state)
{
    (void)state;
    assert_int_equal(partita_stream_status(NULL), PARTITA_ERR_ARG);
}

// A tick takes one launch and one wait, each after asking for the device.
static void few_calls_a_tick(void **state)
{
    enum { TICKS = 20 };
    struct partita_problem problem = {STREAM(64), KERNEL(400)};
    struct random random = random_start("calls");
    struct stream_rig rig;
    (void)state;
    stream_rig_open_exactly(&rig, &forced, &problem, NULL, 64 * TICKS, &random);
    char *y = stream_rig_alloc_output(&rig);
    hostdev_fail(0, cudaSuccess); // counts from here on
    stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 64, false}, &random);
    assert_true(hostdev_calls() >= 2 * TICKS - 1 && hostdev_calls() <= 4 * TICKS);
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
    tests[n++] = named_test(few_calls_a_tick, NULL, "few-calls-a-tick");
    return run_test_list(tests, n);
}
