// SPDX-License-Identifier: MIT
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture/picture.h"

enum {
    WIDTH = 1400,
    HEIGHT = 1040,
    MARGIN = 90, // of the panels, left
    MAX_STEMS = 128,
    MAX_WAYS = PARTITA_MAX_BANDS,
    LOW_DIVISOR = 4800, // equalizers are drawn from rate / 4800 on
};
static const struct colour pass_colour = {0.93, 0.97, 0.93}, stop_colour = {0.98, 0.94, 0.92};

struct plot {
    const struct achieved *achieved;
    cairo_t *cairo;
    double rate, scale; // scale: of frequencies on the axis
    const char *unit;
    const double *taps; // of a crossover the sum of all ways
    struct taps_curves curves, ways[MAX_WAYS];
    struct curve wanted; // in dB
    struct curve frames; // x: their numbers
};

static bool is_table(const struct plot *plot)
{
    return plot->achieved->specification->design.kind == PARTITA_DESIGN_TABLE;
}

static bool equalizes(const struct plot *plot)
{
    return plot->achieved->specification->equalizes;
}

static void choose_unit(struct plot *plot)
{
    const double rate = plot->achieved->settings->rate;
    plot->rate = rate > 0 ? rate : 1;
    plot->scale = 1;
    plot->unit = rate > 0 ? "frequency in Hz" : "frequency / sample rate";
    if (plot->rate >= 2e3) plot->scale = 1e-3, plot->unit = "frequency in kHz";
    if (plot->rate >= 2e6) plot->scale = 1e-6, plot->unit = "frequency in MHz";
}

// Frequencies on the axis: all, or for a table from an octave below its first point on.
static struct axis frequency_axis(const struct plot *plot)
{
    struct axis axis = {.high = plot->rate / 2 * plot->scale, .label = plot->unit};
    axis.logarithmic = is_table(plot) || equalizes(plot);
    if (equalizes(plot)) axis.low = plot->rate / LOW_DIVISOR * plot->scale;
    if (!is_table(plot)) return axis;
    axis.low = plot->achieved->specification->design.table[0].frequency / 2 * plot->scale;
    return axis;
}

// From below the stop bands, or what a table wants, to above the largest gain.
static struct axis gain_axis(const struct plot *plot)
{
    const struct achieved *a = plot->achieved;
    struct axis axis = {.label = "gain in dB"};
    double range[2], wanted[2];
    curve_range(&plot->curves.gain, range);
    double low = range[1] - 60;
    if (a->specification->design.kind != PARTITA_DESIGN_HILBERT && isfinite(a->result.attenuation))
        low = range[1] - a->result.attenuation - 40;
    if (equalizes(plot) && a->specification->ways == 1) low = fmax(low, range[0] - 1);
    if (is_table(plot)) {
        curve_range(&plot->wanted, wanted);
        low = fmin(range[0], wanted[0]) - 1;
    }
    const double step = panel_step(range[1] - low, 8);
    axis.low = floor(low / step) * step;
    axis.high = ceil((range[1] + 0.05 * step) / step) * step;
    return axis;
}

static void draw_gain(const struct plot *plot)
{
    const struct achieved *a = plot->achieved;
    const struct panel panel = {plot->cairo,         MARGIN,     110,
                                WIDTH - MARGIN - 40, 420,        frequency_axis(plot),
                                gain_axis(plot),     "Magnitude"};
    struct band bands[MAX_BANDS];
    const int n = is_table(plot) || equalizes(plot) ? 0 : achieved_bands(a, bands);
    for (int i = 0; i < n; i++)
        panel_fill(&panel, bands[i].begin * plot->scale, bands[i].end * plot->scale,
                   bands[i].pass ? pass_colour : stop_colour);
    panel_frame(&panel);
    const bool sum = a->specification->ways > 1;
    panel_curve(&panel, plot->curves.gain.x, plot->curves.gain.y, plot->curves.gain.n,
                sum ? panel_limit_colour : panel_curve_colour, sum);
    for (size_t i = 0; sum && i < a->specification->ways; i++)
        panel_curve(&panel, plot->ways[i].gain.x, plot->ways[i].gain.y, plot->ways[i].gain.n,
                    panel_curve_colour, false);
    if (is_table(plot))
        panel_curve(&panel, plot->wanted.x, plot->wanted.y, plot->wanted.n, panel_limit_colour,
                    true);
    double range[2];
    curve_range(&plot->curves.gain, range);
    for (int i = 0; i < n; i++) {
        const double level = range[1] - a->result.attenuation;
        const double x[2] = {bands[i].begin * plot->scale, bands[i].end * plot->scale};
        if (!bands[i].pass)
            panel_curve(&panel, x, (double[2]){level, level}, 2, panel_limit_colour, true);
    }
}

static void draw_impulse(const struct plot *plot)
{
    const struct achieved *a = plot->achieved;
    struct curve taps = {.y = (double *)(uintptr_t)plot->taps, .n = a->n};
    double range[2];
    curve_range(&taps, range);
    const double low = fmin(range[0], 0), high = fmax(range[1], 0);
    const double space = 0.06 * (high > low ? high - low : 1), last = (double)(a->n - 1);
    const struct panel panel = {plot->cairo,
                                MARGIN,
                                640,
                                WIDTH / 2 - MARGIN - 40,
                                320,
                                {-0.02 * last, 1.02 * last, false, "frame"},
                                {low - space, high + space, false, "tap"},
                                a->specification->ways > 1 ? "Impulse response of the sum"
                                                           : "Impulse response"};
    panel_frame(&panel);
    if (a->n <= MAX_STEMS) {
        panel_stems(&panel, plot->taps, a->n, panel_curve_colour);
        return;
    }
    panel_curve(&panel, plot->frames.x, plot->taps, a->n, panel_curve_colour, false);
}

