// SPDX-License-Identifier: MIT
// Equalizers and crossovers that are refused: the status, and a line in the log that names the
// field. Failed calls leave their results unchanged and nothing allocated.

#include "support/test.h"

#include <math.h>

#include "support/allocators.h"

struct refusal {
    const char *says;
    struct partita_section section;
};

#define AT .frequency
static const struct refusal sections[] = {
    {"sections[0].kind = 77: there is no such kind", {.kind = (enum partita_section_kind)77}},
    {"sections[0].frequency = 0: must be above 0 and below 24000", {.gain = 1}},
    {"sections[0].frequency = 24000: must be above 0 and below 24000", {AT = 24000}},
    {"sections[0].frequency = nan", {AT = NAN}},
    {"sections[0].frequency = 100: a gain has none", {.kind = PARTITA_SECTION_GAIN, AT = 100}},
    {"sections[0].gain = 151: must be from -150 to 150", {AT = 100, .gain = 151}},
    {"sections[0].gain = nan: must be", {AT = 100, .gain = NAN}},
    {"sections[0].gain = 3: a low pass has none",
     {.kind = PARTITA_SECTION_LOW_PASS, AT = 100, .gain = 3}},
    {"sections[0].q = -1: must be from 0 to 1e+06", {AT = 100, .q = -1}},
    {"sections[0].q = 1: a low pass has none with order 1",
     {.kind = PARTITA_SECTION_LOW_PASS, .order = 1, AT = 100, .q = 1}},
    {"sections[0].q = 1: a low pass has none",
     {.kind = PARTITA_SECTION_LOW_PASS, .family = PARTITA_FAMILY_BESSEL, AT = 100, .q = 1}},
    {"sections[0].bandwidth = 21", {AT = 100, .bandwidth = 21}},
    {"sections[0]: has several widths", {AT = 100, .q = 1, .bandwidth = 1}},
    {"sections[0].slope = 6: a peak has none", {AT = 100, .slope = 6}},
    {"sections[0].slope = 90: is too steep for 12 dB; use 12 or less, or q",
     {.kind = PARTITA_SECTION_LOW_SHELF, AT = 100, .gain = 12, .slope = 90}},
    {"sections[0].order = 3: must be from 0 to 2",
     {.kind = PARTITA_SECTION_LOW_PASS, .order = 3, AT = 9}},
    {"sections[0].order = 1: a peak has none", {.order = 1, AT = 100}},
    {"sections[0].order = 3: must be even for Linkwitz-Riley",
     {.kind = PARTITA_SECTION_LOW_PASS,
      .family = PARTITA_FAMILY_LINKWITZ_RILEY,
      .order = 3,
      AT = 100}},
    {"sections[0].order = 17: must be from 0 to 16",
     {.kind = PARTITA_SECTION_HIGH_PASS,
      .family = PARTITA_FAMILY_BUTTERWORTH,
      .order = 17,
      AT = 100}},
    {"sections[0].order = 9: must be from 0 to 8",
     {.kind = PARTITA_SECTION_HIGH_PASS, .family = PARTITA_FAMILY_BESSEL, .order = 9, AT = 100}},
    {"sections[0].family = 9",
     {.kind = PARTITA_SECTION_LOW_PASS, .family = (enum partita_section_family)9, AT = 9}},
    {"sections[0].family = 1: a peak has none", {.family = PARTITA_FAMILY_BUTTERWORTH, AT = 100}},
    {"sections[0].target_frequency = 0: must be above 0",
     {.kind = PARTITA_SECTION_LINKWITZ_TRANSFORM, AT = 70, .q = 1}},
    {"sections[0].target_q = 1: a notch has none",
     {.kind = PARTITA_SECTION_NOTCH, AT = 70, .target_q = 1}},
    {"sections[0].unity_at_0 = 1: a notch has none",
     {.kind = PARTITA_SECTION_NOTCH, AT = 70, .unity_at_0 = true}},
    {"sections[0]: is unstable", {.kind = PARTITA_SECTION_BIQUAD, .biquad = {{1}, {0, 1}}}},
    {"sections[0]: is unstable", {.kind = PARTITA_SECTION_BIQUAD, .biquad = {{1}, {-1.5, 0.4}}}},
    {"sections[0]: is unstable", {.kind = PARTITA_SECTION_BIQUAD, .biquad = {{NAN}, {0}}}},
    {"sections[0]: is unstable", {.kind = PARTITA_SECTION_BIQUAD, .biquad = {{1}, {NAN}}}},
};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

static void section(void **state)
{
    const struct refusal *refusal = *state;
    struct log_lines lines = {.n_lines = 0};
    struct partita_equalizer_result result = {.taps = 99};
    const struct partita_equalizer one = {
        .rate = 48000, .sections = &refusal->section, .n_sections = 1, .log = log_into(&lines)};
    const enum partita_status status = partita_equalizer_taps(&one, NULL, 0, &result);
    assert_int_equal(status, PARTITA_ERR_ARG);
    assert_int_equal(result.taps, 99);
    if (!strstr(lines.text, refusal->says))
        fail_msg("says '%s' instead of '%s'", lines.text, refusal->says);
    assert_int_equal(lines.n_lines, 1);
}

