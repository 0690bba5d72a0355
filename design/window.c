// SPDX-License-Identifier: MIT
// Ideal impulse responses times Kaiser's window. An ideal response is that of an infinitely long
// filter, a sum of few sine cardinals; that of a table is computed by a transform.
#include <math.h>

#include "bins.h"
#include "design.h"

// Kaiser's formulas. Below 21 dB the window is a rectangle.
#define RECTANGLE_DB 21.0
#define MAX_WINDOW_DB 200.0

double design_kaiser_attenuation(double width, double count)
{
    return 2.285 * 2 * DESIGN_PI * width * (count - 1) + 7.95;
}

double design_kaiser_count(double attenuation, double width)
{
    return (fmax(attenuation, RECTANGLE_DB) - 7.95) / (2.285 * 2 * DESIGN_PI * width) + 1;
}

double design_kaiser_width(double attenuation, double count)
{
    return (fmax(attenuation, RECTANGLE_DB) - 7.95) / (2.285 * 2 * DESIGN_PI * (count - 1));
}

double design_window_width(const struct design_spec *spec)
{
    // The response of a Hilbert transformer jumps from -1 to 1 at 0, in the middle of 2 widths.
    return spec->kind == PARTITA_DESIGN_HILBERT ? 2 * spec->width : spec->width;
}

double design_window_attenuation(const struct design_spec *spec)
{
    return -20 * log10(fmin(spec->pass_deviation, spec->stop_deviation));
}

static double kaiser_shape(double attenuation)
{
    if (attenuation > 50) return 0.1102 * (attenuation - 8.7);
    if (attenuation < RECTANGLE_DB) return 0;
    const double above = attenuation - RECTANGLE_DB;
    return 0.5842 * pow(above, 0.4) + 0.07886 * above;
}

// The modified Bessel function of order 0, by its power series, whose terms are all positive.
static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; term > sum * 1e-17; k++) {
        term *= (x / 2 / k) * (x / 2 / k);
        sum += term;
    }
    return sum;
}

static double sinc(double x)
{
    return x == 0 ? 1 : sin(DESIGN_PI * x) / (DESIGN_PI * x);
}

static double low_pass_at(double cutoff, double t)
{
    return 2 * cutoff * sinc(2 * cutoff * t);
}

static double hilbert_at(double t)
{
    const double half = sin(DESIGN_PI * t / 2);
    return t == 0 ? 0 : 2 * half * half / (DESIGN_PI * t);
}

// The derivative of the low pass.
static double differentiator_at(double cutoff, double t)
{
    if (t == 0) return 0;
    return 2 * cutoff * (cos(2 * DESIGN_PI * cutoff * t) - sinc(2 * cutoff * t)) / t;
}

// In the time t of symbols. cos(pi b t) / (1 - (2 b t)^2) as a sum that has no pole.
static double raised_cosine_at(double roll_off, double t)
{
    const double u = roll_off * t;
    return sinc(t) * DESIGN_PI / 4 * (sinc(u + 0.5) + sinc(u - 0.5));
}

// The integral of the root's spectrum: of its flat part, and of its slopes as a sum of two cosines.
static double root_raised_cosine_at(double roll_off, double t)
{
    const double u = roll_off * t;
    const double flat = (1 - roll_off) * sinc((1 - roll_off) * t);
    const double slope =
        cos(DESIGN_PI * (0.25 + t)) * sinc(0.25 + u) + cos(DESIGN_PI * (0.25 - t)) * sinc(0.25 - u);
    return flat + roll_off * slope;
}

// The ideal response t frames after its middle.
static double ideal_at(const struct design_spec *spec, double t)
{
    const double *c = spec->cutoff, symbols = 2 * c[0];
    const double roll_off = symbols > 0 ? spec->width / symbols : 0;
    const double all = t == 0 ? 1 : 0; // these kinds have a whole number of frames
    switch (spec->kind) {
    case PARTITA_DESIGN_LOW_PASS:
        return low_pass_at(c[0], t);
    case PARTITA_DESIGN_HIGH_PASS:
        return all - low_pass_at(c[0], t);
    case PARTITA_DESIGN_BAND_PASS:
        return low_pass_at(c[1], t) - low_pass_at(c[0], t);
    case PARTITA_DESIGN_BAND_STOP:
        return all - low_pass_at(c[1], t) + low_pass_at(c[0], t);
    case PARTITA_DESIGN_HILBERT:
        return hilbert_at(t);
    case PARTITA_DESIGN_DIFFERENTIATOR:
        return differentiator_at(c[0], t);
    case PARTITA_DESIGN_RAISED_COSINE:
        return symbols * raised_cosine_at(roll_off, symbols * t);
    case PARTITA_DESIGN_ROOT_RAISED_COSINE:
        return symbols * root_raised_cosine_at(roll_off, symbols * t);
    case PARTITA_DESIGN_TABLE:
        break;
    }
    return 0;
}

static double table_gain(const void *spec, double frequency)
{
    return design_wanted_gain(spec, frequency);
}

enum partita_status design_window(const struct design_spec *spec, double *taps, size_t n)
{
    const double allowed = design_kaiser_attenuation(design_window_width(spec), (double)n);
    const double shape =
        kaiser_shape(spec->window > 0 ? spec->window : fmin(allowed, MAX_WINDOW_DB));
    const double middle = (double)(n - 1) / 2;
    const double top = bessel_i0(shape), mirror = design_is_odd(spec) ? -1 : 1;
    const bool table = spec->kind == PARTITA_DESIGN_TABLE;
    // The right half of a table's ideal response, in place: taps[n/2] is its middle. Gains at 16
    // times as many frequencies as taps alias the rest, but so far from the middle that only
    // details far finer than the taps resolve reach it.
    if (table) {
        const enum partita_status status = design_bins_symmetric(
            taps + n / 2, n / 2 + 1, 16 * n, table_gain, spec, &spec->allocator);
        if (status) return status;
    }
    for (size_t i = n / 2; i < n; i++) {
        const double t = (double)i - middle, at = t / middle;
        const double window = bessel_i0(shape * sqrt(fmax(1 - at * at, 0))) / top;
        taps[i] = (table ? taps[i] : ideal_at(spec, t)) * window;
        taps[n - 1 - i] = i == n - 1 - i ? taps[i] : mirror * taps[i];
    }
    return PARTITA_OK;
}
