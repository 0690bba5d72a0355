// SPDX-License-Identifier: MIT
// cpu/partitioned where the products of several blocks are made together: right whatever falls
// silent in the midst of a bundle, whenever a filter is exchanged, saved or forgotten, on any
// number of threads. Most plans are made by models that make two or four sums at once cheap, so
// that every CPU level and type has bundles of either length.

#include "support/allocators.h"
#include "support/model.h"
#include "support/pool.h"
#include "support/swap_rig.h"

#include <math.h>
#include <stdio.h>

// A stream's problem with the model that gives its plan bundles of `bundle` blocks.
struct bundled {
    struct stream_case c;
    size_t bundle;
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

// A row of the plan's table.
struct row {
    size_t parts, taps, hop, bundle;
};

// The longest level with such bundles; none: hop is 0.
static struct row find_level(const struct partita_plan *plan, size_t bundle)
{
    static char text[16384];
    struct row found = {.hop = 0};
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        struct row row;
        size_t number, first, last, size, ticks;
        if (sscanf(line, "%zu %zu .. %zu %zu x %zu %zu %zu %zu %zu", &number, &first, &last,
                   &row.parts, &row.taps, &row.hop, &size, &row.bundle, &ticks) == 9 &&
            row.bundle == bundle)
            found = row;
    }
    return found;
}

static struct row level_of(const struct partita_plan *plan, size_t bundle)
{
    const struct row row = find_level(plan, bundle);
    if (!row.hop) fail_msg("no level of the plan has bundles of %zu blocks", bundle);
    return row;
}

// Frames that see all taps, some bundles of the longest level, and the same again.
static size_t frames_of(const struct bundled *b, const struct partita_problem *problem)
{
    struct stream_rig probe;
    struct random random = random_start("probe");
    stream_rig_open_exactly(&probe, &b->c, problem, &b->options, 1, &random);
    const struct row row = level_of(probe.plan, b->bundle);
    const size_t dilation = problem->dilation[0] ? problem->dilation[0] : 1;
    const size_t n = 2 * problem->kernel[0] * dilation + 8 * b->bundle * row.hop + 4000;
    stream_rig_close(&probe);
    return n;
}

static struct row open_run(struct stream_rig *rig, const struct bundled *b,
                           const struct partita_problem *problem, struct random *random)
{
    stream_rig_open_exactly(rig, &b->c, problem, &b->options, frames_of(b, problem), random);
    return level_of(rig->plan, b->bundle);
}

static void *part_of(const struct stream_rig *rig, void *samples, size_t channel, size_t first)
{
    return (char *)samples + (channel * rig->n_frames + first) * rig->sample_bytes;
}

// Sound and silence in turn in [first, end) of an input, each as long as some hops, or nearly so.
static void make_bursts(struct stream_rig *rig, size_t channel, const struct row *row, size_t first,
                        size_t end, struct random *random)
{
    bool silent = channel % 2;
    while (first < end) {
        const size_t most =
            silent ? row->parts * row->taps / row->hop + 2 * row->bundle : 2 * row->bundle + 1;
        size_t n = random_below(random, most) * row->hop +
                   random_below(random, 3) * random_below(random, row->hop);
        if (n > end - first) n = end - first;
        if (silent) memset(part_of(rig, rig->x, channel, first), 0, n * rig->sample_bytes);
        first += n;
        silent = !silent;
    }
}

static void make_all_bursts(struct stream_rig *rig, const struct row *row, struct random *random)
{
    for (size_t c = 0; c < rig->in; c++) make_bursts(rig, c, row, 0, rig->n_frames, random);
}

// One call against the oracle, then other cuts: the same bits.
static void check_run(struct stream_rig *rig, const struct call_split *splits, size_t n_cuts,
                      struct random *random)
{
    void *y = stream_rig_alloc_output(rig), *other = stream_rig_alloc_output(rig);
    partita_stream_reset(rig->stream);
    stream_rig_feed(rig, rig->stream, y, &split_whole, random);
    stream_rig_check_sampled(rig, y, random);
    for (size_t i = 0; i < n_cuts; i++) {
        partita_stream_reset(rig->stream);
        memset(other, 0x55, stream_rig_output_bytes(rig));
        stream_rig_feed(rig, rig->stream, other, &splits[i], random);
        if (memcmp(y, other, stream_rig_output_bytes(rig)))
            fail_msg("calls of %s give other bits", splits[i].name);
    }
    guarded_free(other);
    guarded_free(y);
}

