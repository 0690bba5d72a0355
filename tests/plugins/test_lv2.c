// SPDX-License-Identifier: MIT
// The plug-ins compared with the oracle: every variant with every kind of file, levels, rates,
// buffers that hosts share between ports, and hosts that lack something. run() is watched for calls
// that are not real-time safe.
#include <math.h>
#include <stdio.h>

#include "lv2_rig.h"

// Which response of a file belongs to a path.
enum layout { BY_OUTPUT, BY_INPUT, EACH, ONE_FOR_EACH, ONE_FOR_ALL };

struct variant_case {
    const char *name;
    size_t in, out, taps, channels; // channels: of the file
    enum layout layout;
};

static const struct variant_case variant_cases[] = {
    {"mono", 1, 1, 3000, 1, BY_OUTPUT},
    {"mono-stereo", 1, 2, 300, 2, BY_OUTPUT},
    {"mono-stereo", 1, 2, 300, 1, ONE_FOR_ALL},
    {"stereo", 2, 2, 1500, 2, EACH},
    {"stereo", 2, 2, 300, 1, ONE_FOR_EACH},
    {"true-stereo", 2, 2, 900, 4, BY_INPUT},
    {"true-stereo", 2, 2, 30, 2, EACH},
    {"true-stereo", 2, 2, 300, 1, ONE_FOR_EACH},
    {"matrix-4x4", 4, 4, 200, 16, BY_OUTPUT},
    {"matrix-4x4", 4, 4, 200, 4, EACH},
    {"matrix-8x8", 8, 8, 64, 64, BY_OUTPUT},
    {"matrix-16x16", 16, 16, 20, 256, BY_OUTPUT},
    {"matrix-16x16", 16, 16, 20, 1, ONE_FOR_EACH},
    {"matrix-4x2", 4, 2, 200, 8, BY_OUTPUT},
    {"matrix-9x2", 9, 2, 100, 18, BY_OUTPUT},
    {"matrix-16x2", 16, 2, 50, 32, BY_OUTPUT},
};
enum { N_VARIANT_CASES = sizeof variant_cases / sizeof *variant_cases, CASE_FRAMES = 1200 };

static int channel_of(const struct variant_case *c, size_t in, size_t out)
{
    switch (c->layout) {
    case BY_OUTPUT:
        return (int)(out * c->in + in);
    case BY_INPUT:
        return (int)(in * c->out + out);
    case EACH:
        return in == out ? (int)in : -1;
    case ONE_FOR_EACH:
        return in == out ? 0 : -1;
    case ONE_FOR_ALL:
        return 0;
    }
    return -1;
}

static void compare_with_oracle(const struct variant_case *c, const struct rig_signal *signal,
                                const float *taps)
{
    const struct partita_problem problem = {.in_channels = c->in,
                                            .out_channels = c->out,
                                            .groups = 1,
                                            .kernel = {c->taps},
                                            .size = {PARTITA_UNBOUNDED}};
    float *w = calloc(c->out * c->in * c->taps, sizeof *w),
          *x = malloc(c->in * CASE_FRAMES * sizeof *x);
    double complex *expected = malloc(c->out * CASE_FRAMES * sizeof *expected);
    for (size_t k = 0; k < c->out; k++)
        for (size_t i = 0; i < c->in; i++)
            if (channel_of(c, i, k) >= 0)
                memcpy(w + (k * c->in + i) * c->taps, taps + (size_t)channel_of(c, i, k) * c->taps,
                       c->taps * sizeof *w);
    for (size_t i = 0; i < c->in; i++)
        memcpy(x + i * CASE_FRAMES, signal->x[i], CASE_FRAMES * sizeof *x);
    reference_stream(&problem, CASE_FRAMES, expected, x, w);
    // Transforms of streams of 3000 taps are no longer than 4096 samples; levels of 0 dB are exact.
    const double transform = gate_transform(PARTITA_F32, 8192),
                 direct = gate_direct(PARTITA_F32, c->in * c->taps);
    for (size_t k = 0; k < c->out; k++)
        assert_true(error_against(PARTITA_F32, signal->y[k], expected + k * CASE_FRAMES,
                                  CASE_FRAMES, 0) <= fmax(transform, direct));
    free(w);
    free(x);
    free(expected);
}

