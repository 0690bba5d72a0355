// SPDX-License-Identifier: MIT
#include "picture.h"

#include <math.h>
#include <stdlib.h>

#include "io/bytes/bytes.h"
#include "io/bytes/temp.h"

enum { PIXELS = 1400, DENSE_TAPS = 20000 };

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
    cairo_set_source_rgb(c, panel_ink.red, panel_ink.green, panel_ink.blue);
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
