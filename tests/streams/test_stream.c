// SPDX-License-Identifier: MIT
// Every engine as a stream against the oracle, with the same bits for any calls and layouts: calls
// of any size, in place, interleaved, decimated, after a reset, beside another stream of the same
// plan.

#include "support/stream_rig.h"

static const struct named_problem problems[] = {
    {"gain", {STREAM(64), KERNEL(1)}},
    {"two-taps", {STREAM(64), KERNEL(2)}},
    {"mono", {STREAM(64), KERNEL(100)}},
    {"many-taps", {STREAM(64), KERNEL(700)}},
    {"correlate", {STREAM(64), CORRELATE, KERNEL(37)}},
    {"stereo", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(130)}},
    {"matrix", {STREAM(64), CHANNELS(3, 4), KERNEL(40)}},
    {"groups", {STREAM(64), CHANNELS(4, 6), GROUPS(2), KERNEL(21)}},
    {"dilation", {STREAM(64), KERNEL(30), DILATION(3)}},
    {"decimate-2", {STREAM(64), KERNEL(64), STRIDE(2)}},
    {"decimate-5", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(33), STRIDE(5)}},
    {"decimate-above-taps", {STREAM(64), KERNEL(3), STRIDE(11)}},
    {"blocks-below-taps", {STREAM(64), KERNEL(100), LATENCY(20)}},
    {"blocks-of-two", {STREAM(64), CHANNELS(2, 1), KERNEL(9), LATENCY(1)}},
    {"blocks-below-taps-decimate", {STREAM(64), KERNEL(64), STRIDE(3), LATENCY(11)}},
    {"decimate-dilation", {STREAM(64), KERNEL(20), STRIDE(3), DILATION(2)}},
    {"up-2", {STREAM(64), KERNEL(33), UP(2)}},
    {"up-3-decimate-2", {STREAM(64), CHANNELS(2, 2), GROUPS(2), KERNEL(40), STRIDE(2), UP(3)}},
    {"up-2-decimate-7", {STREAM(64), CHANNELS(2, 3), KERNEL(21), STRIDE(7), UP(2)}},
    {"up-6-decimate-4", {STREAM(64), CORRELATE, KERNEL(50), STRIDE(4), UP(6)}},
    {"up-2-decimate-4", {STREAM(64), KERNEL(50), STRIDE(4), UP(2)}},
    {"up-160-decimate-147", {STREAM(64), KERNEL(500), STRIDE(147), UP(160)}},
    {"up-above-taps", {STREAM(64), KERNEL(3), STRIDE(3), UP(5)}},
    {"up-dilation", {STREAM(64), KERNEL(9), DILATION(3), UP(4)}},
    {"up-latency", {STREAM(64), KERNEL(60), STRIDE(2), LATENCY(20), UP(3)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static void any_split_same_bits(void **state)
{
    static const struct call_split splits[] = {
        {"ones", 1, false},         {"up-to-7", 7, true},
        {"block", 64, false},       {"up-to-three-blocks", 200, true},
        {"up-to-5000", 5000, true},
    };
    const struct stream_case *c = *state;
    struct random random = random_start(c->named->name);
    struct stream_rig rig;
    stream_rig_open(&rig, c, &c->named->problem, stream_rig_frames(c, &c->named->problem), &random);
    void *y = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    stream_rig_check(&rig, y);
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        void *other = stream_rig_alloc_output(&rig);
        if (i % 2) partita_stream_reset(rig.stream); // a reset stream equals a new one
        else {
            partita_stream_close(rig.stream);
            assert_ok(partita_stream_open(rig.plan, rig.filter, &rig.stream));
        }
        stream_rig_feed(&rig, rig.stream, other, &splits[i], &random);
        if (memcmp(y, other, stream_rig_output_bytes(&rig)))
            fail_msg("calls of %s have other bits", splits[i].name);
        guarded_free(other);
    }
    guarded_free(y);
    stream_rig_close(&rig);
}

static const struct partita_problem stereo = {STREAM(64), CHANNELS(2, 2), KERNEL(90)};

static void in_place_same_bits(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("in-place");
    struct stream_rig rig;
    stream_rig_open(&rig, c, &stereo, stream_rig_frames(c, &stereo), &random);
    void *y = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    partita_stream_reset(rig.stream);
    for (size_t at = 0, n; at < rig.n_frames; at += n) {
        n = split_next(&(struct call_split){"", 150, true}, &random, rig.n_frames - at);
        void *here[2] = {(char *)rig.x + at * rig.sample_bytes,
                         (char *)rig.x + (rig.n_frames + at) * rig.sample_bytes};
        partita_stream_process(rig.stream, here, (const void *const *)here, n);
    }
    assert_memory_equal(rig.x, y, stream_rig_output_bytes(&rig));
    guarded_free(y);
    stream_rig_close(&rig);
}

// Interleaved input of 3 samples a frame and output of 5, of which two each are used; then
// interleaved in place.
static void interleaved_same_bits(void **state)
{
    const struct stream_case *c = *state;
    enum { X_STRIDE = 3, Y_STRIDE = 5 };
    struct random random = random_start("interleaved");
    struct stream_rig rig;
    stream_rig_open(&rig, c, &stereo, stream_rig_frames(c, &stereo), &random);
    size_t bytes = rig.sample_bytes, n_frames = rig.n_frames;
    char *y = stream_rig_alloc_output(&rig), *x = guarded_alloc(X_STRIDE * n_frames * bytes, 0),
         *wide = guarded_alloc(Y_STRIDE * n_frames * bytes, 0);
    stream_rig_feed(&rig, rig.stream, y, &split_whole, &random);
    partita_stream_reset(rig.stream);
    for (size_t i = 0; i < 2 * n_frames; i++) {
        memcpy(x + (i % n_frames * X_STRIDE + i / n_frames) * bytes, (char *)rig.x + i * bytes,
               bytes);
    }
    memset(wide, 0x55, Y_STRIDE * n_frames * bytes);
    for (size_t at = 0, n; at < n_frames; at += n) {
        n = split_next(&(struct call_split){"", 99, true}, &random, n_frames - at);
        char *to = wide + at * Y_STRIDE * bytes, *from = x + at * X_STRIDE * bytes;
        void *y_at[2] = {to, to + bytes};
        const void *x_at[2] = {from, from + bytes};
        partita_stream_process_strided(rig.stream, y_at, Y_STRIDE, x_at, X_STRIDE, n);
    }
    for (size_t i = 0; i < 2 * n_frames; i++) {
        assert_memory_equal(wide + (i % n_frames * Y_STRIDE + i / n_frames) * bytes, y + i * bytes,
                            bytes);
    }
    for (size_t i = 0; i < n_frames; i++) {
        for (size_t j = 2 * bytes; j < Y_STRIDE * bytes; j++)
            assert_int_equal(wide[i * Y_STRIDE * bytes + j], 0x55);
    }
    partita_stream_reset(rig.stream);
    void *here[2] = {x, x + bytes};
    partita_stream_process_strided(rig.stream, here, X_STRIDE, (const void *const *)here, X_STRIDE,
                                   n_frames);
    for (size_t i = 0; i < 2 * n_frames; i++) {
        assert_memory_equal(x + (i % n_frames * X_STRIDE + i / n_frames) * bytes, y + i * bytes,
                            bytes);
    }
    guarded_free(wide);
    guarded_free(x);
    guarded_free(y);
    stream_rig_close(&rig);
}

// Two streams of one plan and filter with alternating calls are independent.
static void streams_share_a_plan(void **state)
{
    const struct stream_case *c = *state;
    struct random random = random_start("share");
    struct stream_rig rig;
    stream_rig_open(&rig, c, &stereo, stream_rig_frames(c, &stereo), &random);
    struct partita_stream *second;
    assert_ok(partita_stream_open(rig.plan, rig.filter, &second));
    void *alone = stream_rig_alloc_output(&rig);
    stream_rig_feed(&rig, rig.stream, alone, &split_whole, &random);
    partita_stream_reset(rig.stream);
    struct partita_stream *streams[2] = {rig.stream, second};
    char *y[2] = {stream_rig_alloc_output(&rig), stream_rig_alloc_output(&rig)};
    size_t at[2] = {0, 0}, bytes = rig.sample_bytes, n_frames = rig.n_frames;
    // A call without frames touches no array.
    partita_stream_process(second, (void *const *)NULL, (const void *const *)NULL, 0);
    partita_stream_process(second, (void *const *)NULL, (const void *const *)&bytes, 0);
    while (at[0] < n_frames || at[1] < n_frames) {
        size_t s = random_below(&random, 2),
               n = split_next(&(struct call_split){"", 120, true}, &random, n_frames - at[s]);
        const void *x_at[2] = {(char *)rig.x + at[s] * bytes,
                               (char *)rig.x + (n_frames + at[s]) * bytes};
        void *y_at[2] = {y[s] + at[s] * bytes, y[s] + (n_frames + at[s]) * bytes};
        partita_stream_process(streams[s], y_at, x_at, n);
        at[s] += n;
    }
    for (int s = 0; s < 2; s++) {
        assert_memory_equal(y[s], alone, stream_rig_output_bytes(&rig));
        guarded_free(y[s]);
    }
    partita_stream_close(second);
    guarded_free(alone);
    stream_rig_close(&rig);
}

static void latency_limits(void **state)
{
    (void)state;
    static const size_t limits[] = {0, 1, 5, 63, 64, 500, 1023, 4096, 100000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        for (size_t stride = 1; stride <= 3; stride++) {
            struct partita_problem problem = {STREAM(64), KERNEL(600), STRIDE(stride),
                                              LATENCY(limits[i])};
            struct partita_plan *plan;
            assert_ok(partita_plan_create(&problem, NULL, &plan));
            assert_true(partita_plan_latency(plan) <= limits[i]);
            assert_int_equal(partita_plan_latency(plan) % stride, 0);
            assert_int_equal(partita_plan_workspace(plan, PARTITA_FORWARD), 0);
            if (limits[i] == 0) assert_int_equal(partita_plan_latency(plan), 0);
            partita_plan_destroy(plan);
        }
    }
}

static void argument_errors(void **state)
{
    (void)state;
    static const struct stream_case direct = {"cpu/direct", type_pairs, NULL};
    struct random random = random_start("arguments");
    struct stream_rig a, b;
    stream_rig_open(&a, &direct, &stereo, 10, &random);
    stream_rig_open(&b, &direct, &stereo, 10, &random);
    struct partita_stream *stream = (struct partita_stream *)1;
    assert_int_equal(partita_stream_open(NULL, a.filter, &stream), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_open(a.plan, NULL, &stream), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_open(a.plan, a.filter, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_stream_open(a.plan, b.filter, &stream), PARTITA_ERR_ARG);
    assert_ptr_equal(stream, (struct partita_stream *)1);
    float y[20];
    assert_int_equal(partita_forward(a.plan, a.filter, y, a.x, NULL), PARTITA_ERR_STATE);
    partita_stream_close(NULL);
    stream_rig_close(&a);
    stream_rig_close(&b);
}

static const struct promise promises[] = {
    {"in-place-same-bits", in_place_same_bits},
    {"interleaved-same-bits", interleaved_same_bits},
    {"streams-share-a-plan", streams_share_a_plan},
};
enum { N_PROMISES = sizeof promises / sizeof *promises };

int main(void)
{
    static struct stream_case cases[N_STREAM_ENGINES][N_TYPE_PAIRS][N_PROBLEMS + 1];
    static struct CMUnitTest tests[N_STREAM_ENGINES * N_TYPE_PAIRS * (N_PROBLEMS + N_PROMISES) + 2];
    size_t n = 0;
    for (size_t e = 0; e < N_STREAM_ENGINES; e++) {
        for (size_t t = 0; t < N_TYPE_PAIRS; t++) {
            struct stream_case *c = cases[e][t];
            for (size_t p = 0; p < N_PROBLEMS; p++) {
                c[p] = (struct stream_case){engine_names[e], &type_pairs[t], &problems[p]};
                tests[n++] = named_test(any_split_same_bits, &c[p], "%s/%s-%s", engine_names[e],
                                        problems[p].name, type_pairs[t].name);
            }
            c[N_PROBLEMS] = (struct stream_case){engine_names[e], &type_pairs[t], NULL};
            for (size_t p = 0; p < N_PROMISES; p++) {
                tests[n++] = named_test(promises[p].run, &c[N_PROBLEMS], "%s/%s-%s",
                                        engine_names[e], promises[p].name, type_pairs[t].name);
            }
        }
    }
    tests[n++] = named_test(latency_limits, NULL, "latency-limits");
    tests[n++] = named_test(argument_errors, NULL, "argument-errors");
    return run_test_list(tests, n);
}
