// SPDX-License-Identifier: MIT
// Unit tests of live audio: limiter, ramp, meter, held peaks, ring, heartbeat, each
// against the contract in its header.

#include "support/test.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>

#include "live/chain/limiter.h"
#include "live/chain/meter.h"
#include "live/chain/ramp.h"
#include "live/chain/ring.h"
#include "live/device/heartbeat.h"

enum { N = 4800 };

static void fill_sine(float *x, size_t n, float amplitude)
{
    for (size_t i = 0; i < n; i++) x[i] = amplitude * sinf(0.1f * (float)i);
}

static void limiter_passes_samples_within_full_scale(void **state)
{
    (void)state;
    struct limiter limiter;
    float x[N], before[N], *channels[] = {x};
    limiter_open(&limiter, 48000, 0.1);
    fill_sine(x, N, 1);
    x[7] = 1, x[8] = -1, x[9] = 0, x[10] = -0.0f;
    memcpy(before, x, sizeof x);
    assert_int_equal(limiter_process(&limiter, channels, 1, N), 0);
    assert_memory_equal(x, before, sizeof x);
}

static void limiter_limits_to_full_scale(void **state)
{
    (void)state;
    static const float amplitudes[] = {1.0001f, 1.5f, 30, 1e30f, 3.4e38f};
    for (size_t a = 0; a < sizeof amplitudes / sizeof *amplitudes; a++) {
        struct limiter limiter;
        float x[N], *channels[] = {x};
        size_t above = 0;
        limiter_open(&limiter, 48000, 0.1);
        fill_sine(x, N, amplitudes[a]);
        for (size_t i = 0; i < N; i++) above += fabsf(x[i]) > 1;
        assert_true(limiter_process(&limiter, channels, 1, N) >= above);
        float peak = 0;
        for (size_t i = 0; i < N; i++) peak = fmaxf(peak, fabsf(x[i]));
        assert_true(peak <= 1);
        assert_true(peak > 0.999f);
    }
}

// All channels get the gain of the loudest one, frame by frame as in the formula.
static void limiter_links_channels(void **state)
{
    (void)state;
    struct limiter limiter;
    float loud[N], soft[N], *channels[] = {soft, loud};
    double gain = 1;
    limiter_open(&limiter, 48000, 0.05);
    fill_sine(loud, N, 3);
    for (size_t i = 0; i < N; i++) soft[i] = 0.25f;
    limiter_process(&limiter, channels, 2, N);
    for (size_t i = 0; i < N; i++) {
        double peak = fmax(0.25, fabs(3 * sin(0.1 * (double)i)));
        gain += (1 - gain) * limiter.release;
        if (gain > 1 - 1e-5) gain = 1;
        gain = fmin(gain, 1 / peak);
        assert_true(fabs((double)soft[i] - 0.25 * gain) < 1e-5);
    }
}

// After a peak of 2 the gain recovers to within 1/e of its reduction in the release time, and
// finally to exactly 1.
static void limiter_recovers(void **state)
{
    (void)state;
    enum { RATE = 48000 };
    struct limiter limiter;
    static float x[2 * RATE];
    float *channels[] = {x};
    limiter_open(&limiter, RATE, 0.1);
    for (size_t i = 0; i < 2 * RATE; i++) x[i] = 0.5f;
    x[0] = 2;
    size_t limited = limiter_process(&limiter, channels, 1, 2 * RATE);
    assert_float_equal(x[0], 1, 1e-6);
    assert_float_equal(x[4800], 0.5f * (1 - 0.5f * expf(-1)), 1e-4);
    assert_true(x[2 * RATE - 1] == 0.5f);
    assert_true(limited > 4800 && limited < 2 * RATE - 1);
}

static void limiter_does_not_depend_on_call_sizes(void **state)
{
    (void)state;
    struct limiter whole, cut;
    float x[N], y[N], *at_x[] = {x};
    fill_sine(x, N, 2);
    memcpy(y, x, sizeof x);
    limiter_open(&whole, 44100, 0.1);
    limiter_open(&cut, 44100, 0.1);
    limiter_process(&whole, at_x, 1, N);
    for (size_t at = 0, n = 1; at < N; at += n, n = n % 97 + 1) {
        float *at_y[] = {y + at};
        if (n > N - at) n = N - at;
        limiter_process(&cut, at_y, 1, n);
    }
    assert_memory_equal(x, y, sizeof x);
}

static void ramp_is_linear(void **state)
{
    (void)state;
    struct ramp ramp = {.value = 1, .target = 1};
    float v[300];
    ramp_next(&ramp, v, 10);
    assert_true(v[0] == 1 && v[9] == 1);
    ramp_set_target(&ramp, 0, 100);
    for (size_t at = 0; at < 300; at += 30) ramp_next(&ramp, v + at, 30);
    for (size_t i = 0; i < 100; i++) assert_float_equal(v[i], 1 - (float)(i + 1) / 100, 1e-5);
    for (size_t i = 99; i < 300; i++) assert_true(v[i] == 0);
}

