// SPDX-License-Identifier: MIT
// Layers as products of matrices in all directions (decision 17): forward and backward data by
// products.c, backward weight by weight.c. The functions of a plan, for engines that compute layers
// so; see core/engine.h.
#ifndef PARTITA_CONV_PRODUCTS_H
#define PARTITA_CONV_PRODUCTS_H

#include "passes.h"

// The samples that outputs read are gathered into panels, or packed inputs are read at offsets.
// Backward weight gathers them either way.
extern const struct conv_method products_by_panels, products_at_offsets;

void products_estimate(const struct request *request, const struct conv_method *method,
                       struct estimate *ret);
void *products_build(const struct partita_plan *plan, const struct request *request,
                     const struct conv_method *method, struct arena *arena);
enum partita_status products_run(const struct partita_plan *plan,
                                 const struct partita_filter *filter,
                                 const struct operands *operands, void *workspace);

#endif
