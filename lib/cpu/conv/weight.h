// SPDX-License-Identifier: MIT
// Backward weight as a product of matrices (weight.c); see products.h.
#ifndef PARTITA_CONV_WEIGHT_H
#define PARTITA_CONV_WEIGHT_H

#include "passes.h"

extern const struct conv_method products_weight;
void products_weight_run(const struct partita_plan *plan, const struct operands *operands,
                         void *workspace);

#endif
