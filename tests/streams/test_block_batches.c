// SPDX-License-Identifier: MIT
// cpu/partitioned with block batches, in which the products of several blocks are computed
// together: right when inputs fall silent or a filter is swapped, saved or destroyed within a
// batch, on any number of threads. Most plans have a cost model that makes two or four sums at once
// cheap, so that every instruction set and type has batches of both lengths.

#include "support/allocators.h"
#include "support/model.h"
#include "support/pool.h"
#include "support/swap_rig.h"

#include <math.h>
#include <stdio.h>

// A stream's problem with the cost model that gives its plan batches of `batch` blocks.
struct batch_case {
    struct stream_case c;
    size_t batch;
    struct partita_options options;
};

static const struct named_problem problems[] = {
    {"mono", {STREAM(64), KERNEL(3000)}},
    {"late", {STREAM(64), KERNEL(3000), LATENCY(300)}},
    {"matrix", {STREAM(64), CHANNELS(3, 2), KERNEL(1100)}},
    {"groups", {STREAM(64), CHANNELS(2, 4), GROUPS(2), KERNEL(1500)}},
    {"decimate", {STREAM(64), KERNEL(2000), STRIDE(3)}},
    {"dilation", {STREAM(64), KERNEL(900), DILATION(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };
static const struct partita_problem *const mono = &problems[0].problem, *const matrix =
                                                                            &problems[2].problem;

static const struct call_split small = {"up-to-300", 300, true};

// A segment of the plan, as the explanation lists it.
struct segment {
    size_t partitions, taps, hop, batch;
};

// The last segment with such batches; hop is 0 if there is none.
static struct segment find_segment(const struct partita_plan *plan, size_t batch)
{
    static char text[16384];
    struct segment found = {.hop = 0};
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        struct segment segment;
        size_t number, first, last, size, quanta;
        if (sscanf(line, "%zu %zu .. %zu %zu x %zu %zu %zu %zu %zu", &number, &first, &last,
                   &segment.partitions, &segment.taps, &segment.hop, &size, &segment.batch,
                   &quanta) == 9 &&
            segment.batch == batch)
            found = segment;
    }
    return found;
}

static struct segment segment_of(const struct partita_plan *plan, size_t batch)
{
    const struct segment segment = find_segment(plan, batch);
    if (!segment.hop) fail_msg("no segment of the plan has batches of %zu blocks", batch);
    return segment;
}

// Twice the taps and some batches of the last segment.
static size_t frames_of(const struct batch_case *b, const struct partita_problem *problem)
{
    struct stream_rig probe;
    struct random random = random_start("probe");
    stream_rig_open_exactly(&probe, &b->c, problem, &b->options, 1, &random);
    const struct segment segment = segment_of(probe.plan, b->batch);
    const size_t dilation = or_one(problem->dilation[0]);
    const size_t n = 2 * problem->kernel[0] * dilation + 8 * b->batch * segment.hop + 4000;
    stream_rig_close(&probe);
    return n;
}

static struct segment open_rig(struct stream_rig *rig, const struct batch_case *b,
                               const struct partita_problem *problem, struct random *random)
{
    stream_rig_open_exactly(rig, &b->c, problem, &b->options, frames_of(b, problem), random);
    return segment_of(rig->plan, b->batch);
}

static void *frames_at(const struct stream_rig *rig, void *samples, size_t channel, size_t first)
{
    return (char *)samples + (channel * rig->n_frames + first) * rig->sample_bytes;
}

// Alternates between sound and silence in [first, end) of an input, each as long as some hops, or
// nearly so.
static void make_bursts(struct stream_rig *rig, size_t channel, const struct segment *segment,
                        size_t first, size_t end, struct random *random)
{
    bool silent = channel % 2;
    while (first < end) {
        const size_t max_hops =
            silent ? segment->partitions * segment->taps / segment->hop + 2 * segment->batch
                   : 2 * segment->batch + 1;
        size_t n = random_below(random, max_hops) * segment->hop +
                   random_below(random, 3) * random_below(random, segment->hop);
        if (n > end - first) n = end - first;
        if (silent) memset(frames_at(rig, rig->x, channel, first), 0, n * rig->sample_bytes);
        first += n;
        silent = !silent;
    }
}

static void make_all_bursts(struct stream_rig *rig, const struct segment *segment,
                            struct random *random)
{
    for (size_t c = 0; c < rig->in; c++) make_bursts(rig, c, segment, 0, rig->n_frames, random);
}

// Checks one call against the oracle, then other lengths of calls for the same bits.
static void check_outputs(struct stream_rig *rig, const struct call_split *splits, size_t n_splits,
                          struct random *random)
{
    void *y = stream_rig_alloc_output(rig);
    partita_stream_reset(rig->stream);
    stream_rig_feed(rig, rig->stream, y, &split_whole, random);
    stream_rig_check_sampled(rig, y, random);
    stream_rig_check_splits(rig, y, splits, n_splits, random);
    guarded_free(y);
}

static void matches_oracle(void **state)
{
    static const struct call_split splits[] = {{"up-to-3000", 3000, true}, {"block", 64, false}};
    const struct batch_case *b = *state;
    struct random random = random_start(b->c.named->name);
    struct stream_rig rig;
    const struct segment segment = open_rig(&rig, b, &b->c.named->problem, &random);
    check_outputs(&rig, splits, 2, &random);
    make_all_bursts(&rig, &segment, &random);
    check_outputs(&rig, splits, 1, &random);
    stream_rig_close(&rig);
}

// Whether the built-in model has batches of nearby spectra.
static bool vectors_are_wide(void)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&(struct partita_problem){STREAM(64)}, NULL, &plan));
    const bool wide = plan->isa == CPU_AVX2 || plan->isa == CPU_AVX512;
    partita_plan_destroy(plan);
    return wide;
}

