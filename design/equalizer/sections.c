// SPDX-License-Identifier: MIT
// Biquads of sections. A section is an analogue filter, a fraction of polynomials in s. The
// bilinear transform puts (1 - z) / (1 + z) / tan(pi f) in the place of s, where z delays by a
// frame: the response at s = i is then that at f cycles per frame.
#include <complex.h>
#include <math.h>
#include <string.h>

#include "design/design.h"
#include "equalizer.h"

#define DEFAULT_Q 0.70710678118654752440
#define MAX_GAIN 150.0 // dB

enum { MAX_BESSEL = 8, MAX_ORDER = 16, TILT_RATE = 8000 };

// Fields of sections, as bits.
enum { FREQUENCY = 1, GAIN = 2, Q = 4, WIDTH = 8, SLOPE = 16, TARGET = 32, UNITY = 64 };
enum { ORDER = 128, FAMILY = 256 };
static const struct section_kind {
    const char *name; // for messages
    unsigned fields;
} kinds[] = {
    [PARTITA_SECTION_PEAK] = {"a peak", FREQUENCY | GAIN | Q | WIDTH},
    [PARTITA_SECTION_LOW_SHELF] = {"a low shelf", FREQUENCY | GAIN | Q | SLOPE | ORDER},
    [PARTITA_SECTION_HIGH_SHELF] = {"a high shelf", FREQUENCY | GAIN | Q | SLOPE | ORDER},
    [PARTITA_SECTION_LOW_PASS] = {"a low pass", FREQUENCY | Q | ORDER | FAMILY},
    [PARTITA_SECTION_HIGH_PASS] = {"a high pass", FREQUENCY | Q | ORDER | FAMILY},
    [PARTITA_SECTION_BAND_PASS] = {"a band pass", FREQUENCY | Q | WIDTH},
    [PARTITA_SECTION_NOTCH] = {"a notch", FREQUENCY | Q | WIDTH},
    [PARTITA_SECTION_ALL_PASS] = {"an all pass", FREQUENCY | Q | WIDTH | ORDER},
    [PARTITA_SECTION_GENERAL_NOTCH] = {"a general notch", FREQUENCY | TARGET | UNITY},
    [PARTITA_SECTION_LINKWITZ_TRANSFORM] = {"Linkwitz's transform", FREQUENCY | Q | TARGET},
    [PARTITA_SECTION_TILT] = {"a tilt", GAIN},
    [PARTITA_SECTION_GAIN] = {"a gain", GAIN},
    [PARTITA_SECTION_BIQUAD] = {"a biquad", 0},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

// Bessel's filters with -3 dB at their frequency: moduli and qualities of their poles, 0 for a
// single real pole.
static const struct section_pole bessel[MAX_BESSEL][MAX_BESSEL / 2] = {
    {{1, 0}},
    {{1.27201965, 0.57735027}},
    {{1.3226758, 0}, {1.44761713, 0.69104663}},
    {{1.43017156, 0.52193458}, {1.60335752, 0.80553828}},
    {{1.50231627, 0}, {1.55634712, 0.56353562}, {1.75537778, 0.91647737}},
    {{1.60391913, 0.51031782}, {1.68916827, 0.61119455}, {1.90470761, 1.023314}},
    {{1.68436818, 0}, {1.71635604, 0.5323557}, {1.82241748, 0.66082139}, {2.0494909, 1.1262575}},
    {{1.77846591, 0.50599107},
     {1.8320926, 0.55960916},
     {1.95319576, 0.71085207},
     {2.18872623, 1.2256694}},
};

size_t section_poles(enum partita_section_family family, int order, struct section_pole *ret)
{
    const size_t n = (size_t)(order + 1) / 2;
    if (family == PARTITA_FAMILY_LINKWITZ_RILEY) {
        const size_t half = section_poles(PARTITA_FAMILY_BUTTERWORTH, order / 2, ret);
        memcpy(ret + half, ret, half * sizeof *ret);
        return 2 * half;
    }
    for (size_t i = 0; i < n; i++) { // by their angle from the negative real axis
        const double angle = DESIGN_PI * (double)(2 * i + (order % 2 ? 0 : 1)) / (2 * order);
        ret[i] = (struct section_pole){1, order % 2 && !i ? 0 : 0.5 / cos(angle)};
        if (family == PARTITA_FAMILY_BESSEL) ret[i] = bessel[order - 1][i];
    }
    return n;
}

static double damping_of(double q)
{
    return 1 / (q > 0 ? q : DEFAULT_Q);
}

// 1/Q at a frequency in cycles per frame; NaN if a slope is too steep. The bilinear transform
// narrows bands, for which angle / sin(angle) makes up.
static double section_damping(const struct partita_section *s, double frequency)
{
    const double angle = 2 * DESIGN_PI * frequency, a = pow(10, s->gain / 40);
    if (s->bandwidth > 0) return 2 * sinh(log(2) / 2 * s->bandwidth * angle / sin(angle));
    if (s->slope > 0) return sqrt((a + 1 / a) * (12 / s->slope - 1) + 2);
    return damping_of(s->q);
}

// Coefficients of the powers of s from 0 on.
struct prototype {
    double b[3], a[3];
};

// s = i is at the section's frequency or, if there is a target, at that of the poles of a general
// notch, and between both for Linkwitz's transform.
static struct prototype prototype_of(const struct partita_section *s, double rate, double *ret_warp)
{
    const double f = s->frequency / rate, target = s->target_frequency / rate;
    const double d = section_damping(s, f), poles = damping_of(s->target_q);
    const double a = pow(10, s->gain / 40), r = sqrt(a) * d;
    const double middle = (f + target) / 2, from = f / middle, to = target / middle;
    const double zeros = pow(tan(DESIGN_PI * f) / tan(DESIGN_PI * target), 2);
    const double low = s->unity_at_0 ? 1 : zeros, high = s->unity_at_0 ? 1 / zeros : 1;
    const struct prototype second[] = {
        [PARTITA_SECTION_PEAK] = {{1, a * d, 1}, {1, d / a, 1}},
        [PARTITA_SECTION_LOW_SHELF] = {{a * a, a * r, a}, {1, r, a}},
        [PARTITA_SECTION_HIGH_SHELF] = {{a, a * r, a * a}, {a, r, 1}},
        [PARTITA_SECTION_LOW_PASS] = {{1, 0, 0}, {1, d, 1}},
        [PARTITA_SECTION_HIGH_PASS] = {{0, 0, 1}, {1, d, 1}},
        [PARTITA_SECTION_BAND_PASS] = {{0, d, 0}, {1, d, 1}},
        [PARTITA_SECTION_NOTCH] = {{1, 0, 1}, {1, d, 1}},
        [PARTITA_SECTION_ALL_PASS] = {{1, -d, 1}, {1, d, 1}},
        [PARTITA_SECTION_GENERAL_NOTCH] = {{low, 0, high}, {1, poles, 1}},
        [PARTITA_SECTION_LINKWITZ_TRANSFORM] = {{from * from, from * d, 1},
                                                {to * to, to * poles, 1}},
    };
    const struct prototype first[] = {
        [PARTITA_SECTION_LOW_SHELF] = {{a * a, a, 0}, {1, a, 0}},
        [PARTITA_SECTION_HIGH_SHELF] = {{a, a * a, 0}, {a, 1, 0}},
        [PARTITA_SECTION_LOW_PASS] = {{1, 0, 0}, {1, 1, 0}},
        [PARTITA_SECTION_HIGH_PASS] = {{0, 1, 0}, {1, 1, 0}},
        [PARTITA_SECTION_ALL_PASS] = {{1, -1, 0}, {1, 1, 0}},
    };
    double exact = f;
    if (s->kind == PARTITA_SECTION_GENERAL_NOTCH) exact = target;
    if (s->kind == PARTITA_SECTION_LINKWITZ_TRANSFORM) exact = middle;
    *ret_warp = tan(DESIGN_PI * exact);
    return s->order == 1 ? first[s->kind] : second[s->kind];
}

static struct partita_biquad transform(const struct prototype *p, double warp)
{
    const bool first = p->a[2] == 0;
    const double low = first ? warp : warp * warp, middle = first ? 1 : warp;
    const double b0 = p->b[0] * low, b1 = p->b[1] * middle, b2 = p->b[2];
    const double a0 = p->a[0] * low, a1 = p->a[1] * middle, a2 = p->a[2], d = a0 + a1 + a2;
    if (first) return (struct partita_biquad){{(b0 + b1) / d, (b0 - b1) / d}, {(a0 - a1) / d}};
    return (struct partita_biquad){{(b0 + b1 + b2) / d, 2 * (b0 - b2) / d, (b0 - b1 + b2) / d},
                                   {2 * (a0 - a2) / d, (a0 - a1 + a2) / d}};
}

static void append_biquads(const struct partita_section *s, double rate, struct biquad_chain *chain)
{
    struct section_pole poles[SECTION_MAX_BIQUADS] = {{1, s->q}};
    struct partita_section one = *s;
    const int order = s->order ? s->order : 2;
    const size_t n = s->family ? section_poles(s->family, order, poles) : 1;
    for (size_t i = 0; i < n; i++) {
        double warp, factor = poles[i].factor;
        one.q = poles[i].q;
        if (s->family) one.order = one.q > 0 ? 2 : 1;
        if (s->kind == PARTITA_SECTION_HIGH_PASS) factor = 1 / factor;
        const struct prototype p = prototype_of(&one, rate, &warp);
        chain->biquads[chain->n++] = transform(&p, warp * factor);
    }
}

// Checks fields that are numbers. Those that a kind, an order or a family has not must be 0.
static bool check_numbers(const struct partita_log *log, const char *name,
                          const struct partita_section *s, double half_rate)
{
    double orders = s->family ? MAX_ORDER : 2;
    if (s->family == PARTITA_FAMILY_BESSEL) orders = MAX_BESSEL;
    const struct {
        const char *name;
        double value;
        unsigned field;
        double min, max;
    } numbers[] = {
        {"family", s->family, FAMILY, 0, PARTITA_FAMILY_BESSEL},
        {"order", s->order, ORDER, 0, orders},
        {"unity_at_0", s->unity_at_0, UNITY, 0, 1},
        {"gain", s->gain, GAIN, -MAX_GAIN, MAX_GAIN},
        {"q", s->q, Q, 0, 1e6},
        {"bandwidth", s->bandwidth, WIDTH, 0, 20},
        {"slope", s->slope, SLOPE, 0, 1e3},
        {"target_q", s->target_q, TARGET, 0, 1e6},
        {"frequency", s->frequency, FREQUENCY, 0, half_rate},
        {"target_frequency", s->target_frequency, TARGET, 0, half_rate},
    };
    unsigned has = kinds[s->kind].fields;
    if (s->order == 1 || s->family) has &= ~(unsigned)(Q | WIDTH | SLOPE);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const double value = numbers[i].value, min = numbers[i].min, max = numbers[i].max;
        const bool given = has & numbers[i].field, open = max == half_rate;
        if (!given && value != 0)
            return log_line(log, "%s.%s = %g: %s has none%s", name, numbers[i].name, value,
                            kinds[s->kind].name, s->order == 1 ? " with order 1" : "");
        if (given && open && !(value > 0 && value < max))
            return log_line(log, "%s.%s = %g: must be above 0 and below %g, half of the rate", name,
                            numbers[i].name, value, max);
        if (!(value >= min && value <= max))
            return log_line(log, "%s.%s = %g: must be from %g to %g", name, numbers[i].name, value,
                            min, max);
    }
    return true;
}

