// SPDX-License-Identifier: MIT
// Corrections that are refused: the status, and one line in the log that names the field. Failed
// calls leave their results unchanged and nothing allocated.

#include "support/test.h"

#include <math.h>

#include "support/allocators.h"

enum { FRAMES = 16000, TAPS = 1600 };

static const struct partita_design_point falling[] = {{200, 0}, {100, 0}},
                                         kilohertz[] = {{0.05, 0}, {20, -5}}, loud[] = {{100, NAN}};

struct refusal {
    const char *says;
    struct partita_correction correction;
};

#define RATE .rate = 8000, .frames = FRAMES
#define ROOM RATE, .taps = TAPS
#define MIXED ROOM, .phase = PARTITA_CORRECTION_MIXED
static const struct refusal refusals[] = {
    {"correction.rate = 0: must be above 0", {.frames = 1}},
    {"correction.rate = inf", {.rate = INFINITY, .frames = 1}},
    {"correction.frames = 0, positions = 1: must be from 1 to", {.rate = 1}},
    {"correction.frames = 4194305", {.rate = 1, .frames = ((size_t)1 << 22) + 1}},
    {"positions = 4097: must be from 1 to 4194304, 4096", {ROOM, .positions = 4097}},
    {"correction.mean = 7", {ROOM, .mean = (enum partita_correction_mean)7}},
    {"phase = 3: there is no such", {ROOM, .phase = (enum partita_correction_phase)3}},
    {"correction.allocator", {ROOM, .allocator = {.allocate = meter_allocate}}},
    {"correction.high = 5000: must be from 0.0610352 to 4000", {ROOM, .high = 5000}},
    {"correction.high = nan", {ROOM, .high = NAN}},
    {"correction.low = 3000: must be from 0.0610352 to 2880", {ROOM, .low = 3000}},
    {"correction.low = -1", {ROOM, .low = -1}},
    {"correction.edge = 5: must be from 0.01 to 4", {ROOM, .edge = 5}},
    {"correction.window = 0.5: must be from 1 to 10000", {ROOM, .window = 0.5}},
    {"correction.smoothing = 0.5: must be from 1 to 1000", {ROOM, .smoothing = 0.5}},
    {"correction.boost = -3: must be from 0.01 to 60", {ROOM, .boost = -3}},
    {"correction.attenuation = 121", {ROOM, .attenuation = 121}},
    {"correction.taps = 0: must be from 800, 2 periods of correction.low, to 262144", {RATE}},
    {"correction.taps = 799: must be from 800", {RATE, .taps = 799}},
    {"correction.taps = 262145", {RATE, .taps = 262145}},
    {"correction.phase_limit, pre_time, pre_level: must be 0", {ROOM, .pre_time = 0.01}},
    {"correction.phase_limit = 10: must be from 20 to 3600", {MIXED, .phase_limit = 10}},
    {"correction.pre_time = 0.1: must be from 0.001 to 0.05", {MIXED, .pre_time = 0.1}},
    {"correction.pre_level = 201: must be from 1 to 200", {MIXED, .pre_level = 201}},
    {"correction.target: has no points", {ROOM, .target = falling}},
    {"correction.target[1].frequency = 100: must be above 200",
     {ROOM, .target = falling, .target_count = 2}},
    {"correction.target[0].decibels = nan", {ROOM, .target = loud, .target_count = 1}},
    {"correction.target: has points from 0.05 to 20, outside of the range from 20 to 3600",
     {ROOM, .target = kilohertz, .target_count = 2}},
};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

static double x[2][FRAMES], taps[TAPS];

static void make_responses(void)
{
    memset(x, 0, sizeof x);
    x[0][100] = x[1][120] = 1;
    x[0][150] = x[1][190] = -0.5;
}

