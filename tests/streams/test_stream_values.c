// SPDX-License-Identifier: MIT
// Values and times of a stream's outputs: exact latency, the tail, extreme values.

#include "support/stream_rig.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

// The output of an impulse is the taps, the first at the latency and the last at the tail, for any
// position in a block.
static void impulse_at_latency(void **state)
{
    const struct stream_case *c = *state;
    enum { M = 50 };
    struct partita_problem problem = {STREAM(64), KERNEL(M)};
    struct random random = random_start("latency");
    struct stream_rig rig;
    stream_rig_open(&rig, c, &problem, stream_rig_frames(c, &problem), &random);
    size_t latency = partita_stream_latency(rig.stream);
    assert_int_equal(latency, partita_plan_latency(rig.plan));
    assert_int_equal(partita_stream_tail(rig.stream), latency + M - 1);
    double complex *expected = malloc(rig.n_outputs * sizeof *expected);
    double limit = rig.plan->choice.transform ? plan_gate(rig.plan, &rig.problem, M) : 0;
    for (size_t round = 0; round < 12; round++) {
        size_t at = round < 2 ? round : random_below(&random, rig.n_frames - latency - M);
        memset(rig.x, 0, rig.n_frames * rig.sample_bytes);
        memset(expected, 0, rig.n_outputs * sizeof *expected);
        sample_put(rig.problem.signal, rig.x, at, 1);
        for (size_t r = 0; r < M; r++)
            expected[at + latency + r] = reference_sample(rig.problem.taps, rig.w, r);
        void *y = stream_rig_alloc_output(&rig);
        partita_stream_reset(rig.stream);
        stream_rig_feed(&rig, rig.stream, y, &(struct call_split){"", 77, true}, &random);
        assert_true(error_against(rig.problem.signal, y, expected, rig.n_outputs, 0) <= limit);
        guarded_free(y);
    }
    free(expected);
    stream_rig_close(&rig);
}

// With draining for the tail the outputs are the whole convolution; after it they are zero.
static void drain_brings_the_tail(void **state)
{
    const struct stream_case *c = *state;
    for (size_t stride = 1; stride <= 3; stride += 2) {
        struct partita_problem problem = {STREAM(64), CHANNELS(2, 1), KERNEL(60), STRIDE(stride),
                                          DILATION(2)};
        struct random random = random_start("drain");
        struct stream_rig rig, longer;
        stream_rig_open(&rig, c, &problem, stream_rig_frames(c, &problem) / 2, &random);
        size_t tail = partita_stream_tail(rig.stream), beyond = 2 * tail + 500;
        random = random_start("drain");
        stream_rig_open(&longer, c, &problem, rig.n_frames + tail + beyond,
                        &random); // for the same taps with another input
        memcpy(longer.w, rig.w, 2 * 60 * partita_type_size(rig.problem.taps));
        partita_stream_close(longer.stream);
        partita_filter_destroy(longer.filter);
        assert_ok(partita_filter_create(longer.plan, longer.w, &longer.filter));
        assert_ok(partita_stream_open(longer.plan, longer.filter, &longer.stream));
        memset(longer.x, 0, 2 * longer.n_frames * rig.sample_bytes);
        for (size_t k = 0; k < 2; k++) {
            memcpy((char *)longer.x + k * longer.n_frames * rig.sample_bytes,
                   (char *)rig.x + k * rig.n_frames * rig.sample_bytes,
                   rig.n_frames * rig.sample_bytes);
        }
        char *expected = stream_rig_alloc_output(&longer), *y = stream_rig_alloc_output(&longer);
        stream_rig_feed(&longer, longer.stream, expected, &split_whole, &random);
        stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        size_t given = rig.n_outputs;
        for (size_t left = tail + beyond, n; left; left -= n) {
            n = split_next(&(struct call_split){"", 40, true}, &random, left);
            size_t due = partita_stream_output_frames(rig.stream, n);
            partita_stream_process(rig.stream, &(void *){y + given * rig.sample_bytes}, NULL, n);
            given += due;
        }
        assert_int_equal(given, longer.n_outputs);
        assert_memory_equal(y, expected, stream_rig_output_bytes(&longer));
        stream_rig_check(&longer, y);
        size_t silent = (rig.n_frames + tail + stride - 1) / stride + 1;
        double loudest = 0;
        for (size_t i = silent; i < given; i++)
            loudest = fmax(loudest, cabs(reference_sample(rig.problem.signal, y, i)));
        assert_true(loudest <=
                    gate_transform(rig.problem.signal, 1 << 16) * typical_output(&rig.problem) * 4);
        guarded_free(y);
        guarded_free(expected);
        stream_rig_close(&rig);
        stream_rig_close(&longer);
    }
}