// A ramp with a new target starts from its current value: no step is larger than that of either
// ramp.
static void ramp_changes_target_without_a_step(void **state)
{
    (void)state;
    struct ramp ramp = {.value = 1, .target = 1};
    float v[200];
    ramp_set_target(&ramp, 0, 100);
    ramp_next(&ramp, v, 50);
    ramp_set_target(&ramp, 1, 100);
    ramp_next(&ramp, v + 50, 150);
    for (size_t i = 1; i < 200; i++) assert_true(fabsf(v[i] - v[i - 1]) < 0.011f);
    assert_true(v[199] == 1);
    ramp_set_target(&ramp, 0.25f, 0);
    ramp_next(&ramp, v, 1);
    assert_true(v[0] == 0.25f);
}

static void meter_measures_peak_and_rms(void **state)
{
    (void)state;
    struct meter meter = {0};
    float x[N];
    fill_sine(x, N, 0.5f);
    x[1234] = -0.75f;
    for (int i = 0; i < 20; i++) meter_add(&meter, x, N, 0.5f);
    meter_update(&meter, 0);
    const struct level level = meter.level;
    assert_true(level.peak == 0.75f);
    assert_float_equal(level.rms, 0.5f / sqrtf(2), 1e-2);
    meter_add(&meter, x, 0, 0.5f);
    meter_update(&meter, 2);
    assert_true(meter.level.peak == level.rms && meter.level.rms == level.rms); // no peak was added
    for (int i = 0; i < 100; i++) meter_add(&meter, (float[]){0, 0}, 2, 0.5f);
    meter_update(&meter, 4);
    assert_true(meter.level.rms < 1e-6f && meter.level.peak == meter.level.rms);
}

// Finite samples whose squares overflow a float do not stay in the mean.
static void meter_recovers_from_the_largest_samples(void **state)
{
    (void)state;
    struct meter meter = {0};
    float x[N];
    fill_sine(x, N, 0.5f);
    meter_add(&meter, (float[]){FLT_MAX, -FLT_MAX}, 2, 0.5f);
    meter_update(&meter, 0);
    const struct level level = meter.level;
    assert_true(level.peak == FLT_MAX && isfinite(level.rms) && level.rms > 1e19f);
    for (int i = 0; i < 200; i++) meter_add(&meter, x, N, 0.5f);
    meter_update(&meter, 0);
    assert_float_equal(meter.level.rms, 0.5f / sqrtf(2), 1e-2);
}

// What a ring writes: numbers from 0 on.
struct written {
    atomic_int next;
    int fail_at;
    atomic_bool held;
};

static bool write_items(void *user, const void *items, size_t n, struct fault *fault)
{
    struct written *w = user;
    while (w->held) usleep(100);
    for (size_t i = 0; i < n; i++) {
        if (w->next == w->fail_at) return fault_set(fault, "item %d cannot be written", w->next);
        if (((const int *)items)[i] != w->next++) return fault_set(fault, "out of order");
    }
    return true;
}

// Adds the numbers from `from` to end - 1, several at once.
static void put_items(struct ring *ring, int from, int end)
{
    for (int n; from < end; from += n) {
        int items[7];
        for (int i = 0; i < 7; i++) items[i] = from + i;
        n = end - from < 7 ? end - from : 7;
        while (!ring_put(ring, items, (size_t)n)) usleep(10);
    }
}

// A ring of at least 10 items has 16, wherever they begin.
static void ring_keeps_order_and_refuses_when_full(void **state)
{
    (void)state;
    enum { SPACE = 16 };
    struct ring *ring;
    struct written written = {.fail_at = -1};
    struct fault fault;
    int items[SPACE], put = 0;
    assert_true(ring_open(&ring, 10, sizeof(int), write_items, &written, &fault));
    for (int round = 0; round < 30; round++) {
        put_items(ring, put, put + round % 7);
        put += round % 7;
        for (; written.next < put; usleep(10)) assert_true(ring_check(ring, &fault));
        written.held = true;
        for (int i = 0; i < SPACE; i++) items[i] = put + i;
        while (!ring_put(ring, items, SPACE)) usleep(10); // until the last ones are taken
        assert_false(ring_put(ring, items, 1));
        put += SPACE;
        written.held = false;
    }
    assert_true(ring_stop(ring, &fault));
    assert_int_equal(written.next, put);
    ring_close(ring);
}

static void ring_writes_all(void **state)
{
    (void)state;
    enum { STREAMED = 2000000 };
    struct ring *ring;
    struct written written = {.fail_at = -1};
    struct fault fault;
    assert_true(ring_open(&ring, 100000, sizeof(int), write_items, &written, &fault));
    put_items(ring, 0, STREAMED);
    assert_true(ring_stop(ring, &fault));
    assert_int_equal(written.next, STREAMED);
    ring_close(ring);
}