static void equals_the_oracle(void **state)
{
    const struct variant_case *c = *state;
    struct random random = random_start(c->name);
    struct rig_signal signal;
    char uri[64], path[HOST_PATH], log[HOST_LOG];
    float *taps = malloc(c->channels * c->taps * sizeof *taps);
    snprintf(uri, sizeof uri, "urn:partita:lv2:%s", c->name);
    random_samples(&random, PARTITA_F32, taps, c->channels * c->taps);
    rig_write_taps("taps.wav", taps, c->channels, c->taps, RIG_RATE);
    rig_write_state("state", uri, "taps.wav");
    rig_signal_open(&signal, &random);
    struct host *host = host_open(&(struct host_request){.uri = uri, .block = 128});
    host_restore(host, rig_path("state", path));
    host_activate(host);
    rig_run(host, &signal, 0, CASE_FRAMES, false, &random);
    compare_with_oracle(c, &signal, taps);
    assert_true(host_latency(host) == 0);
    assert_string_equal(host_take_log(log), "");
    // After activate() the history is empty again.
    float *before = malloc(CASE_FRAMES * sizeof *before);
    memcpy(before, signal.y[0], CASE_FRAMES * sizeof *before);
    host_deactivate(host);
    host_activate(host);
    rig_run(host, &signal, 0, CASE_FRAMES, false, &random);
    assert_memory_equal(before, signal.y[0], CASE_FRAMES * sizeof *before);
    free(before);
    host_close(host);
    rig_signal_close(&signal);
    free(taps);
}

// A host that plays with one file from the first frame on.
static struct host *open_with(const struct host_request *request, const char *file)
{
    char path[HOST_PATH];
    struct host *host = host_open(request);
    assert_non_null(host);
    rig_write_state("state", request->uri, file);
    host_restore(host, rig_path("state", path));
    host_activate(host);
    return host;
}

// Channels of a response at another rate: a sine that fades in and out, far below both rates' half,
// keeps its frequency, and its taps are divided by the ratio of the rates.
static void responses_are_resampled(void **state)
{
    (void)state;
    enum { N = 4000, M = 4800 }; // 44100 to 52920 Hz
    const double ratio = 1.2;
    float taps[N], expected[M + 8] = {0};
    struct random random = random_start("rate");
    struct rig_signal signal;
    for (size_t i = 0; i < N; i++)
        taps[i] = (float)(sin(0.05 * (double)i) * pow(sin(M_PI * (double)i / N), 4));
    for (size_t i = 0; i < M; i++) {
        const double at = (double)i / ratio;
        expected[i] = (float)(sin(0.05 * at) * pow(sin(M_PI * at / N), 4) / ratio);
    }
    rig_write_taps("taps.wav", taps, 1, N, 44100);
    rig_signal_open(&signal, &random);
    memset(signal.x[0], 0, RIG_FRAMES * sizeof(float));
    signal.x[0][0] = 1;
    struct host *host =
        open_with(&(struct host_request){.uri = "urn:partita:lv2:mono", .rate = 52920}, "taps.wav");
    rig_run(host, &signal, 0, M + 8, false, &random);
    // The resampler is accurate to 28 bits in its pass band; what counts are rounded taps below 1,
    // and transforms of up to 8192 samples.
    for (size_t i = 0; i < M + 8; i++) assert_true(fabsf(signal.y[0][i] - expected[i]) < 2e-6f);
    host_close(host);
    rig_signal_close(&signal);
}

