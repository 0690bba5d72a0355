// SPDX-License-Identifier: MIT
#include "chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "io/frames.h"
#include "picture/picture.h"

enum {
    WIDTH = 1400,
    ROW = 470,
    HEAD = 90,
    MARGIN = 90,
    PANEL = 330,
    PHASE_LEFT = 690,
    DELAY_LEFT = 1050
};
enum { MAX_ROWS = 32, FRACTION = 6 };
static const struct colour before_colour = {0.62, 0.64, 0.68};

// Of one channel; decibels of responses are in relation to the level of the target.
struct curves {
    struct taps_curves before, after, filter;
    struct curve target;
};

// The mean response and what the filter makes of it, smoothed.
static bool fill_curves(struct curves *ret, const struct chart *chart, size_t channel,
                        const struct axis *axis)
{
    const struct partita_options options = {.threads = 1, .allocator = memory_allocator()};
    struct partita_correction c = *chart->correction;
    const double *const taps = chart->taps + channel * c.taps, rate = c.rate;
    const size_t n = c.frames, n_after = n + c.taps - 1;
    double *const before = memory_allocate((n + n_after) * sizeof *before);
    double *const after = before + n;
    c.smoothing = 0;
    bool good = before && !partita_correction_average(
                              &c, chart->responses + channel * c.positions * n, before);
    c.smoothing = FRACTION;
    c.window = 0;
    c.positions = 1;
    good = good && !partita_convolve(PARTITA_F64, after, before, n, taps, c.taps, NULL, &options) &&
           !partita_correction_average(&c, before, before);
    c.frames = n_after;
    good = good && !partita_correction_average(&c, after, after) &&
           taps_curves_open(&ret->before, axis, rate, before, n, 0) &&
           taps_curves_open(&ret->after, axis, rate, after, n_after, 0) &&
           curve_of_points(&ret->target, axis, 1, c.target, c.target_count);
    memory_free(before);
    for (size_t i = 0; good && i < ret->before.gain.n; i++) {
        ret->before.gain.y[i] -= chart->reports[channel].level;
        ret->after.gain.y[i] -= chart->reports[channel].level;
    }
    return good;
}

struct line {
    const char *name;
    struct colour colour;
    const struct curve *curve;
};

// Lines in a panel of row `row`, the last of several dashed, with their names above it.
static void draw_lines(struct panel panel, size_t row, const struct line *lines, int n)
{
    panel.top = HEAD + 30 + (double)row * ROW;
    panel.height = PANEL;
    panel_frame(&panel);
    for (int i = 0; i < n; i++) {
        const struct colour colour = lines[i].colour;
        panel_curve(&panel, lines[i].curve, colour, i > 0 && i == n - 1);
        cairo_set_source_rgb(panel.cairo, colour.red, colour.green, colour.blue);
        panel_text(panel.cairo, lines[i].name, 17, panel.left + 480 + 90 * i, panel.top - 12, -1);
    }
}

// A delay in ms.
static void draw_delay(cairo_t *cairo, const struct axis *axis, size_t row, struct curve *delay,
                       double rate)
{
    for (size_t i = 0; i < delay->n; i++) delay->y[i] *= 1e3 / rate;
    const struct panel panel = {.cairo = cairo,
                                .left = DELAY_LEFT,
                                .width = WIDTH - DELAY_LEFT - 40,
                                .x = *axis,
                                .y = curve_axis(delay, 0.1, "ms"),
                                .title = "Group delay"};
    draw_lines(panel, row, &(struct line){"", panel_limit_colour, delay}, 1);
}

static void draw_correction(const struct partita_correction *given, cairo_t *cairo,
                            const struct curves *c, size_t channel, const struct axis *axis,
                            const char *title)
{
    const struct line lines[] = {{"before", before_colour, &c->before.gain},
                                 {"filter", panel_limit_colour, &c->filter.gain},
                                 {"after", panel_curve_colour, &c->after.gain},
                                 {"target, dashed", panel_ink, &c->target}};
    const struct panel gain = {.cairo = cairo,
                               .left = MARGIN,
                               .width = DELAY_LEFT - 2 * MARGIN,
                               .x = *axis,
                               .y = {-30, 15 + 5 * ceil(given->boost / 5), false, "dB"},
                               .title = title};
    draw_lines(gain, channel, lines, 4);
}

static void draw_response(cairo_t *cairo, const struct taps_curves *c, size_t channel,
                          const struct axis *axis, const char *title)
{
    double range[2];
    curve_range(&c->gain, range);
    const double high = 5 * ceil(range[1] / 5);
    const struct panel gain = {.cairo = cairo,
                               .left = MARGIN,
                               .width = PHASE_LEFT - 2 * MARGIN,
                               .x = *axis,
                               .y = {high - 50, high, false, "dB"},
                               .title = title};
    const struct panel phase = {.cairo = cairo,
                                .left = PHASE_LEFT,
                                .width = DELAY_LEFT - PHASE_LEFT - MARGIN,
                                .x = *axis,
                                .y = {-180, 180, false, "degrees"},
                                .title = "Phase after the peak"};
    draw_lines(gain, channel, &(struct line){"", panel_curve_colour, &c->gain}, 1);
    draw_lines(phase, channel, &(struct line){"", panel_curve_colour, &c->phase}, 1);
}

static bool draw_channel(const struct chart *chart, cairo_t *cairo, size_t channel)
{
    const struct partita_correction *given = chart->correction;
    const double low = !given || !(given->low > 0) ? fmin(20, chart->rate / 50) : given->low;
    const struct axis axis = {low / 2, chart->rate / 2, true, "frequency in Hz"};
    struct curves curves = {.target.x = NULL};
    char title[64];
    snprintf(title, sizeof title, "Channel %zu of %zu", channel + 1, chart->channels);
    const double *const taps = chart->taps + channel * chart->n;
    const bool good = taps_curves_open(&curves.filter, &axis, chart->rate, taps, chart->n,
                                       given ? 0 : frames_peak(taps, chart->n)) &&
                      (!given || fill_curves(&curves, chart, channel, &axis));
    if (good && given) draw_correction(given, cairo, &curves, channel, &axis, title);
    else if (good) draw_response(cairo, &curves.filter, channel, &axis, title);
    if (good) draw_delay(cairo, &axis, channel, &curves.filter.delay, chart->rate);
    free(curves.before.gain.x);
    free(curves.after.gain.x);
    free(curves.filter.gain.x);
    free(curves.target.x);
    return good;
}

bool chart_write(const struct chart *chart, const char *path, struct fault *fault)
{
    const struct partita_correction *c = chart->correction;
    const size_t shown = chart->channels < MAX_ROWS ? chart->channels : MAX_ROWS;
    struct picture picture;
    char text[128];
    bool good = true;
    picture_open(&picture, WIDTH, HEAD + (double)shown * ROW);
    snprintf(text, sizeof text, "%zu channel%s, %zu frames", chart->channels,
             chart->channels == 1 ? "" : "s", chart->n);
    if (c)
        snprintf(text, sizeof text,
                 "%zu position%s, %zu taps; responses are smoothed by 1/%d octave", c->positions,
                 c->positions == 1 ? "" : "s", c->taps, FRACTION);
    picture_heading(&picture, MARGIN, c ? "Correction" : "Response", text);
    for (size_t i = 0; good && i < shown; i++)
        good = draw_channel(chart, picture.cairo, i) || memory_fault(fault, "the picture %s", path);
    return picture_close(&picture, good, path, fault);
}
