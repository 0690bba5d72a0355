// SPDX-License-Identifier: MIT
#include "design.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "picture/picture.h"

enum {
    WIDTH = 1400,
    HEIGHT = 1040,
    MARGIN = 90, // of the panels, left
    HALF = WIDTH / 2 - MARGIN - 40,
    MAX_STEMS = 128,
    MAX_WAYS = PARTITA_MAX_BANDS,
    LOW_DIVISOR = 4800, // equalizers are drawn from rate / 4800 on
};
static const struct colour pass_colour = {0.93, 0.97, 0.93}, stop_colour = {0.98, 0.94, 0.92};

struct plot {
    const struct job *job;
    cairo_t *cairo;
    bool is_table;
    struct axis x; // of frequencies, which are multiplied by `scale`
    double scale;
    struct curve impulse;                      // of a crossover the sum of all ways
    struct taps_curves curves, ways[MAX_WAYS]; // ways: of a crossover
    struct curve wanted;                       // in dB
};

// All frequencies, or for a table from an octave below its first point on.
static void choose_frequencies(struct plot *plot)
{
    const struct job *job = plot->job;
    const double rate = job->settings.rate > 0 ? job->settings.rate : 1;
    plot->scale = rate >= 2e6 ? 1e-6 : rate >= 2e3 ? 1e-3 : 1;
    plot->x = (struct axis){.high = rate / 2 * plot->scale,
                            .logarithmic = plot->is_table || plot->job->equalizes,
                            .label = rate >= 2e6 ? "frequency in MHz" : "frequency in kHz"};
    if (rate < 2e3)
        plot->x.label = job->settings.rate > 0 ? "frequency in Hz" : "frequency / sample rate";
    if (plot->job->equalizes) plot->x.low = rate / LOW_DIVISOR * plot->scale;
    if (plot->is_table) plot->x.low = job->design.table[0].frequency / 2 * plot->scale;
}

