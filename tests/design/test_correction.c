// SPDX-License-Identifier: MIT
// Corrections of responses that are known: against the definition in long double, invariances,
// windows, smoothing, limits, phases. Rooms: test_rooms.c.

#include "support/test.h"

#include <complex.h>
#include <math.h>

#define PI 3.14159265358979323846L

enum { RATE = 48000, TAPS = 8192 };

static const struct partita_correction basic = {.rate = RATE, .frames = 400, .taps = TAPS};

// Decaying noise after a few frames of silence.
static void decaying(double *x, size_t n, size_t begin, const char *name)
{
    struct random random = random_start(name);
    random_samples(&random, PARTITA_F64, x, n);
    for (size_t i = 0; i < n; i++) {
        const double age = (double)i - (double)begin;
        x[i] = age < 0 ? 0 : (age == 0 ? 2 : x[i] * exp(-8 * age / (double)n));
    }
}

static const char *const names[] = {"first", "second", "third"};

static double complex response(const double *taps, size_t n, double frequency)
{
    double got[2];
    partita_design_response(taps, n, frequency, got);
    return got[0] + I * got[1];
}

static double decibels(double complex x)
{
    return 20 * log10(cabs(x));
}

static double largest_difference(const double *a, const double *b, size_t n)
{
    double max = 0;
    for (size_t i = 0; i < n; i++) max = fmax(max, fabs(a[i] - b[i]));
    return max;
}

// The definition of partita/correction.h for a filter of minimum phase by sums in long double, at
// the n points of the library's transform, which are 4 for each tap. Smoothing by 1/1000 octave is
// less than a bin for so few.
enum { SMALL = 256, POINTS = 4 * SMALL, SMALL_FRAMES = 60 };

static long double complex root(size_t i)
{
    static long double complex roots[POINTS];
    if (roots[0] == 0)
        for (size_t k = 0; k < POINTS; k++) roots[k] = cexpl(-2 * PI * I * k / POINTS);
    return roots[i % POINTS];
}

static long double limited(long double x, long double max)
{
    const long double w = max < 2 ? max : 2;
    if (x <= max - w) return x;
    return x < max + w ? x - (x - max + w) * (x - max + w) / (4 * w) : max;
}

static long double frequency_of(const struct partita_correction *c, size_t k)
{
    return c->rate * (long double)(k <= POINTS / 2 ? k : POINTS - k) / POINTS;
}