// Filters that are long enough for that model.
static void long_filters(void **state)
{
    static const size_t taps[] = {20000, 70000};
    static const struct call_split splits[] = {{"up-to-3000", 3000, true}, {"block", 64, false}};
    const struct batch_case *b = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct partita_problem problem = {STREAM(64), KERNEL(taps[i])};
        struct random random = random_start("long");
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, &b->c, &problem, NULL, 2 * taps[i] + 30000, &random);
        if (taps[i] == 70000) segment_of(rig.plan, 4);
        const struct segment segment =
            find_segment(rig.plan, find_segment(rig.plan, 4).hop ? 4 : 2);
        check_outputs(&rig, splits, TEST_SLOWER > 1 ? 1 : 2, &random);
        make_all_bursts(&rig, &segment, &random);
        check_outputs(&rig, splits, 0, &random);
        stream_rig_close(&rig);
    }
}

// Compares all outputs of silence, which is skipped, with those of a hum that is too faint to
// matter, which is not skipped.
static void check_against_hum(struct stream_rig *rig, struct random *random)
{
    const size_t n = rig->in * rig->n_frames, bytes = n * rig->sample_bytes;
    void *kept = malloc(bytes), *y = stream_rig_alloc_output(rig),
         *hum = stream_rig_alloc_output(rig);
    partita_stream_reset(rig->stream);
    stream_rig_feed(rig, rig->stream, y, &small, random);
    memcpy(kept, rig->x, bytes);
    for (size_t i = 0; i < n; i++)
        if (reference_sample(rig->problem.signal, kept, i) == 0)
            sample_put(rig->problem.signal, rig->x, i, 1e-20);
    partita_stream_reset(rig->stream);
    stream_rig_feed(rig, rig->stream, hum, &split_whole, random);
    memcpy(rig->x, kept, bytes);
    const double limit = stream_rig_sample_limit(rig, 2 * typical_output(&rig->problem));
    for (size_t i = 0; i < rig->out * rig->n_outputs; i++) {
        const double error = cabs(reference_sample(rig->problem.signal, y, i) -
                                  reference_sample(rig->problem.signal, hum, i));
        if (!(error <= limit))
            fail_msg("output %zu of %zu has an error of %.3g", i, rig->n_outputs, error);
    }
    guarded_free(hum);
    guarded_free(y);
    free(kept);
}

