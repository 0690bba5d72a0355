// SPDX-License-Identifier: MIT
#include "chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "picture/picture.h"

enum { WIDTH = 1400, ROW = 470, HEAD = 90, MARGIN = 90, PANEL = 330, DELAY_LEFT = 1010 };
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
    good = good &&
           !partita_convolve(PARTITA_F64, after, before, n, taps, c.taps,
                             &(struct partita_slice){.mode = PARTITA_FULL}, &options) &&
           !partita_correction_average(&c, before, before);
    c.frames = n_after;
    good = good && !partita_correction_average(&c, after, after) &&
           taps_curves_open(&ret->before, axis, rate, before, n, 0) &&
           taps_curves_open(&ret->after, axis, rate, after, n_after, 0) &&
           taps_curves_open(&ret->filter, axis, rate, taps, c.taps, 0) &&
           curve_of_points(&ret->target, axis, 1, c.target, c.target_count);
    memory_free(before);
    for (size_t i = 0; good && i < ret->before.gain.n; i++) {
        ret->before.gain.y[i] -= chart->reports[channel].level;
        ret->after.gain.y[i] -= chart->reports[channel].level;
        ret->filter.delay.y[i] *= 1e3 / rate;
    }
    return good;
}

static void draw_channel(const struct chart *chart, cairo_t *cairo, const struct curves *c,
                         size_t channel, const struct axis *axis)
{
    const struct {
        const char *name;
        struct colour colour;
        const struct curve *curve;
    } parts[] = {{"before", before_colour, &c->before.gain},
                 {"filter", panel_limit_colour, &c->filter.gain},
                 {"after", panel_curve_colour, &c->after.gain},
                 {"target, dashed", panel_ink, &c->target}};
    const double top = HEAD + 30 + (double)channel * ROW;
    char title[64];
    double delay[2];
    curve_range(&c->filter.delay, delay);
    const double space = fmax(0.1 * (delay[1] - delay[0]), 0.1);
    snprintf(title, sizeof title, "Channel %zu of %zu", channel + 1, chart->channels);
    const struct axis decibels = {-30, 15 + 5 * ceil(chart->correction->boost / 5), false, "dB"};
    const struct axis times = {delay[0] - space, delay[1] + space, false, "ms"};
    const struct panel gain = {cairo, MARGIN, top,      DELAY_LEFT - 2 * MARGIN,
                               PANEL, *axis,  decibels, title};
    const struct panel group = {cairo, DELAY_LEFT, top,   WIDTH - DELAY_LEFT - 40,
                                PANEL, *axis,      times, "Group delay of the filter"};
    panel_frame(&gain);
    for (int i = 0; i < 4; i++) {
        const struct curve *curve = parts[i].curve;
        const struct colour colour = parts[i].colour;
        panel_curve(&gain, curve->x, curve->y, curve->n, colour, i == 3);
        cairo_set_source_rgb(cairo, colour.red, colour.green, colour.blue);
        panel_text(cairo, parts[i].name, 17, MARGIN + 480 + 90 * i, top - 12, -1);
    }
    panel_frame(&group);
    panel_curve(&group, c->filter.delay.x, c->filter.delay.y, c->filter.delay.n, panel_limit_colour,
                false);
}

bool chart_write(const struct chart *chart, const char *path, struct fault *fault)
{
    const struct partita_correction *c = chart->correction;
    const struct axis axis = {(c->low > 0 ? c->low : 20) / 2, c->rate / 2, true, "frequency in Hz"};
    const size_t shown = chart->channels < MAX_ROWS ? chart->channels : MAX_ROWS;
    struct picture picture;
    char text[128];
    bool good = true;
    picture_open(&picture, WIDTH, HEAD + (double)shown * ROW);
    snprintf(text, sizeof text, "%zu position%s, %zu taps; responses are smoothed by 1/%d octave",
             c->positions, c->positions == 1 ? "" : "s", c->taps, FRACTION);
    picture_heading(&picture, MARGIN, "Correction", text);
    for (size_t i = 0; good && i < shown; i++) {
        struct curves curves = {.target.x = NULL};
        good = fill_curves(&curves, chart, i, &axis) || memory_fault(fault, "the picture %s", path);
        if (good) draw_channel(chart, picture.cairo, &curves, i, &axis);
        taps_curves_close(&curves.before);
        taps_curves_close(&curves.after);
        taps_curves_close(&curves.filter);
        free(curves.target.x);
    }
    return picture_close(&picture, good, path, fault);
}
