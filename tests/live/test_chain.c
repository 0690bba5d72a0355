// SPDX-License-Identifier: MIT
// The audio thread's function, called as by a device: compared with the oracle for all sizes of
// calls, with filter swaps and changed gains, while interpose.h checks for calls that are not
// real-time safe.

#include "chain_rig.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "live/chain/denormals.h"

static void run_all_frames(struct rig *rig, size_t block, struct random *random)
{
    for (size_t at = 0, n; at < FRAMES; at += n) {
        n = block ? block : random_below(random, 1500);
        if (n > FRAMES - at) n = FRAMES - at;
        assert_true(call(rig, at, n, 0));
    }
}

static void check_against_oracle(const struct rig *rig, const char *engine, double wet, double dry)
{
    size_t in = rig->request.in_channels, out = rig->request.out_channels;
    double complex *expected = malloc(out * FRAMES * sizeof *expected);
    size_t kernel = rig->problem.kernel[0];
    reference_stream(&rig->problem, FRAMES, expected, rig->x, rig->taps);
    for (size_t c = 0; c < out; c++)
        for (size_t i = 0; i < FRAMES; i++) {
            double x = in == 1 ? (double)rig->x[i] : c < in ? (double)rig->x[c * FRAMES + i] : 0;
            expected[c * FRAMES + i] = wet * expected[c * FRAMES + i] + dry * x;
        }
    // The mix adds two roundings; transforms of partitions are up to twice as long as the filter.
    double gate = strcmp(engine, "cpu/direct") == 0
                      ? gate_direct(PARTITA_F32, kernel * (in / rig->problem.groups) + 1)
                      : gate_transform(PARTITA_F32, 4 * kernel);
    double error = error_against(PARTITA_F32, rig->y, expected, out * FRAMES, 0);
    if (error > gate) fail_msg("error %g, gate %g", error, gate);
    free(expected);
}

static void equals_the_oracle(void **state)
{
    const struct chain_case *c = *state;
    struct random random = random_start(c->name);
    struct rig rig;
    rig_open(&rig, c, &random);
    run_all_frames(&rig, c->block, &random);
    check_against_oracle(&rig, c->engine, 1, 0);
    struct chain_counts counts = chain_counts(rig.chain);
    assert_int_equal(counts.frames, FRAMES);
    assert_int_equal(counts.nonfinite_in + counts.nonfinite_out + counts.limited + counts.xruns, 0);
    struct partita_stream_stats load = chain_load(rig.chain);
    assert_true(load.calls > 0 && load.calls <= counts.calls && load.mean > 0 &&
                load.max >= load.mean);

    // With other gains, and with the limiter, which has nothing to attenuate.
    rig.request.levels = (struct chain_levels){.input = 0.5f, .wet = 0.5f, .dry = 0.25f};
    rig.request.limiter = true;
    rig_reopen(&rig);
    run_all_frames(&rig, 0, &random);
    check_against_oracle(&rig, c->engine, 0.25, 0.125);
    assert_int_equal(chain_counts(rig.chain).limited, 0);
    rig_close(&rig);
}

static const struct chain_case stereo = {"stereo", "cpu/partitioned", 2, 2, 2, 2000, 64};

// Devices may use the same memory for both directions.
static void works_in_place(void **state)
{
    (void)state;
    struct random random = random_start("in place");
    struct rig rig;
    rig_open(&rig, &stereo, &random);
    run_all_frames(&rig, 64, &random);
    rig_reopen(&rig);
    float *both[2];
    for (size_t at = 0; at + 100 <= FRAMES; at += 100) {
        for (size_t c = 0; c < 2; c++) both[c] = rig.x + c * FRAMES + at;
        chain_process(rig.chain, both, (const float *const *)both, 100, 0);
    }
    assert_memory_equal(rig.x, rig.y, 2 * FRAMES * sizeof(float));
    rig_close(&rig);
}

static void no_input_is_silence(void **state)
{
    (void)state;
    struct random random = random_start("no input");
    struct rig rig;
    rig_open(&rig, &stereo, &random);
    float *out[] = {rig.y, rig.y + FRAMES};
    assert_true(chain_process(rig.chain, out, NULL, FRAMES, 0));
    for (size_t i = 0; i < 2 * FRAMES; i++) assert_true(rig.y[i] == 0);
    rig_close(&rig);
}

