// SPDX-License-Identifier: MIT
// Samples of a stream that are not finite: exactly the outputs that depend on them are not finite
// either, and all others have the bits that they have with zeros in place of these samples. For
// every engine that streams, however calls are split, across swaps, copies of streams, and in
// banks.

#include "support/stream_rig.h"

#include <float.h>
#include <math.h>

// Latencies shorter than the taps, about as long, and many times as long; several channels and
// groups, distances of outputs and of taps.
static const struct named_problem problems[] = {
    {"at-once", {STREAM(64), KERNEL(45)}},
    {"short-blocks", {STREAM(64), KERNEL(45), LATENCY(16)}},
    {"long-blocks", {STREAM(64), KERNEL(100), LATENCY(1024)}},
    {"one-tap", {STREAM(64), KERNEL(1)}},
    {"whole-blocks", {STREAM(64), KERNEL(700), LATENCY(100), .whole_blocks = true}},
    {"matrix", {STREAM(32), CHANNELS(2, 3), KERNEL(60), LATENCY(60)}},
    {"groups", {STREAM(32), CHANNELS(4, 2), KERNEL(33), .groups = 2, LATENCY(200)}},
    {"stride", {STREAM(64), KERNEL(50), STRIDE(3), LATENCY(301)}},
    {"stride-dilation",
     {STREAM(64), CHANNELS(2, 2), KERNEL(20), STRIDE(2), DILATION(3), LATENCY(90)}},
    {"up", {STREAM(64), KERNEL(61), .up = 4, LATENCY(128)}},
    {"up-stride", {STREAM(64), KERNEL(61), .up = 3, STRIDE(2), LATENCY(128)}},
    {"correlation", {STREAM(64), .op = PARTITA_CORRELATE, KERNEL(90), LATENCY(500)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static const char *const engines[] = {"cpu/direct", "cpu/overlap-save", "cpu/partitioned"};
enum { N_ENGINES_OF_STREAMS = 3 };

// Samples that are not finite, in the first and the last channel.
struct special {
    size_t channel, frame;
    double value;
};

// Whether output k, j depends on a special sample. Zeros between dilated taps count as taps. With
// `up` the branches of the taps count as all as long as the longest (problem.h): *ret_may.
static bool depends(const struct stream_rig *rig, const struct special *special, size_t k, size_t j,
                    bool *ret_may)
{
    const struct partita_problem *problem = &rig->problem;
    const size_t groups = or_one(problem->groups), span = problem_span(problem);
    const size_t padded = (span + rig->up - 1) / rig->up * rig->up;
    const size_t position = j * rig->stride,
                 first = (special->frame + partita_plan_latency(rig->plan)) * rig->up;
    *ret_may = false;
    if (special->channel / (rig->in / groups) != k / (rig->out / groups)) return false;
    *ret_may = position >= first && position < first + padded;
    return position >= first && position < first + span;
}

static bool is_finite_at(const struct stream_rig *rig, const char *y, size_t i)
{
    const double complex value = reference_sample(rig->problem.signal, y, i);
    return isfinite(creal(value)) && isfinite(cimag(value));
}

// Outputs y of special samples, and those of zeros in their place: exactly the outputs that depend
// on a special sample are not finite, all others have the same bits.
static void check_reach(const struct stream_rig *rig, const struct special *special, size_t n,
                        const char *y, const char *finite)
{
    for (size_t i = 0; i < rig->out * rig->n_outputs; i++) {
        const size_t k = i / rig->n_outputs, j = i % rig->n_outputs, bytes = rig->sample_bytes;
        bool must = false, may = false;
        for (size_t s = 0; s < n; s++) {
            bool within;
            must |= depends(rig, &special[s], k, j, &within);
            may |= within;
        }
        const bool is_finite = is_finite_at(rig, y, i);
        if (must ? is_finite : !may && memcmp(y + i * bytes, finite + i * bytes, bytes) != 0)
            fail_msg("output %zu of channel %zu is %s; frame %zu, latency %zu", j, k,
                     is_finite ? "finite or has other bits" : "not finite", special[0].frame,
                     partita_plan_latency(rig->plan));
    }
}

static void put_special(const struct stream_rig *rig, const struct special *special, bool zero)
{
    sample_put(rig->problem.signal, rig->x, special->channel * rig->n_frames + special->frame,
               zero ? 0 : special->value);
}

// How a stream gets its input: all of it, with a swap halfway, or with a copy halfway that goes on.
enum history { PLAIN, SWAPPED, COPIED, RESTORED };

static void go_on_with_copy(struct stream_rig *rig, enum history history)
{
    struct partita_stream *next;
    if (history == COPIED) assert_ok(partita_stream_clone(rig->stream, &next));
    else {
        const size_t size = partita_stream_state_size(rig->stream);
        void *saved = malloc(size);
        assert_ok(partita_stream_save(rig->stream, saved));
        assert_ok(partita_stream_open(rig->plan, rig->filter, &next));
        assert_ok(partita_stream_restore(next, saved, size));
        free(saved);
    }
    partita_stream_close(rig->stream);
    rig->stream = next;
}

static void feed(struct stream_rig *rig, char *y, enum history history,
                 const struct partita_filter *other, const struct call_split *split)
{
    const size_t half = rig->n_frames / 128 * 64;
    struct random random = random_start("calls");
    partita_stream_close(rig->stream);
    assert_ok(partita_stream_open(rig->plan, rig->filter, &rig->stream));
    stream_rig_feed_span(rig, rig->stream, y, 0, half, split, &random);
    if (history == SWAPPED) assert_ok(partita_stream_swap(rig->stream, other, 900));
    else if (history != PLAIN) go_on_with_copy(rig, history);
    stream_rig_feed_span(rig, rig->stream, y, half, rig->n_frames, split, &random);
}

// One to three special samples, near the middle of the input in some rounds.
static size_t draw_special(const struct stream_rig *rig, size_t round, struct special special[3],
                           struct random *random)
{
    static const double values[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const size_t n = 1 + round % 3, near = rig->n_frames / 2;
    for (size_t s = 0; s < n; s++) {
        const size_t frame = round % 2 ? near - random_below(random, near < 200 ? near : 200)
                                       : random_below(random, rig->n_frames);
        special[s] = (struct special){s % 2 ? rig->in - 1 : 0, frame, values[(round + s) % 3]};
    }
    if (n == 2) special[1].frame = special[0].frame; // in both channels at once
    return n;
}

static void check_special(struct stream_rig *rig, enum history history,
                          const struct partita_filter *other, struct random *random)
{
    static const struct call_split splits[] = {
        {"300", 300, true}, {"whole", SIZE_MAX, false}, {"100", 100, false}, {"7", 7, false}};
    const size_t samples = rig->in * rig->n_frames * rig->sample_bytes;
    char *y = stream_rig_alloc_output(rig), *finite = stream_rig_alloc_output(rig);
    void *kept = malloc(samples);
    memcpy(kept, rig->x, samples);
    for (size_t round = 0; round < 6; round++) {
        const bool whole = rig->problem.whole_blocks; // no call is shorter
        // The frame at which a swap begins depends on the call that sees it first.
        const struct call_split *split = &splits[whole ? round % 2 : round % 4];
        struct special special[3];
        const size_t n = draw_special(rig, round, special, random);
        for (size_t s = 0; s < n; s++) put_special(rig, &special[s], true);
        feed(rig, finite, history, other, split);
        for (size_t s = 0; s < n; s++) put_special(rig, &special[s], false);
        feed(rig, y, history, other, split);
        check_reach(rig, special, n, y, finite);
        memcpy(rig->x, kept, samples);
    }
    free(kept);
    guarded_free(y);
    guarded_free(finite);
}

static void check_history(const struct stream_case *c, enum history history)
{
    struct random random = random_start("special");
    const struct partita_problem *problem = &c->named->problem;
    struct partita_filter *other;
    struct stream_rig rig;
    stream_rig_open(&rig, c, problem, 64 * (stream_rig_frames(c, problem) / 64), &random);
    random_samples(&random, rig.problem.taps, rig.w, rig.n_taps);
    assert_ok(partita_filter_create(rig.plan, rig.w, &other));
    check_special(&rig, history, other, &random);
    partita_stream_close(rig.stream); // which may use it
    rig.stream = NULL;
    partita_filter_destroy(other);
    stream_rig_close(&rig);
}

static void reach(void **state)
{
    check_history(*state, PLAIN);
}

static void reach_across_swaps(void **state)
{
    check_history(*state, SWAPPED);
}

static void reach_across_copies(void **state)
{
    check_history(*state, COPIED);
    check_history(*state, RESTORED);
}

// The same in a bank whose slots add latency, beside a slot without such samples.
static void bank_slots(void **state)
{
    enum { TAPS = 300, BLOCK = 64, BLOCKS = 60 };
    struct random random = random_start("bank");
    for (size_t latency = 0; latency <= 1024; latency += 512) {
        const struct partita_bank_options options = {
            .slots = 2, .n_taps = TAPS, .block = BLOCK, .latency = latency};
        struct partita_bank *bank;
        struct partita_filter *filter;
        float taps[TAPS];
        size_t slot[2];
        assert_ok(partita_bank_create(&options, &bank));
        random_samples(&random, PARTITA_F32, taps, TAPS);
        assert_ok(partita_bank_filter_create(bank, taps, TAPS, &filter));
        for (int i = 0; i < 2; i++) assert_ok(partita_bank_open(bank, filter, &slot[i]));
        const size_t delay = partita_plan_latency(partita_bank_plan(bank));
        const size_t at = 500 + random_below(&random, 900);
        for (size_t b = 0; b < BLOCKS; b++) {
            for (int i = 0; i < 2; i++)
                random_samples(&random, PARTITA_F32, partita_bank_input(bank, slot[i]), BLOCK);
            if (at / BLOCK == b) ((float *)partita_bank_input(bank, slot[0]))[at % BLOCK] = NAN;
            partita_bank_process(bank);
            for (size_t i = 0; i < BLOCK; i++) {
                const size_t frame = b * BLOCK + i;
                const bool hit = frame >= at + delay && frame < at + delay + TAPS;
                const float y = ((const float *)partita_bank_output(bank, slot[0]))[i];
                assert_true(isnan(y) ? hit : !hit);
                assert_true(isfinite(((const float *)partita_bank_output(bank, slot[1]))[i]));
            }
        }
        partita_filter_destroy(filter);
        partita_bank_destroy(bank);
    }
    (void)state;
}

static size_t largest_transform(const struct stream_rig *rig)
{
    return rig->plan->choice.transform ? rig->plan->choice.transform : 1;
}

// Sum of the magnitudes of the taps of all paths, at least 1.
static double taps_sum(const struct stream_rig *rig)
{
    double sum = 0;
    for (size_t i = 0; i < rig->n_taps; i++)
        sum += cabs(reference_sample(rig->problem.taps, rig->w, i));
    return sum > 1 ? sum : 1;
}

static void scale_input(const struct stream_rig *rig, size_t n, double factor)
{
    for (size_t c = 0; c < rig->in; c++)
        for (size_t i = 0; i < n; i++) {
            const size_t at = c * rig->n_frames + i;
            sample_put(rig->problem.signal, rig->x, at,
                       reference_sample(rig->problem.signal, rig->x, at) * factor);
        }
}

// stream.h: n times the largest magnitude of samples (here below 2: random_samples), times the
// sum of those of the taps, below a quarter of the largest float: outputs are finite, and have the
// bits of a signal that is a power of two smaller.
static void largest_finite(void **state)
{
    const struct stream_case *c = *state;
    const bool f64 = type_is_f64(c->types->signal);
    struct random random = random_start("largest");
    const struct partita_problem *problem = &c->named->problem;
    struct stream_rig rig;
    stream_rig_open(&rig, c, problem, 64 * (stream_rig_frames(c, problem) / 64), &random);
    const double limit = (f64 ? DBL_MAX : (double)FLT_MAX) / 4 / 2;
    const double sum = taps_sum(&rig) * (double)largest_transform(&rig);
    const int exponent = (int)floor(log2(limit / sum));
    char *y = stream_rig_alloc_output(&rig), *small = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, small, &split_whole, &random);
    scale_input(&rig, rig.n_frames, ldexp(1, exponent));
    partita_stream_reset(rig.stream);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    for (size_t i = 0; i < rig.out * rig.n_outputs; i++) {
        const double complex large = reference_sample(rig.problem.signal, y, i),
                             expected = reference_sample(rig.problem.signal, small, i);
        assert_true(creal(large) == ldexp(creal(expected), exponent) &&
                    cimag(large) == ldexp(cimag(expected), exponent));
    }
    guarded_free(y);
    guarded_free(small);
    stream_rig_close(&rig);
}

// Beyond that, outputs of transforms may be NaN, but none after the samples have left the taps and
// two of the longest transforms: these have the bits that they have after silence.
static void largest_leave_no_trace(void **state)
{
    const struct stream_case *c = *state;
    const double largest = type_is_f64(c->types->signal) ? DBL_MAX : (double)FLT_MAX;
    struct random random = random_start("largest");
    const struct partita_problem *problem = &c->named->problem;
    struct stream_rig rig;
    const size_t n = 64 * (stream_rig_frames(c, problem) / 64), loud = n / 4;
    stream_rig_open(&rig, c, problem, n, &random);
    char *y = stream_rig_alloc_output(&rig), *silent = stream_rig_alloc_output(&rig);
    for (size_t i = 0; i < rig.in * n; i++)
        if (i % n < loud) sample_put(rig.problem.signal, rig.x, i, i % 2 ? largest : -largest);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    scale_input(&rig, loud, 0);
    partita_stream_reset(rig.stream);
    stream_rig_feed(&rig, rig.stream, silent, &split_whole, &random);
    const size_t reach = loud + partita_plan_latency(rig.plan) + problem_span(&rig.problem) +
                         2 * largest_transform(&rig);
    const size_t first = stream_rig_outputs(&rig, reach);
    assert_true(first < rig.n_outputs);
    for (size_t k = 0; k < rig.out; k++)
        assert_memory_equal(y + (k * rig.n_outputs + first) * rig.sample_bytes,
                            silent + (k * rig.n_outputs + first) * rig.sample_bytes,
                            (rig.n_outputs - first) * rig.sample_bytes);
    guarded_free(y);
    guarded_free(silent);
    stream_rig_close(&rig);
}

static const struct promise promises[] = {
    {"reach", reach},
    {"reach-across-swaps", reach_across_swaps},
    {"reach-across-copies", reach_across_copies},
    {"largest-finite", largest_finite},
    {"largest-leave-no-trace", largest_leave_no_trace},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_ENGINES_OF_STREAMS][N_TYPE_PAIRS][N_PROBLEMS];
    static struct CMUnitTest
        tests[N_ENGINES_OF_STREAMS * N_TYPE_PAIRS * N_PROBLEMS * N_PROMISES + 1];
    size_t n = 0;
    for (size_t e = 0; e < N_ENGINES_OF_STREAMS; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                struct stream_case *c = &cases[e][t][p];
                *c = (struct stream_case){engines[e], &type_pairs[t], &problems[p]};
                for (size_t i = 0; i < N_PROMISES; i++)
                    tests[n++] = named_test(promises[i].run, c, "%s/%s/%s-%s", engines[e],
                                            promises[i].name, problems[p].name, type_pairs[t].name);
            }
        }
    }
    tests[n++] = named_test(bank_slots, NULL, "bank");
    return run_test_list(tests, n);
}
