// SPDX-License-Identifier: MIT
// Designs that are refused: the status, and a line in the log that names the field. Failed calls
// leave their results unchanged and nothing allocated.

#include "support/test.h"

#include <math.h>

#include "support/allocators.h"

static const struct partita_design_point flat[] = {{100, 0}}, falling[] = {{200, 0}, {100, 0}},
                                         beyond[] = {{100, 0}, {600, 0}}, loud[] = {{100, NAN}};

struct refusal {
    const char *says;
    struct partita_design design;
};

#define LOW .cutoff = {0.2}
static const struct refusal refusals[] = {
    {"design.kind = 77", {.kind = (enum partita_design_kind)77}},
    {"design.method = 5", {LOW, .method = (enum partita_design_method)5}},
    {"design.method: a table", {.kind = PARTITA_DESIGN_TABLE, .method = PARTITA_DESIGN_EQUIRIPPLE}},
    {"design.minimum_phase", {.kind = PARTITA_DESIGN_HILBERT, .width = 0.1, .minimum_phase = true}},
    {"design.rate = -1", {LOW, .rate = -1}},
    {"design.rate = nan", {LOW, .rate = NAN}},
    {"design.cutoff[0] = 0: must be above 0 and below 0.5", {.width = 0.1}},
    {"design.cutoff[0] = 30000: must be above 0 and below 24000",
     {.rate = 48000, .cutoff = {30000}, .width = 100}},
    {"design.cutoff[1] = 0.1: must be above design.cutoff[0] = 0.2",
     {.kind = PARTITA_DESIGN_BAND_PASS, .cutoff = {0.2, 0.1}, .width = 0.01}},
    {"design.cutoff[1] = 0.3: a low pass has one cutoff", {.cutoff = {0.2, 0.3}, .width = 0.01}},
    {"design.cutoff[0] = 0.2: a Hilbert transformer has no cutoff",
     {.kind = PARTITA_DESIGN_HILBERT, LOW, .width = 0.01}},
    {"design.width: must be set if design.taps is not", {LOW}},
    {"design.width: must be set for raised cosines",
     {.kind = PARTITA_DESIGN_RAISED_COSINE, LOW, .taps = 11}},
    {"design.width = 0.4: must be below 0.4", {LOW, .width = 0.4}},
    {"design.width = 0.5: must be above 0 and below 0.5", {LOW, .width = 0.5}},
    {"design.width = 0.1: must be below 0.1",
     {.kind = PARTITA_DESIGN_BAND_PASS, .cutoff = {0.2, 0.3}, .width = 0.1}},
    {"design.width = 0.45: must be at most 0.4",
     {.kind = PARTITA_DESIGN_RAISED_COSINE, LOW, .width = 0.45}},
    {"design.attenuation = 5", {LOW, .width = 0.1, .attenuation = 5}},
    {"design.attenuation = 201", {LOW, .width = 0.1, .attenuation = 201}},
    {"design.ripple = -1: must be from 1e-09 to 6 dB", {LOW, .width = 0.1, .ripple = -1}},
    {"design.ripple = 1e-16",
     {LOW, .taps = 101, .width = 0.05, .attenuation = 80, .ripple = 1e-16}},
    {"design.ripple = 1: a table has none",
     {.kind = PARTITA_DESIGN_TABLE,
      .table = flat,
      .table_count = 1,
      .rate = 1000,
      .width = 10,
      .ripple = 1}},
    {"design.taps = 2", {LOW, .taps = 2}},
    {"design.taps = 262145", {LOW, .taps = 262145}},
    {"design.taps = 4097: must be from 5 to 4095 for equiripple",
     {LOW, .taps = 4097, .method = PARTITA_DESIGN_EQUIRIPPLE}},
    {"design.taps = 16385: must be from 3 to 16384 with minimum phase",
     {LOW, .taps = 16385, .minimum_phase = true}},
    {"design.taps = 64: must be odd for a high pass; try 65",
     {.kind = PARTITA_DESIGN_HIGH_PASS, LOW, .taps = 64}},
    {"design.taps = 9: too few", {.cutoff = {0.1}, .taps = 9}},
    {"design.table: a low pass has no table", {LOW, .width = 0.1, .table = flat, .table_count = 1}},
    {"design.table: has no points", {.kind = PARTITA_DESIGN_TABLE, .width = 0.1}},
    {"design.table[1].frequency = 100: must be above 200",
     {.kind = PARTITA_DESIGN_TABLE, .rate = 1000, .table = falling, .table_count = 2}},
    {"design.table[1].frequency = 600",
     {.kind = PARTITA_DESIGN_TABLE, .rate = 1000, .table = beyond, .table_count = 2}},
    {"design.table[0].decibels = nan",
     {.kind = PARTITA_DESIGN_TABLE, .rate = 1000, .table = loud, .table_count = 1}},
    {"design.allocator", {LOW, .width = 0.1, .allocator = {.allocate = meter_allocate}}},
    {"design.reserved", {LOW, .width = 0.1, .reserved = {[6] = true}}},
};
enum { N_REFUSALS = sizeof refusals / sizeof *refusals };

