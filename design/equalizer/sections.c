// SPDX-License-Identifier: MIT
// Biquads of sections. A section is an analogue filter, a fraction of polynomials in s. The
// bilinear transform puts (1 - z) / (1 + z) / tan(pi f) in the place of s, where z delays by a
// frame: the response at s = i is then that at f cycles per frame.
#include <complex.h>
#include <math.h>

#include "design/design.h"
#include "equalizer.h"

#define DEFAULT_Q 0.70710678118654752440
#define KIND(kind) (1U << PARTITA_SECTION_##kind)

enum { MAX_BESSEL = 8, MAX_ORDER = 16, TILT_RATE = 8000 };

static const char *const names[] = { // of kinds, for messages
    "a peak",      "a low shelf", "a high shelf", "a low pass",      "a high pass",
    "a band pass", "a notch",     "an all pass",  "a general notch", "Linkwitz's transform",
    "a tilt",      "a gain",      "a biquad"};

// Bessel's filters with -3 dB at their frequency: pairs of a factor of it and the quality of a
// pole, 0 for a single real one. The pairs of order n begin with that of index n * n / 4.
static const double bessel[] = { // factor, quality
    1,          0,          1.27201965, 0.57735027, 1.3226758,  0,          1.44761713, 0.69104663,
    1.43017156, 0.52193458, 1.60335752, 0.80553828, 1.50231627, 0,          1.55634712, 0.56353562,
    1.75537778, 0.91647737, 1.60391913, 0.51031782, 1.68916827, 0.61119455, 1.90470761, 1.023314,
    1.68436818, 0,          1.71635604, 0.5323557,  1.82241748, 0.66082139, 2.0494909,  1.1262575,
    1.77846591, 0.50599107, 1.8320926,  0.55960916, 1.95319576, 0.71085207, 2.18872623, 1.2256694};

// 1/Q at a frequency in cycles per frame; NaN if a slope is too steep. The bilinear transform
// narrows bands, for which angle / sin(angle) makes up.
static double section_damping(const struct partita_section *s, double frequency)
{
    const double angle = 2 * DESIGN_PI * frequency, a = pow(10, s->gain / 40);
    if (s->bandwidth > 0) return 2 * sinh(log(2) / 2 * s->bandwidth * angle / sin(angle));
    if (s->slope > 0) return sqrt((a + 1 / a) * (12 / s->slope - 1) + 2);
    return 1 / (s->q > 0 ? s->q : DEFAULT_Q);
}