static void refuse(const struct partita_correction *given, const char *says, bool average)
{
    struct log_lines lines = {.n_lines = 0};
    struct partita_correction c = *given;
    struct partita_correction_report report = {.delay = 7};
    c.log = log_into(&lines);
    taps[0] = 7;
    assert_int_equal(average ? partita_correction_average(&c, x[0], taps)
                             : partita_correction_taps(&c, x[0], taps, &report),
                     PARTITA_ERR_ARG);
    if (!strstr(lines.text, says)) fail_msg("says '%s' instead of '%s'", lines.text, says);
    assert_int_equal(lines.n_lines, 1);
    assert_true(taps[0] == 7 && report.delay == 7);
}

static void refused(void **state)
{
    const struct refusal *refusal = *state;
    make_responses();
    refuse(&refusal->correction, refusal->says, false);
}

static void bad_responses(void **state)
{
    const struct partita_correction c = {ROOM, .positions = 2};
    (void)state;
    for (int average = 0; average < 2; average++) {
        make_responses();
        x[1][33] = NAN;
        refuse(&c, "responses[1][33] = nan: must be finite", average);
        x[1][33] = -INFINITY;
        refuse(&c, "responses[1][33] = -inf", average);
        x[1][33] = 1e101;
        refuse(&c, "responses[1][33] = 1e+101", average);
        make_responses();
        memset(x[1], 0, sizeof x[1]);
        refuse(&c, "responses[1]: is silent", average);
        for (size_t i = 0; i < FRAMES; i++) x[1][i] = sin(1e-4 * (double)(i * i)); // a sweep
        refuse(&c, "responses[1]: has no peak", average);
        struct random random = random_start("noise");
        random_samples(&random, PARTITA_F64, x[1], FRAMES);
        refuse(&c, "responses[1]: has no peak; partita_deconvolve", average);
    }
    // Vectors that cancel.
    struct partita_correction vector = c;
    vector.mean = PARTITA_MEAN_VECTOR;
    make_responses();
    for (size_t i = 0; i < FRAMES; i++) x[1][i] = -x[0][i];
    refuse(&vector, "cancel in the mean of vectors", false);
}

static void without_memory(void **state)
{
    (void)state;
    make_responses();
    for (int phase = 0; phase <= PARTITA_CORRECTION_MIXED; phase++) {
        struct meter meter = {.guard = 64};
        enum partita_status status;
        do {
            struct partita_correction c = {ROOM, .phase = (enum partita_correction_phase)phase,
                                           .allocator = meter_allocator(&meter)};
            struct partita_correction_report report;
            static double average[FRAMES];
            meter.fail_at++;
            meter.n_allocated = 0;
            taps[0] = 7;
            status = partita_correction_average(&c, x[0], average);
            if (status == PARTITA_OK) status = partita_correction_taps(&c, x[0], taps, &report);
            if (status) assert_true(taps[0] == 7);
            assert_true(status == PARTITA_OK || status == PARTITA_ERR_NOMEM);
            assert_int_equal(meter.n_live, 0);
        } while (status);
        assert_true(meter.fail_at > 8);
    }
}

// Extreme levels, and the fewest taps and samples.
static void extremes(void **state)
{
    const double scales[] = {1e-99, 1e99};
    struct partita_correction_report report;
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct partita_correction c = {ROOM, .phase = PARTITA_CORRECTION_MIXED};
        make_responses();
        for (size_t k = 0; k < FRAMES; k++) x[0][k] *= scales[i];
        assert_ok(partita_correction_taps(&c, x[0], taps, &report));
        assert_true(isfinite(report.level) && report.after_max < report.before_max);
        c = (struct partita_correction){.rate = 8000, .frames = 1, .taps = 800};
        assert_ok(partita_correction_taps(&c, &x[0][100], taps, &report));
        assert_true(fabs(taps[0] - 1) < 1e-12);
    }
}

int main(void)
{
    static struct CMUnitTest tests[N_REFUSALS + 3];
    size_t n = 0;
    for (size_t i = 0; i < N_REFUSALS; i++)
        tests[n++] = named_test(refused, &refusals[i], "refused/%s", refusals[i].says);
    tests[n++] = named_test(bad_responses, NULL, "responses");
    tests[n++] = named_test(without_memory, NULL, "without-memory");
    tests[n++] = named_test(extremes, NULL, "extremes");
    return run_test_list(tests, n);
}