// Bursts of all lengths, one input silent while others are not; then with paths of which long spans
// are zero.
static void bursts_of_sound(void **state)
{
    enum { ROUNDS = 3 };
    const struct batch_case *b = *state;
    struct random random = random_start("bursts");
    struct stream_rig rig;
    const struct segment segment = open_rig(&rig, b, &b->c.named->problem, &random);
    const size_t tap_bytes = partita_type_size(rig.problem.taps), kernel = rig.problem.kernel[0];
    for (int round = 0; round < ROUNDS; round++) {
        random_samples(&random, rig.problem.signal, rig.x, rig.in * rig.n_frames);
        make_all_bursts(&rig, &segment, &random);
        if (round == ROUNDS - 1) memset(rig.x, 0, rig.n_frames * rig.sample_bytes);
        check_against_hum(&rig, &random);
        for (size_t path = 0; path < rig.n_taps / kernel; path++) {
            const size_t first = random_below(&random, kernel),
                         n = random_below(&random, kernel - first);
            memset((char *)rig.w + (path * kernel + first) * tap_bytes, 0, n * tap_bytes);
        }
        if (round % 2) stream_rig_replace_taps(&rig);
    }
    stream_rig_close(&rig);
}

// Swaps at every phase of a batch, one fade after another, to the previous filter and to the
// current one; all inputs but the first fall silent meanwhile.
static void swap_at_every_phase(void **state)
{
    enum { STEPS = 8, BEGIN = 2000 };
    static const size_t order[STEPS] = {1, 0, 0, 2, 1, 1, 3, 0}, fades[] = {0, 500, 1, 77};
    const struct batch_case *b = *state;
    struct random random = random_start("phase");
    struct swap_rig s;
    struct stream_rig probe;
    const struct segment segment = open_rig(&probe, b, &b->c.named->problem, &random);
    const size_t batch = segment.hop * b->batch, taps = segment.partitions * segment.taps;
    stream_rig_close(&probe);
    const size_t gap = 2 * batch + taps + 4 * b->batch * segment.hop + 600;
    swap_rig_open(&s, &b->c, &b->c.named->problem, &b->options, BEGIN + STEPS * (gap + batch),
                  &random);
    for (size_t c = 1; c < s.rig.in; c++)
        make_bursts(&s.rig, c, &segment, 0, s.rig.n_frames, &random);
    for (size_t f = 0; f < N_FILTERS; f++) swap_rig_run_alone(&s, f, &random);
    struct swap steps[STEPS];
    size_t at = BEGIN;
    for (size_t i = 0; i < STEPS; i++) {
        steps[i] = (struct swap){at, order[i], fades[i % 4]};
        at += (gap + 2 * s.load.swap_delay) / batch * batch + segment.hop +
              random_below(&random, 2) * i;
        if (at > s.rig.n_frames) at = s.rig.n_frames;
    }
    void *y = stream_rig_alloc_output(&s.rig);
    partita_stream_close(swap_rig_run(&s, y, steps, STEPS, &small, &random));
    for (size_t i = 0; i < STEPS; i++) {
        const size_t end = i + 1 < STEPS ? steps[i + 1].at : s.rig.n_outputs,
                     old = i ? order[i - 1] : 0;
        const size_t first = i ? steps[i].at : 0;
        if (old == order[i])
            assert_int_equal(first_mismatch(&s, y, old, old, 0, 0, first, end), end);
        else check_fade(&s, y, old, order[i], steps[i].fade, first, steps[i].at, end);
    }
    guarded_free(y);
    swap_rig_close(&s);
}

// Swaps to filter f at frame `at` and feeds frames up to `end`; fails unless that is a fade from
// filter `old`.
static void check_next(struct swap_rig *s, void *y, size_t old, size_t f, size_t at, size_t end,
                       struct random *random)
{
    assert_ok(partita_stream_swap(s->rig.stream, s->filters[f], 200));
    stream_rig_feed_span(&s->rig, s->rig.stream, y, at, end, &small, random);
    assert_false(partita_stream_swapping(s->rig.stream));
    check_fade(s, y, old, f, 200, at, at, end);
}