static void replaces_nonfinite_samples(void **state)
{
    (void)state;
    struct random random = random_start("nan");
    struct rig rig;
    rig_open(&rig, &stereo, &random);
    rig.x[100] = NAN, rig.x[2000] = INFINITY, rig.x[FRAMES + 5] = -INFINITY;
    run_all_frames(&rig, 64, &random);
    assert_int_equal(chain_counts(rig.chain).nonfinite_in, 3);
    assert_int_equal(chain_counts(rig.chain).nonfinite_out, 0);
    rig.x[100] = rig.x[2000] = rig.x[FRAMES + 5] = 0; // as played instead
    check_against_oracle(&rig, stereo.engine, 1, 0);

    // A filter that overflows: infinity is replaced by 0 and counted before the limiter.
    rig.request.limiter = true;
    rig.request.levels.wet = 1e30f;
    rig_reopen(&rig);
    for (size_t i = 0; i < 2 * FRAMES; i++) rig.x[i] = FLT_MAX;
    run_all_frames(&rig, 64, &random);
    assert_true(chain_counts(rig.chain).nonfinite_out > 0);
    for (size_t i = 0; i < 2 * FRAMES; i++) assert_true(fabsf(rig.y[i]) <= 1);
    rig_close(&rig);
}

static void ends_at_its_frame(void **state)
{
    static const uint64_t durations[] = {0, 1, 63, 64, 65, 700, 5999};
    (void)state;
    struct random random = random_start("end");
    struct rig rig;
    rig_open(&rig, &stereo, &random);
    for (size_t d = 0; d < sizeof durations / sizeof *durations; d++) {
        size_t at = 0;
        rig.request.duration = durations[d];
        rig_reopen(&rig);
        memset(rig.y, -1, 2 * FRAMES * sizeof(float));
        while (call(&rig, at, 64, 0)) at += 64;
        assert_int_equal(at, durations[d] ? (durations[d] - 1) / 64 * 64 : 0);
        assert_int_equal(chain_counts(rig.chain).frames, durations[d]);
        assert_true(chain_counts(rig.chain).ended);
        for (size_t i = durations[d]; i < at + 64; i++) assert_true(rig.y[i] == 0);
        assert_false(call(&rig, at, 64, 0)); // stays ended
    }
    rig_close(&rig);
}

// The largest step of the output for a constant input, an identity filter and a ramp of 20 ms.
static void changes_without_clicks(void **state)
{
    (void)state;
    static const struct chain_case one = {"one", "cpu/direct", 1, 1, 1, 1, 64};
    static const struct {
        size_t at;
        struct chain_levels levels;
    } changes[] = {
        {610, {1, 0, 0, 1}},         // mute
        {1510, {1, 2, 0, 1}},        // within 20 ms a higher gain than before
        {2710, {0.5f, 0, 1, 0}},     // half the input, without the filter
        {3940, {0.5f, 0.25f, 1, 0}}, // and some of it
        {4240, {0.5f, 0, 0.5f, 0}},  // before that ramp has ended
    };
    struct random random = random_start("clicks");
    struct rig rig;
    rig_open(&rig, &one, &random);
    float tap = 1;
    assert_ok(partita_filter_create(rig.plan, &tap, &rig.other));
    assert_ok(partita_stream_swap(rig.stream, rig.other, 0));
    for (size_t i = 0; i < FRAMES; i++) rig.x[i] = 0.5f;
    call(&rig, 0, 10, 0);
    size_t end = 10;
    bool more = true;
    for (size_t at = 10; more; at += 30) {
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
            if (at == changes[i].at) chain_set_levels(rig.chain, &changes[i].levels);
        if (at == 4510) chain_end(rig.chain);
        more = call(&rig, at, 30, 0);
        end = at + 30;
    }
    for (size_t i = 11; i < end; i++)
        if (fabsf(rig.y[i] - rig.y[i - 1]) > 1.001f / 960)
            fail_msg("a step of %g at %zu", rig.y[i] - rig.y[i - 1], i);
    assert_float_equal(rig.y[600], 0.5, 0);
    assert_float_equal(rig.y[2500], 1, 0);
    assert_float_equal(rig.y[3900], 0.25, 0);
    assert_true(rig.y[end - 1] == 0 && end > 4510 + 900 && end < 4510 + 1020);
    while (partita_stream_swapping(rig.stream)) call(&rig, 0, 30, 0);
    rig_close(&rig);
}

