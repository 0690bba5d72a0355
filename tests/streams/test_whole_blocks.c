// SPDX-License-Identifier: MIT
// Streams whose calls are whole blocks (problem.whole_blocks): right with the same latency, the
// same bits for any number of blocks in a call; tails and fades as specified; frames beyond whole
// blocks are ignored.

#include "support/pool.h"
#include "support/swap_rig.h"

#include "support/layer_rig.h"

#include <math.h>
#include <stdio.h>

#define WHOLE .size = {PARTITA_UNBOUNDED}, .whole_blocks = true

static const char *engine;

static const struct named_problem problems[] = {
    {"block-16", {WHOLE, .block = 16, .kernel = {900}}},
    {"block-48", {WHOLE, .block = 48, .kernel = {1500}}},
    {"block-64", {WHOLE, .block = 64, .kernel = {3000}}},
    {"block-256", {WHOLE, .block = 256, .kernel = {2500}}},
    {"block-1024", {WHOLE, .block = 1024, .kernel = {4000}}},
    {"block-1040", {WHOLE, .block = 1040, .kernel = {2000}}},
    {"few-taps", {WHOLE, .block = 256, .kernel = {130}}},
    {"matrix", {WHOLE, .block = 64, .in_channels = 3, .out_channels = 2, .kernel = {700}}},
    {"groups",
     {WHOLE, .block = 128, .in_channels = 4, .out_channels = 6, .groups = 2, .kernel = {500}}},
    {"decimate-3", {WHOLE, .block = 64, .kernel = {1000}, .stride = {3}}},
    {"decimate-4",
     {WHOLE, .block = 64, .in_channels = 2, .out_channels = 2, .kernel = {800}, .stride = {4}}},
    {"dilation-2", {WHOLE, .block = 256, .kernel = {800}, .dilation = {2}}},
    {"correlate", {WHOLE, .block = 32, .op = PARTITA_CORRELATE, .kernel = {900}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };
static const struct partita_problem *const live = &problems[2].problem, *const matrix =
                                                                            &problems[7].problem;

// Rounds up to whole blocks.
static size_t rounded(const struct partita_problem *problem, size_t frames)
{
    return (frames + problem->block - 1) / problem->block * problem->block;
}

static void open_rig(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, const struct partita_options *options,
                     struct random *random)
{
    const size_t frames = 2 * problem_span(problem) + 8 * problem->block + 5000;
    stream_rig_open_exactly(rig, c, problem, options, rounded(problem, frames), random);
}

// The latency is within the problem's, and the plan is predicted to cost at most as much as one for
// any calls.
static void check_latency(const struct stream_rig *rig)
{
    const size_t latency = partita_plan_latency(rig->plan), block = rig->problem.block;
    struct partita_problem any = rig->problem;
    struct partita_plan *plan;
    any.whole_blocks = false;
    struct partita_options options = {.engine = engine};
    set_engine_device(&options);
    assert_ok(partita_plan_create(&any, &options, &plan));
    assert_true(latency <= rig->problem.latency);
    assert_int_equal(latency % rig->stride, 0);
    assert_int_equal(partita_stream_latency(rig->stream), latency);
    assert_true(rig->plan->choice.seconds <= plan->choice.seconds);
    const size_t tail = partita_stream_tail(rig->stream),
                 min_tail = latency + problem_span(&rig->problem) - 1;
    assert_true(tail % block == 0 && tail >= min_tail && tail < min_tail + block);
    partita_plan_destroy(plan);
}

static void matches_oracle(void **state)
{
    static const size_t latencies[] = {0, 1, 100, 1500, PARTITA_UNBOUNDED};
    const struct stream_case *c = *state;
    struct partita_problem problem = c->named->problem;
    for (size_t l = 0; l < sizeof latencies / sizeof *latencies; l++) {
        struct random random = random_start(c->named->name);
        struct stream_rig rig;
        problem.latency = latencies[l];
        const struct call_split splits[] = {{"a block", problem.block, false},
                                            {"three blocks", 3 * problem.block, false},
                                            {"up to five blocks", 5 * problem.block, true}};
        open_rig(&rig, c, &problem, NULL, &random);
        check_latency(&rig);
        void *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        stream_rig_check_sampled(&rig, y, &random);
        stream_rig_check_splits(&rig, y, splits, 3, &random);
        guarded_free(y);
        stream_rig_close(&rig);
    }
}

static size_t head_of(const struct partita_plan *plan)
{
    static char text[16384];
    size_t quantum, latency, head;
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    const char *line = strstr(text, "quanta of");
    assert_non_null(line);
    assert_int_equal(
        sscanf(line, "quanta of %zu frames; latency %zu; %zu taps", &quantum, &latency, &head), 3);
    assert_int_equal(latency, partita_plan_latency(plan));
    return head;
}

// With whole blocks fewer taps are direct sums, without latency.
static void spares_the_head(void **state)
{
    struct random random = random_start("head");
    struct partita_problem problem = *live;
    size_t heads[2];
    for (int whole = 0; whole < 2; whole++) {
        struct stream_rig rig;
        problem.whole_blocks = whole;
        open_rig(&rig, *state, &problem, NULL, &random);
        assert_int_equal(partita_plan_latency(rig.plan), 0);
        heads[whole] = head_of(rig.plan);
        stream_rig_close(&rig);
    }
    assert_true(heads[1] < heads[0]);
}

// Draining for the tail and one more block has the bits of zeros as input: the tail, then zeros.
static void drains_to_the_last_sample(void **state)
{
    const struct stream_case *c = *state;
    for (size_t taps = 1990; taps <= 2054; taps += 32) {
        struct partita_problem problem = {WHOLE, .block = 64, .kernel = {taps},
                                          .latency = taps % 100};
        struct random random = random_start("drain");
        struct stream_rig rig;
        open_rig(&rig, c, &problem, NULL, &random);
        const size_t tail = partita_stream_tail(rig.stream),
                     sounding = rig.n_frames - rounded(&problem, tail + 500);
        memset((char *)rig.x + sounding * rig.sample_bytes, 0,
               (rig.n_frames - sounding) * rig.sample_bytes);
        char *expected = stream_rig_alloc_output(&rig), *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, expected, &split_whole, &random);
        stream_rig_check_sampled(&rig, expected, &random);
        partita_stream_reset(rig.stream);
        stream_rig_feed_span(&rig, rig.stream, y, 0, sounding, &(struct call_split){"", 64, false},
                             &random);
        for (size_t at = sounding; at < rig.n_frames; at += 64)
            partita_stream_process(rig.stream, &(void *){y + at * rig.sample_bytes}, NULL, 64);
        assert_memory_equal(y, expected, stream_rig_output_bytes(&rig));
        const size_t last = sounding + partita_plan_latency(rig.plan) + taps - 2;
        const double unit = gate_transform(rig.problem.signal, rig.plan->choice.transform);
        const double limit = 4 * unit * typical_output(&rig.problem);
        assert_true(last < sounding + tail);
        for (size_t i = last; i < rig.n_outputs; i++) {
            const double complex first = reference_sample(rig.problem.taps, rig.w, taps - 1),
                                 sample = reference_sample(rig.problem.signal, rig.x, sounding - 1);
            assert_true(cabs(reference_sample(rig.problem.signal, y, i) -
                             (i == last ? first * sample : 0)) <= limit);
        }
        guarded_free(y);
        guarded_free(expected);
        stream_rig_close(&rig);
    }
}

// Fades that begin and end within blocks, with another swap during a fade.
static void fades_of_any_length(void **state)
{
    static const size_t fades[] = {0, 1, 15, 64, 100, 777, 5000};
    const struct stream_case *c = *state;
    struct random random = random_start("fades");
    struct swap_rig s;
    swap_rig_open(&s, c, &c->named->problem, NULL, 14000, &random);
    const size_t block = s.rig.problem.block, at = rounded(&s.rig.problem, 2100);
    void *y = stream_rig_alloc_output(&s.rig);
    for (size_t i = 0; i < sizeof fades / sizeof *fades; i++) {
        const struct call_split split = {"", 3 * block, true};
        const struct swap two[] = {{at, 1 + i % 3, fades[i]}, {at + block, (2 + i % 3) % 4, 333}};
        partita_stream_close(swap_rig_run(&s, y, two, 1, &split, &random));
        const size_t begin = check_fade(&s, y, 0, two[0].filter, fades[i], 0, at, s.rig.n_outputs);
        partita_stream_close(swap_rig_run(&s, y, two, 2, &split, &random));
        if (begin < at + block)
            continue; // the first fade ends before the second swap, or never begins
        const size_t end = begin + fades[i];
        assert_int_equal(check_fade(&s, y, 0, two[0].filter, fades[i], 0, at, end), begin);
        check_fade(&s, y, two[0].filter, two[1].filter, 333, end, end, s.rig.n_outputs);
    }
    guarded_free(y);
    swap_rig_close(&s);
}

// Frames of a call beyond whole blocks have outputs 0 and no other effect, also during a swap.
static void frames_beyond_are_ignored(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem problem = c->named->problem;
    struct random random = random_start("beyond");
    struct swap_rig s;
    swap_rig_open(&s, c, &problem, NULL, 8000, &random);
    struct stream_rig *rig = &s.rig;
    const size_t block = problem.block, bytes = rig->sample_bytes, stride = rig->stride;
    for (int swap = 0; swap < 2; swap++) {
        struct partita_stream *plain, *other;
        assert_ok(partita_stream_open(rig->plan, rig->filter, &plain));
        assert_ok(partita_stream_open(rig->plan, rig->filter, &other));
        char *expected = malloc(rig->out * 3 * block * bytes),
             *y = malloc(rig->out * 3 * block * bytes);
        for (size_t at = 0, blocks; at + 3 * block <= rig->n_frames; at += blocks * block) {
            blocks = random_below(&random, 3);
            if (swap && at == 0)
                for (int i = 0; i < 2; i++)
                    assert_ok(partita_stream_swap(i ? other : plain, s.filters[1], 777));
            const size_t n = blocks * block, more = n + random_below(&random, block);
            const size_t due = partita_stream_output_frames(plain, n),
                         all = partita_stream_output_frames(other, more);
            const void *x_at[8];
            void *expected_at[8], *y_at[8];
            for (size_t i = 0; i < rig->in; i++)
                x_at[i] = (char *)rig->x + (i * rig->n_frames + at) * bytes;
            for (size_t k = 0; k < rig->out; k++) {
                expected_at[k] = expected + k * 3 * block * bytes;
                y_at[k] = y + k * 3 * block * bytes;
            }
            memset(y, 0x55, rig->out * 3 * block * bytes);
            partita_stream_process(plain, expected_at, x_at, n);
            partita_stream_process(other, y_at, x_at, more);
            assert_true(all >= due && all <= due + (more - n) / stride + 1);
            assert_int_equal(partita_stream_output_frames(other, 999),
                             partita_stream_output_frames(plain, 999));
            for (size_t k = 0; k < rig->out; k++) {
                const char *got = y_at[k];
                assert_memory_equal(got, expected_at[k], due * bytes);
                for (size_t i = due * bytes; i < 3 * block * bytes; i++)
                    assert_int_equal(got[i], i < all * bytes ? 0 : 0x55);
            }
        }
        partita_stream_close(plain);
        partita_stream_close(other);
        free(expected);
        free(y);
    }
    swap_rig_close(&s);
}

static void bad_blocks_are_refused(void **state)
{
    static const size_t blocks[] = {1, 8, 15, 17, 40, 65, 1000};
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct partita_problem problem = {WHOLE, .block = blocks[i], .kernel = {500}};
        struct log_lines lines;
        struct partita_plan *plan = NULL;
        char words[64];
        assert_int_equal(partita_plan_create(
                             &problem, &(struct partita_options){.log = log_into(&lines)}, &plan),
                         PARTITA_ERR_ARG);
        assert_null(plan);
        snprintf(words, sizeof words, "problem.block = %zu", blocks[i]);
        assert_non_null(strstr(lines.text, words));
        assert_non_null(strstr(lines.text, "16"));
        assert_int_equal(lines.n_lines, 1);
    }
}

