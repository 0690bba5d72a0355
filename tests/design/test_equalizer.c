// SPDX-License-Identifier: MIT
// Sections against the formulas of the Audio EQ Cookbook and of the families in long double; taps
// against the responses of their recursions.

#include "design/responses.h"

enum { MAX_BIQUADS = 64 };

struct section_case {
    const char *name;
    struct partita_section section;
};

#define AT .frequency
static const struct section_case sections[] = {
    {"peak", {AT = 1000, .gain = 6, .q = 2}},
    {"peak-bandwidth", {AT = 9000, .gain = -9, .bandwidth = 0.7}},
    {"peak-default-q", {AT = 40, .gain = 4.5}},
    {"low-shelf", {.kind = PARTITA_SECTION_LOW_SHELF, AT = 105, .gain = 7.5, .q = 0.7}},
    {"low-shelf-slope", {.kind = PARTITA_SECTION_LOW_SHELF, AT = 300, .gain = -12, .slope = 6}},
    {"low-shelf-1", {.kind = PARTITA_SECTION_LOW_SHELF, .order = 1, AT = 200, .gain = 5}},
    {"high-shelf", {.kind = PARTITA_SECTION_HIGH_SHELF, AT = 10000, .gain = -15.8, .q = 0.7}},
    {"high-shelf-slope", {.kind = PARTITA_SECTION_HIGH_SHELF, AT = 4000, .gain = 6, .slope = 12}},
    {"high-shelf-1", {.kind = PARTITA_SECTION_HIGH_SHELF, .order = 1, AT = 2000, .gain = -8}},
    {"low-pass", {.kind = PARTITA_SECTION_LOW_PASS, AT = 8000, .q = 1.3}},
    {"low-pass-1", {.kind = PARTITA_SECTION_LOW_PASS, .order = 1, AT = 50}},
    {"high-pass", {.kind = PARTITA_SECTION_HIGH_PASS, AT = 25, .q = 0.6}},
    {"high-pass-1", {.kind = PARTITA_SECTION_HIGH_PASS, .order = 1, AT = 80}},
    {"band-pass", {.kind = PARTITA_SECTION_BAND_PASS, AT = 500, .bandwidth = 2}},
    {"notch", {.kind = PARTITA_SECTION_NOTCH, AT = 50, .q = 5}},
    {"all-pass", {.kind = PARTITA_SECTION_ALL_PASS, AT = 700, .q = 0.9}},
    {"all-pass-1", {.kind = PARTITA_SECTION_ALL_PASS, .order = 1, AT = 3000}},
    {"general-notch",
     {.kind = PARTITA_SECTION_GENERAL_NOTCH, AT = 900, .target_frequency = 1300, .target_q = 1.1}},
    {"general-notch-0",
     {.kind = PARTITA_SECTION_GENERAL_NOTCH,
      AT = 2000,
      .target_frequency = 1500,
      .unity_at_0 = true}},
    {"linkwitz-transform",
     {.kind = PARTITA_SECTION_LINKWITZ_TRANSFORM,
      AT = 70,
      .q = 1.2,
      .target_frequency = 30,
      .target_q = 0.5}},
    {"gain", {.kind = PARTITA_SECTION_GAIN, .gain = -6.5}},
    {"biquad", {.kind = PARTITA_SECTION_BIQUAD, .biquad = {{0.5, -0.2, 0.1}, {-1.2, 0.5}}}},
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

// Coefficients over a0: b0, b1, b2, 1, a1, a2.
static void over_a0(long double c[6])
{
    const long double a0 = c[3];
    for (int i = 0; i < 6; i++) c[i] /= a0;
}

// The cookbook, in cosines and sines of w0.
static void cookbook(const struct partita_section *s, double rate, long double c[6])
{
    const long double w = 2 * PIL * s->frequency / rate, cs = cosl(w), sn = sinl(w);
    const long double a = powl(10, s->gain / 40.0L), q = s->q > 0 ? s->q : 1 / sqrtl(2);
    long double alpha = sn / (2 * q);
    if (s->bandwidth > 0) alpha = sn * sinhl(logl(2) / 2 * s->bandwidth * w / sn);
    if (s->slope > 0) alpha = sn / 2 * sqrtl((a + 1 / a) * (12 / s->slope - 1) + 2);
    const long double beta = 2 * sqrtl(a) * alpha, sum = a + 1, diff = a - 1;
    const long double all[][6] = {
        [PARTITA_SECTION_PEAK] = {1 + alpha * a, -2 * cs, 1 - alpha * a, 1 + alpha / a, -2 * cs,
                                  1 - alpha / a},
        [PARTITA_SECTION_LOW_SHELF] = {a * (sum - diff * cs + beta), 2 * a * (diff - sum * cs),
                                       a * (sum - diff * cs - beta), sum + diff * cs + beta,
                                       -2 * (diff + sum * cs), sum + diff * cs - beta},
        [PARTITA_SECTION_HIGH_SHELF] = {a * (sum + diff * cs + beta), -2 * a * (diff + sum * cs),
                                        a * (sum + diff * cs - beta), sum - diff * cs + beta,
                                        2 * (diff - sum * cs), sum - diff * cs - beta},
        [PARTITA_SECTION_LOW_PASS] = {(1 - cs) / 2, 1 - cs, (1 - cs) / 2, 1 + alpha, -2 * cs,
                                      1 - alpha},
        [PARTITA_SECTION_HIGH_PASS] = {(1 + cs) / 2, -1 - cs, (1 + cs) / 2, 1 + alpha, -2 * cs,
                                       1 - alpha},
        [PARTITA_SECTION_BAND_PASS] = {alpha, 0, -alpha, 1 + alpha, -2 * cs, 1 - alpha},
        [PARTITA_SECTION_NOTCH] = {1, -2 * cs, 1, 1 + alpha, -2 * cs, 1 - alpha},
        [PARTITA_SECTION_ALL_PASS] = {1 - alpha, -2 * cs, 1 + alpha, 1 + alpha, -2 * cs, 1 - alpha},
    };
    memcpy(c, all[s->kind], 6 * sizeof *c);
}

// Sections that the cookbook has not, in tangents of half of w0.
static bool tangents(const struct partita_section *s, double rate, long double c[6])
{
    const long double t = tanl(PIL * s->frequency / rate), a = powl(10, s->gain / 40.0L);
    const long double f = s->frequency, g = s->target_frequency, middle = (f + g) / 2;
    const long double tp = tanl(PIL * g / rate), qp = s->target_q > 0 ? s->target_q : 1 / sqrtl(2);
    const long double scale = middle / tanl(PIL * middle / rate);
    const long double first[][6] = {
        [PARTITA_SECTION_LOW_SHELF] = {a * a * t + a, a * a * t - a, 0, t + a, t - a, 0},
        [PARTITA_SECTION_HIGH_SHELF] = {a * t + a * a, a * t - a * a, 0, a * t + 1, a * t - 1, 0},
        [PARTITA_SECTION_LOW_PASS] = {t, t, 0, t + 1, t - 1, 0},
        [PARTITA_SECTION_HIGH_PASS] = {1, -1, 0, t + 1, t - 1, 0},
        [PARTITA_SECTION_ALL_PASS] = {t - 1, t + 1, 0, t + 1, t - 1, 0},
    };
    if (s->order == 1) memcpy(c, first[s->kind], 6 * sizeof *c);
    else if (s->kind == PARTITA_SECTION_GENERAL_NOTCH) {
        const long double gain = s->unity_at_0 ? tp * tp / (t * t) : 1;
        const long double notch[] = {gain * (1 + t * t), -2 * gain * (1 - t * t),
                                     gain * (1 + t * t), 1 + tp / qp + tp * tp,
                                     2 * tp * tp - 2,    1 - tp / qp + tp * tp};
        memcpy(c, notch, sizeof notch);
    } else if (s->kind == PARTITA_SECTION_LINKWITZ_TRANSFORM) {
        const long double d = scale * f / s->q, e = scale * g / qp, sq = scale * scale;
        const long double box[] = {f * f + d + sq, 2 * (f * f - sq), f * f - d + sq,
                                   g * g + e + sq, 2 * (g * g - sq), g * g - e + sq};
        memcpy(c, box, sizeof box);
    } else return false;
    return true;
}

static size_t biquads_of(const struct partita_equalizer *equalizer, struct partita_biquad *biquads)
{
    size_t n;
    assert_ok(partita_equalizer_biquads(equalizer, biquads, &n));
    assert_true(n <= MAX_BIQUADS);
    return n;
}

// Each coefficient is made of a few roundings of numbers up to 4, relative to a0 of about 1 or
// more: 16 u is more than enough.
static void coefficients(void **state)
{
    const struct section_case *c = *state;
    for (size_t r = 0; r < N_RATES; r++) {
        const struct partita_equalizer one = {
            .rate = rates[r], .sections = &c->section, .n_sections = 1};
        struct partita_biquad got[MAX_BIQUADS];
        const struct partita_biquad *free = &c->section.biquad;
        long double wanted[6] = {free->b[0], free->b[1], free->b[2], 1, free->a[0], free->a[1]};
        assert_int_equal(biquads_of(&one, got), 1);
        if (c->section.kind == PARTITA_SECTION_GAIN) wanted[0] = powl(10, c->section.gain / 20.0L);
        else if (c->section.kind != PARTITA_SECTION_BIQUAD &&
                 !tangents(&c->section, rates[r], wanted))
            cookbook(&c->section, rates[r], wanted);
        over_a0(wanted);
        for (int i = 0; i < 3; i++)
            assert_true(fabsl(got->b[i] - wanted[i]) <= 16 * 0x1p-53L * (1 + fabsl(wanted[i])));
        for (int i = 0; i < 2; i++)
            assert_true(fabsl(got->a[i] - wanted[4 + i]) <=
                        16 * 0x1p-53L * (1 + fabsl(wanted[4 + i])));
    }
}

static double complex biquads_response(const struct partita_biquad *biquads, size_t n,
                                       double frequency, double *ret_delay)
{
    double complex product = 1;
    *ret_delay = 0;
    for (size_t i = 0; i < n; i++) {
        const double a[3] = {1, biquads[i].a[0], biquads[i].a[1]};
        double complex over, under;
        const double complex b = polynomial(biquads[i].b, 3, frequency, &over);
        const double complex d = polynomial(a, 3, frequency, &under);
        *ret_delay += creal(over / b) - creal(under / d);
        product *= b / d;
    }
    return product;
}

struct made {
    double taps[MAX_TAPS];
    struct partita_equalizer_result result;
};
static struct made made;

static size_t make(const struct partita_equalizer *equalizer)
{
    assert_ok(partita_equalizer_taps(equalizer, NULL, 0, &made.result));
    const size_t n = made.result.taps;
    assert_true(n <= MAX_TAPS);
    assert_ok(partita_equalizer_taps(equalizer, made.taps, n, &made.result));
    assert_int_equal(made.result.taps, n);
    return n;
}

// Taps have the magnitude of the recursion within 0.05 dB, and its group delay within 0.1 frames,
// where it is not 60 dB below its largest gain.
static void check_taps(const struct partita_equalizer *equalizer)
{
    struct partita_biquad biquads[MAX_BIQUADS];
    const size_t n = make(equalizer), count = biquads_of(equalizer, biquads);
    const bool linear = equalizer->phase == PARTITA_EQUALIZER_LINEAR;
    double worst = 0, top = -INFINITY;
    for (size_t i = 0; i < POINTS; i++) {
        double delay;
        top = fmax(top, decibels(cabs(biquads_response(biquads, count, point_of(i, equalizer->rate),
                                                       &delay))));
    }
    for (size_t i = 0; i < POINTS; i++) {
        double delay;
        double complex times;
        const double f = point_of(i, equalizer->rate);
        const double complex wanted = biquads_response(biquads, count, f, &delay);
        const double complex got = polynomial(made.taps, n, f, &times);
        const double error = fabs(decibels(cabs(got)) - decibels(cabs(wanted)));
        if (decibels(cabs(wanted)) < top - 60) continue;
        worst = fmax(worst, error);
        assert_true(error <= 0.05);
        assert_true(fabs(creal(times / got) - (linear ? (double)(n - 1) / 2 : delay)) <= 0.1);
    }
    // The deviation is measured at other frequencies, also below 20 Hz.
    assert_true(made.result.deviation >= worst * 0.9 - 1e-5);
    assert_true(made.result.deviation <= 0.05);
    assert_true(made.result.gain >= top - 0.01);
    assert_true(made.result.delay == (linear ? (double)(n - 1) / 2 : 0));
    for (size_t i = 0; i < n && linear; i++) assert_true(made.taps[i] == made.taps[n - 1 - i]);
}

// A magnitude with a corner, at 0 Hz or in a notch, decays with linear phase as c/t^2. The energy
// behind frame m on both sides is 2 c^2 / (3 m^3), and the largest error, at the corner, 2 c / m.
static void check_corner(struct partita_equalizer *equalizer)
{
    struct partita_biquad biquads[MAX_BIQUADS];
    equalizer->tail = 80;
    const size_t n = make(equalizer), count = biquads_of(equalizer, biquads);
    for (size_t i = 0; i < POINTS; i++) {
        double delay;
        const double f = point_of(i, equalizer->rate);
        const double wanted = cabs(biquads_response(biquads, count, f, &delay));
        const double error = fabs(cabs(polynomial(made.taps, n, f, NULL)) - wanted);
        assert_true(error <= sqrt(3 * (double)n * 1e-8));
    }
}

static void taps(void **state)
{
    const struct section_case *c = *state;
    for (size_t r = 0; r < N_RATES; r++) {
        struct partita_equalizer one = {.rate = rates[r], .sections = &c->section, .n_sections = 1};
        check_taps(&one);
        one.phase = PARTITA_EQUALIZER_LINEAR;
        const bool corner = strstr(c->name, "notch") || strstr(c->name, "band-pass") ||
                            !strcmp(c->name, "high-pass-1");
        if (corner) check_corner(&one);
        else check_taps(&one);
    }
}

// All sections in series have the product of all responses, and the convolution of all taps.
static void series(void **state)
{
    struct partita_section list[N_SECTIONS];
    struct partita_biquad all[MAX_BIQUADS];
    const struct partita_equalizer equalizer = {
        .rate = 48000, .sections = list, .n_sections = N_SECTIONS};
    size_t count = 0;
    (void)state;
    for (size_t i = 0; i < N_SECTIONS; i++) list[i] = sections[i].section;
    check_taps(&equalizer);
    assert_int_equal(biquads_of(&equalizer, all), N_SECTIONS);
    for (size_t i = 0; i < N_SECTIONS; i++) {
        const struct partita_equalizer one = {.rate = 48000, .sections = &list[i], .n_sections = 1};
        struct partita_biquad alone[MAX_BIQUADS];
        count = biquads_of(&one, alone);
        assert_int_equal(count, 1);
        assert_memory_equal(alone, &all[i], sizeof *alone);
    }
    double response[2], delay;
    for (size_t i = 0; i < POINTS; i++) {
        const double f = point_of(i, 48000);
        partita_biquads_response(all, N_SECTIONS, f, response);
        const double complex wanted = biquads_response(all, N_SECTIONS, f, &delay);
        assert_true(cabs(response[0] + I * response[1] - wanted) <= 1e-9 * cabs(wanted));
    }
}

// Products of up to 8 biquads, whose coefficients are exact to some u: at 1 kHz of 48 kHz this is
// magnified by 1/w0^2 = 58 near 0 Hz. The poles of Bessel's filters have 8 digits.
static void families(void **state)
{
    const double frequency = 1000, rate = 48000;
    (void)state;
    for (int family = PARTITA_FAMILY_BUTTERWORTH; family <= PARTITA_FAMILY_BESSEL; family++)
        for (int order = 1; order <= (family == PARTITA_FAMILY_BESSEL ? 8 : 16); order++)
            for (int high = 0; high < 2; high++) {
                const struct partita_section pass = {.kind = high ? PARTITA_SECTION_HIGH_PASS
                                                                  : PARTITA_SECTION_LOW_PASS,
                                                     .family = (enum partita_section_family)family,
                                                     .order = order,
                                                     .frequency = frequency};
                const struct partita_equalizer one = {
                    .rate = rate, .sections = &pass, .n_sections = 1};
                struct partita_biquad biquads[MAX_BIQUADS];
                const long double tolerance = family == PARTITA_FAMILY_BESSEL ? 1e-6L : 2e-12L;
                if (family == PARTITA_FAMILY_LINKWITZ_RILEY && order % 2) continue;
                const size_t n = biquads_of(&one, biquads);
                for (size_t i = 0; i < POINTS; i++) {
                    double response[2];
                    const double f = point_of(i, rate);
                    long double w = tanl(PIL * f) / tanl(PIL * frequency / rate);
                    if (high) w = -1 / w;
                    const long double complex wanted = family_response(pass.family, order, w);
                    partita_biquads_response(biquads, n, f, response);
                    assert_true(cabsl(response[0] + I * response[1] - wanted) <=
                                tolerance * cabsl(wanted) + 1e-13L);
                }
            }
}

// Tilts: half of the gain below and above, none in the middle of 110 Hz and 3.5 kHz.
static void tilt(void **state)
{
    const struct partita_section section = {.kind = PARTITA_SECTION_TILT, .gain = 8};
    const struct partita_equalizer one = {.rate = 48000, .sections = &section, .n_sections = 1};
    struct partita_biquad biquads[MAX_BIQUADS];
    const double at[] = {1, 620.5, 23999}, wanted[] = {-4, 0, 4};
    double response[2];
    (void)state;
    assert_int_equal(biquads_of(&one, biquads), 2);
    for (int i = 0; i < 3; i++) {
        partita_biquads_response(biquads, 2, at[i] / 48000, response);
        assert_true(fabs(decibels(hypot(response[0], response[1])) - wanted[i]) < 0.05);
    }
}

// The bands of a graphic equalizer pass through their gains together, and only then.
static void graphic(void **state)
{
    struct random random = random_start("graphic");
    (void)state;
    for (size_t bands = 1; bands <= 31; bands += 10) {
        struct partita_section list[32] = {{.kind = PARTITA_SECTION_GAIN, .gain = -3}};
        for (size_t i = 0; i < bands; i++)
            list[i + 1] =
                (struct partita_section){AT = 20 * pow(1000, ((double)i + 0.5) / (double)bands),
                                         .bandwidth = log2(1000) / (double)bands,
                                         .gain = i % 2 ? 12 : -(double)random_below(&random, 13)};
        struct partita_equalizer equalizer = {
            .rate = 48000, .sections = list, .n_sections = bands + 1, .exact_gains = true};
        struct partita_biquad biquads[MAX_BIQUADS];
        double worst = 0;
        for (int exact = 1; exact >= 0; exact--) {
            equalizer.exact_gains = exact;
            const size_t n = biquads_of(&equalizer, biquads);
            for (size_t i = 1; i <= bands; i++) {
                double response[2];
                partita_biquads_response(biquads, n, list[i].frequency / 48000, response);
                const double gain = decibels(hypot(response[0], response[1])) + 3;
                if (exact) assert_true(fabs(gain - list[i].gain) <= 1e-6);
                worst = fmax(worst, fabs(gain - list[i].gain));
            }
        }
        assert_true(bands == 1 || worst > 1);
        equalizer.exact_gains = true;
        check_taps(&equalizer);
    }
}

// The tail is what follows the taps, and one tap fewer leaves more.
static void tails(void **state)
{
    const struct partita_section list[] = {sections[0].section, sections[3].section};
    (void)state;
    for (int phase = 0; phase < 2; phase++)
        for (double tail = 60; tail <= 200; tail += 35) {
            struct partita_equalizer equalizer = {.rate = 48000,
                                                  .sections = list,
                                                  .n_sections = 2,
                                                  .tail = tail,
                                                  .phase = (enum partita_equalizer_phase)phase};
            const size_t n = make(&equalizer), step = phase ? 2 : 1;
            const double reached = made.result.tail;
            static double longer[MAX_TAPS];
            assert_true(reached >= tail && reached < tail + 1);
            struct partita_equalizer_result result;
            assert_ok(partita_equalizer_taps(&equalizer, longer, n - step, &result));
            assert_true(result.tail < tail);
            assert_ok(partita_equalizer_taps(&equalizer, longer, 4 * n + 1, &result));
            const size_t all = 4 * n + 1, first = phase ? (all - n) / 2 : 0;
            double energy = 0, left = 0;
            for (size_t i = 0; i < all; i++) {
                const double square = longer[i] * longer[i];
                energy += square;
                if (i < first || i >= first + n) left += square;
                else
                    assert_true(longer[i] == made.taps[i - first] ||
                                (phase && fabs(longer[i] - made.taps[i - first]) < 1e-10));
            }
            // Transforms have errors of 1e-16 of the largest tap in each frame.
            if (!phase || tail < 150) assert_true(fabs(10 * log10(energy / left) - reached) < 0.1);
        }
}

static struct CMUnitTest tests[2 * N_SECTIONS + 5];

int main(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_SECTIONS; i++) {
        tests[n++] = named_test(coefficients, &sections[i], "coefficients/%s", sections[i].name);
        tests[n++] = named_test(taps, &sections[i], "taps/%s", sections[i].name);
    }
    tests[n++] = named_test(series, NULL, "series");
    tests[n++] = named_test(families, NULL, "families");
    tests[n++] = named_test(tilt, NULL, "tilt");
    tests[n++] = named_test(graphic, NULL, "graphic");
    tests[n++] = named_test(tails, NULL, "tails");
    return run_test_list(tests, n);
}
