// SPDX-License-Identifier: MIT
// What summing layers directly or by matrix products costs, by counting: multiply-adds, loads where
// they are the bound, samples and rows that are moved.
#ifndef PARTITA_CONV_COST_H
#define PARTITA_CONV_COST_H

#include "core/plan.h"
#include "pass.h"

struct conv_work {
    double sums;  // multiply-adds of scalars, or loads that take as long
    double moved; // samples
    double rows;  // in which they are packed
};

// Multiply-adds of a term and position for `out` channels in rectangles of at most `width` vectors.
// Rectangles of few channels are bound by loads, of which each vector of inputs takes `loads` and
// each weight one, or by the number of sums in flight.
double conv_cost_channels(size_t out, size_t width, double loads);

// Adds n times the work of one.
void conv_cost_add(struct conv_work *work, const struct conv_work *one, double n);

// Adds the packing of n channels of a box, so many times.
void conv_cost_pack(struct conv_work *work, const struct conv_pass *pass, double n, double times);

// Predicted relative L2 error of sums of so many terms, of which `segment` are summed before a sum
// is rounded: the rounding walk of a segment, then of the segments.
double conv_cost_error(const struct shape *shape, double terms, double segment);

// The whole estimate but bytes: operations, seconds and error of sums of so many terms each.
void conv_cost_estimate(const struct request *request, double terms, const struct conv_work *work,
                        struct estimate *ret);

#endif
