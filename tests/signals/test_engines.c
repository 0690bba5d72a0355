// SPDX-License-Identifier: MIT
// Every engine on whole signals: a table of problems of every type against the oracle; properties
// without an oracle (impulses, linearity, shift, agreement); the guarantees of partita_forward
// (unchanged input, exact ranges, workspace, thread count).

#include "support/stream_rig.h"

#include "support/layer_rig.h"

#include <stdio.h>

static const struct named_problem problems[] = {
    {"one", {LENGTH(1), KERNEL(1)}},
    {"one-sample-many-taps", {LENGTH(1), KERNEL(64), PAD(63)}},
    {"two", {LENGTH(2), KERNEL(2), PAD(1)}},
    {"gain", {LENGTH(1000), KERNEL(1)}},
    {"prime", {LENGTH(10007), KERNEL(97), PAD(96)}},
    {"prime-valid", {LENGTH(997), KERNEL(31)}},
    {"power-of-two", {LENGTH(4096), KERNEL(128), PAD_BEGIN(64), PAD_END(63)}},
    {"more-taps-than-samples", {LENGTH(31), KERNEL(1000), PAD(999)}},
    {"many-taps", {LENGTH(3000), KERNEL(2000), PAD(1999)}},
    {"long", {LENGTH(30011), KERNEL(150), PAD_BEGIN(149)}},
    {"long-aligned-blocks", {LENGTH(24011), KERNEL(900), PAD_BEGIN(899)}},
    {"long-aligned-channels", {LENGTH(15000), CHANNELS(2, 3), KERNEL(700), PAD_END(650)}},
    {"correlate", {LENGTH(503), CORRELATE, KERNEL(61), PAD(60)}},
    {"batch", {LENGTH(301), BATCH(3), KERNEL(40), PAD_BEGIN(39)}},
    {"many-small", {LENGTH(20), BATCH(300), OUTPUTS(3), KERNEL(5), PAD_BEGIN(4)}},
    {"many-small-fan-out", {LENGTH(20), BATCH(600), OUTPUTS(3), KERNEL(5), PAD_BEGIN(4)}},
    {"mix-down", {LENGTH(400), CHANNELS(3, 1), KERNEL(17), PAD_BEGIN(16)}},
    {"fan-out", {LENGTH(400), OUTPUTS(3), KERNEL(17), PAD_BEGIN(16)}},
    {"matrix", {LENGTH(211), BATCH(2), CHANNELS(3, 4), KERNEL(50), PAD_END(49)}},
    {"groups", {LENGTH(150), CHANNELS(4, 6), GROUPS(2), KERNEL(19), PAD_END(18)}},
    {"depthwise", {LENGTH(333), BATCH(2), CHANNELS(5, 5), GROUPS(5), KERNEL(70)}},
    {"depthwise-multiplied", {LENGTH(77), CHANNELS(2, 6), GROUPS(2), KERNEL(9)}},
    {"stride-2", {LENGTH(1001), KERNEL(33), STRIDE(2), PAD(32)}},
    {"stride-7", {LENGTH(2000), KERNEL(64), STRIDE(7), PAD_BEGIN(3)}},
    {"stride-above-taps", {LENGTH(500), KERNEL(3), STRIDE(10)}},
    {"stride-above-size", {LENGTH(20), KERNEL(5), STRIDE(100)}},
    {"dilation-2", {LENGTH(300), KERNEL(16), DILATION(2), PAD_BEGIN(30)}},
    {"dilation-above-size", {LENGTH(20), KERNEL(3), DILATION(50), PAD(100)}},
    {"dilation-stride", {LENGTH(700), KERNEL(12), STRIDE(3), DILATION(5), PAD_BEGIN(55)}},
    {"dilation-equals-stride", {LENGTH(700), KERNEL(12), STRIDE(4), DILATION(4), PAD_END(9)}},
    {"slice", {LENGTH(5000), KERNEL(65), PAD_BEGIN(-1234), PAD_END(-2345)}},
    {"slice-of-start", {LENGTH(5000), KERNEL(65), PAD_BEGIN(64), PAD_END(-4900)}},
    {"slice-of-end", {LENGTH(5000), KERNEL(65), PAD_BEGIN(-4900), PAD_END(64)}},
    {"slice-stride", {LENGTH(900), KERNEL(20), STRIDE(3), PAD_BEGIN(-101), PAD_END(-7)}},
    {"one-output", {LENGTH(500), KERNEL(500)}},
    {"one-output-inside", {LENGTH(900), KERNEL(40), PAD_BEGIN(-400), PAD_END(-460)}},
    {"last-tap-only", {LENGTH(1), KERNEL(300), PAD_BEGIN(0), PAD_END(299)}},
    {"padding-beyond-taps", {LENGTH(50), KERNEL(5), PAD_BEGIN(100), PAD_END(70)}},
    {"up-2", {LENGTH(500), KERNEL(33), PAD_BEGIN(32), PAD_END(31), UP(2)}},
    {"up-3-stride-2",
     {LENGTH(401), BATCH(2), CHANNELS(2, 3), KERNEL(40), STRIDE(2), PAD(39), UP(3)}},
    {"up-2-stride-7", {LENGTH(900), KERNEL(21), STRIDE(7), PAD_BEGIN(5), UP(2)}},
    {"up-160-stride-147", {LENGTH(700), KERNEL(801), STRIDE(147), PAD_BEGIN(400), UP(160)}},
    {"up-6-stride-4-odd-phase", {LENGTH(300), KERNEL(50), STRIDE(4), PAD_BEGIN(-7), UP(6)}},
    {"up-stride-without-taps", {LENGTH(300), KERNEL(1), STRIDE(4), PAD_BEGIN(-1), UP(2)}},
    {"up-above-taps", {LENGTH(90), KERNEL(3), STRIDE(3), PAD(20), UP(10)}},
    {"up-one-sample", {LENGTH(1), KERNEL(64), PAD(63), UP(3)}},
    {"up-dilation",
     {LENGTH(200), CORRELATE, CHANNELS(4, 6), GROUPS(2), KERNEL(9), STRIDE(5), DILATION(3), PAD(24),
      UP(4)}},
    {"all-at-once",
     {LENGTH(640), CORRELATE, BATCH(2), CHANNELS(4, 6), GROUPS(2), KERNEL(23), STRIDE(2),
      DILATION(3), PAD_BEGIN(-5), PAD_END(17)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

// The engines of all devices; those of the device under test are tested.
static const char *const engines_of_signals[] = {
    "cpu/direct",
    "cpu/overlap-add",
    "cpu/overlap-add:steps",
    "cpu/overlap-add:3-steps",
    "cpu/overlap-save",
    "cpu/blocks",
    "cuda/blocks",
    "cuda/overlap-save",
    "cuda/overlap-add",
    "cuda/overlap-add:2-steps",
    "cuda/overlap-add:3-steps",
};
enum { N_ENGINES_OF_SIGNALS = sizeof engines_of_signals / sizeof *engines_of_signals };

struct engine_case {
    const char *engine;
    const struct type_pair *types;
    const struct named_problem *named;
};

static struct engine_case cases[N_ENGINES_OF_SIGNALS * N_TYPE_PAIRS * N_PROBLEMS];

static struct partita_problem typed(const struct partita_problem *problem,
                                    const struct type_pair *types)
{
    struct partita_problem p = *problem;
    p.signal = types->signal;
    p.taps = types->taps;
    return p;
}

static void against_oracle(void **state)
{
    const struct engine_case *c = *state;
    struct partita_problem problem = typed(&c->named->problem, c->types);
    struct random random = random_start(c->named->name);
    struct rig rig;
    // One thread, whose blocks may be written in place; the bits of others are compared below.
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine, .threads = 1}, &random);
    layer_assert_engine(partita_plan_engine(rig.plan, PARTITA_FORWARD), c->engine);
    void *kept = malloc(rig.n_x * rig.sample_bytes);
    memcpy(kept, rig.x, rig.n_x * rig.sample_bytes);
    rig_forward(&rig);
    assert_memory_equal(kept, rig.x, rig.n_x * rig.sample_bytes);
    rig_check(&rig);
    free(kept);
    rig_close(&rig);
}

// A problem with many blocks and channels for the tests below.
static const struct partita_problem busy = {LENGTH(24000), BATCH(2),       CHANNELS(2, 3),
                                            KERNEL(190),   PAD_BEGIN(189), PAD_END(11)};

static void any_threads_same_bits(void **state)
{
    const struct engine_case *c = *state;
    struct partita_problem problem = typed(&busy, c->types);
    struct rig first;
    struct random random = random_start("threads");
    rig_open(&first, &problem, &(struct partita_options){.engine = c->engine, .threads = 1},
             &random);
    rig_forward(&first);
    for (int threads = 2; threads <= 7; threads += threads == 3 ? 4 : 1) {
        struct partita_options options = {.engine = c->engine, .threads = threads};
        rig_check_copy(&first, &options);
    }
    rig_close(&first);
}

// Short transforms, whose results overlap those of many neighbours: the fewest steps, exactly so
// many, more, and one less, which is refused.
static void as_many_steps_as_overlap(void **state)
{
    const struct type_pair *types = *state;
    enum { SPAN = 300 };
    static const size_t reaches[] = {1025, 600, 513, 450, 385, 350};
    struct partita_problem problem =
        typed(&(struct partita_problem){LENGTH(6000), BATCH(2), CHANNELS(2, 3), KERNEL(SPAN),
                                        PAD_BEGIN(SPAN - 1), PAD_END(57)},
              types);
    struct partita_plan *plan = NULL;
    for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) {
        struct partita_options options = {
            .engine = "cpu/overlap-add:steps", .threads = 1, .error_reach = reaches[i]};
        struct random random = random_start("many-steps");
        struct rig rig;
        // Only FFTW has a transform of 320 samples.
        const enum partita_status first = partita_plan_create(&problem, &options, &plan);
        if (first == PARTITA_ERR_UNSUPPORTED && reaches[i] < 385) continue;
        assert_ok(first);
        partita_plan_destroy(plan);
        rig_open(&rig, &problem, &options, &random);
        rig_forward(&rig);
        rig_check(&rig);
        for (options.threads = 2; options.threads < 4; options.threads++)
            rig_check_copy(&rig, &options);
        char name[40];
        const size_t hop = rig.plan->choice.hop, least = (SPAN - 1 + hop - 1) / hop + 1;
        assert_true(least > 1 && rig.plan->choice.transform < reaches[i]);
        options.engine = name;
        for (size_t steps = 2; steps <= 8; steps++) {
            snprintf(name, sizeof name, "cpu/overlap-add:%zu-steps", steps);
            const enum partita_status status = partita_plan_create(&problem, &options, &plan);
            assert_int_equal(status, steps < least ? PARTITA_ERR_UNSUPPORTED : PARTITA_OK);
            if (status != PARTITA_OK) continue;
            partita_plan_destroy(plan);
            struct rig other;
            rig_open_with(&other, &problem, &options, rig.x, rig.w);
            rig_forward(&other);
            other.reference = rig.reference;
            rig_check(&other);
            other.reference = NULL;
            if (steps == least && other.plan->choice.hop == hop)
                assert_memory_equal(rig.y, other.y, rig.n_y * rig.sample_bytes);
            rig_close(&other);
        }
        rig_close(&rig);
    }
}