// s = i is at the section's frequency or, if there is a target, at that of the poles of a general
// notch, and between both for Linkwitz's transform. A pole at `factor` moves it there.
static struct partita_biquad biquad_of(const struct partita_section *s, double rate, double factor)
{
    const double a = pow(10, s->gain / 40), f = s->frequency / rate;
    if (s->kind == PARTITA_SECTION_BIQUAD) return s->biquad;
    if (s->kind == PARTITA_SECTION_GAIN) return (struct partita_biquad){.b = {a * a}};
    const double d = section_damping(s, f), poles = 1 / (s->target_q > 0 ? s->target_q : DEFAULT_Q);
    const double target = s->target_frequency / rate, middle = (f + target) / 2, r = sqrt(a) * d;
    const double from = f / middle, to = target / middle;
    const double zeros = pow(tan(DESIGN_PI * f) / tan(DESIGN_PI * target), 2);
    const double low = s->unity_at_0 ? 1 : zeros, high = s->unity_at_0 ? 1 / zeros : 1;
    // Coefficients of the powers of s from 0 on, over and under, and those of order 1.
    const double prototypes[][2][2][3] = {
        [PARTITA_SECTION_PEAK] = {{{1, a * d, 1}, {1, d / a, 1}}},
        [PARTITA_SECTION_LOW_SHELF] = {{{a * a, a * r, a}, {1, r, a}}, {{a * a, a}, {1, a}}},
        [PARTITA_SECTION_HIGH_SHELF] = {{{a, a * r, a * a}, {a, r, 1}}, {{a, a * a}, {a, 1}}},
        [PARTITA_SECTION_LOW_PASS] = {{{1, 0, 0}, {1, d, 1}}, {{1, 0}, {1, 1}}},
        [PARTITA_SECTION_HIGH_PASS] = {{{0, 0, 1}, {1, d, 1}}, {{0, 1}, {1, 1}}},
        [PARTITA_SECTION_BAND_PASS] = {{{0, d, 0}, {1, d, 1}}},
        [PARTITA_SECTION_NOTCH] = {{{1, 0, 1}, {1, d, 1}}},
        [PARTITA_SECTION_ALL_PASS] = {{{1, -d, 1}, {1, d, 1}}, {{1, -1}, {1, 1}}},
        [PARTITA_SECTION_GENERAL_NOTCH] = {{{low, 0, high}, {1, poles, 1}}},
        [PARTITA_SECTION_LINKWITZ_TRANSFORM] = {{{from * from, from * d, 1},
                                                 {to * to, to * poles, 1}}},
    };
    const bool first = s->order == 1;
    const double(*p)[3] = prototypes[s->kind][first];
    double at = f;
    if (s->kind == PARTITA_SECTION_GENERAL_NOTCH) at = target;
    if (s->kind == PARTITA_SECTION_LINKWITZ_TRANSFORM) at = middle;
    const double warp = tan(DESIGN_PI * at) * factor, w = first ? 1 : warp;
    const double b0 = p[0][0] * warp * w, b1 = p[0][1] * w, b2 = p[0][2];
    const double a0 = p[1][0] * warp * w, a1 = p[1][1] * w, a2 = p[1][2], sum = a0 + a1 + a2;
    if (first)
        return (struct partita_biquad){{(b0 + b1) / sum, (b0 - b1) / sum}, {(a0 - a1) / sum}};
    return (struct partita_biquad){
        {(b0 + b1 + b2) / sum, 2 * (b0 - b2) / sum, (b0 - b1 + b2) / sum},
        {2 * (a0 - a2) / sum, (a0 - a1 + a2) / sum}};
}

void section_append(const struct partita_section *s, double rate, struct biquad_chain *chain)
{
    static const struct partita_section tilt[] = {
        {.kind = PARTITA_SECTION_LOW_SHELF, .frequency = 110, .gain = -0.5, .q = 0.35},
        {.kind = PARTITA_SECTION_HIGH_SHELF, .frequency = 3500, .gain = 0.5, .q = 0.35}};
    const bool tilts = s->kind == PARTITA_SECTION_TILT;
    const int repeats = s->family == PARTITA_FAMILY_LINKWITZ_RILEY ? 2 : 1;
    const int order = (s->order ? s->order : 2) / repeats, poles = (order + 1) / 2 * repeats;
    const int step = s->family && s->kind == PARTITA_SECTION_ALL_PASS ? 2 : 1;
    const int n = s->family ? poles : 1 + tilts;
    for (int i = step - 1; i < n; i += step) {
        struct partita_section one = tilts ? tilt[i] : *s;
        double factor = 1;
        if (tilts) one.gain *= s->gain;
        if (s->family == PARTITA_FAMILY_BESSEL) {
            factor = bessel[2 * (order * order / 4 + i)];
            one.q = bessel[2 * (order * order / 4 + i) + 1];
        } else if (s->family) { // poles of a circle, from the negative real axis on
            const double angle = DESIGN_PI * (i / repeats * 2 + (order + 1) % 2) / (2 * order);
            one.q = angle > 0 ? 0.5 / cos(angle) : 0;
        }
        if (s->family) one.order = one.q > 0 ? 2 : 1;
        if (s->kind == PARTITA_SECTION_HIGH_PASS) factor = 1 / factor;
        chain->biquads[chain->n++] = biquad_of(&one, rate, factor);
    }
}