static void oracle(const struct partita_correction *c, const double *responses, double *taps,
                   double *ret_level)
{
    static long double power[POINTS], gain[POINTS], cepstrum[POINTS];
    static long double complex phase[POINTS];
    long double weights = 0, level = 0, total = 0;
    const size_t first = (size_t)ceil(c->low / c->rate * POINTS);
    const size_t last = (size_t)(c->high / c->rate * POINTS);
    memset(power, 0, sizeof power);
    for (size_t k = first; k <= last; k++) weights += 1.0L / k;
    for (size_t p = 0; p < c->positions; p++) {
        long double one[POINTS], mean = 0;
        for (size_t k = 0; k < POINTS; k++) {
            long double complex sum = 0;
            for (size_t i = 0; i < c->frames; i++)
                sum += responses[p * c->frames + i] * root(i * k);
            one[k] = creall(sum * conjl(sum));
            if (k >= first && k <= last) mean += one[k] / k / weights;
        }
        for (size_t k = 0; k < POINTS; k++) power[k] += one[k] / mean / c->positions;
        total += mean / c->positions;
    }
    for (size_t k = 0; k < POINTS; k++) {
        const long double f = frequency_of(c, k);
        const long double low = c->target[0].frequency, high = c->target[1].frequency;
        const long double at = logl(fminl(fmaxl(f, low), high) / low) / logl(high / low);
        gain[k] = c->target[0].decibels + at * (c->target[1].decibels - c->target[0].decibels) -
                  10 * log10l(power[k] * total);
        if (k >= first && k <= last) level -= gain[k] / k / weights;
    }
    for (size_t k = 0; k < POINTS; k++) {
        const long double f = frequency_of(c, k);
        const long double outside = fmaxl(log2l(c->low / f), log2l(f / c->high)) / 0.5L;
        const long double weight = 0.5L + 0.5L * cosl(PI * fminl(fmaxl(outside, 0), 1));
        const long double boost = limited(level + gain[k], c->boost);
        gain[k] = -limited(-boost, c->attenuation) * weight * logl(10) / 20;
    }
    for (size_t m = 0; m < POINTS; m++) {
        cepstrum[m] = 0;
        for (size_t k = 0; k < POINTS; k++) cepstrum[m] += creall(gain[k] * root(k * m)) / POINTS;
        if (m > 0 && m < POINTS / 2) cepstrum[m] *= 2;
        if (m > POINTS / 2) cepstrum[m] = 0;
    }
    for (size_t k = 0; k < POINTS; k++) {
        long double complex sum = 0;
        for (size_t m = 0; m < POINTS; m++) sum += cepstrum[m] * root(k * m);
        phase[k] = cexpl(sum);
    }
    for (size_t i = 0; i < SMALL; i++) {
        long double sum = 0;
        for (size_t k = 0; k < POINTS; k++) sum += creall(phase[k] * conjl(root(i * k))) / POINTS;
        const long double faded = fmaxl(4.0L * i / SMALL - 3, 0);
        taps[i] = (double)(sum * (0.5L + 0.5L * cosl(PI * faded)));
    }
    *ret_level = (double)level;
}

static void definition(void **state)
{
    static const struct partita_design_point slope[] = {{50, 3}, {300, -4}};
    const struct partita_correction c = {.rate = 1000,
                                         .frames = SMALL_FRAMES,
                                         .positions = 3,
                                         .taps = SMALL,
                                         .low = 25,
                                         .high = 400,
                                         .smoothing = 1000,
                                         .boost = 4,
                                         .attenuation = 7,
                                         .target = slope,
                                         .target_count = 2};
    double x[3 * SMALL_FRAMES], taps[SMALL], expected[SMALL], level;
    struct partita_correction_report report;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        decaying(x + i * SMALL_FRAMES, SMALL_FRAMES, 3 * i, names[i]);
        for (size_t k = 0; k < SMALL_FRAMES; k++) x[i * SMALL_FRAMES + k] *= 1 + (double)i;
    }
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    oracle(&c, x, expected, &level);
    // Transforms of 1024 points have errors of 1e-15 of the norm; of a magnitude 40 dB below it,
    // whose logarithm enters all taps, that is 1e-13; then three more transforms of gains up to 2.
    assert_true(largest_difference(taps, expected, SMALL) < 1e-12);
    assert_true(fabs(report.level - level) < 1e-11);
    assert_true(report.arrival == 3 + report.delay);
}

// Level and delay of responses, and copies of one position, change no tap.
static void invariance(void **state)
{
    const enum partita_correction_phase *phase = *state;
    static double x[1000], taps[TAPS], others[TAPS];
    struct partita_correction c = basic;
    struct partita_correction_report report, other;
    c.phase = *phase;
    decaying(x, 400, 20, "invariance");
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    for (size_t i = 400; i-- > 0;) x[600 + i] = x[i] * -3e5;
    memset(x, 0, 600 * sizeof *x);
    c.frames = 1000;
    assert_ok(partita_correction_taps(&c, x, others, &other));
    // As above, for a transform of 2^15 points.
    assert_true(largest_difference(taps, others, TAPS) < 1e-11);
    assert_true(fabs(other.level - report.level - 20 * log10(3e5)) < 1e-9);
    assert_true(fabs(other.arrival - report.arrival - 600) < 1e-9);
    assert_true(fabs(other.after_max - report.after_max) < 1e-9);
}