// With a full disk the ring is still drained, and the reason is stored.
static void ring_stores_the_first_failure(void **state)
{
    (void)state;
    struct ring *ring;
    struct written written = {.fail_at = 300};
    struct fault fault;
    assert_true(ring_open(&ring, 100, sizeof(int), write_items, &written, &fault));
    put_items(ring, 0, 5000);
    while (ring_check(ring, &fault)) usleep(1000);
    assert_string_equal(fault.text, "item 300 cannot be written");
    assert_false(ring_stop(ring, &fault));
    assert_string_equal(fault.text, "item 300 cannot be written");
    assert_int_equal(written.next, 300);
    ring_close(ring);
}

static void heartbeat_detects_silence(void **state)
{
    (void)state;
    double now = 100;
    struct heartbeat h = {.last_check = now};
    for (uint64_t calls = 1; calls < 50; calls++)
        assert_true(heartbeat_check(&h, calls, now += 0.1, 1));
    int looks = 0;
    while (heartbeat_check(&h, 49, now += 0.1, 1)) looks++;
    assert_in_range(looks, 8, 10);
}

// A minute in which the program itself is stopped does not count as silence.
static void heartbeat_counts_only_observed_time(void **state)
{
    (void)state;
    struct heartbeat h = {0};
    assert_true(heartbeat_check(&h, 5, 0.1, 1));
    assert_true(heartbeat_check(&h, 5, 60, 1));
    assert_true(heartbeat_check(&h, 6, 60.1, 1));
    assert_true(heartbeat_check(&h, 6, 120, 1));
    assert_true(heartbeat_check(&h, 6, 180, 1));
}

static void heartbeat_limit_follows_periods_and_buffers(void **state)
{
    (void)state;
    assert_float_equal(heartbeat_limit(0, 0, 48000, 0), 5, 1e-9);
    assert_float_equal(heartbeat_limit(0, 0, 8000, 8), 13, 1e-9); // 64 000 frames a call
    assert_float_equal(heartbeat_limit(1000, 64000, 48000, 0), 1, 1e-9);
    assert_float_equal(heartbeat_limit(10, 81920, 8192, 0), 20, 1e-9);
    assert_float_equal(heartbeat_limit(1000, 64000, 48000, 4), 5,
                       1e-9); // bursts into a buffer of 4 s
}

// For random times: no peak is missed, and what is shown is at most 1.5 s old. The largest peak of
// this time is shown, unless it came while a larger one was held.
static void peaks_are_held(void **state)
{
    (void)state;
    enum { N_PEAKS = 3000 };
    static double times[N_PEAKS];
    static float peaks[N_PEAKS];
    struct random random = random_start("hold");
    struct meter meter = {0};
    double now = 1e6;
    for (size_t i = 0; i < N_PEAKS; i++) {
        now += i % 500 == 499 ? 100 : 0.00100003 * (double)random_below(&random, 120); // never 1.5
        times[i] = now;
        peaks[i] = i % 7 ? 0.001f * (float)random_below(&random, 1000) : 1;
        meter_add(&meter, &peaks[i], 1, 0);
        meter_update(&meter, now);
        size_t largest = i;
        float before = 0;
        for (size_t k = 0; k <= i; k++)
            if (now - times[k] <= 1.5 && peaks[k] >= peaks[largest]) largest = k;
        for (size_t k = 0; k < largest; k++)
            if (times[largest] - times[k] <= 1.5) before = fmaxf(before, peaks[k]);
        assert_true(meter.level.peak >= peaks[i] && meter.level.peak <= peaks[largest]);
        if (before <= peaks[largest]) assert_true(meter.level.peak == peaks[largest]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(limiter_passes_samples_within_full_scale),
        cmocka_unit_test(limiter_limits_to_full_scale),
        cmocka_unit_test(limiter_links_channels),
        cmocka_unit_test(limiter_recovers),
        cmocka_unit_test(limiter_does_not_depend_on_call_sizes),
        cmocka_unit_test(ramp_is_linear),
        cmocka_unit_test(ramp_changes_target_without_a_step),
        cmocka_unit_test(meter_measures_peak_and_rms),
        cmocka_unit_test(meter_recovers_from_the_largest_samples),
        cmocka_unit_test(ring_keeps_order_and_refuses_when_full),
        cmocka_unit_test(ring_writes_all),
        cmocka_unit_test(ring_stores_the_first_failure),
        cmocka_unit_test(heartbeat_detects_silence),
        cmocka_unit_test(heartbeat_counts_only_observed_time),
        cmocka_unit_test(heartbeat_limit_follows_periods_and_buffers),
        cmocka_unit_test(peaks_are_held),
    };
    return run_all(tests);
}