static void matches_oracle(void **state)
{
    static const struct call_split splits[] = {{"up-to-3000", 3000, true}, {"block", 64, false}};
    const struct bundled *b = *state;
    struct random random = random_start(b->c.named->name);
    struct stream_rig rig;
    const struct row row = open_run(&rig, b, &b->c.named->problem, &random);
    check_run(&rig, splits, 2, &random);
    make_all_bursts(&rig, &row, &random);
    check_run(&rig, splits, 1, &random);
    stream_rig_close(&rig);
}

// The built-in model makes bundles of near spectra by itself.
static bool vectors_are_wide(void)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&(struct partita_problem){STREAM(64)}, NULL, &plan));
    const bool wide = plan->isa == CPU_AVX2 || plan->isa == CPU_AVX512;
    partita_plan_destroy(plan);
    return wide;
}

// Filters as long as that model needs.
static void long_filters(void **state)
{
    static const size_t taps[] = {20000, 70000};
    static const struct call_split splits[] = {{"up-to-3000", 3000, true}, {"block", 64, false}};
    const struct bundled *b = *state;
    for (size_t i = 0; i < 2; i++) {
        const struct partita_problem problem = {STREAM(64), KERNEL(taps[i])};
        struct random random = random_start("long");
        struct stream_rig rig;
        stream_rig_open_exactly(&rig, &b->c, &problem, NULL, 2 * taps[i] + 30000, &random);
        if (taps[i] == 70000) level_of(rig.plan, 4);
        const struct row row = find_level(rig.plan, find_level(rig.plan, 4).hop ? 4 : 2);
        check_run(&rig, splits, TEST_SLOWER > 1 ? 1 : 2, &random);
        make_all_bursts(&rig, &row, &random);
        check_run(&rig, splits, 0, &random);
        stream_rig_close(&rig);
    }
}

// What a single sample of two results may differ by (test_partitioned.c): eight deviations of
// either.
static double sample_limit(const struct stream_rig *rig)
{
    return 8 * gate_transform(rig->problem.signal, rig->plan->choice.transform) *
           typical_output(&rig->problem);
}

// Silence that is skipped against a hum too faint to tell, which is not: all outputs.
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
    const double limit = sample_limit(rig);
    for (size_t i = 0; i < rig->out * rig->n_outputs; i++) {
        const double off = cabs(reference_sample(rig->problem.signal, y, i) -
                                reference_sample(rig->problem.signal, hum, i));
        if (!(off <= limit)) fail_msg("output %zu of %zu is off by %.3g", i, rig->n_outputs, off);
    }
    guarded_free(hum);
    guarded_free(y);
    free(kept);
}

// Bursts of every kind, one input silent while others are not; then with cells of which long pieces
// are zero.
static void bursts_of_sound(void **state)
{
    enum { ROUNDS = 3 };
    const struct bundled *b = *state;
    struct random random = random_start("bursts");
    struct stream_rig rig;
    const struct row row = open_run(&rig, b, &b->c.named->problem, &random);
    const size_t tap_bytes = partita_type_size(rig.problem.taps), kernel = rig.problem.kernel[0];
    for (int round = 0; round < ROUNDS; round++) {
        random_samples(&random, rig.problem.signal, rig.x, rig.in * rig.n_frames);
        make_all_bursts(&rig, &row, &random);
        if (round == ROUNDS - 1) memset(rig.x, 0, rig.n_frames * rig.sample_bytes);
        check_against_hum(&rig, &random);
        for (size_t cell = 0; cell < rig.n_taps / kernel; cell++) {
            const size_t first = random_below(&random, kernel),
                         n = random_below(&random, kernel - first);
            memset((char *)rig.w + (cell * kernel + first) * tap_bytes, 0, n * tap_bytes);
        }
        if (round % 2) stream_rig_replace_taps(&rig);
    }
    stream_rig_close(&rig);
}

