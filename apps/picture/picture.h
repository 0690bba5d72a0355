// SPDX-License-Identifier: MIT
// Pictures of filters and responses as PNG: diagrams, and the curves that they show.
#ifndef PARTITA_APPS_PICTURE_H
#define PARTITA_APPS_PICTURE_H

#include <cairo.h>

#include "cli/options.h"

struct axis {
    double low, high;
    bool logarithmic;
    const char *label;
};

// A diagram: axes with round numbers, curves in the units of the axes.
struct panel {
    cairo_t *cairo;
    double left, top, width, height; // of the area of the curves, in pixels
    struct axis x, y;
    const char *title;
};

struct curve {
    double *x, *y;
    size_t n;
};

struct colour {
    double red, green, blue;
};

extern const struct colour panel_ink, panel_curve_colour, panel_limit_colour;

// The distance between about `count` lines of a grid: 1, 2 or 5 times a power of 10.
double panel_step(double range, int count);

// Text of this size that begins (-1), is centred (0) or ends (1) at x.
void panel_text(cairo_t *cairo, const char *text, double size, double x, double y, int side);

// Fills the area between two values of x.
void panel_fill(const struct panel *panel, double begin, double end, struct colour colour);

// Draws grid, numbers, labels and title, over what was filled.
void panel_frame(const struct panel *panel);

// A curve; a y that is NaN interrupts it.
void panel_curve(const struct panel *panel, const struct curve *curve, struct colour colour,
                 bool dashed);

struct picture {
    cairo_t *cairo;
    cairo_surface_t *surface;
};

// A white picture with a heading in bold and a line below it, both from `left` on.
void picture_open(struct picture *ret, double width, double height);
void picture_heading(const struct picture *picture, double left, const char *heading,
                     const char *text);

// Writes the picture, which appears only when it is complete, unless `good` is false; then its
// cause is in `fault`. Releases it.
bool picture_close(struct picture *picture, bool good, const char *path, struct fault *fault);

// Reserves n points, x and y in one piece of memory. False: out of memory.
bool curve_open(struct curve *curve, size_t n);

// Points of decibels, with frequencies times `scale`, and continued to the ends of the axis. False:
// out of memory.
bool curve_of_points(struct curve *ret, const struct axis *axis, double scale,
                     const struct partita_design_point *points, size_t n);

// The smallest and largest value of a curve; values[0] and [1] when all are NaN.
void curve_range(const struct curve *curve, double range[2]);

// An axis of y that shows a whole curve and at least this space around it, so that a constant is a
// line in the middle, not the magnified rounding errors of it.
struct axis curve_axis(const struct curve *curve, double space, const char *label);

// What taps do over frequency. Delay and phase are left out 40 dB below the largest gain, where
// they jump.
struct taps_curves {
    struct curve gain, delay, phase; // in dB, frames and degrees from -180 to 180
};

// At frequencies of an axis, of which `rate` is the sample rate; time 0 lies at frame `origin`.
// False: out of memory. All have one x, gain.x, which the caller frees in any case.
bool taps_curves_open(struct taps_curves *ret, const struct axis *axis, double rate,
                      const double *taps, size_t n_taps, size_t origin);

#endif