// Two microphones and one far end, with a filter of one tap: the outputs are the residuals of
// filters of the library that are given the whole signal, bit for bit. Bypassed, they are the
// microphones.
static void cancels_the_far_end(void **state)
{
    static const struct chain_case one = {"cancel", "cpu/direct", 2, 2, 2, 1, 64};
    const struct partita_adaptive_options options = {.taps = 700, .block = CHAIN_CANCEL_BLOCK};
    struct random random = random_start("cancel");
    struct partita_adaptive_stats stats;
    struct rig rig;
    (void)state;
    rig_open(&rig, &one, &random);
    rig.x = realloc(rig.x, (3 * FRAMES + EXTRA_FRAMES) * sizeof(float));
    const float *far_end = rig.x + 2 * FRAMES;
    random_samples(&random, PARTITA_F32, rig.x + 2 * FRAMES, FRAMES);
    for (size_t i = 300; i < FRAMES; i++) rig.x[i] = 0.3f * far_end[i - 300];
    rig.request.in_channels = 3;
    rig.request.far_channels = 1;
    rig.request.cancel_taps = options.taps;
    rig.request.levels.cancel = 1;
    rig_reopen(&rig);
    run_all_frames(&rig, 0, &random);
    for (size_t c = 0; c < 2; c++) {
        struct partita_adaptive *adaptive;
        float residual[FRAMES];
        assert_ok(partita_adaptive_create(&options, &adaptive));
        partita_adaptive_process(adaptive, residual, rig.x + c * FRAMES, &far_end, FRAMES);
        for (size_t i = 0; i < FRAMES; i++)
            assert_true(rig.y[c * FRAMES + i] == rig.taps[c] * residual[i]);
        assert_ok(partita_adaptive_stats(adaptive, &stats));
        assert_true(chain_erle(rig.chain, c) == (float)stats.erle);
        assert_true((stats.erle > 3) == (c == 0)); // half of the echo, after 23 blocks
        partita_adaptive_destroy(adaptive);
    }
    rig.request.levels = (struct chain_levels){.input = 1, .dry = 1};
    rig_reopen(&rig);
    run_all_frames(&rig, 64, &random);
    assert_memory_equal(rig.x, rig.y, 2 * FRAMES * sizeof(float));
    assert_true(chain_erle(rig.chain, 0) > 3); // learns meanwhile
    rig_close(&rig);
}

// One event is counted once, also where several losses are reported with it.
static void counts_losses(void **state)
{
    (void)state;
    struct random random = random_start("losses");
    struct rig rig;
    rig_open(&rig, &stereo, &random);
    call(&rig, 0, 64, DEVICE_IN_OVERFLOW | DEVICE_OUT_UNDERFLOW);
    call(&rig, 64, 64, 0);
    call(&rig, 128, 64, DEVICE_IN_UNDERFLOW);
    call(&rig, 192, 64, DEVICE_OUT_OVERFLOW | DEVICE_OUT_UNDERFLOW);
    call(&rig, 256, 64, DEVICE_OUT_UNDERFLOW);
    call(&rig, 320, 64, DEVICE_OUT_UNDERFLOW);
    call(&rig, 384, 64, DEVICE_IN_OVERFLOW);
    call(&rig, 448, 64, DEVICE_OUT_OVERFLOW);
    struct chain_counts counts = chain_counts(rig.chain);
    const uint64_t expected[N_CHAIN_LOSSES] = {1, 1, 2, 1, 2};
    assert_int_equal(counts.xruns, 7);
    for (int i = 0; i < N_CHAIN_LOSSES; i++) assert_int_equal(counts.lost[i], expected[i]);
    rig_close(&rig);
}