// Levels in a steady state: dry and wet add up, and the lowest level is silence.
static void levels_mix(void **state)
{
    (void)state;
    static const struct {
        float dry, wet, gain, expected; // of an input of 1 and a response of 1/2
    } cases[] = {
        {-90, 0, 0, 0.5f},     {0, -90, 0, 1},      {0, 0, 0, 1.5f},
        {-90, -90, 0, 0},      {0, 0, -90, 0},      {20, 0, 0, 10.5f},
        {-20, 20, -20, 0.51f}, {-1000, 1000, 0, 5}, {NAN, 0, 0, 0.5f},
    };
    struct random random = random_start("levels");
    struct rig_signal signal;
    rig_write_taps("half.wav", (float[]){0.5f}, 1, 1, RIG_RATE);
    rig_signal_open(&signal, &random);
    for (size_t i = 0; i < RIG_FRAMES; i++) signal.x[0][i] = 1;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct host *host =
            open_with(&(struct host_request){.uri = "urn:partita:lv2:mono"}, "half.wav");
        host_set_level(host, HOST_DRY, cases[c].dry);
        host_set_level(host, HOST_WET, cases[c].wet);
        host_set_level(host, HOST_GAIN, cases[c].gain);
        rig_run(host, &signal, 0, 1000, false, &random);
        for (size_t i = 0; i < 1000; i++) // powf and products: a few roundings
            assert_true(fabsf(signal.y[0][i] - cases[c].expected) <= 2e-6f * cases[c].expected);
        host_close(host);
    }
    rig_signal_close(&signal);
}

// No step of a constant is larger than that of a ramp over 20 ms.
static void levels_change_gradually(void **state)
{
    (void)state;
    const float ramp = 0.02f * RIG_RATE;
    struct random random = random_start("ramps");
    struct rig_signal signal;
    rig_write_taps("one.wav", (float[]){1}, 1, 1, RIG_RATE);
    rig_signal_open(&signal, &random);
    for (size_t i = 0; i < RIG_FRAMES; i++) signal.x[0][i] = 1;
    struct host *host = open_with(&(struct host_request){.uri = "urn:partita:lv2:mono"}, "one.wav");
    for (size_t at = 0; at < RIG_FRAMES; at += 1200) {
        static const float steps[] = {0, -90, 20, -20};
        host_set_level(host, HOST_WET, steps[at / 1200 % 4]);
        if (at % 3600 == 0) host_set_level(host, HOST_DRY, at % 7200 ? -90 : 0);
        rig_run(host, &signal, at, at + 1200, false, &random);
    }
    // The largest change is from silence, or to it, of 10 (20 dB) wet and 1 dry; float sums.
    for (size_t i = 1; i < RIG_FRAMES; i++)
        assert_true(fabsf(signal.y[0][i] - signal.y[0][i - 1]) <= 11 / ramp + 1e-5f);
    host_close(host);
    rig_signal_close(&signal);
}

// Inputs and outputs may be the same memory, also crosswise.
static void buffers_may_be_shared(void **state)
{
    (void)state;
    struct random random = random_start("shared");
    struct rig_signal signal;
    float taps[4 * 500], *x[2], *apart[2];
    random_samples(&random, PARTITA_F32, taps, 4 * 500);
    rig_write_taps("taps.wav", taps, 4, 500, RIG_RATE);
    rig_signal_open(&signal, &random);
    const struct host_request request = {.uri = "urn:partita:lv2:true-stereo"};
    struct host *host = open_with(&request, "taps.wav");
    host_set_level(host, HOST_DRY, 0);
    host_run(host, signal.y, signal.x, 2000);
    host_close(host);
    host = open_with(&request, "taps.wav");
    host_set_level(host, HOST_DRY, 0);
    for (size_t c = 0; c < 2; c++) {
        x[c] = signal.x[c];
        apart[c] = signal.y[c];
    }
    host_run(host, (float *[]){x[1], x[0]}, x, 2000);
    assert_memory_equal(x[1], apart[0], 2000 * sizeof(float));
    assert_memory_equal(x[0], apart[1], 2000 * sizeof(float));
    host_close(host);
    rig_signal_close(&signal);
}

