// SPDX-License-Identifier: MIT
// Filter design behind lib/api/design.c. All frequencies here are in cycles per frame, 0 to 1/2.
#ifndef PARTITA_DESIGN_DESIGN_H
#define PARTITA_DESIGN_DESIGN_H

#include "base/log.h"
#include "base/mem.h"

#include <partita/design.h>

#define DESIGN_PI 3.14159265358979323846
// The level of the floor of minimum phase, in relation to the ripples of stop bands, and by how
// much it lowers their attenuation: 10 log10(1 + 1/64) dB.
#define DESIGN_FLOOR 0.125
#define DESIGN_FLOOR_LOSS 0.0674

enum { DESIGN_MIN_TAPS = 3, DESIGN_MAX_TAPS = 1 << 18, DESIGN_MAX_MINIMUM_PHASE = 1 << 14 };
enum { DESIGN_MIN_EQUIRIPPLE = 5, DESIGN_MAX_EQUIRIPPLE = 4095, DESIGN_MAX_BANDS = 3 };

// A band in which a filter passes or stops.
struct design_band {
    double begin, end;
    bool pass;
};

// A design whose fields are checked and whose defaults are filled in.
struct design_spec {
    enum partita_design_kind kind;
    enum partita_design_method method;
    double cutoff[2], width;
    double attenuation; // dB
    double window;      // attenuation of Kaiser's window; 0: as width and number of taps allow
    double pass_deviation, stop_deviation; // the largest ones, in relation to the largest gain
    size_t taps;                           // 0: to be chosen
    const struct partita_design_point *table;
    size_t table_count;
    double rate; // in the unit of the table
    bool minimum_phase;
    struct design_band bands[DESIGN_MAX_BANDS];
    int n_bands;
    struct partita_log log;
    struct partita_allocator allocator;
};

// Checks a design and fills in missing fields. n: the number of taps, 0 if it is not known:
// then it is design->taps. Errors: PARTITA_ERR_ARG, after a line in the log.
enum partita_status design_resolve(struct design_spec *ret, const struct partita_design *design,
                                   size_t n);

// Checks the points of a field; their frequencies ascend to at most `max`. Logs why not.
bool design_check_points(const struct partita_log *log, const char *field,
                         const struct partita_design_point *points, size_t n, double max);

// Decibels of a table, linear over the logarithm of the frequency; 0 without points.
double design_table_decibels(const struct partita_design_point *table, size_t n, double frequency);

// The wanted gain at a frequency in a pass band.
double design_wanted_gain(const struct design_spec *spec, double frequency);

// The largest wanted gain.
double design_largest_gain(const struct design_spec *spec);

// Whether taps are antisymmetric.
static inline bool design_is_odd(const struct design_spec *spec)
{
    return spec->kind == PARTITA_DESIGN_HILBERT || spec->kind == PARTITA_DESIGN_DIFFERENTIATOR;
}

// The number of taps: spec->taps, or the fewest that reach the specification.
enum partita_status design_count(const struct design_spec *spec, size_t *ret_count);

// Fills taps[n].
enum partita_status design_fill(const struct design_spec *spec, double *taps, size_t n);

// Kaiser's formulas, for the width of the window's transition, which is twice that of a Hilbert
// transformer.
double design_kaiser_count(double attenuation, double width);
double design_kaiser_width(double attenuation, double count);
double design_kaiser_attenuation(double width, double count);
double design_window_width(const struct design_spec *spec);

// The attenuation of a window that meets the specification.
double design_window_attenuation(const struct design_spec *spec);

// taps[n] of the ideal response times the window.
enum partita_status design_window(const struct design_spec *spec, double *taps, size_t n);

// About the same for equiripple filters.
double design_equiripple_count(const struct design_spec *spec, double width);
double design_equiripple_width(const struct design_spec *spec, double count);

// taps[n] whose largest deviation is smallest; *ret_deviation is that deviation in units of the one
// allowed: 1 meets the specification exactly. taps NULL: only whether the deviation is above 1 is
// wanted, and about how large it is. Errors: PARTITA_ERR_UNSUPPORTED, after a line in the
// log, if the exchange does not converge.
enum partita_status design_equiripple(const struct design_spec *spec, double *taps, size_t n,
                                      double *ret_deviation);

// Replaces taps by those of minimum phase with the magnitude sqrt(|response|^2 + floor^2).
enum partita_status design_minimum_phase(double *taps, size_t n, double floor,
                                         const struct partita_allocator *allocator);

enum partita_status design_measure(const struct design_spec *spec, const double *taps, size_t n,
                                   struct partita_design_result *ret);

#endif
