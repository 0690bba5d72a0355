// SPDX-License-Identifier: MIT
// Corrections of loudspeakers in rooms that are made of image sources (Allen and Berkley, Image
// method for efficiently simulating small-room acoustics, J. Acoust. Soc. Am. 65, 1979): the power
// of all positions meets the target within 1 dB over 1/6 octave where the limit of boost allows.

#include "support/test.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>

#define PI 3.14159265358979323846

enum { RATE = 48000, FRAMES = 9600, POSITIONS = 10, TAPS = 1 << 16, POINTS = 1 << 17 };
#define SPEED 343.0

static double responses[POSITIONS][FRAMES], taps[TAPS];

struct room {
    const char *name;
    double size[3], source[3], listener[3]; // metres; positions lie within 0.4 m of the listener
    double reflection;                      // of all walls
    double cutoff;                          // of the loudspeaker's high pass of second order
};

static const struct room rooms[] = {
    {"living-room", {5.1, 3.9, 2.7}, {0.7, 0.6, 1}, {3.3, 2.1, 1.2}, 0.75, 35},
    {"small", {3.2, 2.6, 2.4}, {0.5, 1.3, 1.1}, {2.1, 1.2, 1.2}, 0.8, 45},
    {"damped", {6.3, 4.4, 2.9}, {1, 1.1, 1.2}, {4, 2.5, 1.3}, 0.5, 28},
};
enum { N_ROOMS = sizeof rooms / sizeof *rooms };

// Adds the images along two axes, as far as the response lasts. Samples between frames are shared
// by two, which lowers high frequencies by up to 3 dB.
static void add_images(double *h, const struct room *room, const double at[3])
{
    int reach[3];
    for (int a = 0; a < 3; a++) reach[a] = (int)(FRAMES * SPEED / RATE / room->size[a] / 2) + 1;
    for (int i = -reach[0]; i <= reach[0]; i++)
        for (int j = -reach[1]; j <= reach[1]; j++)
            for (int k = -reach[2]; k <= reach[2]; k++)
                for (int side = 0; side < 8; side++) {
                    const int n[3] = {i, j, k};
                    double squares = 0;
                    int walls = 0;
                    for (int a = 0; a < 3; a++) {
                        const int mirrored = side >> a & 1;
                        const double source = mirrored ? -room->source[a] : room->source[a];
                        const double d = source + 2 * n[a] * room->size[a] - at[a];
                        squares += d * d;
                        walls += abs(n[a] - mirrored) + abs(n[a]);
                    }
                    const double delay = sqrt(squares) / SPEED * RATE, frame = floor(delay);
                    if (frame + 1 >= FRAMES) continue;
                    const double gain = pow(room->reflection, walls) / sqrt(squares);
                    h[(size_t)frame] += gain * (1 - delay + frame);
                    h[(size_t)frame + 1] += gain * (delay - frame);
                }
}

// A high pass of Butterworth, by the bilinear transform.
static void high_pass(double *h, double cutoff)
{
    const double w = tan(PI * cutoff / RATE), norm = 1 / (1 + sqrt(2) * w + w * w);
    const double a1 = 2 * (w * w - 1) * norm, a2 = (1 - sqrt(2) * w + w * w) * norm;
    double x1 = 0, x2 = 0, y1 = 0, y2 = 0;
    for (size_t i = 0; i < FRAMES; i++) {
        const double y = norm * (h[i] - 2 * x1 + x2) - a1 * y1 - a2 * y2;
        x2 = x1;
        x1 = h[i];
        y2 = y1;
        h[i] = y1 = y;
    }
}

static void measure(const struct room *room)
{
    struct random random = random_start(room->name);
    memset(responses, 0, sizeof responses);
    for (size_t p = 0; p < POSITIONS; p++) {
        double at[3], moved[3];
        random_samples(&random, PARTITA_F64, moved, 3);
        for (int a = 0; a < 3; a++) at[a] = room->listener[a] + 0.4 * moved[a];
        add_images(responses[p], room, at);
        high_pass(responses[p], room->cutoff);
    }
}

// Radix 2: x[n] becomes its transform; work[n].
static void transform(double complex *x, double complex *work, size_t n)
{
    if (n == 1) return;
    for (size_t i = 0; i < n / 2; i++) {
        work[i] = x[2 * i];
        work[n / 2 + i] = x[2 * i + 1];
    }
    transform(work, x, n / 2);
    transform(work + n / 2, x + n / 2, n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        const double complex odd = cexp(-2 * PI * I * (double)i / (double)n) * work[n / 2 + i];
        x[i] = work[i] + odd;
        x[n / 2 + i] = work[i] - odd;
    }
}