// What needs no correction gets none, with any phase; a target has its own magnitude then.
static void identity(void **state)
{
    const enum partita_correction_phase *phase = *state;
    static double taps[TAPS];
    const double x = -0.5;
    struct partita_correction c = basic;
    struct partita_correction_report report;
    c.phase = *phase;
    c.frames = 1;
    assert_ok(partita_correction_taps(&c, &x, taps, &report));
    const size_t peak = *phase == PARTITA_CORRECTION_MINIMUM  ? 0
                        : *phase == PARTITA_CORRECTION_LINEAR ? TAPS / 2
                                                              : 960; // 0.02 s
    assert_true(report.delay == (double)peak);
    taps[peak] -= 1;
    for (size_t i = 0; i < TAPS; i++) assert_true(fabs(taps[i]) < 1e-13);
    assert_true(report.before_max < 1e-10 && report.after_max < 1e-10);
    assert_true(fabs(report.boost) < 1e-10 && fabs(report.level - 20 * log10(0.5)) < 1e-10);

    static const struct partita_design_point tilt[] = {{100, 5}, {10000, -5}};
    c.target = tilt;
    c.target_count = 2;
    assert_ok(partita_correction_taps(&c, &x, taps, &report));
    // Taps last 1.7 periods of 20 Hz to each side.
    assert_true(report.before_max > 4.5 && report.after_max < 0.4);
    for (double f = 200; f < 8000; f *= 1.3)
        assert_true(fabs(decibels(response(taps, TAPS, f / RATE)) + 5 * log10(f / 1000) -
                         decibels(response(taps, TAPS, 1000. / RATE))) < 0.05);
}

static void linear_phase(void **state)
{
    static double x[400], taps[TAPS];
    struct partita_correction_report report;
    struct partita_correction c = basic;
    (void)state;
    c.phase = PARTITA_CORRECTION_LINEAR;
    decaying(x, 400, 0, "linear");
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    assert_true(fabs(taps[0]) < 1e-15);
    for (size_t i = 1; i < TAPS; i++) assert_true(fabs(taps[i] - taps[TAPS - i]) < 1e-14);
    c.taps = TAPS - 1;
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    for (size_t i = 0; i < TAPS - 1; i++) assert_true(fabs(taps[i] - taps[TAPS - 2 - i]) < 1e-14);
}

// A notch and a peak: gains stay within the limits, and the report has them.
static void limits(void **state)
{
    static double taps[TAPS];
    const double x[5] = {0, 1, 0, 0.97}; // zeros near a quarter of the rate
    struct partita_correction c = basic;
    struct partita_correction_report report;
    double boost = -INFINITY, attenuation = -INFINITY, sum = 0;
    (void)state;
    c.frames = 4;
    c.boost = 9;
    c.attenuation = 2;
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    for (int i = 0; i <= 4000; i++) {
        const double f = 20 * pow(1000, i / 4000.), gain = decibels(response(taps, TAPS, f / RATE));
        boost = fmax(boost, gain);
        attenuation = fmax(attenuation, -gain);
    }
    for (int i = 0; i < TAPS; i++) sum += fabs(taps[i]);
    // Taps end with a slow fade: gains move by less than 0.01 dB. The notch is 60 dB deep.
    assert_true(boost < 9.01 && boost > 8.9 && attenuation < 2.01 && attenuation > 1.4);
    assert_true(fabs(report.boost - boost) < 0.01);
    assert_true(fabs(report.attenuation - attenuation) < 0.01);
    assert_true(fabs(report.boost_frequency - 12000) < 2500); // 9 dB, and ripples of 0.01 dB
    assert_true(report.sine_gain == -report.boost);
    assert_true(fabs(report.safe_gain + 20 * log10(sum)) < 1e-10);
}

// An all-pass of second order, as the sum of a crossover is: mixed phase makes its delay even.
static double delay_at(const double *x, size_t n, const double *taps, double frequency)
{
    const double d = 0.5 / RATE, f = frequency / RATE;
    const double complex before = response(x, n, f - d) * response(taps, TAPS, f - d);
    const double complex after = response(x, n, f + d) * response(taps, TAPS, f + d);
    return -carg(after / before) / (2 * (double)PI * 2 * d);
}