static const struct partita_section peak = {.frequency = 1000, .gain = 6};

// Fields of the equalizer, and lengths of the array.
static void equalizer(void **state)
{
    static const struct {
        const char *says;
        struct partita_equalizer equalizer;
        size_t n;
    } cases[] = {
        {"equalizer.rate = -1", {.rate = -1}, 0},
        {"equalizer.rate = nan", {.rate = NAN}, 0},
        {"equalizer.tail = 19: must be from 20 to 240 dB", {.tail = 19}, 0},
        {"equalizer.phase = 2", {.phase = (enum partita_equalizer_phase)2}, 0},
        {"taps = 786433: must be from 1 to 786432", {.taps = 786433}, 0},
        {"taps = 64: must be odd", {.taps = 64, .phase = PARTITA_EQUALIZER_LINEAR}, 0},
        {"equalizer.n_sections = 4097", {.n_sections = 4097, .sections = &peak}, 0},
        {"and sections not NULL", {.n_sections = 1}, 0},
        {"equalizer.allocator", {.allocator = {.allocate = meter_allocate}}, 0},
        {"n = 786433: must be from 1", {.taps = 0}, 786433},
        {"n = 8: must be odd", {.phase = PARTITA_EQUALIZER_LINEAR}, 8},
        {"n = 8: differs from equalizer.taps = 7", {.taps = 7}, 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_lines lines = {.n_lines = 0};
        struct partita_equalizer_result result = {.taps = 99};
        struct partita_equalizer equalizer = cases[i].equalizer;
        double taps[8] = {7};
        equalizer.log = log_into(&lines);
        assert_int_equal(
            partita_equalizer_taps(&equalizer, cases[i].n ? taps : NULL, cases[i].n, &result),
            PARTITA_ERR_ARG);
        assert_true(taps[0] == 7 && result.taps == 99 && lines.n_lines == 1);
        if (!strstr(lines.text, cases[i].says))
            fail_msg("says '%s' instead of '%s'", lines.text, cases[i].says);
    }
}

static void crossover(void **state)
{
#define LR                                                                                         \
    {                                                                                              \
        .frequency = 1000                                                                          \
    }
    static const struct {
        const char *says;
        struct partita_crossover crossover;
    } cases[] = {
        {"crossover.rate = inf", {.rate = INFINITY, .bands = 2, .crossing = {LR}}},
        {"crossover.bands = 1: must be from 2 to 8", {.bands = 1}},
        {"crossover.bands = 9: must be from 2 to 8", {.bands = 9}},
        {"crossing[0].frequency = 0", {.bands = 2}},
        {"crossing[1].frequency = 900: must be above the one before",
         {.bands = 3, .crossing = {LR, {.frequency = 900}}}},
        {"crossing[1].frequency = 30000", {.bands = 3, .crossing = {LR, {.frequency = 30000}}}},
        {"crossing[0].order = 5: must be even",
         {.bands = 2, .crossing = {{.frequency = 1000, .order = 5}}}},
        {"crossing[0].order = -4", {.bands = 2, .crossing = {{.frequency = 1000, .order = -4}}}},
        {"crossing[0].order = 1e+06",
         {.bands = 2, .crossing = {{.frequency = 1000, .order = 1000000}}}},
        {"crossing[0].family = 7",
         {.bands = 2, .crossing = {{.frequency = 1000, .family = (enum partita_section_family)7}}}},
        {"crossover.gain[1] = nan", {.bands = 2, .crossing = {LR}, .gain = {0, NAN}}},
        {".delay[1] = 65537", {.bands = 2, .crossing = {LR}, .delay = {0, 65537}}},
        {"taps = 8: must be odd",
         {.bands = 2, .crossing = {LR}, .taps = 8, .phase = PARTITA_EQUALIZER_LINEAR}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_lines lines = {.n_lines = 0};
        struct partita_equalizer_result result = {.taps = 99};
        struct partita_crossover crossover = cases[i].crossover;
        if (crossover.rate == 0) crossover.rate = 48000;
        crossover.log = log_into(&lines);
        assert_int_equal(partita_crossover_taps(&crossover, NULL, 0, &result), PARTITA_ERR_ARG);
        assert_true(result.taps == 99 && lines.n_lines == 1);
        if (!strstr(lines.text, cases[i].says))
            fail_msg("says '%s' instead of '%s'", lines.text, cases[i].says);
    }
}

// Half of each rate is the limit of another field, which may be 0 nevertheless.
static void rates(void **state)
{
    const double rates[] = {2, 32, 40, 2000, 2e6};
    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const struct partita_section list[] = {
            {AT = rates[i] / 8, .gain = 1},
            {.kind = PARTITA_SECTION_LOW_SHELF, AT = rates[i] / 8, .gain = 1},
            {.kind = PARTITA_SECTION_GENERAL_NOTCH,
             AT = rates[i] / 8,
             .target_frequency = rates[i] / 9}};
        const struct partita_equalizer all = {.rate = rates[i], .sections = list, .n_sections = 3};
        struct partita_equalizer_result result;
        assert_ok(partita_equalizer_taps(&all, NULL, 0, &result));
    }
}

// Two gains at one frequency, and a resonance that rings for too long.
static void out_of_reach(void **state)
{
    const struct partita_section list[] = {{AT = 1000, .gain = 12}, {AT = 1000, .gain = -12}};
    struct log_lines lines = {.n_lines = 0};
    const struct partita_equalizer bands = {.rate = 48000,
                                            .sections = list,
                                            .n_sections = 2,
                                            .exact_gains = true,
                                            .log = log_into(&lines)};
    struct partita_biquad biquads[16] = {{{7}, {7}}};
    size_t count = 99;
    (void)state;
    assert_int_equal(partita_equalizer_biquads(&bands, biquads, &count), PARTITA_ERR_UNSUPPORTED);
    assert_int_equal(lines.n_lines, 1);
    assert_true(count == 99 && biquads[0].b[0] == 7);
    const struct partita_section slow = {AT = 0.01, .gain = 20, .q = 50};
    struct partita_equalizer_result result = {.taps = 99};
    const struct partita_equalizer one = {
        .rate = 48000, .sections = &slow, .n_sections = 1, .log = log_into(&lines)};
    assert_int_equal(partita_equalizer_taps(&one, NULL, 0, &result), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "equalizer.tail = 160: needs more than 786432 taps"));
    assert_int_equal(result.taps, 99);
}

