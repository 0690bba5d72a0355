// SPDX-License-Identifier: MIT
// The state of a stream: saved, restored in the same and in other streams, cloned, with the same
// bits from difficult positions on; refused where it does not belong. Also the statistics of calls.

#include "support/stream_rig.h"

#include "support/layer_rig.h"

#include <math.h>

static const char *const engines_of_streams[] = {"cpu/direct", "cpu/overlap-save",
                                                 "cpu/partitioned", "cuda/partitioned"};
enum { N_ENGINES_OF_STREAMS = 4 };

static const struct named_problem problems[] = {
    {"mono", {STREAM(64), KERNEL(9000)}},
    {"matrix", {STREAM(64), CHANNELS(3, 2), KERNEL(700)}},
    {"decimate", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(900), STRIDE(3)}},
    {"latency", {STREAM(64), KERNEL(5000), LATENCY(700)}},
    {"up", {STREAM(64), KERNEL(900), STRIDE(2), UP(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// Opens with latency 0 if the engine serves it, and with fewer taps for direct sums.
static void open_rig(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, size_t n_frames, struct random *random)
{
    struct partita_problem relaxed = *problem;
    if (strncmp(c->engine, "cpu/overlap", 11) == 0 && !relaxed.latency) relaxed.latency = 2400;
    if (strcmp(c->engine, "cpu/direct") == 0 && relaxed.kernel[0] > 400) relaxed.kernel[0] = 400;
    stream_rig_open_exactly(rig, c, &relaxed, NULL, n_frames, random);
}

static void *save(struct partita_stream *stream)
{
    // The pointer has no alignment, and the memory is exactly as large as required.
    void *state = guarded_alloc(partita_stream_state_size(stream), 1);
    assert_ok(partita_stream_save(stream, state));
    return state;
}

static const struct call_split small = {"", 300, true};
enum { FRAMES = 20000 };

// Positions next to multiples of blocks and of powers of two, between these, and at the start.
static size_t difficult_position(int round, struct random *random)
{
    static const size_t at[] = {0, 1, 63, 64, 65, 1000, 4095, 4096, 8191, 12345};
    enum { N_AT = sizeof at / sizeof *at };
    return round < N_AT ? at[round] : random_below(random, FRAMES);
}
enum { ROUNDS = 14 };

static void restored_goes_on(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("restore");
    struct stream_rig rig;
    open_rig(&rig, c, &c->named->problem, FRAMES, &random);
    struct partita_stream *second;
    assert_ok(partita_stream_open(rig.plan, rig.filter, &second));
    size_t size = partita_stream_state_size(rig.stream);
    assert_true(size > 0);
    assert_int_equal(partita_stream_state_size(second), size);
    void *y = stream_rig_alloc_output(&rig), *garbage = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = difficult_position(round, &random);
        partita_stream_reset(rig.stream);
        stream_rig_feed_span(&rig, rig.stream, garbage, 0, at, &small, &random);
        void *kept = save(rig.stream);
        stream_rig_check_continues(&rig, rig.stream, y, at, &random); // saving must not change it
        assert_ok(partita_stream_restore(rig.stream, kept, size));
        stream_rig_check_continues(&rig, rig.stream, y, at, &random);
        assert_ok(partita_stream_restore(second, kept, size)); // at any position of the second one
        stream_rig_check_continues(&rig, second, y, at, &random);
        assert_int_equal(partita_stream_state_size(rig.stream), size);
        guarded_free(kept);
    }
    partita_stream_close(second);
    guarded_free(garbage);
    guarded_free(y);
    stream_rig_close(&rig);
}

// Restores the state of a closed stream in a stream of another, equal plan.
static void equal_plan_goes_on(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("equal-plan");
    struct stream_rig rig;
    open_rig(&rig, c, &c->named->problem, FRAMES, &random);
    void *y = stream_rig_alloc_output(&rig), *garbage = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    partita_stream_reset(rig.stream);
    stream_rig_feed_span(&rig, rig.stream, garbage, 0, 5432, &small, &random);
    void *kept = save(rig.stream);
    size_t size = partita_stream_state_size(rig.stream);
    partita_stream_close(rig.stream);
    partita_filter_destroy(rig.filter);
    partita_plan_destroy(rig.plan);
    struct partita_options options = {.engine = c->engine};
    set_engine_device(&options);
    assert_ok(partita_plan_create(&rig.problem, &options, &rig.plan));
    assert_ok(partita_filter_create(rig.plan, rig.w, &rig.filter));
    assert_ok(partita_stream_open(rig.plan, rig.filter, &rig.stream));
    assert_ok(partita_stream_restore(rig.stream, kept, size));
    stream_rig_check_continues(&rig, rig.stream, y, 5432, &random);
    guarded_free(kept);
    guarded_free(garbage);
    guarded_free(y);
    stream_rig_close(&rig);
}

static void cloned_goes_on(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("clone");
    struct stream_rig rig;
    open_rig(&rig, c, &c->named->problem, FRAMES, &random);
    void *y = stream_rig_alloc_output(&rig), *garbage = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    for (int round = 0; round < ROUNDS; round++) {
        size_t at = difficult_position(round, &random);
        struct partita_stream *clone = NULL;
        partita_stream_reset(rig.stream);
        stream_rig_feed_span(&rig, rig.stream, garbage, 0, at, &small, &random);
        assert_ok(partita_stream_clone(rig.stream, &clone));
        stream_rig_check_continues(&rig, rig.stream, y, at, &random); // the two are independent
        stream_rig_check_continues(&rig, clone, y, at, &random);
        partita_stream_close(rig.stream);
        rig.stream = clone;
    }
    guarded_free(garbage);
    guarded_free(y);
    stream_rig_close(&rig);
}

// A refused state does not change the stream.
static void refused_state_changes_nothing(void **state)
{
    const struct stream_case *c = *state;
    enum { AT = 7777 };
    struct random random = random_start("refuse");
    struct stream_rig rig, other;
    open_rig(&rig, c, &c->named->problem, FRAMES, &random);
    struct partita_problem changed = c->named->problem;
    changed.kernel[0] = 333;
    open_rig(&other, c, &changed, 100, &random);
    void *y = stream_rig_alloc_output(&rig), *foreign = save(other.stream);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    partita_stream_reset(rig.stream);
    stream_rig_feed_span(&rig, rig.stream, y, 0, AT, &small, &random);
    size_t size = partita_stream_state_size(rig.stream),
           foreign_size = partita_stream_state_size(other.stream);
    void *good = save(rig.stream);
    unsigned char *bad = malloc(size);
    const size_t short_sizes[] = {0, 1, 7, 64, size / 2, size - 1};
    for (size_t i = 0; i < sizeof short_sizes / sizeof *short_sizes; i++) {
        size_t n = short_sizes[i] < size ? short_sizes[i] : size - 1;
        unsigned char *part = malloc(n + !n); // exactly, so that a sanitizer detects overruns
        memcpy(part, good, n);
        assert_int_equal(partita_stream_restore(rig.stream, part, n), PARTITA_ERR_STATE);
        free(part);
    }
    for (int fill = 0; fill < 3; fill++) {
        for (size_t i = 0; i < size; i++)
            bad[i] = (unsigned char)(fill < 2 ? -fill : (int)random_below(&random, 256));
        assert_int_equal(partita_stream_restore(rig.stream, bad, size), PARTITA_ERR_STATE);
    }
    // One changed bit anywhere, at the borders of words and fields too.
    for (size_t i = 0; i < 120; i++) {
        const size_t at = i < 64 ? i : i < 80 ? size - 1 - (i - 64) : random_below(&random, size);
        memcpy(bad, good, size);
        bad[at] ^= (unsigned char)(1 << random_below(&random, 8));
        assert_int_equal(partita_stream_restore(rig.stream, bad, size), PARTITA_ERR_STATE);
    }
    assert_int_equal(partita_stream_restore(rig.stream, foreign, foreign_size), PARTITA_ERR_STATE);
    assert_int_equal(partita_stream_restore(rig.stream, NULL, size), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_restore(NULL, good, size), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_save(rig.stream, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_save(NULL, bad), PARTITA_ERR_ARG);
    struct partita_stream *clone = (struct partita_stream *)1;
    assert_int_equal(partita_stream_clone(rig.stream, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_clone(NULL, &clone), PARTITA_ERR_ARG);
    assert_ptr_equal(clone, (struct partita_stream *)1);
    stream_rig_check_continues(&rig, rig.stream, y, AT, &random);
    free(bad);
    guarded_free(good);
    guarded_free(foreign);
    guarded_free(y);
    stream_rig_close(&other);
    stream_rig_close(&rig);
}

// States of plans that differ in one parameter are refused.
static void plans_are_told_apart(void **state)
{
    const struct stream_case *c = *state;
    static const struct partita_problem base = {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(500),
                                                LATENCY(1000)};
    struct partita_problem others[4] = {base, base, base, base};
    others[0].groups = 1;
    others[1].op = PARTITA_CORRELATE;
    others[2].stride[0] = 2;
    others[3].dilation[0] = 2;
    const struct stream_case wider = {c->engine,
                                      &type_pairs[c->types->signal == PARTITA_F64 ? 0 : 1], NULL};
    struct random random = random_start("apart");
    struct stream_rig rig, other;
    open_rig(&rig, c, &base, 100, &random);
    for (int i = 0; i <= 4; i++) {
        open_rig(&other, i < 4 ? c : &wider, i < 4 ? &others[i] : &base, 100, &random);
        void *kept = save(other.stream);
        enum partita_status status =
            partita_stream_restore(rig.stream, kept, partita_stream_state_size(other.stream));
        if (status != PARTITA_ERR_STATE)
            fail_msg("state of plan %d: %s", i, partita_status_string(status));
        guarded_free(kept);
        stream_rig_close(&other);
    }
    stream_rig_close(&rig);
}

// Plans with other blocks and latencies may have other layouts: their states are either restored
// right or refused.
static void other_layouts(void **state)
{
    static const size_t blocks[] = {1, 16, 32, 48, 63, 64, 65, 128, 512},
                        latencies[] = {1300, 1407, 2000};
    enum { N_LAYOUTS = 3 * sizeof blocks / sizeof *blocks, AT = 3333, ALL = 12000 };
    const struct stream_case *c = *state;
    struct random random = random_start("layouts");
    struct stream_rig rig, other;
    struct partita_problem problem = {STREAM(64), KERNEL(1200), LATENCY(1300)};
    open_rig(&rig, c, &problem, ALL, &random);
    void *y = stream_rig_alloc_output(&rig);
    stream_rig_feed_span(&rig, rig.stream, y, 0, AT, &small, &random);
    void *kept = save(rig.stream);
    size_t size = partita_stream_state_size(rig.stream);
    stream_rig_feed_span(&rig, rig.stream, y, AT, ALL, &small, &random);
    for (size_t i = 0; i < N_LAYOUTS; i++) {
        random = random_start("layouts"); // the same taps and input
        problem.block = blocks[i / 3];
        problem.latency = latencies[i % 3];
        open_rig(&other, c, &problem, ALL, &random);
        if (partita_stream_restore(other.stream, kept, size) == PARTITA_OK)
            stream_rig_check_continues(&other, other.stream, y, AT, &random);
        stream_rig_close(&other);
    }
    guarded_free(kept);
    guarded_free(y);
    stream_rig_close(&rig);
}

// During a swap a stream has two filters, and its state can be neither saved nor restored.
static void not_while_swapping(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("swapping");
    struct stream_rig rig;
    open_rig(&rig, c, &problems[1].problem, FRAMES, &random);
    struct partita_load load;
    assert_ok(partita_plan_load(rig.plan, &load));
    struct partita_filter *filter;
    random_samples(&random, rig.problem.taps, rig.w, rig.n_taps);
    assert_ok(partita_filter_create(rig.plan, rig.w, &filter));
    size_t size = partita_stream_state_size(rig.stream), done = 3000 + 2 * load.swap_delay;
    void *y = stream_rig_alloc_output(&rig), *kept = save(rig.stream), *unchanged = malloc(size);
    memcpy(unchanged, kept, size);
    assert_true(done < FRAMES);
    assert_ok(partita_stream_swap(rig.stream, filter, 500));
    for (size_t at = 0; at < 200; at += 100) {
        struct partita_stream *clone = (struct partita_stream *)1;
        assert_true(partita_stream_swapping(rig.stream));
        assert_int_equal(partita_stream_save(rig.stream, kept), PARTITA_ERR_STATE);
        assert_memory_equal(kept, unchanged, size);
        assert_int_equal(partita_stream_restore(rig.stream, kept, size), PARTITA_ERR_STATE);
        assert_int_equal(partita_stream_clone(rig.stream, &clone), PARTITA_ERR_STATE);
        assert_ptr_equal(clone, (struct partita_stream *)1);
        stream_rig_feed_span(&rig, rig.stream, y, at, at + 100, &small, &random);
    }
    stream_rig_feed_span(&rig, rig.stream, y, 200, done, &small, &random);
    assert_false(partita_stream_swapping(rig.stream));
    assert_ok(partita_stream_save(rig.stream, kept));
    // A state that was saved after the swap is that of the new filter and continues in another
    // stream of it.
    struct partita_stream *second;
    void *expected = stream_rig_alloc_output(&rig);
    assert_ok(partita_stream_open(rig.plan, filter, &second));
    assert_ok(partita_stream_restore(second, kept, size));
    stream_rig_feed_span(&rig, rig.stream, y, done, rig.n_frames, &small, &random);
    memcpy(expected, y, stream_rig_output_bytes(&rig));
    stream_rig_check_continues(&rig, second, expected, done, &random);
    partita_stream_close(second);
    partita_stream_close(rig.stream);
    rig.stream = NULL;
    partita_filter_destroy(filter);
    guarded_free(expected);
    guarded_free(kept);
    guarded_free(y);
    free(unchanged);
    stream_rig_close(&rig);
}

static void check_stats(const struct stream_case *c, double sample_rate, bool missed)
{
    enum { CALLS = 300 };
    struct random random = random_start("stats");
    struct stream_rig rig;
    struct partita_problem problem = {STREAM(64), KERNEL(3000), LATENCY(PARTITA_UNBOUNDED)};
    stream_rig_open_exactly(&rig, c, &problem,
                            &(struct partita_options){.sample_rate = sample_rate}, CALLS * 64,
                            &random);
    struct partita_stream_stats stats;
    assert_ok(partita_stream_stats(rig.stream, &stats));
    assert_int_equal(stats.calls, 0);
    assert_int_equal(stats.missed, 0);
    void *y = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 64, false}, &random);
    assert_ok(partita_stream_stats(rig.stream, &stats));
    assert_int_equal(stats.calls, CALLS);
    assert_int_equal(stats.missed, missed ? CALLS : 0);
    assert_true(stats.max > 0 && isfinite(stats.max));
    assert_true(stats.mean > 0 && stats.mean <= stats.max);
    assert_true(stats.p50 > 0 && stats.p50 <= stats.p99 && stats.p99 <= stats.p999);
    assert_true(stats.p999 <= stats.max * 1.1); // an upper bound, within 9 %
    assert_true(stats.max <= stats.mean * CALLS * 1.001);
    guarded_free(y);
    stream_rig_close(&rig);
}

static void calls_are_counted(void **state)
{
    check_stats(*state, 1e12, true);  // no call is that fast
    check_stats(*state, 1e-3, false); // no call is that slow
}

static void counting_needs_a_rate(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("no-rate");
    struct stream_rig rig;
    struct partita_stream_stats stats;
    open_rig(&rig, c, &problems[1].problem, 100, &random);
    memset(&stats, 0x55, sizeof stats);
    const struct partita_stream_stats untouched = stats;
    assert_int_equal(partita_stream_stats(rig.stream, &stats), PARTITA_ERR_STATE);
    assert_int_equal(partita_stream_stats(rig.stream, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_stats(NULL, &stats), PARTITA_ERR_ARG);
    assert_memory_equal(&stats, &untouched, sizeof stats);
    const double bad[] = {-1, (double)NAN, (double)INFINITY};
    for (int i = 0; i < 3; i++) {
        struct partita_options options = {.engine = c->engine, .sample_rate = bad[i]};
        struct partita_plan *plan = NULL;
        assert_int_equal(partita_plan_create(&rig.problem, &options, &plan), PARTITA_ERR_ARG);
    }
    stream_rig_close(&rig);
}

static void load_is_reported(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("load");
    struct partita_load load = {.frames = 12345};
    for (size_t block = 16; block <= 1024; block *= 8) {
        struct partita_problem problem = {STREAM(64), KERNEL(20000), LATENCY(PARTITA_UNBOUNDED)};
        problem.block = block;
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, c, &problem, NULL, 100, &random);
        assert_int_equal(partita_plan_load(NULL, &load), PARTITA_ERR_ARG);
        assert_int_equal(partita_plan_load(rig.plan, NULL), PARTITA_ERR_ARG);
        assert_ok(partita_plan_load(rig.plan, &load));
        assert_int_equal(load.frames, block);
        assert_true(load.mean > 0 && load.worst >= load.mean && isfinite(load.worst));
        stream_rig_close(&rig);
    }
    struct partita_problem signal = {LENGTH(100), KERNEL(10)};
    struct partita_plan *plan;
    load.frames = 12345;
    assert_ok(partita_plan_create(&signal, NULL, &plan));
    assert_int_equal(partita_plan_load(plan, &load), PARTITA_ERR_STATE);
    assert_int_equal(load.frames, 12345);
    partita_plan_destroy(plan);
}

static const struct promise of_problems[] = {
    {"restored-goes-on", restored_goes_on},
    {"equal-plan-goes-on", equal_plan_goes_on},
    {"cloned-goes-on", cloned_goes_on},
    {"refused-state-changes-nothing", refused_state_changes_nothing},
};
static const struct promise promises[] = {
    {"plans-are-told-apart", plans_are_told_apart},
    {"other-layouts", other_layouts},
    {"calls-are-counted", calls_are_counted},
    {"counting-needs-a-rate", counting_needs_a_rate},
    {"load-is-told", load_is_reported},
};
enum {
    N_OF_PROBLEMS = sizeof of_problems / sizeof *of_problems,
    N_PROMISES = sizeof promises / sizeof *promises
};

int main(void)
{
    static struct stream_case cases[N_ENGINES_OF_STREAMS][N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest
        tests[N_ENGINES_OF_STREAMS * N_TYPE_PAIRS * (N_PROBLEMS * N_OF_PROBLEMS + N_PROMISES + 1)];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_ENGINES_OF_STREAMS; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            const char *engine = engines_of_streams[e], *types = type_pairs[t].name;
            struct stream_case *c = cases[e][t];
            if (!rig_has_types(engine, t)) continue;
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                c[p] = (struct stream_case){engine, &type_pairs[t], &problems[p]};
                if (!rig_has_problem(t, p) || !engine_serves(engine, &problems[p].problem))
                    continue;
                for (size_t i = 0; i < N_OF_PROBLEMS; i++)
                    tests[n++] = named_test(of_problems[i].run, &c[p], "%s/%s/%s-%s", engine,
                                            of_problems[i].name, problems[p].name, types);
            }
            tests[n++] =
                named_test(not_while_swapping, &c[0], "%s/not-while-swapping-%s", engine, types);
            for (size_t i = 0; i < N_PROMISES; i++)
                tests[n++] =
                    named_test(promises[i].run, &c[0], "%s/%s-%s", engine, promises[i].name, types);
        }
    }
    return run_test_list(tests, n);
}