static void workspace_exact(void **state)
{
    const struct engine_case *c = *state;
    struct partita_problem problem = typed(&busy, c->types);
    struct random random = random_start("workspace");
    struct rig rig;
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine, .threads = 3}, &random);
    rig_forward(&rig);
    void *y = guarded_alloc(rig.n_y * rig.sample_bytes, 0);
    void *workspace = guarded_alloc(partita_plan_workspace(rig.plan, PARTITA_FORWARD), 0);
    assert_ok(partita_forward(rig.plan, rig.filter, y, rig.x,
                              &(struct partita_call){.workspace = workspace}));
    assert_memory_equal(y, rig.y, rig.n_y * rig.sample_bytes);
    assert_ok(partita_forward(
        rig.plan, rig.filter, y, rig.x,
        &(struct partita_call){.workspace = workspace})); // the first call's contents are no input
    assert_memory_equal(y, rig.y, rig.n_y * rig.sample_bytes);
    guarded_free(workspace);
    guarded_free(y);
    rig_close(&rig);
}

// Slices of a few outputs from everywhere in the full result: at every position among the blocks,
// with ends inside and outside the signal.
static void slice_anywhere(void **state)
{
    const struct engine_case *c = *state;
    enum {
        N = 1500,
        M = 30,
        FULL = N + M - 1,
        LENGTH = 5
    }; // one length, so that blocks have one size
    struct partita_problem problem =
        typed(&(struct partita_problem){LENGTH(N), KERNEL(M), PAD(M - 1)}, c->types);
    struct random random = random_start("slice");
    struct rig whole, rig;
    rig_open(&whole, &problem, NULL, &random);
    rig_forward(&whole);
    rig_check(&whole);
    for (size_t at = 0; at < FULL; at++) {
        size_t length = FULL - at < LENGTH ? FULL - at : LENGTH;
        struct partita_problem slice = problem;
        slice.pad_begin[0] -= (ptrdiff_t)at;
        slice.pad_end[0] -= (ptrdiff_t)(FULL - at - length);
        rig_open_with(&rig, &slice, &(struct partita_options){.engine = c->engine}, whole.x,
                      whole.w);
        rig_forward(&rig);
        double gate = plan_gate(rig.plan, &slice, length);
        double error = error_against(problem.signal, rig.y, whole.reference + at, length,
                                     typical_output(&slice));
        if (!(error <= gate))
            fail_msg("%zu outputs from %zu: error %.3g above %.3g", length, at, error, gate);
        rig_close(&rig);
    }
    rig_close(&whole);
}

