// SPDX-License-Identifier: MIT
// The cost of layers as direct sums or matrix products, by counting multiply-adds (or loads where
// these are the limit) and the samples and rows that are packed.
#ifndef PARTITA_CONV_COST_H
#define PARTITA_CONV_COST_H

#include "core/ledger.h"
#include "pass.h"

// Multiply-adds, or work that takes as long, per term and position for `out` channels in rectangles
// of at most `width` vectors. Rectangles of few channels are limited by loads (`loads` for each
// vector of inputs, one for each weight) or by the number of independent sums.
double conv_cost_channels(size_t out, size_t width, double loads);

// Adds the packing of n channels of a box, `times` times.
void conv_cost_pack(struct work *work, const struct conv_pass *pass, double n, double times);

// Predicted relative L2 error of sums of that many terms, of which `segment` are summed before a
// sum is rounded: the error of a segment's sum, then that of the sum of segments.
double conv_cost_error(const struct shape *shape, double terms, double segment);

// Fills the estimate except for bytes: operations, seconds and error of sums of that many terms
// each.
void conv_cost_estimate(const struct request *request, double terms, const struct ledger *ledger,
                        struct estimate *ret);

#endif
