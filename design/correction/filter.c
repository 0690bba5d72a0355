// SPDX-License-Identifier: MIT
// The filter that corrects a mean response: its gain, its phase, its taps, and a report on them.
#include <float.h>
#include <math.h>
#include <string.h>

#include "correction.h"
#include "design.h"

enum { FRACTION = 6, PER_OCTAVE = 12 }; // of the octave, and of the frequencies of deviations
#define KNEE 2.0                        // dB on each side of a limit
#define PHASE_CYCLES 5.0                // window of the excess phase
#define SMALL_FACTOR 0.01 // the smallest magnitude of a faded all-pass that is restored
#define SHORTER 0.7

// 1 from low to high, falling to 0 outside.
static double weight_at(const struct correction *c, double frequency, double high)
{
    const double outside = fmax(log2(c->given.low / frequency), log2(frequency / high));
    return 0.5 + 0.5 * cos(DESIGN_PI * fmin(fmax(outside / c->given.edge, 0), 1));
}

static double limited(double decibels, double max)
{
    const double knee = fmin(KNEE, max), above = decibels - max + knee;
    if (above <= 0) return decibels;
    return above < 2 * knee ? decibels - above * above / (4 * knee) : max;
}

// See partita/correction.h.
static void fill_gain(struct correction *c)
{
    double max = 0;
    memcpy(c->scratch, c->power, c->count * sizeof *c->scratch);
    correction_smooth(c, c->scratch, c->given.smoothing);
    // Differences of sums leave rounding errors where there is no power.
    for (size_t k = 0; k < c->count; k++) max = fmax(max, creal(c->scratch[k]));
    for (size_t k = 0; k < c->count; k++) {
        c->scratch[k] = fmax(creal(c->scratch[k]), 1e-12 * max);
        c->filter[k] = c->power[k] / c->scratch[k];
    }
    correction_smooth(c, c->filter, c->given.smoothing);
    for (size_t k = 0; k < c->count; k++) {
        const double power = creal(c->scratch[k]) * fmax(creal(c->filter[k]), 1e-12);
        c->scratch[k] =
            10 * log10(power) -
            design_table_decibels(c->given.target, c->given.target_count, (double)k * c->step);
    }
    c->report.level = correction_range_mean(c, c->scratch);
    for (size_t k = 0; k < c->count; k++) {
        double decibels = limited(c->report.level - creal(c->scratch[k]), c->given.boost);
        if (c->given.attenuation > 0) decibels = -limited(-decibels, c->given.attenuation);
        c->gain[k] = pow(10, weight_at(c, (double)k * c->step, c->given.high) * decibels / 20);
    }
}

// The last quarter fades out, and of linear phase, whose delay is half of its length, the first
// quarter fades in.
static void store_taps(struct correction *c, size_t delay, double *taps)
{
    const double length = (double)(c->given.taps - delay);
    correction_inverse(c, c->filter, taps, c->given.taps, delay);
    for (size_t i = 0; i < c->given.taps; i++) {
        const double distance = fabs((double)i - (double)delay) / length;
        taps[i] *= 0.5 + 0.5 * cos(DESIGN_PI * fmax(4 * distance - 3, 0));
    }
}

// Replaces scratch by the all-pass that inverts the excess phase. Outside of the range the phase
// goes to the nearest multiple of a period, which needs less delay than 0.
static void invert_excess_phase(struct correction *c)
{
    const double period = 2 * DESIGN_PI;
    const size_t limit = (size_t)(c->given.phase_limit / c->step);
    double complex *x = c->scratch, before = 1;
    double phase = 0;
    if (!(c->given.window > 0)) correction_window(c, c->vector, PHASE_CYCLES);
    memcpy(x, c->vector, c->count * sizeof *x);
    correction_minimum_phase(c, x);
    correction_inverse(c, c->vector, NULL, 0, 0);
    if (c->bins.samples[0] < 0) before = -1; // polarity is kept
    for (size_t k = 0; k < c->count; k++) {
        const double complex excess = c->vector[k] * conj(x[k]);
        phase += carg(excess * conj(before));
        before = excess;
        x[k] = phase;
    }
    const double below = period * round(creal(x[c->first]) / period);
    const double above = period * round(creal(x[limit]) / period);
    for (size_t k = 0; k < c->count; k++) {
        const double rest = creal(x[k]) - (k < c->first ? below : above);
        x[k] = cexp(-I * (rest * weight_at(c, (double)k * c->step, c->given.phase_limit)));
    }
}