static void excess_phase(void **state)
{
    enum { N = 8000 };
    static double x[N], taps[TAPS];
    const double w = 2 * (double)PI * 120 / RATE, alpha = sin(w) / 1.4;
    const double a1 = -2 * cos(w) / (1 + alpha), a2 = (1 - alpha) / (1 + alpha);
    double worst = 0, level = -INFINITY;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        x[i] = i == 0 ? a2 : (i == 1 ? a1 : (i == 2 ? 1 : 0));
        x[i] -= (i > 0 ? a1 * x[i - 1] : 0) + (i > 1 ? a2 * x[i - 2] : 0);
    }
    struct partita_correction c = basic;
    struct partita_correction_report report;
    c.frames = N;
    c.phase = PARTITA_CORRECTION_MIXED;
    c.pre_level = 20;
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    assert_true(report.pre_time == 0.02 && report.delay == 960);
    // Without a filter the delay is 2 Q / (pi 120 Hz) = 3.7 ms at 120 Hz. Of the inverse, which is
    // the all-pass backwards, the fade leaves off 7 % 3.7 ms before the peak.
    for (double f = 40; f <= 250; f *= 1.1)
        worst = fmax(worst, fabs(delay_at(x, N, taps, f) - 960) / RATE);
    assert_true(worst < 0.1 * 0.0037);
    assert_true(report.after_max < 0.05);

    // Less is allowed before the peak: the fade becomes shorter.
    c.pre_level = 60;
    assert_ok(partita_correction_taps(&c, x, taps, &report));
    assert_true(report.pre_time < 0.02 && report.pre_ringing <= -60 && report.after_max < 0.05);
    assert_true(report.delay == 960);
    for (size_t i = 0; i < 960 - 48; i++) level = fmax(level, decibels(taps[i] / taps[960]));
    assert_true(level == report.pre_ringing || fabs(level - report.pre_ringing) < 1e-9);
    const size_t begin = 960 - (size_t)ceil(report.pre_time * RATE);
    for (size_t i = 0; i + 48 < begin; i++) assert_true(fabs(taps[i]) < 1e-4);
}

// Fields at random: taps are finite, mixed phase keeps its promises, and nothing becomes worse but
// what the limits and the few taps leave.
static double between(struct random *random, double low, double high)
{
    return low * pow(high / low, (double)random_below(random, 1001) / 1000);
}

static void at_random(void **state)
{
    static double x[3 * 600], taps[TAPS];
    struct random random = random_start("correction");
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct partita_correction c = {.rate = between(&random, 4000, 96000)};
        struct partita_correction_report report;
        double ringing = 0;
        c.positions = 1 + random_below(&random, 3);
        c.frames = 1 + random_below(&random, 600);
        c.taps = 1000 + random_below(&random, TAPS - 1000);
        c.mean = (enum partita_correction_mean)random_below(&random, 2);
        c.phase = (enum partita_correction_phase)random_below(&random, 3);
        c.high = between(&random, 0.1, 0.5) * c.rate;
        c.low = between(&random, 8 * c.rate / (double)c.taps, c.high / 2);
        c.boost = between(&random, 0.1, 40);
        c.attenuation = random_below(&random, 2) ? between(&random, 0.1, 40) : 0;
        c.smoothing = between(&random, 1, 100);
        c.edge = between(&random, 0.1, 3);
        c.window = random_below(&random, 2) ? between(&random, 1, 100) : 0;
        if (c.phase == PARTITA_CORRECTION_MIXED) {
            c.phase_limit = between(&random, c.low, c.high);
            c.pre_time = fmax(0.001, between(&random, 1e-3, 0.25) * (double)c.taps / c.rate);
            c.pre_level = between(&random, 1, 100);
        }
        for (size_t k = 0; k < c.positions; k++)
            decaying(x + k * c.frames, c.frames, random_below(&random, c.frames), names[k]);
        assert_ok(partita_correction_taps(&c, x, taps, &report));
        for (size_t k = 0; k < c.taps; k++) assert_true(isfinite(taps[k]));
        for (size_t k = 0; (double)k < report.delay - 0.001 * c.rate; k++)
            ringing = fmax(ringing, fabs(taps[k]) / fabs(taps[(size_t)report.delay]));
        assert_true(20 * log10(ringing) <= report.pre_ringing + 1e-9);
        if (c.phase == PARTITA_CORRECTION_MIXED) assert_true(report.pre_time <= c.pre_time);
        if (report.pre_time > 0) assert_true(report.pre_ringing <= -c.pre_level);
        assert_true(report.boost <= c.boost + 1 && isfinite(report.level));
        if (c.smoothing < 6) continue; // deviations are those by 1/6 octave
        assert_true(report.after_rms <= report.before_rms + 0.3);
    }
}

