// SPDX-License-Identifier: MIT
// Bands of crossovers against the magnitudes of their filters, and their sums.

#include "design/responses.h"

struct crossover_case {
    const char *name;
    struct partita_crossover crossover;
    double deviation; // of the sum, dB
};

#define LR(f, n)                                                                                   \
    {                                                                                              \
        f, PARTITA_FAMILY_LINKWITZ_RILEY, n                                                        \
    }
#define BUTTER(f, n)                                                                               \
    {                                                                                              \
        f, PARTITA_FAMILY_BUTTERWORTH, n                                                           \
    }
#define BESSEL(f, n)                                                                               \
    {                                                                                              \
        f, PARTITA_FAMILY_BESSEL, n                                                                \
    }
#define LINEAR .phase = PARTITA_EQUALIZER_LINEAR
static const struct crossover_case crossovers[] = {
    {"default", {.bands = 2, .crossing = {{.frequency = 2000}}}, 0.001},
    {"linkwitz-riley-2", {.bands = 2, .crossing = {LR(500, 2)}}, 0.001},
    {"linkwitz-riley-6", {.bands = 2, .crossing = {LR(500, 6)}}, 0.001},
    {"linkwitz-riley-16", {.bands = 2, .crossing = {LR(5000, 16)}}, 0.001},
    {"three", {.bands = 3, .crossing = {LR(300, 4), LR(3000, 8)}}, 0.001},
    {"eight",
     {.bands = 8,
      .crossing = {LR(60, 4), LR(150, 2), LR(400, 8), BUTTER(1000, 3), LR(2500, 4), BUTTER(6000, 1),
                   LR(14000, 4)}},
     0.001},
    {"butterworth-5", {.bands = 3, .crossing = {BUTTER(200, 5), BUTTER(2000, 5)}}, 0.001},
    {"butterworth-2", {.bands = 2, .crossing = {BUTTER(1000, 2)}}, 3.02},
    {"bessel-4", {.bands = 2, .crossing = {BESSEL(1000, 4)}}, 4},
    {"linear", {.bands = 2, .crossing = {LR(1000, 4)}, LINEAR}, 0.001},
    {"linear-four", {.bands = 4, .crossing = {LR(100, 8), LR(800, 4), LR(5000, 2)}, LINEAR}, 0.001},
    {"linear-butterworth", {.bands = 2, .crossing = {BUTTER(1000, 4)}, LINEAR}, 3.02},
};
enum { N_CROSSOVERS = sizeof crossovers / sizeof *crossovers };

// The magnitude that a band must have: high passes of the crossings below it, and its low pass.
static double band_gain(const struct partita_crossover *c, size_t band, double f)
{
    double product = 1;
    for (size_t i = 0; i + 1 < c->bands && i <= band; i++) {
        const struct partita_crossing *at = &c->crossing[i];
        const bool given = at->family != PARTITA_FAMILY_DEFAULT;
        const long double w = tanl(PIL * f) / tanl(PIL * at->frequency / c->rate);
        product *= (double)cabsl(family_response(given ? at->family : PARTITA_FAMILY_LINKWITZ_RILEY,
                                                 at->order ? at->order : 4, i < band ? 1 / w : w));
    }
    return product;
}

static void crossover(void **state)
{
    const struct crossover_case *c = *state;
    static double taps_of[8 * MAX_TAPS], sum[MAX_TAPS];
    for (size_t r = 0; r < N_RATES; r++) {
        struct partita_crossover crossover = c->crossover;
        struct partita_equalizer_result result;
        crossover.rate = rates[r];
        assert_ok(partita_crossover_taps(&crossover, NULL, 0, &result));
        const size_t n = result.taps;
        assert_true(n <= MAX_TAPS);
        assert_ok(partita_crossover_taps(&crossover, taps_of, n, &result));
        memset(sum, 0, sizeof sum);
        for (size_t i = 0; i < n * crossover.bands; i++) sum[i % n] += taps_of[i];
        double worst = 0;
        for (size_t i = 0; i < POINTS; i++) {
            const double f = point_of(i, rates[r]);
            worst = fmax(worst, fabs(decibels(cabs(polynomial(sum, n, f, NULL)))));
            for (size_t band = 0; band < crossover.bands; band++) {
                const double wanted = band_gain(&crossover, band, f);
                const double got = cabs(polynomial(taps_of + band * n, n, f, NULL));
                if (wanted > 1e-3) assert_true(fabs(decibels(got / wanted)) <= 0.05);
            }
        }
        assert_true(worst <= c->deviation);
        assert_true(result.deviation <= c->deviation && result.deviation >= worst * 0.99 - 1e-9);
        if (c->deviation > 1) assert_true(fabs(result.deviation_frequency / 1000 - 1) < 0.8);
    }
}

// Gains, delays and inversions are those of the bands without them.
static void band_settings(void **state)
{
    enum { N = 4001 };
    static double plain[2 * N], set[2 * N];
    struct partita_equalizer_result result;
    (void)state;
    for (int phase = 0; phase < 2; phase++) {
        struct partita_crossover crossover = {.rate = 48000,
                                              .bands = 2,
                                              .crossing = {LR(1000, 2)},
                                              .phase = (enum partita_equalizer_phase)phase,
                                              .taps = N};
        assert_ok(partita_crossover_taps(&crossover, plain, N, &result));
        assert_true(result.deviation < 0.001);
        crossover.gain[0] = -6;
        crossover.delay[1] = 37;
        crossover.inverted[1] = true;
        assert_ok(partita_crossover_taps(&crossover, set, N, &result));
        assert_true(result.deviation > 3);
        for (size_t i = 0; i < N; i++) {
            assert_true(fabs(set[i] - plain[i] * pow(10, -0.3)) <= 1e-15);
            if (i >= 37) assert_true(set[N + i] == -plain[N + i - 37]);
        }
        crossover.taps = 0;
        assert_ok(partita_crossover_taps(&crossover, NULL, 0, &result));
        crossover.delay[1] += 100;
        const size_t before = result.taps;
        assert_ok(partita_crossover_taps(&crossover, NULL, 0, &result));
        assert_true(result.taps >= before && result.taps <= before + (phase ? 200 : 100));
    }
}

static struct CMUnitTest tests[N_CROSSOVERS + 1];

int main(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_CROSSOVERS; i++)
        tests[n++] = named_test(crossover, &crossovers[i], "sum/%s", crossovers[i].name);
    tests[n++] = named_test(band_settings, NULL, "band-settings");
    return run_test_list(tests, n);
}