// Outputs replace inputs, planar and interleaved.
static void in_place(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem problem = {WHOLE, .block = 48, .in_channels = 2, .out_channels = 2,
                                      .kernel = {900}};
    struct random random = random_start("place");
    struct stream_rig rig;
    open_rig(&rig, c, &problem, NULL, &random);
    const size_t bytes = rig.sample_bytes, n = rig.n_frames;
    char *y = stream_rig_alloc_output(&rig), *mixed = guarded_alloc(2 * n * bytes, 0);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    for (size_t i = 0; i < 2 * n; i++)
        memcpy(mixed + i * bytes, (char *)rig.x + (i % 2 * n + i / 2) * bytes, bytes);
    partita_stream_reset(rig.stream);
    for (size_t at = 0; at < n; at += 48) {
        char *both = mixed + at * 2 * bytes;
        partita_stream_process_strided(rig.stream, (void *[]){both, both + bytes}, 2,
                                       (const void *[]){both, both + bytes}, 2, 48);
    }
    for (size_t i = 0; i < 2 * n; i++)
        assert_memory_equal(mixed + i * bytes, y + (i % 2 * n + i / 2) * bytes, bytes);
    partita_stream_reset(rig.stream);
    char *x = rig.x;
    for (size_t at = 0, step; at < n; at += step) {
        step = split_next(&(struct call_split){"", 3, true}, &random, (n - at) / 48) * 48;
        void *both[] = {x + at * bytes, x + (n + at) * bytes};
        partita_stream_process(rig.stream, both, (const void *[]){both[0], both[1]}, step);
    }
    assert_memory_equal(x, y, stream_rig_output_bytes(&rig));
    guarded_free(mixed);
    guarded_free(y);
    stream_rig_close(&rig);
}