// From below the stop bands, or what a table wants, to above the largest gain.
static struct axis gain_axis(const struct plot *plot)
{
    const struct job *job = plot->job;
    struct axis axis = {.label = "gain in dB"};
    double range[2], wanted[2];
    curve_range(&plot->curves.gain, range);
    double low = range[1] - 60;
    if (job->design.kind != PARTITA_DESIGN_HILBERT && isfinite(job->result.attenuation))
        low = range[1] - job->result.attenuation - 40;
    if (plot->job->equalizes && job->crossover.bands == 1) low = fmax(low, range[0] - 1);
    if (plot->is_table) {
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
    const struct job *job = plot->job;
    const struct panel panel = {plot->cairo, MARGIN,          110,        WIDTH - MARGIN - 40, 420,
                                plot->x,     gain_axis(plot), "Magnitude"};
    struct band bands[MAX_BANDS];
    const int n = plot->is_table || plot->job->equalizes ? 0 : achieved_bands(job, bands);
    for (int i = 0; i < n; i++)
        panel_fill(&panel, bands[i].begin * plot->scale, bands[i].end * plot->scale,
                   bands[i].pass ? pass_colour : stop_colour);
    panel_frame(&panel);
    const bool sum = job->crossover.bands > 1;
    panel_curve(&panel, &plot->curves.gain, sum ? panel_limit_colour : panel_curve_colour, sum);
    for (size_t i = 0; sum && i < job->crossover.bands; i++)
        panel_curve(&panel, &plot->ways[i].gain, panel_curve_colour, false);
    if (plot->is_table) panel_curve(&panel, &plot->wanted, panel_limit_colour, true);
    double range[2];
    curve_range(&plot->curves.gain, range);
    for (int i = 0; i < n; i++) {
        const double level = range[1] - job->result.attenuation;
        double x[2] = {bands[i].begin * plot->scale, bands[i].end * plot->scale};
        const struct curve line = {x, (double[2]){level, level}, 2};
        if (!bands[i].pass) panel_curve(&panel, &line, panel_limit_colour, true);
    }
}

static void draw_impulse(const struct plot *plot)
{
    double range[2];
    curve_range(&plot->impulse, range);
    const double low = fmin(range[0], 0), high = fmax(range[1], 0);
    const double space = 0.06 * (high > low ? high - low : 1);
    const double last = (double)(plot->impulse.n - 1);
    const bool sum = plot->job->crossover.bands > 1;
    const struct axis x = {-0.02 * last, 1.02 * last, false, "frame"},
                      y = {low - space, high + space, false, "tap"};
    const struct panel panel = {
        plot->cairo, MARGIN, 640, HALF,
        320,         x,      y,   sum ? "Impulse response of the sum" : "Impulse response"};
    panel_frame(&panel);
    if (plot->impulse.n > MAX_STEMS) panel_curve(&panel, &plot->impulse, panel_curve_colour, false);
    for (size_t i = 0; plot->impulse.n <= MAX_STEMS && i < plot->impulse.n; i++) {
        double taps[2] = {0, plot->impulse.y[i]};
        const struct curve stem = {(double[2]){(double)i, (double)i}, taps, 2};
        panel_curve(&panel, &stem, panel_curve_colour, false);
    }
}

static void draw_delay(const struct plot *plot)
{
    const struct curve *delay = &plot->curves.delay;
    const struct panel panel = {
        plot->cairo,  WIDTH / 2 + MARGIN, 640, HALF, 320, plot->x, curve_axis(delay, 1, "frames"),
        "Group delay"};
    panel_frame(&panel);
    panel_curve(&panel, delay, panel_curve_colour, false);
}

static void draw_heading(const struct plot *plot, const struct picture *picture)
{
    const struct job *job = plot->job;
    const struct partita_design *d = &job->design;
    const struct partita_equalizer_result *e = &job->equalized;
    const size_t ways = job->crossover.bands;
    char heading[160], text[160], attenuation[64] = "";
    const int n = snprintf(heading, sizeof heading, "%s, %zu taps", job->kind, job->n);
    if (ways > 1) snprintf(heading + n, sizeof heading - (size_t)n, ", %zu ways", ways);
    if (!plot->job->equalizes)
        snprintf(heading + n, sizeof heading - (size_t)n, ", %s%s", achieved_method(d),
                 d->minimum_phase ? ", minimum phase" : "");
    if (isfinite(job->result.attenuation))
        snprintf(attenuation, sizeof attenuation, "attenuation %.1f dB, ", job->result.attenuation);
    snprintf(text, sizeof text, "ripple %.3g dB, %sdelay %.6g frames", job->result.ripple,
             attenuation, job->result.delay);
    if (plot->job->equalizes)
        snprintf(text, sizeof text, "gain up to %.2f dB, %s deviates by %.3g dB, tail %.1f dB",
                 e->gain, ways > 1 ? "sum" : "magnitude", e->deviation, e->tail);
    picture_heading(picture, MARGIN, heading, text);
}

static bool open_curves(struct plot *plot)
{
    const struct job *job = plot->job;
    const struct partita_design *d = &job->design;
    const size_t n = job->n, ways = job->crossover.bands;
    const double rate = 2 * plot->x.high;
    const struct curve *sum = &plot->impulse;
    if (!curve_open(&plot->impulse, n)) return false;
    for (size_t i = 0; i < n; i++) {
        sum->x[i] = (double)i;
        sum->y[i] = 0;
        for (size_t way = 0; way < ways; way++) sum->y[i] += job->taps[way * n + i];
    }
    for (size_t i = 0; ways > 1 && i < ways; i++)
        if (!taps_curves_open(&plot->ways[i], &plot->x, rate, job->taps + i * n, n, 0))
            return false;
    return taps_curves_open(&plot->curves, &plot->x, rate, sum->y, n, 0) &&
           (!plot->is_table ||
            curve_of_points(&plot->wanted, &plot->x, plot->scale, d->table, d->table_count));
}

bool plot_write(const struct job *job, struct fault *fault)
{
    struct plot plot = {.job = job, .is_table = job->design.kind == PARTITA_DESIGN_TABLE};
    struct picture picture;
    choose_frequencies(&plot);
    picture_open(&picture, WIDTH, HEIGHT);
    plot.cairo = picture.cairo;
    const bool good = open_curves(&plot) || fault_set(fault, "out of memory");
    if (good) {
        draw_heading(&plot, &picture);
        draw_gain(&plot);
        draw_delay(&plot);
        draw_impulse(&plot);
    }
    free(plot.curves.gain.x);
    for (size_t i = 0; i < job->crossover.bands; i++) free(plot.ways[i].gain.x);
    free(plot.impulse.x);
    free(plot.wanted.x);
    return picture_close(&picture, good, job->settings.plot, fault);
}
