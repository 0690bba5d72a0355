// SPDX-License-Identifier: MIT
// cpu/direct on layers: the defining sums in all three directions, of any rank, on plain arrays.
// Part of cpu/direct, which takes it for everything but streams, complex types and signals of few
// channels (direct.c).
#ifndef PARTITA_LAYER_DIRECT_H
#define PARTITA_LAYER_DIRECT_H

#include "core/plan.h"

// As the functions of struct engine of the same names, for every direction.
void layer_direct_estimate(const struct request *request, struct estimate *ret);
enum partita_status layer_direct_plan_create(struct partita_plan *plan,
                                             const struct request *request);
void layer_direct_plan_destroy(struct partita_plan *plan);
enum partita_status layer_direct_filter_create(struct partita_filter *filter, const void *taps);
void layer_direct_run(const struct partita_plan *plan, const struct partita_filter *filter,
                      const struct operands *operands, void *workspace);
void layer_direct_backward_weight(const struct partita_plan *plan, void *gw, const void *x,
                                  const void *gy, void *workspace);

// The gradient of the taps, in layer_weight.c: what it takes, and its plan.
void layer_weight_estimate(const struct request *request, struct estimate *ret);
enum partita_status layer_weight_plan_create(struct partita_plan *plan,
                                             const struct request *request);

#endif