// With one tap 1 and the others 0 the result is the shifted signal. This finds lost taps.
static void impulse_at_every_tap(void **state)
{
    const struct engine_case *c = *state;
    enum { N = 500, M = 137 };
    struct partita_problem problem =
        typed(&(struct partita_problem){LENGTH(N), KERNEL(M), PAD(M - 1)}, c->types);
    struct random random = random_start("impulse");
    struct rig rig;
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine}, &random);
    for (size_t tap = 0; tap < M; tap++) {
        for (size_t r = 0; r < M; r++) sample_put(problem.taps, rig.w, r, r == tap);
        partita_filter_destroy(rig.filter);
        assert_ok(partita_filter_create(rig.plan, rig.w, &rig.filter));
        rig_forward(&rig);
        double limit = rig.plan->choice.transform ? plan_gate(rig.plan, &problem, N)
                                                  : 0; // a product with 1 plus zeros is exact
        double complex expected[N + M - 1] = {0};
        for (size_t i = 0; i < N; i++)
            expected[i + tap] = reference_sample(problem.signal, rig.x, i);
        assert_true(error_against(problem.signal, rig.y, expected, N + M - 1, 0) <= limit);
    }
    rig_close(&rig);
}

static void forward(const struct rig *rig, double complex *y, const double complex *x)
{
    enum partita_type type = rig->problem.signal;
    for (size_t i = 0; i < rig->n_x; i++) sample_put(type, rig->x, i, x[i]);
    assert_ok(partita_forward(rig->plan, rig->filter, rig->y, rig->x, NULL));
    for (size_t i = 0; i < rig->n_y; i++) y[i] = reference_sample(type, rig->y, i);
}