// Averages -------------------------------------------------------------------------------------

static void single_position(void **state)
{
    static double x[400], y[400];
    struct partita_correction c = basic;
    (void)state;
    c.taps = 0;
    decaying(x, 400, 30, "single");
    assert_ok(partita_correction_average(&c, x, y));
    // A norm of 6, and four transforms of 2^15 samples, each with 3 u sqrt(15) of it.
    assert_true(largest_difference(x, y, 400) < 3e-14);
    assert_ok(partita_correction_average(&c, x, x)); // in place
    assert_true(largest_difference(x, y, 400) == 0);
}

// The same response twice, later and louder: it stays where the first one is, with the mean power.
static void aligned(void **state)
{
    static double x[2][500], y[500];
    struct partita_correction c = basic;
    (void)state;
    decaying(x[0], 400, 30, "aligned");
    for (size_t i = 0; i < 400; i++) x[1][i + 77] = 2 * x[0][i];
    c.frames = 500;
    c.positions = 2;
    for (int mean = 0; mean <= PARTITA_MEAN_VECTOR; mean++) {
        c.mean = (enum partita_correction_mean)mean;
        assert_ok(partita_correction_average(&c, x[0], y));
        for (size_t i = 0; i < 500; i++) assert_true(fabs(y[i] - x[0][i] * sqrt(2.5)) < 1e-14 * 4);
    }
}

// A reflection of one position each, at other times: as vectors it has half the amplitude.
static void means(void **state)
{
    static double x[2][4000], y[4000];
    double power = 0;
    struct partita_correction c = {.rate = RATE, .frames = 4000, .positions = 2};
    (void)state;
    x[0][5] = 1;
    x[0][1005] = 0.6;
    x[1][5] = 4; // louder, and weighted equally
    x[1][2505] = 4 * 0.6;
    c.mean = PARTITA_MEAN_VECTOR;
    assert_ok(partita_correction_average(&c, x[0], y));
    // The powers of the positions are equal but for what the range of the mean cuts off.
    assert_true(fabs(y[1005] / y[5] - 0.3) < 0.01 && fabs(y[2505] / y[5] - 0.3) < 0.01);
    c.mean = PARTITA_MEAN_ENERGY;
    assert_ok(partita_correction_average(&c, x[0], y));
    for (double f = 300; f < 15000; f += 200) { // |1 + 0.6 z|^2 of both
        const double expected = 1.36 + 0.6 * cos(2 * (double)PI * f / RATE * 1000) +
                                0.6 * cos(2 * (double)PI * f / RATE * 2500);
        const double complex got = response(y, 4000, f / RATE);
        power += fabs(creal(got * conj(got)) / 8.5 - expected); // of 1 and 16
    }
    // The mean is cut off after 4000 frames.
    assert_true(power / 74 < 0.03);
}

