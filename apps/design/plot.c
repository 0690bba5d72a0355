// SPDX-License-Identifier: MIT
// See plot.h. The picture is drawn by cairo.
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"
#include "panel.h"

enum {
    WIDTH = 1400,
    HEIGHT = 1040,
    MARGIN = 90, // of the panels, left
    DENSE_TAPS = 20000,
    MAX_STEMS = 128,
};
static const struct colour pass_colour = {0.93, 0.97, 0.93}, stop_colour = {0.98, 0.94, 0.92};

// A curve over frequency; y may be NaN.
struct curve {
    double *x, *y;
    size_t n;
};

struct plot {
    const struct achieved *achieved;
    cairo_t *cairo;
    double *ramp;       // taps[i] * i, for the group delay
    double rate, scale; // scale: of frequencies on the axis
    const char *unit;
    struct curve gain, delay, wanted; // in dB, frames, dB
};

bool plot_check(const struct settings *settings, struct fault *fault)
{
    const char *const name = settings->plot, *const end = name ? strrchr(name, '.') : NULL;
    if (!name || (end && strcasecmp(end, ".png") == 0) || temp_is_special(name)) return true;
    return fault_set(fault, "--plot %s: the picture is a PNG; use a name that ends with .png",
                     name);
}

static bool is_table(const struct plot *plot)
{
    return plot->achieved->specification->design.kind == PARTITA_DESIGN_TABLE;
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
    if (!is_table(plot)) return axis;
    axis.logarithmic = true;
    axis.low = plot->achieved->specification->design.table[0].frequency / 2 * plot->scale;
    return axis;
}

static double axis_value(const struct axis *axis, double share)
{
    if (axis->logarithmic) return axis->low * pow(axis->high / axis->low, share);
    return axis->low + share * (axis->high - axis->low);
}

static bool curve_open(struct curve *curve, size_t n)
{
    curve->x = malloc(2 * n * sizeof *curve->x);
    curve->y = curve->x + n;
    curve->n = n;
    return curve->x != NULL;
}