static double distance(const double complex *a, const double complex *b, size_t n)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        error += creal((a[i] - b[i]) * conj(a[i] - b[i]));
        norm += creal(b[i] * conj(b[i]));
    }
    return error / norm;
}

// f(2x + z/4) = 2 f(x) + f(z)/4, and a delayed signal has a delayed result. The weights are powers
// of two, so that only the sum of the signals is rounded: an error of relative size u in addition
// to the three of the gate.
static void linear_and_shift_invariant(void **state)
{
    const struct engine_case *c = *state;
    enum { N = 3000, M = 77, DELAY = 41, OUT = N + M - 1 };
    struct partita_problem problem =
        typed(&(struct partita_problem){LENGTH(N), KERNEL(M), PAD(M - 1)}, c->types);
    struct random random = random_start("linear");
    struct rig rig;
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine}, &random);
    double complex *x = calloc(4 * (N + OUT), sizeof *x), *z = x + N, *sum = z + N, *late = sum + N;
    double complex *fx = late + N, *fz = fx + OUT, *fsum = fz + OUT, *flate = fsum + OUT;
    for (size_t i = 0; i < N - DELAY; i++) {
        x[i] = reference_sample(problem.signal, rig.x, i);
        z[i] = reference_sample(problem.signal, rig.x, N - 1 - i);
        sum[i] = 2 * x[i] + 0.25 * z[i];
        late[i + DELAY] = x[i];
    }
    forward(&rig, fx, x);
    forward(&rig, fz, z);
    forward(&rig, fsum, sum);
    forward(&rig, flate, late);
    double gate = plan_gate(rig.plan, &problem, OUT);
    assert_true(distance(fx, flate + DELAY, OUT - DELAY) <= 4 * gate * gate);
    for (size_t i = 0; i < OUT; i++) fz[i] = 2 * fx[i] + 0.25 * fz[i];
    assert_true(distance(fz, fsum, OUT) <= 16 * gate * gate);
    free(x);
    rig_close(&rig);
}