// A state is accepted by a stream with whole blocks and refused by one without.
static void states_are_told_apart(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem any = *live;
    any.whole_blocks = false;
    struct random random = random_start("states");
    struct stream_rig rig, other;
    open_rig(&rig, c, live, NULL, &random);
    open_rig(&other, c, &any, NULL, &random);
    const size_t size = partita_stream_state_size(rig.stream),
                 other_size = partita_stream_state_size(other.stream);
    const size_t at = rounded(live, 3333);
    char *y = stream_rig_alloc_output(&rig), *again = stream_rig_alloc_output(&rig),
         *kept = malloc(size), *foreign = malloc(other_size);
    stream_rig_feed_span(&rig, rig.stream, y, 0, at, &split_whole, &random);
    assert_ok(partita_stream_save(rig.stream, kept));
    assert_ok(partita_stream_save(other.stream, foreign));
    assert_int_equal(partita_stream_restore(other.stream, kept, size), PARTITA_ERR_STATE);
    assert_int_equal(partita_stream_restore(rig.stream, foreign, other_size), PARTITA_ERR_STATE);
    stream_rig_feed_span(&rig, rig.stream, y, at, rig.n_frames, &(struct call_split){"", 64, false},
                         &random);
    assert_ok(partita_stream_restore(rig.stream, kept, size));
    struct partita_stream *clone;
    assert_ok(partita_stream_clone(rig.stream, &clone));
    const size_t from = at * rig.sample_bytes, rest = stream_rig_output_bytes(&rig) - from;
    for (int i = 0; i < 2; i++) {
        stream_rig_feed_span(&rig, i ? clone : rig.stream, again, at, rig.n_frames, &split_whole,
                             &random);
        assert_memory_equal(again + from, y + from, rest);
    }
    partita_stream_close(clone);
    free(foreign);
    free(kept);
    guarded_free(again);
    guarded_free(y);
    stream_rig_close(&other);
    stream_rig_close(&rig);
}

