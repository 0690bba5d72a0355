// SPDX-License-Identifier: MIT
// Pictures of filters and responses as PNG, and what their diagrams (panel.h) show.
#ifndef PARTITA_APPS_PICTURE_H
#define PARTITA_APPS_PICTURE_H

#include "cli/options.h"
#include "panel.h"

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