// All engines on one problem, compared with the planner's choice.
static void all_engines_agree(void **state)
{
    const struct engine_case *c = *state;
    struct partita_problem problem = typed(&busy, c->types);
    struct random random = random_start("agree");
    struct rig chosen, other;
    rig_open(&chosen, &problem, NULL, &random);
    rig_forward(&chosen);
    double complex *y = malloc(chosen.n_y * sizeof *y);
    for (size_t i = 0; i < chosen.n_y; i++) y[i] = reference_sample(problem.signal, chosen.y, i);
    for (size_t e = 0; e < N_ENGINES_OF_SIGNALS; e++) {
        if (!layer_has_engine(engines_of_signals[e])) continue;
        struct partita_options options = {.engine = engines_of_signals[e]};
        rig_open_with(&other, &problem, &options, chosen.x, chosen.w);
        rig_forward(&other);
        double gate = plan_gate(chosen.plan, &problem, chosen.n_y) +
                      plan_gate(other.plan, &problem, chosen.n_y);
        assert_true(error_against(problem.signal, other.y, y, chosen.n_y, 0) <= gate);
        rig_close(&other);
    }
    free(y);
    rig_close(&chosen);
}

// A loud burst precedes a signal 80 dB lower. After the blocks that contain the burst nothing of
// its error may remain; a single transform of the whole signal would leave 1e-2 there.
static void quiet_after_loud(void **state)
{
    const struct engine_case *c = *state;
    enum { N = 200000, M = 512, BURST = 512, WINDOW = 2000 };
    struct partita_problem problem =
        typed(&(struct partita_problem){LENGTH(N), KERNEL(M), PAD_BEGIN(M - 1)}, c->types);
    struct random random = random_start("quiet");
    struct rig rig;
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine}, &random);
    for (size_t i = BURST; i < N; i++) {
        sample_put(problem.signal, rig.x, i, 1e-4 * reference_sample(problem.signal, rig.x, i));
    }
    rig_forward(&rig);
    size_t from = BURST + M + rig.plan->choice.transform + rig.plan->choice.hop;
    assert_true(from + WINDOW < N);
    struct partita_problem window = problem;
    window.pad_begin[0] -= (ptrdiff_t)from;
    window.pad_end[0] = -(ptrdiff_t)(N - from - WINDOW);
    double complex *expected = malloc(WINDOW * sizeof *expected);
    reference_forward(&window, expected, rig.x, rig.w);
    const char *quiet = (const char *)rig.y + from * rig.sample_bytes;
    assert_true(error_against(problem.signal, quiet, expected, WINDOW, 0) <= 1e-6);
    free(expected);
    rig_close(&rig);
}