// The library's threads and an executor's have the bits of one thread, also with a swap.
static void threads_same_bits(void **state)
{
    enum { ALONE, TWO, FOUR, HOST, N_MODES };
    static const int threads[N_MODES] = {1, 2, 4, 3};
    void *expected = NULL;
    for (int mode = ALONE; mode < N_MODES; mode++) {
        struct pool pool;
        pool_open(&pool);
        struct partita_options options = {.threads = threads[mode]};
        if (mode == HOST) options.executor = pool_executor(&pool);
        struct random random = random_start("threads"); // for the same taps and input
        struct swap_rig s;
        swap_rig_open(&s, *state, matrix, &options, 8000, &random);
        void *y = stream_rig_alloc_output(&s.rig);
        const struct swap one = {rounded(matrix, 3000), 2, 333};
        partita_stream_close(
            swap_rig_run(&s, y, &one, 1, &(struct call_split){"", 200, true}, &random));
        stream_rig_check_first(&s.rig, y, &expected);
        guarded_free(y);
        swap_rig_close(&s);
        pool_close(&pool);
    }
    guarded_free(expected);
}

// A sample that is not finite affects only the outputs of its taps.
static void nonfinite_stays_in_reach(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("nan");
    struct stream_rig rig;
    open_rig(&rig, c, live, NULL, &random);
    for (size_t at = 1000; at < 1200; at += 21) {
        const struct nonfinite nan = {at, at, at + live->kernel[0], (double)NAN};
        stream_rig_check_nonfinite(&rig, &nan, &(struct call_split){"", 64, false}, &random);
    }
    stream_rig_close(&rig);
}