static void draw_delay(const struct plot *plot)
{
    double range[2];
    curve_range(&plot->curves.delay, range);
    // A constant delay is a line in the middle, not the magnified rounding errors of it.
    const double space = fmax(0.1 * (range[1] - range[0]), 1);
    const struct panel panel = {plot->cairo,
                                WIDTH / 2 + MARGIN,
                                640,
                                WIDTH / 2 - MARGIN - 40,
                                320,
                                frequency_axis(plot),
                                {range[0] - space, range[1] + space, false, "frames"},
                                "Group delay"};
    panel_frame(&panel);
    panel_curve(&panel, plot->curves.delay.x, plot->curves.delay.y, plot->curves.delay.n,
                panel_curve_colour, false);
}

static void draw_equalizer_heading(const struct plot *plot, const struct picture *picture)
{
    const struct achieved *a = plot->achieved;
    const struct partita_equalizer_result *r = &a->specification->equalizer.result;
    const size_t ways = a->specification->ways;
    char heading[160], text[160];
    snprintf(heading, sizeof heading,
             ways > 1 ? "Crossover, %zu taps, %zu ways" : "Equalizer, %zu taps", a->n, ways);
    snprintf(text, sizeof text, "gain up to %.2f dB, %s deviates by %.3g dB, tail %.1f dB", r->gain,
             ways > 1 ? "sum" : "magnitude", r->deviation, r->tail);
    picture_heading(picture, MARGIN, heading, text);
}

static void draw_heading(const struct plot *plot, const struct picture *picture)
{
    static const char *const names[] = {
        [PARTITA_DESIGN_LOW_PASS] = "Low pass",
        [PARTITA_DESIGN_HIGH_PASS] = "High pass",
        [PARTITA_DESIGN_BAND_PASS] = "Band pass",
        [PARTITA_DESIGN_BAND_STOP] = "Band stop",
        [PARTITA_DESIGN_HILBERT] = "Hilbert transformer",
        [PARTITA_DESIGN_DIFFERENTIATOR] = "Differentiator",
        [PARTITA_DESIGN_RAISED_COSINE] = "Raised cosine",
        [PARTITA_DESIGN_ROOT_RAISED_COSINE] = "Root raised cosine",
        [PARTITA_DESIGN_TABLE] = "Response of a table",
    };
    const struct achieved *a = plot->achieved;
    const struct partita_design *d = &a->specification->design;
    char heading[160], text[160], attenuation[64] = "";
    snprintf(heading, sizeof heading, "%s, %zu taps, %s%s", names[d->kind], a->n,
             d->method == PARTITA_DESIGN_EQUIRIPPLE ? "equiripple" : "Kaiser's window",
             d->minimum_phase ? ", minimum phase" : "");
    if (isfinite(a->result.attenuation))
        snprintf(attenuation, sizeof attenuation, "attenuation %.1f dB, ", a->result.attenuation);
    snprintf(text, sizeof text, "ripple %.3g dB, %sdelay %.6g frames", a->result.ripple,
             attenuation, a->result.delay);
    picture_heading(picture, MARGIN, heading, text);
}

// Curves of all ways, and taps of their sum.
static bool open_ways(struct plot *plot, const struct axis *axis, double *sum)
{
    const struct achieved *a = plot->achieved;
    if (!sum) return false;
    plot->taps = memset(sum, 0, a->n * sizeof *sum);
    for (size_t i = 0; i < a->specification->ways; i++) {
        const double *taps = a->taps + i * a->n;
        if (!taps_curves_open(&plot->ways[i], axis, plot->rate * plot->scale, taps, a->n, 0))
            return false;
        for (size_t k = 0; k < a->n; k++) sum[k] += taps[k];
    }
    return true;
}

bool plot_write(const struct achieved *achieved, struct fault *fault)
{
    struct plot plot = {.achieved = achieved, .taps = achieved->taps};
    const size_t ways = achieved->specification->ways;
    double *const sum = ways > 1 ? malloc(achieved->n * sizeof *sum) : NULL;
    struct picture picture;
    const struct partita_design *d = &achieved->specification->design;
    const size_t n = achieved->n;
    choose_unit(&plot);
    picture_open(&picture, WIDTH, HEIGHT);
    plot.cairo = picture.cairo;
    const struct axis axis = frequency_axis(&plot);
    const bool good =
        (ways == 1 || open_ways(&plot, &axis, sum)) &&
        taps_curves_open(&plot.curves, &axis, plot.rate * plot.scale, plot.taps, n, 0) &&
        (!is_table(&plot) ||
         curve_of_points(&plot.wanted, &axis, plot.scale, d->table, d->table_count)) &&
        curve_open(&plot.frames, n);
    if (good) {
        for (size_t i = 0; i < n; i++) plot.frames.x[i] = (double)i;
        (equalizes(&plot) ? draw_equalizer_heading : draw_heading)(&plot, &picture);
        draw_gain(&plot);
        draw_delay(&plot);
        draw_impulse(&plot);
    } else {
        fault_set(fault, "out of memory");
    }
    taps_curves_close(&plot.curves);
    for (size_t i = 0; i < ways; i++) taps_curves_close(&plot.ways[i]);
    free(sum);
    free(plot.wanted.x);
    free(plot.frames.x);
    return picture_close(&picture, good, achieved->settings->plot, fault);
}