// A destroyed filter and another one at its address are told apart.
static void filters_at_one_address(void **state)
{
    const struct batch_case *b = *state;
    struct recycled recycled = {.n = 0};
    struct batch_case local = *b;
    local.options.allocator = recycled_allocator(&recycled);
    struct random random = random_start("address");
    struct swap_rig s;
    swap_rig_open(&s, &local.c, mono, &local.options, 20000, &random);
    const size_t step = 2 * s.load.swap_delay + 400;
    struct stream_rig *rig = &s.rig;
    void *y = stream_rig_alloc_output(rig);
    size_t at = 0, old = 0;
    for (; at + 2 * step <= rig->n_frames; at += 2 * step) {
        const size_t other = 1 + at / step / 2 % 2;
        check_next(&s, y, old, other, at, at + step, &random);
        // The previous filter is destroyed; the next one gets its memory.
        const struct partita_filter *gone = s.filters[old];
        partita_filter_destroy(s.filters[old]);
        random_samples(&random, rig->problem.taps, rig->w, rig->n_taps);
        assert_ok(partita_filter_create(rig->plan, rig->w, &s.filters[old]));
        assert_ptr_equal(s.filters[old], gone);
        if (old == 0) rig->filter = s.filters[0];
        swap_rig_run_alone(&s, old, &random);
        check_next(&s, y, other, old, at + step, at + 2 * step, &random);
    }
    assert_true(at > 0);
    guarded_free(y);
    swap_rig_close(&s);
    recycled_free(&recycled);
}

// A filter that a swap introduced in silence has the right output later, also after another swap to
// it.
static void same_filter_after_silence(void **state)
{
    const struct batch_case *b = *state;
    struct random random = random_start("same");
    struct swap_rig s;
    swap_rig_open(&s, &b->c, mono, &b->options, 30000, &random);
    const size_t silent = 2 * s.load.swap_delay + 6000,
                 again = s.rig.n_frames / 2 + s.load.swap_delay;
    assert_true(silent < again);
    memset(s.rig.x, 0, silent * s.rig.sample_bytes);
    swap_rig_run_alone(&s, 1, &random);
    void *y = stream_rig_alloc_output(&s.rig);
    const struct swap two[] = {{100, 1, 0}, {again, 1, 300}};
    partita_stream_close(swap_rig_run(&s, y, two, 2, &small, &random));
    assert_int_equal(first_mismatch(&s, y, 1, 1, 0, 0, 0, s.rig.n_outputs), s.rig.n_outputs);
    guarded_free(y);
    swap_rig_close(&s);
}

// Saves, restores, clones and resets in every block of two batches, with inputs that start and
// stop.
static void states_in_a_batch(void **state)
{
    const struct batch_case *b = *state;
    struct random random = random_start("states");
    struct stream_rig rig;
    const struct segment segment = open_rig(&rig, b, &b->c.named->problem, &random);
    make_all_bursts(&rig, &segment, &random);
    struct partita_stream *second, *clone;
    assert_ok(partita_stream_open(rig.plan, rig.filter, &second));
    const size_t size = partita_stream_state_size(rig.stream);
    void *expected = stream_rig_alloc_output(&rig), *garbage = stream_rig_alloc_output(&rig),
         *kept = malloc(size);
    stream_rig_feed(&rig, rig.stream, expected, &split_whole, &random);
    for (size_t phase = 0; phase < 2 * b->batch; phase++) {
        const size_t at = (4 * b->batch + phase) * segment.hop + random_below(&random, segment.hop);
        partita_stream_reset(rig.stream);
        stream_rig_feed_span(&rig, rig.stream, garbage, 0, at, &small, &random);
        assert_ok(partita_stream_save(rig.stream, kept));
        assert_ok(partita_stream_clone(rig.stream, &clone));
        stream_rig_check_continues(&rig, rig.stream, expected, at, &random);
        stream_rig_check_continues(&rig, clone, expected, at, &random);
        // With any previous contents and position of the second stream.
        partita_stream_reset(second);
        stream_rig_feed_span(&rig, second, garbage, 0, random_below(&random, rig.n_frames),
                             &split_whole, &random);
        assert_ok(partita_stream_restore(second, kept, size));
        stream_rig_check_continues(&rig, second, expected, at, &random);
        partita_stream_reset(clone);
        stream_rig_feed_span(&rig, clone, garbage, 0, at, &small, &random);
        partita_stream_reset(clone);
        stream_rig_check_continues(&rig, clone, expected, 0, &random);
        partita_stream_close(clone);
    }
    free(kept);
    guarded_free(garbage);
    guarded_free(expected);
    partita_stream_close(second);
    stream_rig_close(&rig);
}