// Gain and group delay, at several frequencies a pixel, as ripples may be narrower. The delay is
// left out 40 dB below the largest gain, where it jumps.
static bool compute_curves(struct plot *plot)
{
    const struct achieved *a = plot->achieved;
    const struct axis axis = frequency_axis(plot);
    const size_t n = WIDTH * (a->n > DENSE_TAPS ? 2 : 8);
    plot->ramp = malloc(a->n * sizeof *plot->ramp);
    if (!plot->ramp || !curve_open(&plot->gain, n) || !curve_open(&plot->delay, n)) return false;
    for (size_t i = 0; i < a->n; i++) plot->ramp[i] = (double)i * a->taps[i];
    double max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double x = axis_value(&axis, (double)i / (double)(n - 1));
        double h[2], ramp[2];
        partita_design_response(a->taps, a->n, x / plot->scale / plot->rate, h);
        partita_design_response(plot->ramp, a->n, x / plot->scale / plot->rate, ramp);
        const double power = h[0] * h[0] + h[1] * h[1];
        plot->gain.x[i] = plot->delay.x[i] = x;
        plot->gain.y[i] = 10 * log10(power);
        plot->delay.y[i] = (ramp[0] * h[0] + ramp[1] * h[1]) / power;
        max = fmax(max, plot->gain.y[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (!(plot->gain.y[i] > max - 40)) plot->delay.y[i] = NAN;
    return true;
}

// The points of a table, continued to the ends of the axis.
static bool compute_wanted(struct plot *plot)
{
    const struct partita_design *d = &plot->achieved->specification->design;
    const struct axis axis = frequency_axis(plot);
    const size_t n = d->table_count;
    if (!is_table(plot)) return true;
    if (!curve_open(&plot->wanted, n + 2)) return false;
    for (size_t i = 0; i < n + 2; i++) {
        const struct partita_design_point *point = &d->table[i ? (i > n ? n - 1 : i - 1) : 0];
        plot->wanted.x[i] = point->frequency * plot->scale;
        plot->wanted.y[i] = point->decibels;
    }
    plot->wanted.x[0] = axis.low;
    plot->wanted.x[n + 1] = axis.high;
    return true;
}

// The smallest and largest value of a curve; values[0] and [1] when all are NaN.
static void find_range(const struct curve *curve, double range[2])
{
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (size_t i = 0; i < curve->n; i++) {
        range[0] = fmin(range[0], curve->y[i]);
        range[1] = fmax(range[1], curve->y[i]);
    }
}

// From below the stop bands, or what a table wants, to above the largest gain.
static struct axis gain_axis(const struct plot *plot)
{
    const struct achieved *a = plot->achieved;
    struct axis axis = {.label = "gain in dB"};
    double range[2], wanted[2];
    find_range(&plot->gain, range);
    double low = range[1] - 60;
    if (a->specification->design.kind != PARTITA_DESIGN_HILBERT && isfinite(a->result.attenuation))
        low = range[1] - a->result.attenuation - 40;
    if (is_table(plot)) {
        find_range(&plot->wanted, wanted);
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
    const int n = is_table(plot) ? 0 : achieved_bands(a, bands);
    for (int i = 0; i < n; i++)
        panel_fill(&panel, bands[i].begin * plot->scale, bands[i].end * plot->scale,
                   bands[i].pass ? pass_colour : stop_colour);
    panel_frame(&panel);
    panel_curve(&panel, plot->gain.x, plot->gain.y, plot->gain.n, panel_curve_colour, false);
    if (is_table(plot))
        panel_curve(&panel, plot->wanted.x, plot->wanted.y, plot->wanted.n, panel_limit_colour,
                    true);
    double range[2];
    find_range(&plot->gain, range);
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
    struct curve taps = {.y = (double *)(uintptr_t)a->taps, .n = a->n};
    double range[2];
    find_range(&taps, range);
    const double low = fmin(range[0], 0), high = fmax(range[1], 0);
    const double space = 0.06 * (high > low ? high - low : 1), last = (double)(a->n - 1);
    const struct panel panel = {plot->cairo,
                                MARGIN,
                                640,
                                WIDTH / 2 - MARGIN - 40,
                                320,
                                {-0.02 * last, 1.02 * last, false, "frame"},
                                {low - space, high + space, false, "tap"},
                                "Impulse response"};
    panel_frame(&panel);
    if (a->n <= MAX_STEMS) {
        panel_stems(&panel, a->taps, a->n, panel_curve_colour);
        return;
    }
    for (size_t i = 0; i < a->n; i++) plot->ramp[i] = (double)i; // the group delay is computed
    panel_curve(&panel, plot->ramp, a->taps, a->n, panel_curve_colour, false);
}

static void draw_delay(const struct plot *plot)
{
    double range[2];
    find_range(&plot->delay, range);
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
    panel_curve(&panel, plot->delay.x, plot->delay.y, plot->delay.n, panel_curve_colour, false);
}

static void draw_heading(const struct plot *plot)
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
    char text[160], attenuation[64] = "";
    cairo_t *c = plot->cairo;
    cairo_set_source_rgb(c, panel_ink.red, panel_ink.green, panel_ink.blue);
    snprintf(text, sizeof text, "%s, %zu taps, %s%s", names[d->kind], a->n,
             d->method == PARTITA_DESIGN_EQUIRIPPLE ? "equiripple" : "Kaiser's window",
             d->minimum_phase ? ", minimum phase" : "");
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    panel_text(c, text, 24, MARGIN, 44, -1);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    if (isfinite(a->result.attenuation))
        snprintf(attenuation, sizeof attenuation, "attenuation %.1f dB, ", a->result.attenuation);
    snprintf(text, sizeof text, "ripple %.3g dB, %sdelay %.6g frames", a->result.ripple,
             attenuation, a->result.delay);
    panel_text(c, text, 17, MARGIN, 70, -1);
}

static cairo_status_t write_bytes(void *sink, const unsigned char *data, unsigned n)
{
    return sink_write(sink, data, n) ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static bool save_picture(cairo_surface_t *surface, const char *path, struct fault *fault)
{
    struct temp temp;
    struct sink sink;
    const int fd = temp_open(&temp, path, false, fault);
    if (fd < 0) return false;
    sink_from_fd(&sink, fd, path);
    const cairo_status_t status = cairo_surface_write_to_png_stream(surface, write_bytes, &sink);
    bool good = sink_close(&sink) || sink_fault(&sink, fault);
    if (good && status)
        good = fault_set(fault, "%s: cannot draw: %s", path, cairo_status_to_string(status));
    good = good && temp_commit(&temp, false, fault);
    if (!good) temp_discard(&temp);
    return good;
}

bool plot_write(const struct achieved *achieved, struct fault *fault)
{
    struct plot plot = {.achieved = achieved};
    choose_unit(&plot);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, WIDTH, HEIGHT);
    plot.cairo = cairo_create(surface);
    bool good = compute_curves(&plot) && compute_wanted(&plot);
    if (good) {
        cairo_set_source_rgb(plot.cairo, 1, 1, 1);
        cairo_paint(plot.cairo);
        draw_heading(&plot);
        draw_gain(&plot);
        draw_delay(&plot);
        draw_impulse(&plot);
        good = save_picture(surface, achieved->settings->plot, fault);
    } else {
        fault_set(fault, "out of memory");
    }
    cairo_destroy(plot.cairo);
    cairo_surface_destroy(surface);
    free(plot.ramp);
    free(plot.gain.x);
    free(plot.delay.x);
    free(plot.wanted.x);
    return good;
}