// Handed over at every phase of a bundle, fade after fade, to the filter that was there before, to
// the one that is there; inputs but the first fall silent meanwhile.
static void swap_at_every_phase(void **state)
{
    enum { STEPS = 8, BEGIN = 2000 };
    static const size_t order[STEPS] = {1, 0, 0, 2, 1, 1, 3, 0}, fades[] = {0, 500, 1, 77};
    const struct bundled *b = *state;
    struct random random = random_start("phase");
    struct swap_rig s;
    struct stream_rig probe;
    const struct row row = open_run(&probe, b, &b->c.named->problem, &random);
    const size_t bundle = row.hop * b->bundle, taps = row.parts * row.taps;
    stream_rig_close(&probe);
    const size_t gap = 2 * bundle + taps + 4 * b->bundle * row.hop + 600;
    swap_rig_open(&s, &b->c, &b->c.named->problem, &b->options, BEGIN + STEPS * (gap + bundle),
                  &random);
    for (size_t c = 1; c < s.rig.in; c++) make_bursts(&s.rig, c, &row, 0, s.rig.n_frames, &random);
    for (size_t f = 0; f < N_FILTERS; f++) swap_rig_run_alone(&s, f, &random);
    struct swap steps[STEPS];
    size_t at = BEGIN;
    for (size_t i = 0; i < STEPS; i++) {
        steps[i] = (struct swap){at, order[i], fades[i % 4]};
        at += (gap + 2 * s.load.swap_delay) / bundle * bundle + row.hop +
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

// Hands filter f over at frame `at` and runs to `end`; fails unless that is a fade from filter
// `old`.
static void check_next(struct swap_rig *s, void *y, size_t old, size_t f, size_t at, size_t end,
                       struct random *random)
{
    assert_ok(partita_stream_swap(s->rig.stream, s->filters[f], 200));
    stream_rig_feed_span(&s->rig, s->rig.stream, y, at, end, &small, random);
    assert_false(partita_stream_swapping(s->rig.stream));
    check_fade(s, y, old, f, 200, at, at, end);
}

// A filter that is gone and another one at its address are two.
static void filters_at_one_address(void **state)
{
    const struct bundled *b = *state;
    struct recycled recycled = {.n = 0};
    struct bundled own = *b;
    own.options.allocator = recycled_allocator(&recycled);
    struct random random = random_start("address");
    struct swap_rig s;
    swap_rig_open(&s, &own.c, mono, &own.options, 20000, &random);
    const size_t step = 2 * s.load.swap_delay + 400;
    struct stream_rig *rig = &s.rig;
    void *y = stream_rig_alloc_output(rig);
    size_t at = 0, old = 0;
    for (; at + 2 * step <= rig->n_frames; at += 2 * step) {
        const size_t other = 1 + at / step / 2 % 2;
        check_next(&s, y, old, other, at, at + step, &random);
        // The filter before it goes; the next one takes its place.
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

// A filter taken up in silence hears what comes later also when it is handed over once more.
static void same_filter_after_silence(void **state)
{
    const struct bundled *b = *state;
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

// Runs on from `at` and compares what comes out.
static void check_goes_on(const struct stream_rig *rig, struct partita_stream *stream,
                          const void *expected, size_t at, const char *what, struct random *random)
{
    char *y = stream_rig_alloc_output(rig);
    const size_t first = (at + rig->stride - 1) / rig->stride;
    stream_rig_feed_span(rig, stream, y, at, rig->n_frames, &small, random);
    for (size_t k = 0; k < rig->out; k++) {
        const size_t from = (k * rig->n_outputs + first) * rig->sample_bytes;
        if (memcmp(y + from, (const char *)expected + from,
                   (rig->n_outputs - first) * rig->sample_bytes))
            fail_msg("%s: other bits after frame %zu", what, at);
    }
    guarded_free(y);
}

// Saved, restored, cloned and reset in every block of two bundles, with inputs that come and go.
static void states_in_a_bundle(void **state)
{
    const struct bundled *b = *state;
    struct random random = random_start("states");
    struct stream_rig rig;
    const struct row row = open_run(&rig, b, &b->c.named->problem, &random);
    make_all_bursts(&rig, &row, &random);
    struct partita_stream *second, *clone;
    assert_ok(partita_stream_open(rig.plan, rig.filter, &second));
    const size_t size = partita_stream_state_size(rig.stream);
    void *expected = stream_rig_alloc_output(&rig), *garbage = stream_rig_alloc_output(&rig),
         *kept = malloc(size);
    stream_rig_feed(&rig, rig.stream, expected, &split_whole, &random);
    for (size_t phase = 0; phase < 2 * b->bundle; phase++) {
        const size_t at = (4 * b->bundle + phase) * row.hop + random_below(&random, row.hop);
        partita_stream_reset(rig.stream);
        stream_rig_feed_span(&rig, rig.stream, garbage, 0, at, &small, &random);
        assert_ok(partita_stream_save(rig.stream, kept));
        assert_ok(partita_stream_clone(rig.stream, &clone));
        check_goes_on(&rig, rig.stream, expected, at, "saved", &random);
        check_goes_on(&rig, clone, expected, at, "cloned", &random);
        // Whatever the second one held, and wherever in its bundle it stood.
        partita_stream_reset(second);
        stream_rig_feed_span(&rig, second, garbage, 0, random_below(&random, rig.n_frames),
                             &split_whole, &random);
        assert_ok(partita_stream_restore(second, kept, size));
        check_goes_on(&rig, second, expected, at, "restored", &random);
        partita_stream_reset(clone);
        stream_rig_feed_span(&rig, clone, garbage, 0, at, &small, &random);
        partita_stream_reset(clone);
        check_goes_on(&rig, clone, expected, 0, "reset", &random);
        partita_stream_close(clone);
    }
    free(kept);
    guarded_free(garbage);
    guarded_free(expected);
    partita_stream_close(second);
    stream_rig_close(&rig);
}

// Bursts and swaps on the library's threads and on the host's: the bits of one thread.
static void threads_same_bits(void **state)
{
    enum { ALONE, TWO, THREE, HOST, N_MODES };
    const struct bundled *b = *state;
    void *expected = NULL;
    for (int mode = ALONE; mode < N_MODES; mode++) {
        struct pool pool;
        pool_open(&pool);
        struct bundled own = *b;
        own.options.threads = mode == HOST ? 3 : mode + 1;
        if (mode == HOST) own.options.executor = pool_executor(&pool);
        struct random random = random_start("threads"); // the same taps and input
        struct swap_rig s;
        swap_rig_open(&s, &own.c, matrix, &own.options, 12000, &random);
        const struct row row = level_of(s.rig.plan, b->bundle);
        make_all_bursts(&s.rig, &row, &random);
        void *y = stream_rig_alloc_output(&s.rig);
        const struct swap three[] = {{1000 + row.hop, 1, 100},
                                     {3000 + 2 * s.load.swap_delay, 2, 0},
                                     {s.rig.n_frames - 1500, 1, 40}};
        struct partita_stream *stream =
            swap_rig_run(&s, y, three, 3, &(struct call_split){"", 100, true}, &random);
        partita_stream_close(stream);
        if (!expected) {
            expected = stream_rig_alloc_output(&s.rig);
            memcpy(expected, y, stream_rig_output_bytes(&s.rig));
        }
        if (memcmp(y, expected, stream_rig_output_bytes(&s.rig)))
            fail_msg("mode %d: other bits", mode);
        guarded_free(y);
        swap_rig_close(&s);
        pool_close(&pool);
    }
    guarded_free(expected);
}

// A sample that is no number: outside the reach of its taps the bits of zero in its place.
static void no_number_stays_in_reach(void **state)
{
    const struct bundled *b = *state;
    struct random random = random_start("nan");
    struct stream_rig rig;
    const struct row row = open_run(&rig, b, mono, &random);
    make_all_bursts(&rig, &row, &random);
    char *zeroed = stream_rig_alloc_output(&rig), *touched = stream_rig_alloc_output(&rig);
    for (size_t phase = 0; phase < 2 * b->bundle; phase++) {
        const size_t at = (2 * b->bundle + phase) * row.hop + random_below(&random, row.hop);
        const size_t first = at + partita_plan_latency(rig.plan), end = first + mono->kernel[0];
        const double complex kept = reference_sample(rig.problem.signal, rig.x, at);
        sample_put(rig.problem.signal, rig.x, at, 0);
        partita_stream_reset(rig.stream);
        stream_rig_feed(&rig, rig.stream, zeroed, &small, &random);
        sample_put(rig.problem.signal, rig.x, at, phase % 2 ? (double)NAN : (double)INFINITY);
        partita_stream_reset(rig.stream);
        stream_rig_feed(&rig, rig.stream, touched, &small, &random);
        sample_put(rig.problem.signal, rig.x, at, kept);
        assert_memory_equal(touched, zeroed, first * rig.sample_bytes);
        assert_memory_equal(touched + end * rig.sample_bytes, zeroed + end * rig.sample_bytes,
                            (rig.n_outputs - end) * rig.sample_bytes);
        for (size_t i = first; i < end; i++)
            assert_true(isnan(creal(reference_sample(rig.problem.signal, touched, i))));
    }
    guarded_free(touched);
    guarded_free(zeroed);
    stream_rig_close(&rig);
}

static const struct promise of_problems[] = {
    {"matches-oracle", matches_oracle},
    {"bursts-of-sound", bursts_of_sound},
    {"states-in-a-bundle", states_in_a_bundle},
    {"swap-at-every-phase", swap_at_every_phase}, // not with a stride
};
static const struct promise promises[] = {
    {"filters-at-one-address", filters_at_one_address},
    {"same-filter-after-silence", same_filter_after_silence},
    {"threads-same-bits", threads_same_bits},
    {"no-number-stays-in-reach", no_number_stays_in_reach},
};
enum {
    N_OF_PROBLEMS = sizeof of_problems / sizeof *of_problems,
    N_PROMISES = sizeof promises / sizeof *promises,
    N_BUNDLES = 2,
};

int main(void)
{
    // Where two sums at once pay, and four do not; where four pay.
    static const double models[N_BUNDLES][3] = {{1, 0.4, 1}, {1, 0.5, 0.2}};
    static struct bundled cases[N_BUNDLES][N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest
        tests[N_BUNDLES * N_TYPE_PAIRS * (N_PROBLEMS * N_OF_PROBLEMS + N_PROMISES + 1)];
    struct partita_wisdom *wisdom[N_BUNDLES];
    const bool wide = vectors_are_wide();
    size_t n = 0;
    for (size_t m = 0; m < N_BUNDLES; m++) {
        const size_t bundle = 2 * (m + 1);
        wisdom[m] = model_wisdom(models[m]);
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            const char *types = type_pairs[t].name;
            struct bundled *b = cases[m][t];
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                b[p] = (struct bundled){.c = {"cpu/partitioned", &type_pairs[t], &problems[p]},
                                        .bundle = bundle,
                                        .options = {.wisdom = wisdom[m]}};
                for (size_t i = 0; i < N_OF_PROBLEMS; i++)
                    if (!problems[p].problem.stride[0] || of_problems[i].run != swap_at_every_phase)
                        tests[n++] =
                            named_test(of_problems[i].run, &b[p], "of-%zu/%s/%s-%s", bundle,
                                       of_problems[i].name, problems[p].name, types);
            }
            for (size_t i = 0; i < N_PROMISES; i++)
                tests[n++] = named_test(promises[i].run, &b[0], "of-%zu/%s-%s", bundle,
                                        promises[i].name, types);
            if (m == 0 && wide)
                tests[n++] = named_test(long_filters, &b[0], "long-filters-%s", types);
        }
    }
    const int failed = run_test_list(tests, n);
    for (size_t m = 0; m < N_BUNDLES; m++) partita_wisdom_destroy(wisdom[m]);
    return failed;
}
