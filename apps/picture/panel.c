// SPDX-License-Identifier: MIT
#include "panel.h"

#include <math.h>
#include <stdio.h>

enum {
    NUMBER_SIZE = 15,
    LABEL_SIZE = 16,
    TITLE_SIZE = 17,
    LABEL_DISTANCE = 62,
    NARROW_DECADE = 160
};
#define PI 3.14159265358979323846

const struct colour panel_ink = {0.13, 0.15, 0.18}, panel_curve_colour = {0.10, 0.36, 0.68},
                    panel_limit_colour = {0.78, 0.26, 0.18};
static const struct colour grid_colour = {0.86, 0.87, 0.89};

static void set_colour(cairo_t *cairo, struct colour colour)
{
    cairo_set_source_rgb(cairo, colour.red, colour.green, colour.blue);
}

double panel_step(double range, int count)
{
    const double unit = pow(10, floor(log10(range / count))), ratio = range / count / unit;
    if (ratio <= 1) return unit;
    if (ratio <= 2) return 2 * unit;
    return ratio <= 5 ? 5 * unit : 10 * unit;
}

// 0 at the low end of an axis, 1 at the high end.
static double axis_share(const struct axis *axis, double value)
{
    if (axis->logarithmic) return log(value / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

static double pixel_x(const struct panel *panel, double value)
{
    return panel->left + panel->width * axis_share(&panel->x, value);
}

static double pixel_y(const struct panel *panel, double value)
{
    return panel->top + panel->height * (1 - axis_share(&panel->y, value));
}

void panel_text(cairo_t *cairo, const char *text, double size, double x, double y, int side)
{
    cairo_text_extents_t extents;
    cairo_set_font_size(cairo, size);
    cairo_text_extents(cairo, text, &extents);
    cairo_move_to(cairo, x - (side + 1) * extents.x_advance / 2, y);
    cairo_show_text(cairo, text);
}

static void clip(const struct panel *panel)
{
    cairo_save(panel->cairo);
    cairo_rectangle(panel->cairo, panel->left, panel->top, panel->width, panel->height);
    cairo_clip(panel->cairo);
}

void panel_fill(const struct panel *panel, double begin, double end, struct colour colour)
{
    const double from = pixel_x(panel, fmax(begin, panel->x.low)), to = pixel_x(panel, end);
    set_colour(panel->cairo, colour);
    cairo_rectangle(panel->cairo, from, panel->top, to - from, panel->height);
    cairo_fill(panel->cairo);
}

static void draw_line(cairo_t *cairo, double x0, double y0, double x1, double y1)
{
    // In the middle of pixels, so that it is one pixel wide.
    cairo_move_to(cairo, floor(x0) + 0.5, floor(y0) + 0.5);
    cairo_line_to(cairo, floor(x1) + 0.5, floor(y1) + 0.5);
    cairo_stroke(cairo);
}

static void draw_mark(const struct panel *panel, bool across, double value, const char *text)
{
    cairo_t *c = panel->cairo;
    const double bottom = panel->top + panel->height;
    set_colour(c, grid_colour);
    if (across) {
        const double x = pixel_x(panel, value);
        draw_line(c, x, panel->top, x, bottom);
        set_colour(c, panel_ink);
        panel_text(c, text, NUMBER_SIZE, x, bottom + 21, 0);
    } else {
        const double y = pixel_y(panel, value);
        draw_line(c, panel->left, y, panel->left + panel->width, y);
        set_colour(c, panel_ink);
        panel_text(c, text, NUMBER_SIZE, panel->left - 9, y + 5, 1);
    }
}

static void draw_linear_marks(const struct panel *panel, bool across)
{
    const struct axis *axis = across ? &panel->x : &panel->y;
    const double step =
        panel_step(axis->high - axis->low, (int)(across ? panel->width / 110 : panel->height / 45));
    char text[32];
    const double first = ceil(axis->low / step - 1e-9), last = floor(axis->high / step + 1e-9);
    for (double i = first; i <= last; i++) {
        snprintf(text, sizeof text, "%.6g", i * step + 0.0); // not -0
        draw_mark(panel, across, i * step, text);
    }
}

// 1, 2 and 5 times powers of 10; in narrow decades only these have numbers.
static void draw_logarithmic_marks(const struct panel *panel)
{
    static const double multiples[] = {1, 2, 5};
    const struct axis *axis = &panel->x;
    const bool narrow = panel->width / log10(axis->high / axis->low) < NARROW_DECADE;
    char text[32];
    for (double unit = pow(10, floor(log10(axis->low))); unit <= axis->high; unit *= 10) {
        for (int i = 0; i < 3; i++) {
            const double value = multiples[i] * unit;
            if (value < axis->low * (1 - 1e-9) || value > axis->high * (1 + 1e-9)) continue;
            snprintf(text, sizeof text, "%.6g", value);
            draw_mark(panel, true, value, narrow && i ? "" : text);
        }
    }
}

void panel_frame(const struct panel *panel)
{
    cairo_t *c = panel->cairo;
    const double bottom = panel->top + panel->height, middle = panel->left + panel->width / 2;
    cairo_set_line_width(c, 1);
    if (panel->x.logarithmic) draw_logarithmic_marks(panel);
    else draw_linear_marks(panel, true);
    draw_linear_marks(panel, false);
    set_colour(c, panel_ink);
    cairo_rectangle(c, floor(panel->left) + 0.5, floor(panel->top) + 0.5, floor(panel->width),
                    floor(panel->height));
    cairo_stroke(c);
    panel_text(c, panel->x.label, LABEL_SIZE, middle, bottom + 46, 0);
    cairo_save(c);
    cairo_translate(c, panel->left - LABEL_DISTANCE, panel->top + panel->height / 2);
    cairo_rotate(c, -PI / 2);
    panel_text(c, panel->y.label, LABEL_SIZE, 0, 0, 0);
    cairo_restore(c);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    panel_text(c, panel->title, TITLE_SIZE, panel->left, panel->top - 12, -1);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
}

void panel_curve(const struct panel *panel, const struct curve *curve, struct colour colour,
                 bool dashed)
{
    cairo_t *c = panel->cairo;
    const double dashes[] = {7, 5}, range = panel->y.high - panel->y.low;
    clip(panel);
    for (size_t i = 0; i < curve->n; i++) {
        // Far outside of the panel coordinates lose their precision, or are infinite.
        const double y = fmin(fmax(curve->y[i], panel->y.low - range), panel->y.high + range);
        if (isnan(curve->y[i])) cairo_new_sub_path(c); // at the next point
        else cairo_line_to(c, pixel_x(panel, curve->x[i]), pixel_y(panel, y));
    }
    set_colour(c, colour);
    cairo_set_line_width(c, 1.6);
    cairo_set_line_join(c, CAIRO_LINE_JOIN_ROUND);
    cairo_set_dash(c, dashes, dashed ? 2 : 0, 0);
    cairo_stroke(c);
    cairo_restore(c); // of clip, with width and dashes
}

void panel_stems(const struct panel *panel, const struct curve *curve, struct colour colour)
{
    cairo_t *c = panel->cairo;
    clip(panel);
    set_colour(c, colour);
    cairo_set_line_width(c, 1.2);
    for (size_t i = 0; i < curve->n; i++) {
        const double x = pixel_x(panel, curve->x[i]), y = pixel_y(panel, curve->y[i]);
        cairo_move_to(c, x, pixel_y(panel, 0));
        cairo_line_to(c, x, y);
        cairo_stroke(c);
        cairo_arc(c, x, y, 2.6, 0, 2 * PI);
        cairo_fill(c);
    }
    cairo_restore(c);
}