// No sections are a single tap of 1; a section of gain 0 is nothing but zeros.
static void trivial(void **state)
{
    const struct partita_section silent = {.kind = PARTITA_SECTION_BIQUAD, .biquad = {{0}, {0}}};
    struct partita_equalizer equalizer = {.n_sections = 0};
    struct partita_equalizer_result result;
    double taps[3] = {7, 7, 7};
    (void)state;
    for (int phase = 0; phase < 2; phase++) {
        equalizer.phase = (enum partita_equalizer_phase)phase;
        equalizer.n_sections = 0;
        assert_ok(partita_equalizer_taps(&equalizer, taps, 3, &result));
        assert_true(taps[phase] == 1 && taps[2] == 0 && result.tail > 250);
        assert_true(fabs(result.gain) < 1e-9 && result.deviation < 1e-9);
        assert_ok(partita_equalizer_taps(&equalizer, NULL, 0, &result));
        assert_int_equal(result.taps, 1);
        equalizer.sections = &silent;
        equalizer.n_sections = 1;
        assert_ok(partita_equalizer_taps(&equalizer, taps, 3, &result));
        assert_true(taps[0] == 0 && taps[1] == 0 && result.deviation == 0);
    }
}

// The n-th allocation fails, until none does.
static void without_memory(void **state)
{
    struct partita_equalizer equalizer = {.rate = 48000, .sections = &peak, .n_sections = 1};
    struct partita_crossover crossover = {.rate = 48000, .bands = 2, .crossing = {LR}};
    (void)state;
    for (int phase = 0; phase < 2; phase++) {
        struct meter meter = {.guard = 64};
        enum partita_status status;
        equalizer.phase = crossover.phase = (enum partita_equalizer_phase)phase;
        equalizer.allocator = crossover.allocator = meter_allocator(&meter);
        do {
            struct partita_equalizer_result result = {.taps = 99};
            double taps[2 * 301] = {7};
            meter.fail_at++;
            meter.n_allocated = 0;
            status = partita_equalizer_taps(&equalizer, taps, 301, &result);
            if (status) assert_true(taps[0] == 7 && result.taps == 99);
            if (status == PARTITA_OK) {
                taps[0] = 7;
                status = partita_crossover_taps(&crossover, taps, 301, &result);
                if (status) assert_true(taps[0] == 7);
            }
            assert_true(status == PARTITA_OK || status == PARTITA_ERR_NOMEM);
            assert_int_equal(meter.n_live, 0);
        } while (status);
        assert_true(meter.fail_at > 8);
    }
}

static struct CMUnitTest tests[N_SECTIONS + 6];

int main(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_SECTIONS; i++)
        tests[n++] = named_test(section, &sections[i], "refused/%zu-%s", i, sections[i].says);
    tests[n++] = named_test(equalizer, NULL, "equalizer");
    tests[n++] = named_test(crossover, NULL, "crossover");
    tests[n++] = named_test(rates, NULL, "rates");
    tests[n++] = named_test(out_of_reach, NULL, "out-of-reach");
    tests[n++] = named_test(trivial, NULL, "trivial");
    tests[n++] = named_test(without_memory, NULL, "without-memory");
    return run_test_list(tests, n);
}