static bool check_section(const struct partita_log *log, const char *name,
                          const struct partita_section *s, double rate)
{
    if ((unsigned)s->kind >= N_KINDS)
        return log_line(log, "%s.kind = %d: there is no such kind", name, (int)s->kind);
    if (!check_numbers(log, name, s, rate / 2)) return false;
    if (s->family == PARTITA_FAMILY_LINKWITZ_RILEY && s->order % 2)
        return log_line(log, "%s.order = %d: must be even for Linkwitz-Riley", name, s->order);
    if ((s->q > 0) + (s->bandwidth > 0) + (s->slope > 0) > 1)
        return log_line(log, "%s: has several widths; set one of q, bandwidth and slope", name);
    if (s->slope > 0 && !(section_damping(s, s->frequency / rate) > 0))
        return log_line(log, "%s.slope = %g: is too steep for %g dB; use 12 or less, or q", name,
                        s->slope, s->gain);
    if (s->kind != PARTITA_SECTION_TILT || rate >= TILT_RATE) return true;
    return log_line(log, "%s: a tilt needs a rate of %d or more, in Hz", name, TILT_RATE);
}

bool section_append(const struct partita_log *log, const char *name,
                    const struct partita_section *section, double rate, struct biquad_chain *chain)
{
    static const struct partita_section tilt[] = {
        {.kind = PARTITA_SECTION_LOW_SHELF, .frequency = 110, .gain = -0.5, .q = 0.35},
        {.kind = PARTITA_SECTION_HIGH_SHELF, .frequency = 3500, .gain = 0.5, .q = 0.35}};
    struct partita_section s = *section;
    size_t i = chain->n;
    if (!check_section(log, name, &s, rate)) return false;
    if (s.kind == PARTITA_SECTION_GAIN)
        s.biquad = (struct partita_biquad){.b = {pow(10, s.gain / 20)}};
    for (int k = 0; k < 2 && section->kind == PARTITA_SECTION_TILT; k++) {
        s = tilt[k];
        s.gain *= section->gain;
        if (!k) append_biquads(&s, rate, chain);
    }
    if (kinds[s.kind].fields & FREQUENCY) append_biquads(&s, rate, chain);
    else chain->biquads[chain->n++] = s.biquad;
    for (; i < chain->n; i++) {
        const double *b = chain->biquads[i].b, *a = chain->biquads[i].a;
        if (isfinite(b[0] + b[1] + b[2]) && fabs(a[1]) < 1 && fabs(a[0]) < 1 + a[1]) continue;
        return log_line(log, "%s: is unstable: 1 %+g/z %+g/z^2 is 0 on or outside the unit circle",
                        name, a[0], a[1]);
    }
    return true;
}

void partita_biquads_response(const struct partita_biquad *biquads, size_t n, double frequency,
                              double ret_response[2])
{
    const double angle = 2 * DESIGN_PI * frequency;
    const double complex z = cos(angle) - I * sin(angle);
    double complex product = 1;
    for (size_t i = 0; i < n; i++) {
        const double *b = biquads[i].b, *a = biquads[i].a;
        product *= (b[0] + z * (b[1] + z * b[2])) / (1 + z * (a[0] + z * a[1]));
    }
    ret_response[0] = creal(product);
    ret_response[1] = cimag(product);
}

double chain_gain(const void *context, double frequency)
{
    const struct biquad_chain *chain = context;
    double response[2];
    partita_biquads_response(chain->biquads, chain->n, frequency, response);
    return hypot(response[0], response[1]);
}
