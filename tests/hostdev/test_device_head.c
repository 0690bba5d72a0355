// SPDX-License-Identifier: MIT
// Streams of a device whose head is a stream of the CPU's: named in the plan, and nothing is heard
// of it: right at any latency, in any cut the same bits, fades that are the blend of both parts,
// states that hold both, no numbers in their reach, nothing allocated while it runs.
#include "../swap_rig.h"

#include "../layer_rig.h"

#include <math.h>
#include <stdio.h>

#define LIVE .size = {PARTITA_UNBOUNDED}

// Large blocks, or a matrix of smaller ones; with latency that the CPU's stream does not use up.
static const struct named_problem problems[] = {
    {"matrix", {LIVE, .block = 512, .in_channels = 2, .out_channels = 3, .kernel = {2000}}},
    {"latency",
     {LIVE, .block = 1000, .in_channels = 2, .out_channels = 2, .kernel = {2500}, .latency = 55}},
    {"whole",
     {LIVE, .block = 1024, .whole_blocks = true, .in_channels = 2, .out_channels = 2,
      .kernel = {3000}}},
    {"mono", {LIVE, .block = 1024, .kernel = {3000}}},
    {"many-cells", {LIVE, .block = 128, .in_channels = 8, .out_channels = 8, .kernel = {500}}},
    {"decimate-3", {LIVE, .block = 1024, .kernel = {2600}, .stride = {3}, .latency = 100}},
    {"dilation-2",
     {LIVE, .block = 1024, .op = PARTITA_CORRELATE, .kernel = {1300}, .dilation = {2}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems, N_FULL = 3 };

enum { N_CUTS = 3 };

// Calls of up to a few frames, of many, of a tick; of whole blocks where those are promised.
static struct cut cut_of(const struct partita_problem *problem, size_t i)
{
    static const struct cut cuts[N_CUTS] = {
        {"up-to-70", 70, true}, {"up-to-3000", 3000, true}, {"1024", 1024, false}};
    const struct cut blocks = {"blocks", (i + 1) * problem->block, i > 0};
    return problem->whole_blocks ? blocks : cuts[i];
}

static const char *explained(const struct partita_plan *plan)
{
    static char text[16384];
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    return text;
}

static size_t whole(const struct partita_problem *problem, size_t frames)
{
    const size_t unit = problem->whole_blocks ? problem->block : 1;
    return (frames + unit - 1) / unit * unit;
}

// A run whose head is a stream, or the test is none.
static void open_run(struct run *run, const struct stream_case *c, struct random *random)
{
    const struct partita_problem *problem = &c->named->problem;
    run_open_exactly(run, c, problem, NULL, whole(problem, 7000), random);
    assert_true(partita_plan_latency(run->plan) <= problem->latency);
    if (!strstr(explained(run->plan), "+ cpu/partitioned, on the host"))
        fail_msg("%s", explained(run->plan));
}

static void matches_oracle(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start(c->named->name);
    struct run run;
    open_run(&run, c, &random);
    void *y = run_output(&run), *other = run_output(&run);
    run_feed(&run, run.stream, y, &cut_whole, &random);
    run_check_some(&run, y, &random);
    for (size_t i = 0; i < N_CUTS; i++) {
        const struct cut cut = cut_of(&run.problem, i);
        partita_stream_reset(run.stream);
        run_feed_part(&run, run.stream, other, 0,
                      whole(&run.problem, 1 + random_below(&random, 5000)), &cut, &random);
        partita_stream_reset(run.stream);
        memset(other, 0x55, run_output_bytes(&run));
        run_feed(&run, run.stream, other, &cut, &random);
        if (memcmp(y, other, run_output_bytes(&run)))
            fail_msg("calls of %s give other bits", cut.name);
    }
    guarded_free(other);
    guarded_free(y);
    run_close(&run);
}

// Fades of several lengths, the next filter handed over while one is under way; in any cut the same
// bits.
static void fades_are_the_blend(void **state)
{
    static const size_t fades[] = {0, 700};
    const struct stream_case *c = *state;
    struct random random = random_start("fades");
    struct swapped s;
    swapped_open(&s, c, &c->named->problem, NULL, 5000, &random);
    void *y = run_output(&s.run), *other = run_output(&s.run);
    const size_t at = whole(&s.run.problem, 2111);
    for (size_t i = 0; i < sizeof fades / sizeof *fades; i++) {
        const struct cut cut = cut_of(&s.run.problem, i);
        const struct handover two[] = {{at, 1 + i, fades[i]},
                                       {whole(&s.run.problem, at + 1), (2 + i) % 4, 333}};
        partita_stream_close(swapped_run(&s, y, two, 1, &cut, &random));
        check_fade(&s, y, 0, two[0].filter, fades[i], 0, at, s.run.n_outputs);
        partita_stream_close(swapped_run(&s, y, two, 2, &cut_whole, &random));
        partita_stream_close(swapped_run(&s, other, two, 2, &cut, &random));
        assert_memory_equal(y, other, run_output_bytes(&s.run));
    }
    guarded_free(other);
    guarded_free(y);
    swapped_close(&s);
}

static void check_goes_on(const struct run *run, struct partita_stream *stream,
                          const char *expected, size_t at, struct random *random)
{
    char *y = run_output(run);
    const struct cut few = cut_of(&run->problem, 0);
    const size_t from = (at + run->stride - 1) / run->stride * run->sample_bytes;
    run_feed_part(run, stream, y, at, run->n_frames, &few, random);
    for (size_t k = 0; k < run->out; k++) {
        const size_t line = k * run->n_outputs * run->sample_bytes;
        assert_memory_equal(y + line + from, expected + line + from,
                            run->n_outputs * run->sample_bytes - from);
    }
    guarded_free(y);
}

// Saved, restored there and in another stream, cloned: each goes on alike.
static void states_hold_both_parts(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("states");
    struct run run;
    struct partita_stream *clone, *other;
    open_run(&run, c, &random);
    const struct cut many = cut_of(&run.problem, 1);
    char *y = run_output(&run), *garbage = run_output(&run);
    const size_t size = partita_stream_state_size(run.stream);
    void *kept = malloc(size);
    run_feed(&run, run.stream, y, &cut_whole, &random);
    for (size_t at = 0; at < 5000;
         at = whole(&run.problem, at + 1000 + random_below(&random, 2000))) {
        partita_stream_reset(run.stream);
        run_feed_part(&run, run.stream, garbage, 0, at, &many, &random);
        assert_ok(partita_stream_save(run.stream, kept));
        assert_ok(partita_stream_clone(run.stream, &clone));
        assert_ok(partita_stream_open(run.plan, run.filter, &other));
        run_feed_part(&run, other, garbage, 0, whole(&run.problem, 777), &many, &random);
        assert_ok(partita_stream_restore(other, kept, size));
        check_goes_on(&run, run.stream, y, at, &random);
        check_goes_on(&run, clone, y, at, &random);
        check_goes_on(&run, other, y, at, &random);
        assert_ok(partita_stream_restore(run.stream, kept, size));
        check_goes_on(&run, run.stream, y, at, &random);
        partita_stream_close(clone);
        partita_stream_close(other);
    }
    free(kept);
    guarded_free(garbage);
    guarded_free(y);
    run_close(&run);
}

// A sample that is no number touches the outputs its taps reach, and no bit of others.
static void no_number_stays_in_reach(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("nan");
    struct run run;
    open_run(&run, c, &random);
    const struct cut few = cut_of(&run.problem, 0);
    char *zeroed = run_output(&run), *touched = run_output(&run);
    const size_t taps =
        (run.problem.kernel[0] - 1) * (run.problem.dilation[0] ? run.problem.dilation[0] : 1) + 1;
    for (size_t at = 1000; at < 1600; at += 307) {
        const double complex kept = reference_sample(run.problem.signal, run.x, at);
        sample_put(run.problem.signal, run.x, at, 0);
        partita_stream_reset(run.stream);
        run_feed(&run, run.stream, zeroed, &cut_whole, &random);
        sample_put(run.problem.signal, run.x, at, (double)NAN);
        partita_stream_reset(run.stream);
        run_feed(&run, run.stream, touched, &few, &random);
        sample_put(run.problem.signal, run.x, at, kept);
        for (size_t i = 0; i < run.out * run.n_outputs; i++) {
            const size_t first = at + partita_plan_latency(run.plan),
                         frame = i % run.n_outputs * run.stride;
            if (frame >= first && frame < first + taps && !run.problem.dilation[0])
                assert_true(isnan(creal(reference_sample(run.problem.signal, touched, i))));
            if (frame < first || frame >= first + taps)
                assert_memory_equal(touched + i * run.sample_bytes, zeroed + i * run.sample_bytes,
                                    run.sample_bytes);
        }
    }
    guarded_free(touched);
    guarded_free(zeroed);
    run_close(&run);
}

// Cells alone, then edited: what they are as a dense filter.
static void cells_are_the_dense_filter(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("cells");
    struct run run;
    open_run(&run, c, &random);
    const size_t kernel = run.problem.kernel[0], bytes = partita_type_size(run.problem.taps);
    memset((char *)run.w + kernel * bytes, 0, (run.n_taps - kernel) * bytes);
    const struct partita_cell first = {.length = kernel, .taps = run.w};
    char *last = (char *)run.w + (run.n_taps - kernel) * bytes;
    struct partita_filter *base, *edited;
    assert_ok(partita_filter_create_cells(run.plan, &first, 1, &base));
    memset(last, 0, 5 * bytes);
    random_samples(&random, run.problem.taps, last + 5 * bytes, kernel - 5);
    const struct partita_cell second = {.out = run.out - 1,
                                        .in = run.in - 1,
                                        .delay = 5,
                                        .length = kernel - 5,
                                        .taps = last + 5 * bytes};
    assert_ok(partita_filter_edit(base, &second, 1, &edited));
    partita_filter_destroy(base);
    run_take_filter(&run, edited);
    void *y = run_output(&run);
    run_feed(&run, run.stream, y, &(struct cut){"", 5000, true}, &random);
    run_check_some(&run, y, &random);
    guarded_free(y);
    run_close(&run);
}

static void *count_allocate(void *user, size_t bytes)
{
    ++*(size_t *)user;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void count_release(void *user, void *memory)
{
    ++*(size_t *)user;
    free(memory);
}

// Neither calls nor swaps come to the allocator.
static void nothing_is_allocated(void **state)
{
    const struct stream_case *c = *state;
    size_t n = 0;
    const struct partita_options options = {
        .allocator = {.allocate = count_allocate, .release = count_release, .user = &n}};
    struct random random = random_start("allocator");
    struct swapped s;
    swapped_open(&s, c, &c->named->problem, &options, 5000, &random);
    const struct cut many = cut_of(&s.run.problem, 1);
    void *y = run_output(&s.run);
    assert_true(n > 0);
    n = 0;
    const size_t at = whole(&s.run.problem, 2000);
    run_feed_part(&s.run, s.run.stream, y, 0, at, &many, &random);
    assert_ok(partita_stream_swap(s.run.stream, s.filters[1], 500));
    run_feed_part(&s.run, s.run.stream, y, at, s.run.n_frames, &many, &random);
    assert_int_equal(n, 0);
    partita_stream_close(s.run.stream);
    s.run.stream = NULL;
    guarded_free(y);
    swapped_close(&s);
}

struct failing {
    size_t calls, at, kept; // the `at`-th call fails
};

static void *fail_allocate(void *user, size_t bytes)
{
    struct failing *failing = user;
    if (++failing->calls == failing->at) return NULL;
    failing->kept++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void fail_release(void *user, void *memory)
{
    ((struct failing *)user)->kept--;
    free(memory);
}

// Whichever allocation of plan, filters and stream fails, the status says so and nothing is left.
static void any_allocation_may_fail(void **state)
{
    const struct stream_case *c = *state;
    struct failing failing = {.at = 0};
    const struct partita_options options = {
        .engine = c->engine,
        .device = "cuda:0",
        .allocator = {.allocate = fail_allocate, .release = fail_release, .user = &failing}};
    struct partita_problem problem = c->named->problem;
    enum partita_status status = PARTITA_ERR_NOMEM;
    float *w = calloc(problem.in_channels * problem.out_channels * problem.kernel[0], 8);
    problem.signal = c->types->signal, problem.taps = c->types->taps;
    w[0] = 1;
    for (failing.at = 1; status != PARTITA_OK; failing.at++) {
        struct partita_plan *plan = NULL;
        struct partita_filter *filter = NULL, *edited = NULL;
        struct partita_stream *stream = NULL;
        const struct partita_cell cell = {.length = problem.kernel[0], .taps = w};
        failing.calls = 0;
        status = partita_plan_create(&problem, &options, &plan);
        if (status == PARTITA_OK) status = partita_filter_create(plan, w, &filter);
        if (status == PARTITA_OK) status = partita_filter_edit(filter, &cell, 1, &edited);
        if (status == PARTITA_OK) status = partita_stream_open(plan, edited, &stream);
        assert_true(status == PARTITA_OK ? failing.calls < failing.at
                                         : status == PARTITA_ERR_NOMEM);
        partita_stream_close(stream);
        partita_filter_destroy(edited);
        partita_filter_destroy(filter);
        partita_plan_destroy(plan);
        assert_int_equal(failing.kept, 0);
    }
    assert_true(failing.at > 20);
    free(w);
}

// What the model takes is the cheaper: few taps are summed, and so are those that a stream could
// not do faster.
static void short_heads_are_summed(void **state)
{
    const struct partita_problem few = {LIVE, .block = 16, .kernel = {3000}};
    struct random random = random_start("short");
    struct run run;
    (void)state;
    run_open_exactly(&run, &(struct stream_case){"cuda/partitioned", type_pairs, NULL}, &few, NULL,
                     100, &random);
    if (!strstr(explained(run.plan), "+ summed directly, on the host"))
        fail_msg("%s", explained(run.plan));
    run_close(&run);
}

struct promise {
    const char *name;
    CMUnitTestFunction run;
};

static const struct promise promises[] = {
    {"matches-oracle", matches_oracle},
    {"fades-are-the-blend", fades_are_the_blend},
    {"states-hold-both-parts", states_hold_both_parts},
    {"no-number-stays-in-reach", no_number_stays_in_reach},
    {"nothing-is-allocated", nothing_is_allocated},
    {"cells-are-the-dense-filter", cells_are_the_dense_filter},
    {"any-allocation-may-fail", any_allocation_may_fail},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest tests[N_TYPE_PAIRS * N_PROBLEMS * N_PROMISES + 1];
    size_t n = 0;
    if (layer_device_check() != LAYER_DEVICE_READY) return 1;
    for (size_t t = 0; t < N_TYPE_PAIRS; t++)
        for (size_t p = 0; p < N_PROBLEMS; p++) {
            struct stream_case *c = &cases[t][p];
            *c = (struct stream_case){"cuda/partitioned", &type_pairs[t], &problems[p]};
            // Every problem in f32 and one more type: the first promise, or all in the one more of
            // the first problems.
            if (t && (t != p % N_TYPE_PAIRS || layer_is_brief())) continue;
            for (size_t i = 0; i < (t == p && p < N_FULL ? N_PROMISES : 1); i++) {
                tests[n++] = named_test(promises[i].run, c, "%s/%s-%s", promises[i].name,
                                        problems[p].name, type_pairs[t].name);
            }
        }
    tests[n++] = named_test(short_heads_are_summed, NULL, "short-heads-are-summed");
    return run_test_list(tests, n);
}