// What a ring has written.
struct kept {
    atomic_bool held;
    size_t n, item_bytes;
    unsigned char bytes[1 << 16];
};

static bool keep(void *user, const void *items, size_t n, struct fault *fault)
{
    struct kept *k = user;
    (void)fault;
    while (k->held) usleep(100);
    assert_true((k->n + n) * k->item_bytes <= sizeof k->bytes);
    memcpy(k->bytes + k->n * k->item_bytes, items, n * k->item_bytes);
    k->n += n;
    return true;
}

static void ring_open_for(struct kept *kept, struct ring **ring, size_t n, size_t item_bytes)
{
    struct fault fault;
    *kept = (struct kept){.item_bytes = item_bytes};
    assert_true(ring_open(ring, n, item_bytes, keep, kept, &fault));
}

// The recording equals the output, frame by frame; frames that do not fit into the ring are
// counted.
static void records_the_output(void **state)
{
    (void)state;
    struct random random = random_start("record");
    struct rig rig;
    struct ring *ring, *calls;
    static struct kept frames, times;
    struct call_time time;
    struct fault fault;
    rig_open(&rig, &stereo, &random);
    ring_open_for(&frames, &ring, 4096, 2 * sizeof(float));
    ring_open_for(&times, &calls, 64, sizeof time);
    frames.held = true;
    rig.request.record = ring;
    rig.request.calls = calls;
    rig_reopen(&rig);
    run_all_frames(&rig, 100, &random);
    frames.held = false;
    assert_true(ring_stop(ring, &fault) && ring_stop(calls, &fault));
    for (size_t i = 0; i < frames.n; i++) {
        float frame[2];
        memcpy(frame, frames.bytes + i * sizeof frame, sizeof frame);
        assert_true(frame[0] == rig.y[i] && frame[1] == rig.y[FRAMES + i]);
    }
    assert_int_equal(frames.n + chain_counts(rig.chain).unrecorded, FRAMES);
    assert_in_range(frames.n, 4000, 4096);
    for (size_t i = 0; i < times.n; i++) {
        memcpy(&time, times.bytes + i * sizeof time, sizeof time);
        assert_int_equal(time.frame, 100 * i);
        assert_true(time.seconds > 0);
    }
    assert_int_equal(times.n, 60);
    ring_close(ring);
    ring_close(calls);
    rig_close(&rig);
}

// After chain_detach nothing is written to the ring, whose reader has ended.
static void is_silent_when_detached(void **state)
{
    (void)state;
    struct random random = random_start("detached");
    struct rig rig;
    struct ring *ring, *calls;
    static struct kept frames, times;
    rig_open(&rig, &stereo, &random);
    ring_open_for(&frames, &ring, 4096, 2 * sizeof(float));
    ring_open_for(&times, &calls, 64, sizeof(struct call_time));
    rig.request.record = ring;
    rig.request.calls = calls;
    rig_reopen(&rig);
    assert_true(call(&rig, 0, 100, 0));
    chain_detach(rig.chain);
    ring_close(ring);
    ring_close(calls);
    assert_false(call(&rig, 100, 1000, DEVICE_OUT_UNDERFLOW));
    for (size_t c = 0; c < 2; c++)
        for (size_t i = 100; i < 1100; i++) assert_true(rig.y[c * FRAMES + i] == 0);
    assert_int_equal(chain_counts(rig.chain).frames, 100);
    assert_int_equal(chain_counts(rig.chain).xruns, 0);
    rig_close(&rig);
}

#if defined(__x86_64__)
// Denormals are flushed during the call, and the thread's mode is restored afterwards.
static void restores_the_denormal_mode(void **state)
{
    (void)state;
    struct random random = random_start("denormals");
    static const struct chain_case one = {"one", "cpu/direct", 1, 1, 1, 1, 64};
    struct rig rig;
    rig_open(&rig, &one, &random);
    unsigned before = _mm_getcsr() & ~0x8040u;
    _mm_setcsr(before);
    for (size_t i = 0; i < FRAMES; i++) rig.x[i] = 1e-40f;
    call(&rig, 0, 64, 0);
    assert_int_equal(_mm_getcsr() & ~0x3fu, before & ~0x3fu); // except for the exception flags
    for (size_t i = 0; i < 64; i++) assert_true(rig.y[i] == 0);
    _mm_setcsr(before | 0x8040);
    call(&rig, 64, 64, 0);
    assert_int_equal(_mm_getcsr() & 0x8040, 0x8040);
    _mm_setcsr(before);
    rig_close(&rig);
}
#endif

