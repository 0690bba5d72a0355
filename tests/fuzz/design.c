// SPDX-License-Identifier: MIT
// Fuzz target: specifications of filters. If the first byte is odd, the others are a table, the
// text that `partita design table` reads; else they choose the fields of a design, most of them
// right or nearly so, some of any value. Filters that are designed are finite and are measured.
#include <math.h>
#include <string.h>

#include <partita/partita.h>

#include "fuzz/input.h"
#include "io/points.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_DESIGNED = 2000, MAX_TABLE = 64 };

// A value between two, one of some particular ones, or any.
static double take_real(struct input *input, double low, double high)
{
    static const double particular[] = {0,   -1,  0.5, 0.25,     1e-300,    1e300,
                                        NAN, 200, 10,  INFINITY, 0x1p-1074, 0.49999999999999994};
    const unsigned how = (unsigned)input_take(input, 1);
    if (how < 16) return particular[how % 12];
    if (how > 252) {
        const uint64_t any = input_take(input, 8);
        double value;
        memcpy(&value, &any, sizeof value);
        return value;
    }
    return low + (high - low) * (double)input_take(input, 2) / 65535;
}

static double take_optional(struct input *input, double low, double high)
{
    return input_take(input, 1) % 2 ? take_real(input, low, high) : 0;
}

// Narrow transitions, which take many taps and therefore seconds, are left out.
static bool is_short(const struct partita_design *d)
{
    return !(d->width > 0 && d->width < 0.004 * d->rate) && d->taps <= MAX_DESIGNED &&
           (d->taps || d->method == PARTITA_DESIGN_KAISER || d->width > 0.01 * d->rate);
}

static void check_design(const struct partita_design *design)
{
    size_t n = 0;
    struct partita_design_result result;
    if (!is_short(design) || partita_design_taps_count(design, &n) || n > MAX_DESIGNED) return;
    double *taps = malloc(n * sizeof *taps);
    if (taps && partita_design_taps(design, taps, n) == PARTITA_OK) {
        for (size_t i = 0; i < n; i++)
            if (!isfinite(taps[i])) abort();
        if (partita_design_measure(design, taps, n, &result) == PARTITA_OK &&
            (isnan(result.ripple) || isnan(result.attenuation) || isnan(result.delay)))
            abort();
    }
    free(taps);
}

static void check_fields(struct input *input)
{
    struct partita_design d = {.kind = (enum partita_design_kind)(input_take(input, 1) % 9),
                               .method = (enum partita_design_method)(input_take(input, 1) % 2),
                               .rate = 1};
    struct partita_design_point points[MAX_TABLE];
    if (input_take(input, 1) % 16 == 15) d.kind = (enum partita_design_kind)input_take(input, 4);
    if (input_take(input, 1) % 4 == 3) d.rate = take_real(input, 1, 1e6);
    const double unit = d.rate > 0 && d.rate < 1e9 ? d.rate : 1;
    d.minimum_phase = input_take(input, 1) % 4 == 3;
    d.cutoff[0] = take_optional(input, 0, 0.5 * unit);
    d.cutoff[1] = take_optional(input, 0, 0.5 * unit);
    d.width = take_optional(input, 0, 0.2 * unit);
    d.attenuation = take_optional(input, 10, 200);
    d.ripple = take_optional(input, 0, 6);
    d.taps = input_take(input, 1) % 2 ? (size_t)input_take(input, 1) : 0;
    if (d.kind == PARTITA_DESIGN_TABLE) {
        double frequency = 0;
        d.table = points;
        d.table_count = (size_t)input_take(input, 1) % MAX_TABLE;
        for (size_t i = 0; i < d.table_count; i++) {
            points[i].frequency = frequency += take_real(input, 0, 0.02 * unit);
            points[i].decibels = take_real(input, -200, 50);
        }
    }
    check_design(&d);
}

static void check_table(const uint8_t *text, size_t size)
{
    char path[FUZZ_PATH_BYTES];
    struct points table;
    struct fault fault;
    fuzz_write("table.txt", text, size, path);
    if (points_read(&table, path, &fault)) {
        check_design(&(struct partita_design){.kind = PARTITA_DESIGN_TABLE,
                                              .rate = 48000,
                                              .width = 2000,
                                              .table = table.list,
                                              .table_count = table.n});
        points_release(&table);
    }
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    if (input_take(&input, 1) % 2) check_table(input.data, input.left);
    else check_fields(&input);
    return 0;
}