static void powers(double *ret, const double *x, size_t n)
{
    static double complex samples[POINTS], work[POINTS];
    for (size_t i = 0; i < POINTS; i++) samples[i] = i < n ? x[i] : 0;
    transform(samples, work, POINTS);
    for (size_t k = 0; k < POINTS / 2; k++) ret[k] = creal(samples[k] * conj(samples[k]));
}

static double before[POINTS / 2], after[POINTS / 2];

// The mean power of the positions, of which each has the same within the range; and with the taps.
static void measure_powers(double low, double high)
{
    static double one[POINTS / 2], filter[POINTS / 2];
    double total = 0;
    memset(before, 0, sizeof before);
    for (size_t p = 0; p < POSITIONS; p++) {
        double sum = 0, weights = 0;
        powers(one, responses[p], FRAMES);
        for (size_t k = 1; k < POINTS / 2; k++) {
            const double f = (double)k * RATE / POINTS;
            if (f < low || f > high) continue;
            sum += one[k] / (double)k;
            weights += 1 / (double)k;
        }
        total += sum / weights / POSITIONS;
        for (size_t k = 0; k < POINTS / 2; k++) before[k] += one[k] * weights / sum / POSITIONS;
    }
    powers(filter, taps, TAPS);
    for (size_t k = 0; k < POINTS / 2; k++) {
        before[k] *= total;
        after[k] = before[k] * filter[k];
    }
}

// In 1/6 octave around f, in dB.
static double band(const double *power, double f)
{
    const size_t first = (size_t)ceil(f * exp2(-1 / 12.) * POINTS / RATE);
    const size_t last = (size_t)(f * exp2(1 / 12.) * POINTS / RATE);
    double sum = 0;
    for (size_t k = first; k <= last; k++) sum += power[k];
    return 10 * log10(sum / (double)(last - first + 1));
}

static double target_at(double f)
{
    if (f < 400) return 0;
    return f < 12800 ? -5 * log2(f / 400) / 5 : -5 - log(f / 12800) / log(20000 / 12800.);
}

struct wish {
    const struct room *room;
    enum partita_correction_phase phase;
};

static void corrected(void **state)
{
    const struct wish *wish = *state;
    struct partita_correction c = {.rate = RATE,
                                   .frames = FRAMES,
                                   .positions = POSITIONS,
                                   .taps = TAPS,
                                   .phase = wish->phase,
                                   .low = 30,
                                   .high = 16000,
                                   .boost = 10};
    struct partita_correction_report report;
    double worst_before = 0, worst = 0, ringing = 0;
    int bands = 0, limited = 0;
    measure(wish->room);
    c.target = partita_correction_curve("bk", &c.target_count);
    assert_ok(partita_correction_taps(&c, responses[0], taps, &report));
    measure_powers(c.low, c.high);
    for (double f = 30; f <= 16000; f *= exp2(1 / 12.), bands++) {
        const double wanted = report.level + target_at(f), now = band(before, f);
        worst_before = fmax(worst_before, fabs(now - wanted));
        if (wanted - now > c.boost - 2) limited++; // where the limit begins
        else worst = fmax(worst, fabs(band(after, f) - wanted));
    }
    printf("# %s: %.2f dB before, %.2f dB after, %d of %d bands limited, %.1f dB before the peak, "
           "fade of %.1f ms, boost %.1f dB\n",
           wish->room->name, worst_before, worst, limited, bands, report.pre_ringing,
           1000 * report.pre_time, report.boost);
    assert_true(worst_before > 5 && worst < 1 && limited * 10 <= bands);
    // Both take means over bins that lie 1/3 and 1/6 of a hertz apart.
    assert_true(fabs(report.before_max - worst_before) < 0.2);
    assert_true(limited || fabs(report.after_max - worst) < 0.1);
    assert_true(report.boost <= c.boost + 0.05 && report.after_rms < report.before_rms / 3);

    const size_t peak = (size_t)report.delay;
    for (size_t i = 0; i + RATE / 1000 < peak; i++) ringing = fmax(ringing, fabs(taps[i]));
    if (c.phase == PARTITA_CORRECTION_MINIMUM) assert_true(peak < 48);
    if (c.phase == PARTITA_CORRECTION_MIXED)
        assert_true(20 * log10(ringing / fabs(taps[peak])) <= -30);
}

int main(void)
{
    static const char *const names[] = {"minimum", "linear", "mixed"};
    static struct wish wishes[3 * N_ROOMS];
    struct CMUnitTest tests[3 * N_ROOMS];
    for (size_t i = 0; i < 3 * N_ROOMS; i++) {
        wishes[i] = (struct wish){&rooms[i / 3], (enum partita_correction_phase)(i % 3)};
        tests[i] = named_test(corrected, &wishes[i], "%s/%s", rooms[i / 3].name, names[i % 3]);
    }
    return run_test_list(tests, 3 * N_ROOMS);
}