// A sample that is not a number is silence, and does not stay in the filter.
static void nonfinite_samples_are_silence(void **state)
{
    (void)state;
    struct random random = random_start("nan");
    struct rig_signal signal;
    rig_write_random("taps.wav", 2000, &random);
    rig_signal_open(&signal, &random);
    signal.x[0][100] = NAN;
    signal.x[0][101] = -INFINITY;
    struct host *host =
        open_with(&(struct host_request){.uri = "urn:partita:lv2:mono"}, "taps.wav");
    host_set_level(host, HOST_DRY, 0);
    rig_run(host, &signal, 0, 4000, false, &random);
    for (size_t i = 0; i < 4000; i++) assert_true(isfinite(signal.y[0][i]));
    host_close(host);
    rig_signal_close(&signal);
}

static void refuses_hosts_without_features(void **state)
{
    (void)state;
    char log[HOST_LOG];
    const struct {
        struct host_request request;
        const char *says;
    } cases[] = {
        {{.uri = "urn:partita:lv2:stereo", .without_map = true}, "ext/urid#map"},
        {{.uri = "urn:partita:lv2:stereo", .without_schedule = true}, "ext/worker#schedule"},
        {{.uri = "urn:partita:lv2:stereo", .rate = 0.5}, "0.5 Hz"},
        {{.uri = "urn:partita:lv2:stereo", .rate = 1e9}, "1e+09 Hz"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        assert_null(host_open(&cases[c].request));
        host_take_log(log);
        assert_non_null(strstr(log, "Partita Stereo"));
        assert_non_null(strstr(log, cases[c].says));
    }
}

// Ports for events may be missing or have no space; blocks may be of any length.
static void hosts_may_be_minimal(void **state)
{
    (void)state;
    const struct host_request requests[] = {
        {.uri = "urn:partita:lv2:mono"},
        {.uri = "urn:partita:lv2:mono", .without_event_ports = true},
        {.uri = "urn:partita:lv2:mono", .unsized_event_ports = true},
        {.uri = "urn:partita:lv2:mono", .block = 1},
        {.uri = "urn:partita:lv2:mono", .block = INT32_MAX},
        {.uri = "urn:partita:lv2:mono", .block = -5},
    };
    struct random random = random_start("minimal");
    struct rig_signal signal;
    float *first = malloc(RIG_FRAMES * sizeof *first);
    rig_write_random("taps.wav", 100, &random); // direct sums, for blocks of any length
    rig_signal_open(&signal, &random);
    for (size_t r = 0; r < sizeof requests / sizeof *requests; r++) {
        struct host *host = open_with(&requests[r], "taps.wav");
        host_run(host, signal.y, signal.x, RIG_FRAMES);
        if (r == 0) memcpy(first, signal.y[0], RIG_FRAMES * sizeof *first);
        // Other plans round differently: 100 products and transforms of at most 8192 samples.
        for (size_t i = 0; i < RIG_FRAMES; i++)
            assert_true(fabsf(signal.y[0][i] - first[i]) < 1e-5f);
        host_close(host);
    }
    free(first);
    rig_signal_close(&signal);
}

int main(void)
{
    static struct CMUnitTest tests[N_VARIANT_CASES + 8];
    size_t n = 0;
    for (size_t c = 0; c < N_VARIANT_CASES; c++)
        tests[n++] = named_test(equals_the_oracle, &variant_cases[c], "%s-%zu-channels",
                                variant_cases[c].name, variant_cases[c].channels);
    tests[n++] = named_test(responses_are_resampled, NULL, "resampled");
    tests[n++] = named_test(levels_mix, NULL, "levels");
    tests[n++] = named_test(levels_change_gradually, NULL, "levels-change-gradually");
    tests[n++] = named_test(buffers_may_be_shared, NULL, "shared-buffers");
    tests[n++] = named_test(nonfinite_samples_are_silence, NULL, "nonfinite");
    tests[n++] = named_test(refuses_hosts_without_features, NULL, "lacking-features");
    tests[n++] = named_test(hosts_may_be_minimal, NULL, "minimal-hosts");
    return run_test_list(tests, n);
}
