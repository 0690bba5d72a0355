// SPDX-License-Identifier: MIT
#include "picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"

enum {
    NUMBER_SIZE = 15,
    LABEL_SIZE = 16,
    TITLE_SIZE = 17,
    LABEL_DISTANCE = 62,
    NARROW_DECADE = 160,
    PIXELS = 1400,
    DENSE_TAPS = 20000
};

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
    const double x = across ? pixel_x(panel, value) : panel->left;
    const double y = across ? panel->top + panel->height : pixel_y(panel, value);
    set_colour(c, grid_colour);
    draw_line(c, x, y, across ? x : x + panel->width, across ? panel->top : y);
    set_colour(c, panel_ink);
    if (across) panel_text(c, text, NUMBER_SIZE, x, y + 21, 0);
    else panel_text(c, text, NUMBER_SIZE, x - 9, y + 5, 1);
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
    cairo_rotate(c, -M_PI / 2);
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

void picture_open(struct picture *ret, double width, double height)
{
    ret->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)width, (int)height);
    ret->cairo = cairo_create(ret->surface);
    cairo_set_source_rgb(ret->cairo, 1, 1, 1);
    cairo_paint(ret->cairo);
}

void picture_heading(const struct picture *picture, double left, const char *heading,
                     const char *text)
{
    cairo_t *c = picture->cairo;
    set_colour(c, panel_ink);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_BOLD);
    panel_text(c, heading, 24, left, 44, -1);
    cairo_select_font_face(c, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    panel_text(c, text, 17, left, 70, -1);
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

bool picture_close(struct picture *picture, bool good, const char *path, struct fault *fault)
{
    good = good && save_picture(picture->surface, path, fault);
    cairo_destroy(picture->cairo);
    cairo_surface_destroy(picture->surface);
    return good;
}

bool curve_open(struct curve *curve, size_t n)
{
    curve->x = malloc(2 * n * sizeof *curve->x);
    curve->y = curve->x + n;
    curve->n = n;
    return curve->x != NULL;
}

bool curve_of_points(struct curve *ret, const struct axis *axis, double scale,
                     const struct partita_design_point *points, size_t n)
{
    if (!curve_open(ret, n + 2)) return false;
    for (size_t i = 0; i < n + 2; i++) {
        const struct partita_design_point *point = &points[i ? (i > n ? n - 1 : i - 1) : 0];
        ret->x[i] = point->frequency * scale;
        ret->y[i] = point->decibels;
    }
    ret->x[0] = axis->low;
    ret->x[n + 1] = axis->high;
    return true;
}

void curve_range(const struct curve *curve, double range[2])
{
    range[0] = INFINITY;
    range[1] = -INFINITY;
    for (size_t i = 0; i < curve->n; i++) {
        range[0] = fmin(range[0], curve->y[i]);
        range[1] = fmax(range[1], curve->y[i]);
    }
}

struct axis curve_axis(const struct curve *curve, double space, const char *label)
{
    double range[2];
    curve_range(curve, range);
    space = fmax(0.1 * (range[1] - range[0]), space);
    return (struct axis){range[0] - space, range[1] + space, false, label};
}

static double axis_value(const struct axis *axis, double share)
{
    if (axis->logarithmic) return axis->low * pow(axis->high / axis->low, share);
    return axis->low + share * (axis->high - axis->low);
}

bool taps_curves_open(struct taps_curves *ret, const struct axis *axis, double rate,
                      const double *taps, size_t n_taps, size_t origin)
{
    // Several frequencies a pixel, as the ripples of a filter may be narrower; half as many as
    // pixels on a logarithmic axis, whose taps are many and smooth.
    const size_t n =
        axis->logarithmic ? PIXELS / 2 : (size_t)PIXELS * (n_taps > DENSE_TAPS ? 2 : 8);
    double *const ramp = malloc(n_taps * sizeof *ramp); // for the group delay
    double *const x = malloc(4 * n * sizeof *x);        // which the curves share
    double max = -INFINITY;
    const bool good = ramp && x;
    *ret = (struct taps_curves){.gain = {x, x + n, n}, {x, x + 2 * n, n}, {x, x + 3 * n, n}};
    for (size_t i = 0; good && i < n_taps; i++) ramp[i] = ((double)i - (double)origin) * taps[i];
    for (size_t i = 0; good && i < n; i++) {
        x[i] = axis_value(axis, (double)i / (double)(n - 1));
        double h[2], slope[2];
        partita_design_response(taps, n_taps, x[i] / rate, h);
        partita_design_response(ramp, n_taps, x[i] / rate, slope);
        const double power = h[0] * h[0] + h[1] * h[1];
        const double turns = atan2(h[1], h[0]) / (2 * M_PI) + x[i] / rate * (double)origin;
        ret->gain.y[i] = 10 * log10(power);
        ret->delay.y[i] = (slope[0] * h[0] + slope[1] * h[1]) / power;
        ret->phase.y[i] = 360 * (turns - rint(turns));
        max = fmax(max, ret->gain.y[i]);
    }
    for (size_t i = 0; good && i < n; i++)
        if (!(ret->gain.y[i] > max - 40)) ret->delay.y[i] = ret->phase.y[i] = NAN;
    free(ramp);
    return good;
}
