// SPDX-License-Identifier: MIT
// One diagram of a picture: axes with round numbers, curves in the units of the axes.
#ifndef PARTITA_APPS_PANEL_H
#define PARTITA_APPS_PANEL_H

#include <cairo.h>
#include <stdbool.h>
#include <stddef.h>

struct axis {
    double low, high;
    bool logarithmic;
    const char *label;
};

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

// Dots on stems from 0.
void panel_stems(const struct panel *panel, const struct curve *curve, struct colour colour);

#endif