static void argument_errors(void **state)
{
    (void)state;
    struct random random = random_start("arguments");
    struct rig a, b;
    rig_open(&a, &busy, NULL, &random);
    rig_open(&b, &busy, NULL, &random);
    assert_int_equal(partita_forward(NULL, a.filter, a.y, a.x, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_forward(a.plan, NULL, a.y, a.x, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_forward(a.plan, a.filter, NULL, a.x, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_forward(a.plan, a.filter, a.y, NULL, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_forward(a.plan, b.filter, a.y, a.x, NULL), PARTITA_ERR_ARG);
    struct partita_filter *filter = (struct partita_filter *)1;
    assert_int_equal(partita_filter_create(NULL, a.w, &filter), PARTITA_ERR_ARG);
    assert_int_equal(partita_filter_create(a.plan, NULL, &filter), PARTITA_ERR_ARG);
    assert_int_equal(partita_filter_create(a.plan, a.w, NULL), PARTITA_ERR_ARG);
    assert_ptr_equal(filter, (struct partita_filter *)1);
    struct partita_stream *stream = (struct partita_stream *)1;
    assert_int_equal(partita_stream_open(a.plan, a.filter, &stream), PARTITA_ERR_STATE);
    assert_ptr_equal(stream, (struct partita_stream *)1);
    assert_int_equal(partita_plan_latency(a.plan), 0);
    partita_filter_destroy(NULL);
    partita_plan_destroy(NULL);
    rig_close(&a);
    rig_close(&b);
}

static const struct promise promises[] = {
    {"any-threads-same-bits", any_threads_same_bits},
    {"workspace-exact", workspace_exact},
    {"slice-anywhere", slice_anywhere},
    {"impulse-at-every-tap", impulse_at_every_tap},
    {"linear-and-shift-invariant", linear_and_shift_invariant},
    {"quiet-after-loud", quiet_after_loud},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct engine_case grid[N_ENGINES_OF_SIGNALS][N_TYPE_PAIRS];
    static struct CMUnitTest tests[N_ENGINES_OF_SIGNALS * N_TYPE_PAIRS * (N_PROBLEMS + N_PROMISES) +
                                   2 * N_TYPE_PAIRS + 2];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t e = 0; e < N_ENGINES_OF_SIGNALS; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            const char *engine = engines_of_signals[e];
            const struct type_pair *types = &type_pairs[t];
            grid[e][t] = (struct engine_case){engine, types, NULL};
            // Schedules of steps depend on positions of samples, not on their type.
            const bool of_one_type =
                strstr(engine, "steps") && (layer_on_stand_in() || layer_is_brief()) && t > 0;
            if (!layer_has_engine(engine) || of_one_type ||
                (layer_is_brief() && type_is_f64(types->signal)))
                continue;
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                struct engine_case *c = &cases[(e * N_TYPE_PAIRS + t) * N_PROBLEMS + p];
                if (!engine_serves(engine, &problems[p].problem)) continue;
                *c = (struct engine_case){engine, types, &problems[p]};
                tests[n++] = named_test(against_oracle, c, "%s/%s-%s", engine, problems[p].name,
                                        types->name);
            }
            for (size_t p = 0; p < (layer_is_brief() ? 0 : N_PROMISES); p++)
                tests[n++] = named_test(promises[p].run, &grid[e][t], "%s/%s-%s", engine,
                                        promises[p].name, types->name);
        }
    }
    for (size_t t = 0; t < N_TYPE_PAIRS; t++)
        tests[n++] =
            named_test(all_engines_agree, &grid[0][t], "all-engines-agree-%s", type_pairs[t].name);
    for (size_t t = 0; t < N_TYPE_PAIRS && layer_has_engine("cpu/overlap-add"); t++)
        tests[n++] = named_test(as_many_steps_as_overlap, (void *)&type_pairs[t],
                                "as-many-steps-as-overlap-%s", type_pairs[t].name);
    static struct engine_case automatic = {NULL, type_pairs, NULL};
    tests[n++] = named_test(any_threads_same_bits, &automatic, "auto/any-threads-same-bits");
    tests[n++] = named_test(argument_errors, NULL, "argument-errors");
    return run_test_list(tests, n);
}
