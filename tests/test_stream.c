// SPDX-License-Identifier: MIT
// Every engine as a stream: against the oracle, the same bits however the input is cut and laid out, exact latency,
// tail, reset, decimation, and what special values may touch.

#include "rig.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

static const char *const engine_names[] = {"cpu/direct", "cpu/overlap-add", "cpu/overlap-save"};
enum { N_ENGINES = sizeof engine_names / sizeof *engine_names, MAX_CHANNELS = 8 };

struct named_problem {
    const char *name;
    struct partita_problem problem;
};

#define STREAM .size = {PARTITA_UNBOUNDED}, .block = 64
static const struct named_problem problems[] = {
    {"gain", {STREAM, .kernel = {1}}},
    {"two-taps", {STREAM, .kernel = {2}}},
    {"mono", {STREAM, .kernel = {100}}},
    {"many-taps", {STREAM, .kernel = {700}}},
    {"correlate", {STREAM, .op = PARTITA_CORRELATE, .kernel = {37}}},
    {"stereo", {STREAM, .in_channels = 2, .out_channels = 2, .groups = 2, .kernel = {130}}},
    {"matrix", {STREAM, .in_channels = 3, .out_channels = 4, .kernel = {40}}},
    {"groups", {STREAM, .in_channels = 4, .out_channels = 6, .groups = 2, .kernel = {21}}},
    {"dilation", {STREAM, .kernel = {30}, .dilation = {3}}},
    {"decimate-2", {STREAM, .kernel = {64}, .stride = {2}}},
    {"decimate-5", {STREAM, .in_channels = 2, .out_channels = 2, .groups = 2, .kernel = {33}, .stride = {5}}},
    {"decimate-above-taps", {STREAM, .kernel = {3}, .stride = {11}}},
    {"decimate-dilation", {STREAM, .kernel = {20}, .stride = {3}, .dilation = {2}}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

struct stream_case {
    const char *engine;
    const struct type_pair *types;
    const struct named_problem *named; // NULL for promises that bring their own
};

// A stream of random taps with its input, planar.
struct run {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    size_t in, out, stride, sample_bytes, n_frames, n_outputs;
    void *x, *w; // [in][n_frames], [out][in/groups][kernel]
};

static size_t or_one(size_t value)
{
    return value ? value : 1;
}

static void run_open(struct run *run, const struct stream_case *c, const struct partita_problem *problem,
                     size_t n_frames, struct random *random)
{
    *run = (struct run){.problem = *problem, .n_frames = n_frames};
    run->problem.signal = c->types->signal;
    run->problem.taps = c->types->taps;
    run->problem.latency = PARTITA_UNBOUNDED;
    run->in = or_one(problem->in_channels);
    run->out = or_one(problem->out_channels);
    run->stride = or_one(problem->stride[0]);
    run->sample_bytes = partita_type_size(run->problem.signal);
    run->n_outputs = (n_frames + run->stride - 1) / run->stride;
    size_t n_taps = run->out * (run->in / or_one(problem->groups)) * or_one(problem->kernel[0]);
    run->x = malloc(run->in * n_frames * run->sample_bytes);
    run->w = malloc(n_taps * partita_type_size(run->problem.taps));
    random_samples(random, run->problem.signal, run->x, run->in * n_frames);
    random_samples(random, run->problem.taps, run->w, n_taps);
    assert_ok(partita_plan_create(&run->problem, &(struct partita_options){.engine = c->engine}, &run->plan));
    assert_ok(partita_filter_create(run->plan, run->w, &run->filter));
    assert_ok(partita_stream_open(run->plan, run->filter, &run->stream));
}

static void run_close(struct run *run)
{
    partita_stream_close(run->stream);
    partita_filter_destroy(run->filter);
    partita_plan_destroy(run->plan);
    free(run->x);
    free(run->w);
}

// How a run is cut into calls: `most` frames at most, drawn anew for each call, or always `most`.
struct cut {
    const char *name;
    size_t most;
    bool random;
};

static size_t next_call(const struct cut *cut, struct random *random, size_t left)
{
    size_t n = cut->random ? random_below(random, cut->most + 1) : cut->most;
    return n < left ? n : left;
}

// Feeds all of x to `stream`; y [out][n_outputs] planar. Checks the output count of every call.
static void feed(struct run *run, struct partita_stream *stream, void *y, const struct cut *cut, struct random *random)
{
    size_t taken = 0, given = 0;
    while (taken < run->n_frames) {
        size_t n = next_call(cut, random, run->n_frames - taken);
        const void *x_at[MAX_CHANNELS];
        void *y_at[MAX_CHANNELS];
        for (size_t c = 0; c < run->in; c++) x_at[c] = (char *)run->x + (c * run->n_frames + taken) * run->sample_bytes;
        for (size_t c = 0; c < run->out; c++) y_at[c] = (char *)y + (c * run->n_outputs + given) * run->sample_bytes;
        size_t due = (taken + n + run->stride - 1) / run->stride - given;
        assert_int_equal(partita_stream_output_frames(stream, n), due);
        partita_stream_process(stream, y_at, x_at, n);
        taken += n;
        given += due;
    }
}

static const struct cut whole = {"whole", SIZE_MAX, false};

static void *output(const struct run *run)
{
    return guarded_alloc(run->out * run->n_outputs * run->sample_bytes, type_is_f64(run->problem.signal) ? 8 : 4);
}

static size_t output_bytes(const struct run *run)
{
    return run->out * run->n_outputs * run->sample_bytes;
}

// Compares outputs from `latency` on with the oracle, those before it with zero.
static void check_against_oracle(const struct run *run, const void *y)
{
    size_t late = partita_plan_latency(run->plan) / run->stride, n = run->n_outputs;
    double complex *expected = calloc(run->out * n, sizeof *expected), *now = malloc(run->out * n * sizeof *now);
    reference_stream(&run->problem, run->n_frames, now, run->x, run->w);
    for (size_t k = 0; k < run->out; k++) {
        for (size_t p = late; p < n; p++) expected[k * n + p] = now[k * n + p - late];
    }
    struct partita_problem sized = run->problem;
    double gate = plan_gate(run->plan, &sized, run->out * n);
    double error = error_against(run->problem.signal, y, expected, run->out * n, typical_output(&sized));
    if (!(error <= gate)) fail_msg("error %.3g above %.3g", error, gate);
    for (size_t k = 0; k < run->out; k++) {
        for (size_t p = 0; p < late && p < n; p++) {
            assert_true(reference_sample(run->problem.signal, y, k * n + p) == 0);
        }
    }
    free(expected);
    free(now);
}

// Long enough for several blocks of any size the planner may like for these taps.
static size_t enough_frames(const struct partita_plan *plan)
{
    return 3 * (plan->choice.transform + plan->choice.hop) + 1000;
}

static size_t frames_for(const struct stream_case *c, const struct partita_problem *problem)
{
    struct run probe;
    struct random random = random_start("probe");
    run_open(&probe, c, problem, 1, &random);
    size_t n = enough_frames(probe.plan);
    run_close(&probe);
    return n;
}

static void any_cut_same_bits(void **state)
{
    static const struct cut cuts[] = {
        {"ones", 1, false},         {"up-to-7", 7, true}, {"block", 64, false}, {"up-to-three-blocks", 200, true},
        {"up-to-5000", 5000, true},
    };
    const struct stream_case *c = *state;
    struct random random = random_start(c->named->name);
    struct run run;
    run_open(&run, c, &c->named->problem, frames_for(c, &c->named->problem), &random);
    void *y = output(&run);
    feed(&run, run.stream, y, &whole, &random);
    check_against_oracle(&run, y);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        void *other = output(&run);
        if (i % 2) partita_stream_reset(run.stream); // a reset stream and a new one are alike
        else {
            partita_stream_close(run.stream);
            assert_ok(partita_stream_open(run.plan, run.filter, &run.stream));
        }
        feed(&run, run.stream, other, &cuts[i], &random);
        if (memcmp(y, other, output_bytes(&run))) fail_msg("calls of %s give other bits", cuts[i].name);
        guarded_free(other);
    }
    guarded_free(y);
    run_close(&run);
}

static const struct partita_problem stereo = {STREAM, .in_channels = 2, .out_channels = 2, .kernel = {90}};

static void in_place_same_bits(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("in-place");
    struct run run;
    run_open(&run, c, &stereo, frames_for(c, &stereo), &random);
    void *y = output(&run);
    feed(&run, run.stream, y, &whole, &random);
    partita_stream_reset(run.stream);
    for (size_t at = 0, n; at < run.n_frames; at += n) {
        n = next_call(&(struct cut){"", 150, true}, &random, run.n_frames - at);
        void *here[2] = {(char *)run.x + at * run.sample_bytes, (char *)run.x + (run.n_frames + at) * run.sample_bytes};
        partita_stream_process(run.stream, here, (const void *const *)here, n);
    }
    assert_memory_equal(run.x, y, output_bytes(&run));
    guarded_free(y);
    run_close(&run);
}

// Interleaved input of 3 samples a frame, output of 5, of which two each are used; then interleaved in place.
static void interleaved_same_bits(void **state)
{
    const struct stream_case *c = *state;
    enum { X_STRIDE = 3, Y_STRIDE = 5 };
    struct random random = random_start("interleaved");
    struct run run;
    run_open(&run, c, &stereo, frames_for(c, &stereo), &random);
    size_t bytes = run.sample_bytes, n_frames = run.n_frames;
    char *y = output(&run), *x = guarded_alloc(X_STRIDE * n_frames * bytes, 0),
         *wide = guarded_alloc(Y_STRIDE * n_frames * bytes, 0);
    feed(&run, run.stream, y, &whole, &random);
    partita_stream_reset(run.stream);
    for (size_t i = 0; i < 2 * n_frames; i++) {
        memcpy(x + (i % n_frames * X_STRIDE + i / n_frames) * bytes, (char *)run.x + i * bytes, bytes);
    }
    memset(wide, 0x55, Y_STRIDE * n_frames * bytes);
    for (size_t at = 0, n; at < n_frames; at += n) {
        n = next_call(&(struct cut){"", 99, true}, &random, n_frames - at);
        char *to = wide + at * Y_STRIDE * bytes, *from = x + at * X_STRIDE * bytes;
        void *y_at[2] = {to, to + bytes};
        const void *x_at[2] = {from, from + bytes};
        partita_stream_process_strided(run.stream, y_at, Y_STRIDE, x_at, X_STRIDE, n);
    }
    for (size_t i = 0; i < 2 * n_frames; i++) {
        assert_memory_equal(wide + (i % n_frames * Y_STRIDE + i / n_frames) * bytes, y + i * bytes, bytes);
    }
    for (size_t i = 0; i < n_frames; i++) {
        for (size_t j = 2 * bytes; j < Y_STRIDE * bytes; j++) assert_int_equal(wide[i * Y_STRIDE * bytes + j], 0x55);
    }
    partita_stream_reset(run.stream);
    void *here[2] = {x, x + bytes};
    partita_stream_process_strided(run.stream, here, X_STRIDE, (const void *const *)here, X_STRIDE, n_frames);
    for (size_t i = 0; i < 2 * n_frames; i++) {
        assert_memory_equal(x + (i % n_frames * X_STRIDE + i / n_frames) * bytes, y + i * bytes, bytes);
    }
    guarded_free(wide);
    guarded_free(x);
    guarded_free(y);
    run_close(&run);
}

// An impulse comes out as the taps, the first at the latency and the last at the tail, wherever it falls in a block.
static void impulse_at_latency(void **state)
{
    const struct stream_case *c = *state;
    enum { M = 50 };
    struct partita_problem problem = {STREAM, .kernel = {M}};
    struct random random = random_start("latency");
    struct run run;
    run_open(&run, c, &problem, frames_for(c, &problem), &random);
    size_t latency = partita_stream_latency(run.stream);
    assert_int_equal(latency, partita_plan_latency(run.plan));
    assert_int_equal(partita_stream_tail(run.stream), latency + M - 1);
    double complex *expected = malloc(run.n_outputs * sizeof *expected);
    double limit = run.plan->choice.transform ? plan_gate(run.plan, &run.problem, M) : 0;
    for (size_t round = 0; round < 12; round++) {
        size_t at = round < 2 ? round : random_below(&random, run.n_frames - latency - M);
        memset(run.x, 0, run.n_frames * run.sample_bytes);
        memset(expected, 0, run.n_outputs * sizeof *expected);
        sample_put(run.problem.signal, run.x, at, 1);
        for (size_t r = 0; r < M; r++) expected[at + latency + r] = reference_sample(run.problem.taps, run.w, r);
        void *y = output(&run);
        partita_stream_reset(run.stream);
        feed(&run, run.stream, y, &(struct cut){"", 77, true}, &random);
        assert_true(error_against(run.problem.signal, y, expected, run.n_outputs, 0) <= limit);
        guarded_free(y);
    }
    free(expected);
    run_close(&run);
}

// Draining brings out the rest: input and then tail frames of silence are the whole convolution; more silence is zero.
static void drain_brings_the_tail(void **state)
{
    const struct stream_case *c = *state;
    for (size_t stride = 1; stride <= 3; stride += 2) {
        struct partita_problem problem = {STREAM, .in_channels = 2, .kernel = {60}, .stride = {stride},
                                          .dilation = {2}};
        struct random random = random_start("drain");
        struct run run, longer;
        run_open(&run, c, &problem, frames_for(c, &problem) / 2, &random);
        size_t tail = partita_stream_tail(run.stream), beyond = 2 * tail + 500;
        random = random_start("drain");
        run_open(&longer, c, &problem, run.n_frames + tail + beyond, &random); // the same taps with another input
        memcpy(longer.w, run.w, 2 * 60 * partita_type_size(run.problem.taps));
        partita_stream_close(longer.stream);
        partita_filter_destroy(longer.filter);
        assert_ok(partita_filter_create(longer.plan, longer.w, &longer.filter));
        assert_ok(partita_stream_open(longer.plan, longer.filter, &longer.stream));
        memset(longer.x, 0, 2 * longer.n_frames * run.sample_bytes);
        for (size_t k = 0; k < 2; k++) {
            memcpy((char *)longer.x + k * longer.n_frames * run.sample_bytes,
                   (char *)run.x + k * run.n_frames * run.sample_bytes, run.n_frames * run.sample_bytes);
        }
        char *expected = output(&longer), *y = output(&longer);
        feed(&longer, longer.stream, expected, &whole, &random);
        feed(&run, run.stream, y, &whole, &random);
        size_t given = run.n_outputs;
        for (size_t left = tail + beyond, n; left; left -= n) {
            n = next_call(&(struct cut){"", 40, true}, &random, left);
            size_t due = partita_stream_output_frames(run.stream, n);
            partita_stream_drain(run.stream, &(void *){y + given * run.sample_bytes}, 1, n);
            given += due;
        }
        assert_int_equal(given, longer.n_outputs);
        assert_memory_equal(y, expected, output_bytes(&longer));
        check_against_oracle(&longer, y);
        size_t silent = (run.n_frames + tail + stride - 1) / stride + 1;
        double loudest = 0;
        for (size_t i = silent; i < given; i++)
            loudest = fmax(loudest, cabs(reference_sample(run.problem.signal, y, i)));
        assert_true(loudest <= gate_transform(run.problem.signal, 1 << 16) * typical_output(&run.problem) * 4);
        guarded_free(y);
        guarded_free(expected);
        run_close(&run);
        run_close(&longer);
    }
}

// First and last output that input frame `at` may reach, special values included. cpu/direct: its own taps. Transforms:
// every output computed from a block that holds it. Overlap-save: all blocks whose window (block and span-1 frames
// before it) holds it. Overlap-add: the whole transform of its block. Afterwards the state is clean.
static void reach(const struct run *run, size_t at, size_t *ret_first, size_t *ret_last)
{
    size_t span = run->problem.kernel[0], hop = run->plan->choice.hop, late = partita_plan_latency(run->plan);
    *ret_first = at + late;
    *ret_last = at + late + span - 1;
    if (!run->plan->choice.transform) return;
    *ret_first = at / hop * hop + late;
    *ret_last = strcmp(partita_plan_engine(run->plan), "cpu/overlap-add") == 0
                    ? at / hop * hop + run->plan->choice.transform - 1 + late
                    : ((at + span - 1) / hop + 1) * hop - 1 + late;
}

// One NaN or infinity: outputs out of its reach have the very bits they have without it, those that see it are NaN or
// infinite.
static void special_value_reach(void **state)
{
    const struct stream_case *c = *state;
    enum { M = 45 };
    struct partita_problem problem = {STREAM, .kernel = {M}};
    struct random random = random_start("special");
    struct run run;
    run_open(&run, c, &problem, frames_for(c, &problem), &random);
    void *clean = output(&run);
    feed(&run, run.stream, clean, &whole, &random);
    for (size_t round = 0; round < 10; round++) {
        size_t at = random_below(&random, run.n_frames), first, last;
        double complex kept = reference_sample(run.problem.signal, run.x, at);
        sample_put(run.problem.signal, run.x, at, round % 2 ? (double)NAN : (double)INFINITY);
        void *y = output(&run);
        partita_stream_reset(run.stream);
        feed(&run, run.stream, y, &(struct cut){"", 300, true}, &random);
        reach(&run, at, &first, &last);
        for (size_t i = 0; i < run.n_outputs; i++) {
            bool same =
                memcmp((char *)y + i * run.sample_bytes, (char *)clean + i * run.sample_bytes, run.sample_bytes) == 0;
            if (!same && (i < first || i > last))
                fail_msg("frame %zu touches output %zu beyond %zu..%zu", at, i, first, last);
            double complex value = reference_sample(run.problem.signal, y, i);
            size_t late = partita_plan_latency(run.plan);
            if (i >= at + late && i < at + late + M) assert_false(isfinite(creal(value)) && isfinite(cimag(value)));
        }
        sample_put(run.problem.signal, run.x, at, kept);
        guarded_free(y);
    }
    guarded_free(clean);
    run_close(&run);
}

// Denormal signals pass a direct filter of one unit tap unchanged; the largest finite values halved stay finite.
static void extreme_values(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem problem = {STREAM, .kernel = {2}};
    bool f64 = type_is_f64(c->types->signal), direct = strcmp(c->engine, "cpu/direct") == 0;
    double least = f64 ? 5 * (double)DBL_TRUE_MIN : 5 * (double)FLT_TRUE_MIN, most = f64 ? DBL_MAX : (double)FLT_MAX;
    struct random random = random_start("extreme");
    struct run run;
    run_open(&run, c, &problem, frames_for(c, &problem), &random);
    for (int round = 0; round < 2; round++) {
        // Transforms add up to N samples in complex arithmetic before they scale: that much headroom is theirs.
        double room = direct ? 1 : 1.0 / (double)(8 * run.plan->choice.transform * run.plan->choice.transform);
        double value = round ? most * room : least;
        for (size_t i = 0; i < run.n_frames; i++) sample_put(run.problem.signal, run.x, i, i % 3 ? value : -value);
        sample_put(run.problem.taps, run.w, 0, round ? 0.5 : 1);
        sample_put(run.problem.taps, run.w, 1, 0);
        partita_filter_destroy(run.filter);
        assert_ok(partita_filter_create(run.plan, run.w, &run.filter));
        partita_stream_close(run.stream);
        assert_ok(partita_stream_open(run.plan, run.filter, &run.stream));
        void *y = output(&run);
        feed(&run, run.stream, y, &whole, &random);
        for (size_t i = 0; i < run.n_frames - partita_plan_latency(run.plan); i++) {
            double got = creal(reference_sample(run.problem.signal, y, i + partita_plan_latency(run.plan)));
            double expected = (i % 3 ? value : -value) * (round ? 0.5 : 1);
            if (direct) assert_true(got == expected);
            else assert_true(fabs(got - expected) <= (round ? fabs(value) * 1e-4 : least * 1000));
        }
        guarded_free(y);
    }
    run_close(&run);
}

// Two streams of one plan and filter, fed in turns, do not know of each other; process keeps the rounding mode.
static void streams_share_a_plan(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("share");
    struct run run;
    run_open(&run, c, &stereo, frames_for(c, &stereo), &random);
    struct partita_stream *second;
    assert_ok(partita_stream_open(run.plan, run.filter, &second));
    void *alone = output(&run);
    feed(&run, run.stream, alone, &whole, &random);
    partita_stream_reset(run.stream);
    struct partita_stream *streams[2] = {run.stream, second};
    char *y[2] = {output(&run), output(&run)};
    size_t at[2] = {0, 0}, bytes = run.sample_bytes, n_frames = run.n_frames;
    fesetround(FE_TONEAREST);
    while (at[0] < n_frames || at[1] < n_frames) {
        size_t s = random_below(&random, 2), n = next_call(&(struct cut){"", 120, true}, &random, n_frames - at[s]);
        const void *x_at[2] = {(char *)run.x + at[s] * bytes, (char *)run.x + (n_frames + at[s]) * bytes};
        void *y_at[2] = {y[s] + at[s] * bytes, y[s] + (n_frames + at[s]) * bytes};
        partita_stream_process(streams[s], y_at, x_at, n);
        at[s] += n;
    }
    assert_int_equal(fegetround(), FE_TONEAREST);
    for (int s = 0; s < 2; s++) {
        assert_memory_equal(y[s], alone, output_bytes(&run));
        guarded_free(y[s]);
    }
    partita_stream_close(second);
    guarded_free(alone);
    run_close(&run);
}

static void latency_limits(void **state)
{
    (void)state;
    static const size_t limits[] = {0, 1, 5, 63, 64, 500, 1023, 4096, 100000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        for (size_t stride = 1; stride <= 3; stride++) {
            struct partita_problem problem = {STREAM, .kernel = {600}, .stride = {stride}, .latency = limits[i]};
            struct partita_plan *plan;
            assert_ok(partita_plan_create(&problem, NULL, &plan));
            assert_true(partita_plan_latency(plan) <= limits[i]);
            assert_int_equal(partita_plan_latency(plan) % stride, 0);
            assert_int_equal(partita_plan_workspace_size(plan), 0);
            if (limits[i] == 0) assert_string_equal(partita_plan_engine(plan), "cpu/direct");
            partita_plan_destroy(plan);
        }
    }
}

static void argument_errors(void **state)
{
    (void)state;
    static const struct stream_case direct = {"cpu/direct", type_pairs, NULL};
    struct random random = random_start("arguments");
    struct run a, b;
    run_open(&a, &direct, &stereo, 10, &random);
    run_open(&b, &direct, &stereo, 10, &random);
    struct partita_stream *stream = (struct partita_stream *)1;
    assert_int_equal(partita_stream_open(NULL, a.filter, &stream), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_open(a.plan, NULL, &stream), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_open(a.plan, a.filter, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_open(a.plan, b.filter, &stream), PARTITA_ERR_ARG);
    assert_ptr_equal(stream, (struct partita_stream *)1);
    float y[20];
    assert_int_equal(partita_forward(a.plan, a.filter, y, a.x, NULL), PARTITA_ERR_STATE);
    partita_stream_close(NULL);
    run_close(&a);
    run_close(&b);
}

struct promise {
    const char *name;
    CMUnitTestFunction run;
};

static const struct promise promises[] = {
    {"in-place-same-bits", in_place_same_bits},     {"interleaved-same-bits", interleaved_same_bits},
    {"impulse-at-latency", impulse_at_latency},     {"drain-brings-the-tail", drain_brings_the_tail},
    {"special-value-reach", special_value_reach},   {"extreme-values", extreme_values},
    {"streams-share-a-plan", streams_share_a_plan},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_ENGINES][N_TYPE_PAIRS][N_PROBLEMS + 1];
    static struct CMUnitTest tests[N_ENGINES * N_TYPE_PAIRS * (N_PROBLEMS + N_PROMISES) + 2];
    size_t n = 0;
    for (size_t e = 0; e < N_ENGINES; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            struct stream_case *c = cases[e][t];
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                c[p] = (struct stream_case){engine_names[e], &type_pairs[t], &problems[p]};
                tests[n++] = named_test(any_cut_same_bits, &c[p], "%s/%s-%s", engine_names[e], problems[p].name,
                                        type_pairs[t].name);
            }
            c[N_PROBLEMS] = (struct stream_case){engine_names[e], &type_pairs[t], NULL};
            for (size_t p = 0; p < N_PROMISES; p++) {
                tests[n++] = named_test(promises[p].run, &c[N_PROBLEMS], "%s/%s-%s", engine_names[e], promises[p].name,
                                        type_pairs[t].name);
            }
        }
    }
    tests[n++] = named_test(latency_limits, NULL, "latency-limits");
    tests[n++] = named_test(argument_errors, NULL, "argument-errors");
    return run_test_list(tests, n);
}