// The spectrum of the all-pass in scratch, faded in before its peak; for 0 frames it is 1.
static void fade_in(struct correction *c, double frames, double complex *ret)
{
    double *samples = c->bins.samples;
    correction_inverse(c, c->scratch, NULL, 0, 0);
    for (size_t i = 1; i < c->n; i++) {
        const double before = i < c->n / 2 ? 0 : (double)(c->n - i);
        const double fade = 0.5 + 0.5 * cos(DESIGN_PI * fmin(before / frames, 1));
        samples[2 * i] *= frames > 0 ? fade : 0;
    }
    if (!(frames > 0)) samples[0] = 1;
    correction_transform(c, ret);
}

// In dB.
static double pre_ringing(const struct correction *c, const double *taps)
{
    const size_t peak = correction_peak(taps, c->given.taps);
    const double last = (double)peak - CORRECTION_GUARD * c->given.rate;
    double max = 0;
    for (size_t i = 0; (double)i < last; i++) max = fmax(max, fabs(taps[i]));
    return 20 * log10(max / fabs(taps[peak]));
}

static void fill_mixed(struct correction *c, double *taps)
{
    const size_t delay = (size_t)ceil(c->given.pre_time * c->given.rate);
    double complex *allpass = c->vector; // no longer needed
    double time = c->given.pre_time;
    invert_excess_phase(c);
    for (;; time = SHORTER * time < CORRECTION_GUARD ? 0 : SHORTER * time) {
        fade_in(c, time * c->given.rate, allpass);
        for (size_t k = 0; k < c->count; k++)
            c->filter[k] = c->gain[k] / fmax(cabs(allpass[k]), SMALL_FACTOR);
        correction_minimum_phase(c, c->filter);
        for (size_t k = 0; k < c->count; k++) c->filter[k] *= allpass[k];
        store_taps(c, delay, taps);
        if (!(time > 0) || pre_ringing(c, taps) <= -c->given.pre_level) break;
    }
    c->report.pre_time = time;
}

// Deviations of a power, which is smoothed, from the target.
static void deviate(struct correction *c, double complex *power, double *ret_max, double *ret_rms)
{
    double f = c->given.low, squares = 0;
    int count = 0;
    *ret_max = 0;
    correction_smooth(c, power, FRACTION);
    for (; f <= c->given.high; f = c->given.low * exp2((double)++count / PER_OCTAVE)) {
        const double level = 10 * log10(fmax(creal(power[(size_t)round(f / c->step)]), DBL_MIN));
        const double deviation =
            fabs(level - c->report.level -
                 design_table_decibels(c->given.target, c->given.target_count, f));
        squares += deviation * deviation;
        *ret_max = fmax(*ret_max, deviation);
    }
    *ret_rms = sqrt(squares / count);
}

void correction_fill(struct correction *c, double *taps)
{
    struct partita_correction_report *report = &c->report;
    const bool linear = c->given.phase == PARTITA_CORRECTION_LINEAR;
    double sum = 0, max = 0, min = INFINITY;
    fill_gain(c);
    if (c->given.phase == PARTITA_CORRECTION_MIXED) fill_mixed(c, taps);
    else {
        for (size_t k = 0; k < c->count; k++) c->filter[k] = c->gain[k];
        if (!linear) correction_minimum_phase(c, c->filter);
        store_taps(c, linear ? c->given.taps / 2 : 0, taps);
    }
    correction_forward(c, c->scratch, taps, c->given.taps, 0);
    for (size_t k = 0; k < c->count; k++) {
        const double gain = cabs(c->scratch[k]);
        c->filter[k] = c->power[k] * gain * gain;
        if (gain > max) {
            max = gain;
            report->boost_frequency = (double)k * c->step;
        }
        if (k < c->first || k > c->last || gain >= min) continue;
        min = gain;
        report->attenuation_frequency = (double)k * c->step;
    }
    for (size_t i = 0; i < c->given.taps; i++) sum += fabs(taps[i]);
    deviate(c, c->filter, &report->after_max, &report->after_rms);
    deviate(c, c->power, &report->before_max, &report->before_rms);
    report->boost = 20 * log10(max);
    report->attenuation = -20 * log10(min);
    report->sine_gain = -report->boost;
    report->safe_gain = -20 * log10(sum);
    report->delay = (double)correction_peak(taps, c->given.taps);
    report->pre_ringing = pre_ringing(c, taps);
    report->arrival += report->delay;
}