// Another thread swaps filters, changes gains and reads counts and meters while the audio thread
// runs under interpose.h.
struct control {
    struct rig *rig;
    atomic_bool stop;
};

static void *control(void *argument)
{
    struct control *c = argument;
    for (unsigned i = 0; !atomic_load(&c->stop); i++) {
        partita_stream_swap(c->rig->stream, i % 2 ? c->rig->other : c->rig->filter, i % 300);
        const struct chain_levels levels = {(float)(i % 5) / 4, (float)(i % 3) / 2, (float)(i % 2),
                                            1};
        chain_set_levels(c->rig->chain, &levels);
        struct chain_counts counts = chain_counts(c->rig->chain);
        struct partita_stream_stats load = chain_load(c->rig->chain);
        chain_update_levels(c->rig->chain, 1e-3 * i);
        struct level level = chain_level(c->rig->chain, true, 0);
        if (counts.nonfinite_out || load.mean < 0 || level.peak > 4) break;
        usleep(200);
    }
    return NULL;
}

static void can_be_controlled_while_it_runs(void **state)
{
    (void)state;
    struct random random = random_start("control");
    struct rig rig;
    struct control c = {.rig = &rig};
    pthread_t thread;
    rig_open(&rig, &stereo, &random);
    float *taps = calloc(2 * 2000, sizeof *taps);
    taps[0] = taps[2000] = 0.5f;
    assert_ok(partita_filter_create(rig.plan, taps, &rig.other));
    free(taps);
    assert_int_equal(pthread_create(&thread, NULL, control, &c), 0);
    for (int pass = 0; pass < 20; pass++) run_all_frames(&rig, pass % 2 ? 64 : 0, &random);
    atomic_store(&c.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(chain_counts(rig.chain).nonfinite_out, 0);
    while (partita_stream_swapping(rig.stream)) call(&rig, 0, 64, 0);
    rig_close(&rig);
}

int main(void)
{
    static const struct chain_case cases[] = {
        {"mono", "cpu/direct", 1, 1, 1, 50, 64},
        {"stereo-direct", "cpu/direct", 2, 2, 2, 33, 7},
        {"stereo-long", "cpu/partitioned", 2, 2, 2, 3000, 64},
        {"mono-to-stereo", "cpu/partitioned", 1, 2, 1, 1500, 100},
        {"matrix", "cpu/partitioned", 2, 2, 1, 1500, 64},
        {"eight", "cpu/partitioned", 8, 8, 8, 1000, 128},
        {"one-frame", "cpu/partitioned", 1, 1, 1, 1500, 1},
        {"huge-calls", "cpu/partitioned", 2, 2, 2, 1500, 4096},
        {"any-size", "cpu/partitioned", 2, 2, 2, 2500, 0},
    };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(works_in_place),
        cmocka_unit_test(no_input_is_silence),
        cmocka_unit_test(replaces_nonfinite_samples),
        cmocka_unit_test(ends_at_its_frame),
        cmocka_unit_test(changes_without_clicks),
        cmocka_unit_test(cancels_the_far_end),
        cmocka_unit_test(counts_losses),
        cmocka_unit_test(records_the_output),
        cmocka_unit_test(is_silent_when_detached),
#if defined(__x86_64__)
        cmocka_unit_test(restores_the_denormal_mode),
#endif
        cmocka_unit_test(can_be_controlled_while_it_runs),
    };
    enum { N_CASES = sizeof cases / sizeof *cases, N_OTHERS = sizeof others / sizeof *others };
    struct CMUnitTest tests[N_CASES + N_OTHERS];
    for (size_t i = 0; i < N_CASES; i++)
        tests[i] = named_test(equals_the_oracle, &cases[i], "follows-the-oracle/%s", cases[i].name);
    memcpy(tests + N_CASES, others, sizeof others);
    return run_all(tests);
}