// An echo is weighted by sinc(t f / cycles)^3. The widths of means change within each mean by a
// fraction of 1 / (2 cycles), which moves the result of the next one by at most half as much.
static void window(void **state)
{
    static double x[3000], y[3000];
    struct partita_correction c = {.rate = RATE, .frames = 3000, .window = 8};
    (void)state;
    x[100] = 1;
    x[340] = 0.8; // 5 ms later
    assert_ok(partita_correction_average(&c, x, y));
    for (double f = 40; f < 18000; f *= 1.07) {
        const double at = (double)PI * 0.005 * f / 8, sinc = sin(at) / at;
        const double complex echo = 0.8 * cexp(-2 * (double)PI * I * f * 0.005);
        const double complex got =
            response(y, 3000, f / RATE) * cexp(2 * (double)PI * I * f * 100 / RATE);
        assert_true(cabs(got - 1 - echo * pow(sinc, 3)) < 0.5 / 16);
    }
}

// The ripples of an echo vanish where they are narrower than the smoothing, and stay where they are
// wider.
static void smoothing(void **state)
{
    static double x[3000], y[3000];
    struct partita_correction c = {.rate = RATE, .frames = 3000, .smoothing = 3};
    (void)state;
    x[1000] = 1;
    x[1240] = 0.5;
    assert_ok(partita_correction_average(&c, x, y));
    for (double f = 30; f < 18000; f *= 1.07) {
        const double complex got = response(y, 3000, f / RATE);
        const double from = f * exp2(-1 / 6.), to = f * exp2(1 / 6.), w = 2 * (double)PI * 0.005;
        const double expected = 1.25 + (sin(w * to) - sin(w * from)) / (w * (to - from));
        // The response is cut off after 3000 frames, and there are 3 bins in 1/3 octave at 30 Hz.
        assert_true(fabs(creal(got * conj(got)) / expected - 1) < 0.03);
    }
}

static void curves(void **state)
{
    size_t n = 99;
    (void)state;
    assert_null(partita_correction_curve("bk2", &n));
    assert_null(partita_correction_curve(NULL, &n));
    assert_int_equal(n, 99);
    assert_true(partita_correction_curve("flat", &n)->decibels == 0 && n == 1);
    const struct partita_design_point *bk = partita_correction_curve("bk", &n);
    assert_true(bk[n - 1].frequency == 20000 && bk[n - 1].decibels == -6);
    const struct partita_design_point *harman = partita_correction_curve("harman-room", &n);
    assert_true(harman[0].decibels == 6 && harman[n - 2].decibels == -2.5);
    for (size_t i = 1; i < n; i++) assert_true(harman[i].frequency > harman[i - 1].frequency);
    const double x = 1;
    static double taps[TAPS];
    struct partita_correction c = basic;
    struct partita_correction_report report;
    c.frames = 1;
    c.target = harman;
    c.target_count = n;
    assert_ok(partita_correction_taps(&c, &x, taps, &report));
    assert_true(report.after_max < 0.3); // 8192 taps: 1/3 octave at 20 Hz
}

int main(void)
{
    static const enum partita_correction_phase phases[] = {
        PARTITA_CORRECTION_MINIMUM, PARTITA_CORRECTION_LINEAR, PARTITA_CORRECTION_MIXED};
    static const char *const words[] = {"minimum", "linear", "mixed"};
    static const struct promise promises[] = {
        {"definition", definition}, {"linear-phase", linear_phase},
        {"limits", limits},         {"excess-phase", excess_phase},
        {"random", at_random},      {"single", single_position},
        {"aligned", aligned},       {"means", means},
        {"window", window},         {"smoothing", smoothing},
        {"curves", curves},
    };
    struct CMUnitTest tests[6 + sizeof promises / sizeof *promises];
    size_t n = 0;
    for (size_t i = 0; i < 3; i++) {
        tests[n++] = named_test(invariance, &phases[i], "invariance/%s", words[i]);
        tests[n++] = named_test(identity, &phases[i], "identity/%s", words[i]);
    }
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++)
        tests[n++] = named_test(promises[i].run, NULL, "%s", promises[i].name);
    return run_test_list(tests, n);
}