// Bursts and swaps on the library's threads and on an executor have the bits of one thread.
static void threads_same_bits(void **state)
{
    enum { ALONE, TWO, THREE, HOST, N_MODES };
    const struct batch_case *b = *state;
    void *expected = NULL;
    for (int mode = ALONE; mode < N_MODES; mode++) {
        struct pool pool;
        pool_open(&pool);
        struct batch_case local = *b;
        local.options.threads = mode == HOST ? 3 : mode + 1;
        if (mode == HOST) local.options.executor = pool_executor(&pool);
        struct random random = random_start("threads"); // for the same taps and input
        struct swap_rig s;
        swap_rig_open(&s, &local.c, matrix, &local.options, 12000, &random);
        const struct segment segment = segment_of(s.rig.plan, b->batch);
        make_all_bursts(&s.rig, &segment, &random);
        void *y = stream_rig_alloc_output(&s.rig);
        const struct swap three[] = {{1000 + segment.hop, 1, 100},
                                     {3000 + 2 * s.load.swap_delay, 2, 0},
                                     {s.rig.n_frames - 1500, 1, 40}};
        struct partita_stream *stream =
            swap_rig_run(&s, y, three, 3, &(struct call_split){"", 100, true}, &random);
        partita_stream_close(stream);
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
    const struct batch_case *b = *state;
    struct random random = random_start("nan");
    struct stream_rig rig;
    const struct segment segment = open_rig(&rig, b, mono, &random);
    make_all_bursts(&rig, &segment, &random);
    for (size_t phase = 0; phase < 2 * b->batch; phase++) {
        const size_t at = (2 * b->batch + phase) * segment.hop + random_below(&random, segment.hop);
        const size_t first = at + partita_plan_latency(rig.plan);
        const double value = phase % 2 ? (double)NAN : (double)INFINITY;
        const struct nonfinite c = {at, first, first + mono->kernel[0], value};
        stream_rig_check_nonfinite(&rig, &c, &small, &random);
    }
    stream_rig_close(&rig);
}

static const struct promise of_problems[] = {
    {"matches-oracle", matches_oracle},
    {"bursts-of-sound", bursts_of_sound},
    {"states-in-a-batch", states_in_a_batch},
    {"swap-at-every-phase", swap_at_every_phase}, // not with a stride
};
static const struct promise promises[] = {
    {"filters-at-one-address", filters_at_one_address},
    {"same-filter-after-silence", same_filter_after_silence},
    {"threads-same-bits", threads_same_bits},
    {"no-number-stays-in-reach", nonfinite_stays_in_reach},
};
enum {
    N_OF_PROBLEMS = sizeof of_problems / sizeof *of_problems,
    N_PROMISES = sizeof promises / sizeof *promises,
    N_BATCHES = 2,
};

int main(void)
{
    // Models in which two sums at once are cheapest, and four.
    static const double models[N_BATCHES][3] = {{1, 0.4, 1}, {1, 0.5, 0.2}};
    static struct batch_case cases[N_BATCHES][N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest
        tests[N_BATCHES * N_TYPE_PAIRS * (N_PROBLEMS * N_OF_PROBLEMS + N_PROMISES + 1)];
    struct partita_wisdom *wisdom[N_BATCHES];
    const bool wide = vectors_are_wide();
    size_t n = 0;
    for (size_t m = 0; m < N_BATCHES; m++) {
        const size_t batch = 2 * (m + 1);
        wisdom[m] = model_wisdom(models[m]);
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            const char *types = type_pairs[t].name;
            struct batch_case *b = cases[m][t];
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                b[p] = (struct batch_case){.c = {"cpu/partitioned", &type_pairs[t], &problems[p]},
                                           .batch = batch,
                                           .options = {.wisdom = wisdom[m]}};
                if (!rig_has_problem(t + m, p)) continue;
                for (size_t i = 0; i < N_OF_PROBLEMS; i++)
                    if (!problems[p].problem.stride[0] || of_problems[i].run != swap_at_every_phase)
                        tests[n++] = named_test(of_problems[i].run, &b[p], "of-%zu/%s/%s-%s", batch,
                                                of_problems[i].name, problems[p].name, types);
            }
            for (size_t i = 0; i < N_PROMISES; i++)
                tests[n++] = named_test(promises[i].run, &b[0], "of-%zu/%s-%s", batch,
                                        promises[i].name, types);
            if (m == 0 && wide)
                tests[n++] = named_test(long_filters, &b[0], "long-filters-%s", types);
        }
    }
    const int failed = run_test_list(tests, n);
    for (size_t m = 0; m < N_BATCHES; m++) partita_wisdom_destroy(wisdom[m]);
    return failed;
}