// Other engines have the bits of the problem without whole blocks.
static void other_engines_serve_it(void **state)
{
    const struct stream_case *types = *state;
    struct partita_problem problem = {WHOLE, .block = 64, .kernel = {300},
                                      .latency = PARTITA_UNBOUNDED};
    for (size_t e = 0; e < N_STREAM_ENGINES; e++) {
        const struct stream_case c = {engine_names[e], types->types, NULL};
        struct stream_rig rig;
        void *y[2];
        for (int whole = 0; whole < 2; whole++) {
            struct random random = random_start("engines");
            problem.whole_blocks = whole;
            stream_rig_open_exactly(&rig, &c, &problem, NULL, 9024, &random);
            y[whole] = stream_rig_alloc_output(&rig);
            stream_rig_feed(&rig, rig.stream, y[whole], &(struct call_split){"", 150, true},
                            &random);
            if (!whole) stream_rig_close(&rig);
        }
        assert_memory_equal(y[0], y[1], stream_rig_output_bytes(&rig));
        guarded_free(y[0]);
        guarded_free(y[1]);
        stream_rig_close(&rig);
    }
}

static const struct promise of_problems[] = {
    {"matches-oracle", matches_oracle},
    {"frames-beyond-are-ignored", frames_beyond_are_ignored},
    {"fades-of-any-length", fades_of_any_length}, // not with a stride
};
static const struct promise promises[] = {
    {"spares-the-head", spares_the_head},
    {"drains-to-the-last-sample", drains_to_the_last_sample},
    {"in-place", in_place},
    {"states-are-told-apart", states_are_told_apart},
    {"threads-same-bits", threads_same_bits},
    {"no-number-stays-in-reach", nonfinite_stays_in_reach},
    {"other-engines-serve-it", other_engines_serve_it},
};
enum {
    N_OF_PROBLEMS = sizeof of_problems / sizeof *of_problems,
    N_PROMISES = sizeof promises / sizeof *promises,
};

int main(void)
{
    static struct stream_case cases[N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest tests[N_TYPE_PAIRS * (N_PROBLEMS * N_OF_PROBLEMS + N_PROMISES) + 1];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    engine = partitioned_engine();
    for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
        const char *types = type_pairs[t].name;
        if (!rig_has_types(engine, t)) continue;
        struct stream_case *c = cases[t];
        for (size_t p = 0; p < N_PROBLEMS; p++) {
            c[p] = (struct stream_case){engine, &type_pairs[t], &problems[p]};
            if (!rig_has_problem(t, p)) continue;
            for (size_t i = 0; i < N_OF_PROBLEMS; i++)
                if (!problems[p].problem.stride[0] || of_problems[i].run != fades_of_any_length)
                    tests[n++] = named_test(of_problems[i].run, &c[p], "%s/%s-%s",
                                            of_problems[i].name, problems[p].name, types);
        }
        for (size_t i = 0; i < N_PROMISES; i++)
            tests[n++] = named_test(promises[i].run, &c[0], "%s-%s", promises[i].name, types);
    }
    tests[n++] = named_test(bad_blocks_are_refused, NULL, "bad-blocks-are-refused");
    return run_test_list(tests, n);
}