// Fields that a kind, an order or a family has not must be 0.
static bool check_section(const struct partita_log *log, const char *name,
                          const struct partita_section *s, double rate)
{
    const unsigned shelves = KIND(LOW_SHELF) | KIND(HIGH_SHELF);
    const unsigned passes = KIND(LOW_PASS) | KIND(HIGH_PASS);
    const unsigned widths = KIND(PEAK) | KIND(BAND_PASS) | KIND(NOTCH) | KIND(ALL_PASS);
    const unsigned targets = KIND(GENERAL_NOTCH) | KIND(LINKWITZ_TRANSFORM);
    const unsigned any = s->order == 1 || s->family ? 0 : ~0U; // of the fields of a width
    const int orders = s->family == PARTITA_FAMILY_BESSEL ? MAX_BESSEL : MAX_ORDER;
    const struct {
        const char *name;
        double value;
        unsigned kinds;  // that have the field
        double min, max; // 0: half of the rate, and above 0
    } numbers[] = {
        {"family", s->family, passes, 0, PARTITA_FAMILY_BESSEL},
        {"order", s->order, shelves | passes | KIND(ALL_PASS), 0, s->family ? orders : 2},
        {"unity_at_0", s->unity_at_0, KIND(GENERAL_NOTCH), 0, 1},
        {"gain", s->gain, shelves | KIND(PEAK) | KIND(TILT) | KIND(GAIN), -MAX_DECIBELS,
         MAX_DECIBELS},
        {"q", s->q, any & (shelves | passes | widths | KIND(LINKWITZ_TRANSFORM)), 0, 1e6},
        {"bandwidth", s->bandwidth, any & widths, 0, 20},
        {"slope", s->slope, any & shelves, 0, 1e3},
        {"target_q", s->target_q, targets, 0, 1e6},
        {"frequency", s->frequency, shelves | passes | widths | targets, 0, 0},
        {"target_frequency", s->target_frequency, targets, 0, 0},
    };
    if ((unsigned)s->kind > PARTITA_SECTION_BIQUAD)
        return log_line(log, "%s.kind = %d: there is no such kind", name, (int)s->kind);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const double value = numbers[i].value, min = numbers[i].min, max = numbers[i].max;
        const char *field = numbers[i].name;
        const bool given = numbers[i].kinds >> s->kind & 1, open = max == 0;
        if (!given && value != 0)
            return log_line(log, "%s.%s = %g: %s has none%s", name, field, value, names[s->kind],
                            s->order == 1 ? " with order 1" : "");
        if (given && open && !(value > 0 && value < rate / 2))
            return log_line(log, "%s.%s = %g: must be above 0 and below %g, half of the rate", name,
                            field, value, rate / 2);
        if (!open && !(value >= min && value <= max))
            return log_line(log, "%s.%s = %g: must be from %g to %g", name, field, value, min, max);
    }
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

bool section_append_checked(struct taps_job *job, size_t band, const char *list, size_t index,
                            const struct partita_section *section)
{
    struct biquad_chain *chain = &job->chain[band];
    size_t i = chain->n;
    char name[64];
    text_print(name, sizeof name, "%s[%zu]", list, index);
    if (!check_section(&job->given.log, name, section, job->given.rate)) return false;
    section_append(section, job->given.rate, chain);
    for (; i < chain->n; i++) {
        const double *b = chain->biquads[i].b, *a = chain->biquads[i].a;
        if (isfinite(b[0] + b[1] + b[2]) && fabs(a[1]) < 1 && fabs(a[0]) < 1 + a[1]) continue;
        return log_line(&job->given.log,
                        "%s: is unstable: 1 %+g/z %+g/z^2 is 0 on or outside the unit circle", name,
                        a[0], a[1]);
    }
    return true;
}

void partita_biquads_response(const struct partita_biquad *biquads, size_t n, double frequency,
                              double ret_response[2])
{
    const double complex z = cexp(-2 * DESIGN_PI * I * frequency);
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
