// SPDX-License-Identifier: MIT
// Measures the response of taps. A transform of 16 points a tap lies within 1/32 of a period of
// every ripple's top, where a ripple has 0.995 of its height: 0.04 dB less. The largest value in
// the bands of each class is then searched between the neighbouring points.
#include <math.h>

#include "bins.h"
#include "design.h"

enum { POINTS_PER_TAP = 16, POINTS_BETWEEN = 32 };

void partita_design_response(const double *taps, size_t n, double frequency, double ret_response[2])
{
    // Horner's rule with z^-1 = exp(-2 pi i frequency), from the last tap.
    const double c = cos(2 * DESIGN_PI * frequency), s = -sin(2 * DESIGN_PI * frequency);
    double re = 0, im = 0;
    for (size_t i = n; i-- > 0;) {
        const double real = re * c - im * s + taps[i];
        im = re * s + im * c;
        re = real;
    }
    ret_response[0] = re;
    ret_response[1] = im;
}

// A measured class of bands, pass or stop.
struct extreme {
    double value, frequency;
};

struct measuring {
    const struct design_spec *spec;
    const double *taps;
    size_t n;
    double step, largest; // of frequencies of the transform, at most; of the gains that are wanted
    struct extreme pass, stop;
};

// The deviation of a gain in pass bands, in dB without sign; the gain itself in stop bands. Deep
// parts of a table and of a raised cosine's slope are left out: the window limits them, not taps.
static double value_of(const struct measuring *m, const struct design_band *band, double frequency,
                       double gain)
{
    if (!band->pass) return gain;
    const double wanted = design_wanted_gain(m->spec, frequency);
    if (m->spec->kind == PARTITA_DESIGN_DIFFERENTIATOR)
        return 20 * log10(1 + fabs(gain - wanted) / m->largest);
    const double least = m->spec->kind == PARTITA_DESIGN_TABLE
                             ? m->largest * pow(10, -m->spec->attenuation / 40)
                             : 0;
    return wanted > 0 && wanted >= least ? fabs(20 * log10(gain / wanted)) : 0;
}

static void take_value(struct measuring *m, const struct design_band *band, double frequency,
                       double gain)
{
    struct extreme *extreme = band->pass ? &m->pass : &m->stop;
    const double value = value_of(m, band, frequency, gain);
    if (value > extreme->value) *extreme = (struct extreme){value, frequency};
}

static double exact_gain(const struct measuring *m, double frequency)
{
    double response[2];
    partita_design_response(m->taps, m->n, frequency, response);
    return hypot(response[0], response[1]);
}

// Ends of bands, which the transform misses.
static void take_ends(struct measuring *m)
{
    for (int i = 0; i < m->spec->n_bands; i++) {
        const struct design_band *band = &m->spec->bands[i];
        take_value(m, band, band->begin, exact_gain(m, band->begin));
        take_value(m, band, band->end, exact_gain(m, band->end));
    }
}

// Takes values between the points around the largest one of a class.
static void sharpen(struct measuring *m, struct extreme extreme, bool pass)
{
    for (int i = 0; i < m->spec->n_bands; i++) {
        const struct design_band *band = &m->spec->bands[i];
        if (band->pass != pass || extreme.frequency < band->begin || extreme.frequency > band->end)
            continue;
        for (int k = -POINTS_BETWEEN; k <= POINTS_BETWEEN; k++) {
            const double at = extreme.frequency + m->step * k / POINTS_BETWEEN;
            const double frequency = fmin(fmax(at, band->begin), band->end);
            take_value(m, band, frequency, exact_gain(m, frequency));
        }
        return;
    }
}

static void take_bin(void *context, double frequency, double gain)
{
    struct measuring *m = context;
    for (int k = 0; k < m->spec->n_bands; k++) {
        const struct design_band *band = &m->spec->bands[k];
        if (frequency >= band->begin && frequency <= band->end)
            take_value(m, band, frequency, gain);
    }
}

// The mean of the group delay, weighted by power, is the centre of energy by Parseval's theorem.
static double energy_centre(const double *taps, size_t n)
{
    const double middle = (double)(n - 1) / 2; // moments around it cancel for linear phase
    double energy = 0, moment = 0;
    for (size_t i = 0; i < n; i++) {
        energy += taps[i] * taps[i];
        moment += ((double)i - middle) * taps[i] * taps[i];
    }
    return energy > 0 ? middle + moment / energy : 0;
}

enum partita_status design_measure(const struct design_spec *spec, const double *taps, size_t n,
                                   struct partita_design_result *ret)
{
    struct measuring m = {spec, taps, n, .step = 1 / (double)(POINTS_PER_TAP * n),
                          .largest = design_largest_gain(spec)};
    const enum partita_status status =
        design_bins_gains(taps, n, POINTS_PER_TAP * n, &spec->allocator, take_bin, &m);
    if (status) return status;
    take_ends(&m);
    sharpen(&m, m.pass, true);
    sharpen(&m, m.stop, false);
    *ret = (struct partita_design_result){.ripple = m.pass.value,
                                          .attenuation = INFINITY,
                                          .delay = energy_centre(taps, n),
                                          .width = spec->width * spec->rate};
    // A gain of 1 + d for positive frequencies leaves d/2 of the negative ones.
    const double image = (pow(10, m.pass.value / 20) - 1) / 2;
    if (spec->kind == PARTITA_DESIGN_HILBERT) ret->attenuation = -20 * log10(image);
    else if (m.stop.value > 0) ret->attenuation = 20 * log10(m.largest / m.stop.value);
    return PARTITA_OK;
}