// Denormal signals pass a direct filter of one unit tap unchanged; half the largest finite value
// stays finite.
static void extreme_values(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem problem = {STREAM(64), KERNEL(2)};
    bool f64 = type_is_f64(c->types->signal), direct = strcmp(c->engine, "cpu/direct") == 0;
    double smallest = f64 ? 5 * (double)DBL_TRUE_MIN : 5 * (double)FLT_TRUE_MIN,
           largest = f64 ? DBL_MAX : (double)FLT_MAX;
    struct random random = random_start("extreme");
    struct stream_rig rig;
    stream_rig_open(&rig, c, &problem, stream_rig_frames(c, &problem), &random);
    for (int round = 0; round < 2; round++) {
        // Transforms add up to N samples in complex arithmetic before scaling, which needs
        // headroom.
        double headroom =
            direct ? 1
                   : 1.0 / (double)(8 * rig.plan->choice.transform * rig.plan->choice.transform);
        double value = round ? largest * headroom : smallest;
        for (size_t i = 0; i < rig.n_frames; i++)
            sample_put(rig.problem.signal, rig.x, i, i % 3 ? value : -value);
        sample_put(rig.problem.taps, rig.w, 0, round ? 0.5 : 1);
        sample_put(rig.problem.taps, rig.w, 1, 0);
        partita_filter_destroy(rig.filter);
        assert_ok(partita_filter_create(rig.plan, rig.w, &rig.filter));
        partita_stream_close(rig.stream);
        assert_ok(partita_stream_open(rig.plan, rig.filter, &rig.stream));
        void *y = stream_rig_alloc_output(&rig);
        stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
        for (size_t i = 0; i < rig.n_frames - partita_plan_latency(rig.plan); i++) {
            double got =
                creal(reference_sample(rig.problem.signal, y, i + partita_plan_latency(rig.plan)));
            double expected = (i % 3 ? value : -value) * (round ? 0.5 : 1);
            if (direct) assert_true(got == expected);
            else
                assert_true(fabs(got - expected) <= (round ? fabs(value) * 1e-4 : smallest * 1000));
        }
        guarded_free(y);
    }
    stream_rig_close(&rig);
}

#if defined(__x86_64__)
// Rounding, masks, flush-to-zero and denormals-are-zero: MXCSR without the flags that arithmetic
// sets.
static unsigned mode(void)
{
    return __builtin_ia32_stmxcsr() & ~0x3fu;
}
#else
static unsigned mode(void)
{
    return (unsigned)fegetround();
}
#endif

// The library neither depends on the caller's floating-point mode nor changes it.
static void floating_point_mode_kept(void **state)
{
    const struct stream_case *c = *state;
    struct partita_problem problem = {STREAM(64), KERNEL(100)};
    struct random random = random_start("mode");
    struct stream_rig rig;
    stream_rig_open(&rig, c, &problem, stream_rig_frames(c, &problem), &random);
    void *y = stream_rig_alloc_output(&rig);
    assert_int_equal(fesetround(FE_UPWARD), 0);
    unsigned before = mode();
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    unsigned after = mode();
    fesetround(FE_TONEAREST);
    assert_int_equal(before, after);
    guarded_free(y);
    stream_rig_close(&rig);
}

static const struct promise promises[] = {
    {"impulse-at-latency", impulse_at_latency},
    {"drain-brings-the-tail", drain_brings_the_tail},
    {"extreme-values", extreme_values},
    {"floating-point-mode-kept", floating_point_mode_kept},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_STREAM_ENGINES][N_TYPE_PAIRS];
    static struct CMUnitTest tests[N_STREAM_ENGINES * N_TYPE_PAIRS * N_PROMISES];
    size_t n = 0;
    for (size_t e = 0; e < N_STREAM_ENGINES; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            cases[e][t] = (struct stream_case){engine_names[e], &type_pairs[t], NULL};
            for (size_t p = 0; p < N_PROMISES; p++) {
                tests[n++] = named_test(promises[p].run, &cases[e][t], "%s/%s-%s", engine_names[e],
                                        promises[p].name, type_pairs[t].name);
            }
        }
    }
    return run_test_list(tests, n);
}