static void refused(void **state)
{
    const struct refusal *refusal = *state;
    struct partita_design design = refusal->design;
    struct log_lines lines = {.n_lines = 0};
    size_t count = 99;
    design.log = log_into(&lines);
    assert_int_equal(partita_design_taps_count(&design, &count), PARTITA_ERR_ARG);
    assert_int_equal(count, 99);
    if (!strstr(lines.text, refusal->says))
        fail_msg("says '%s' instead of '%s'", lines.text, refusal->says);
    assert_int_equal(lines.n_lines, 1);
}

// Specifications that no number of taps meets, and arrays of another length.
static void out_of_reach(void **state)
{
    (void)state;
    struct log_lines lines = {.n_lines = 0};
    size_t count = 99;
    double taps[8] = {7};
    struct partita_design design = {LOW, .width = 1e-6, .log = log_into(&lines)};
    assert_int_equal(partita_design_taps_count(&design, &count), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "needs more than 262143 taps"));
    design.method = PARTITA_DESIGN_EQUIRIPPLE;
    assert_int_equal(partita_design_taps_count(&design, &count), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "needs more than 4095 taps"));
    assert_int_equal(count, 99);
    design = (struct partita_design){LOW, .taps = 7, .log = log_into(&lines)};
    assert_int_equal(partita_design_taps(&design, taps, 8), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "n = 8: differs from design.taps = 7"));
    assert_true(taps[0] == 7);
    assert_int_equal(partita_design_taps(NULL, taps, 8), PARTITA_ERR_ARG);
    assert_int_equal(partita_design_taps(&design, NULL, 7), PARTITA_ERR_ARG);
    assert_int_equal(partita_design_taps_count(&design, NULL), PARTITA_ERR_ARG);
}

// A deviation below what double resolves: 301 taps could have 800 dB over so wide a transition.
static void no_convergence(void **state)
{
    (void)state;
    struct log_lines lines = {.n_lines = 0};
    double taps[301] = {7};
    const struct partita_design design = {.cutoff = {0.2},
                                          .width = 0.2,
                                          .attenuation = 200,
                                          .ripple = 1e-8,
                                          .taps = 301,
                                          .method = PARTITA_DESIGN_EQUIRIPPLE,
                                          .log = log_into(&lines)};
    assert_int_equal(partita_design_taps(&design, taps, 301), PARTITA_ERR_UNSUPPORTED);
    assert_non_null(strstr(lines.text, "does not converge"));
    assert_true(taps[0] == 7);
}

static void measure_arguments(void **state)
{
    (void)state;
    struct log_lines lines = {.n_lines = 0};
    struct partita_design_result result = {.delay = 7};
    const double taps[2] = {1, INFINITY};
    const struct partita_design design = {LOW, .width = 0.1, .log = log_into(&lines)};
    assert_int_equal(partita_design_measure(&design, taps, 2, &result), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "taps[1] = inf"));
    assert_int_equal(partita_design_measure(&design, taps, 0, &result), PARTITA_ERR_ARG);
    assert_int_equal(partita_design_measure(&design, NULL, 1, &result), PARTITA_ERR_ARG);
    assert_true(result.delay == 7);
    // One tap passes everything.
    assert_ok(partita_design_measure(&design, taps, 1, &result));
    assert_true(result.ripple == 0 && result.attenuation == 0 && result.delay == 0);
}

static void without_memory(void **state)
{
    static const struct partita_design designs[] = {
        {LOW, .width = 0.1},
        {LOW, .width = 0.1, .method = PARTITA_DESIGN_EQUIRIPPLE},
        {LOW, .width = 0.1, .minimum_phase = true},
        {.kind = PARTITA_DESIGN_TABLE, .rate = 1000, .table = flat, .table_count = 1, .width = 100},
    };
    (void)state;
    for (size_t i = 0; i < sizeof designs / sizeof *designs; i++) {
        struct meter meter = {.guard = 64};
        struct partita_design design = designs[i];
        design.allocator = meter_allocator(&meter);
        enum partita_status status;
        do {
            size_t count = 0;
            double taps[512] = {7};
            struct partita_design_result result;
            meter.fail_at++;
            meter.n_allocated = 0;
            status = partita_design_taps_count(&design, &count);
            if (status == PARTITA_OK) status = partita_design_taps(&design, taps, count);
            if (status) assert_true(taps[0] == 7);
            if (status == PARTITA_OK)
                status = partita_design_measure(&design, taps, count, &result);
            assert_true(status == PARTITA_OK || status == PARTITA_ERR_NOMEM);
            assert_int_equal(meter.n_live, 0);
        } while (status);
        assert_true(meter.fail_at > 3);
    }
}

static struct CMUnitTest tests[N_REFUSALS + 4];

int main(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_REFUSALS; i++)
        tests[n++] = named_test(refused, &refusals[i], "refused/%s", refusals[i].says);
    tests[n++] = named_test(out_of_reach, NULL, "out-of-reach");
    tests[n++] = named_test(no_convergence, NULL, "no-convergence");
    tests[n++] = named_test(measure_arguments, NULL, "measure-arguments");
    tests[n++] = named_test(without_memory, NULL, "without-memory");
    return run_test_list(tests, n);
}
