// SPDX-License-Identifier: MIT
// The gradient of the taps by cpu/gemm, as the functions of struct engine of the same names.
#ifndef PARTITA_GEMM_WEIGHT_H
#define PARTITA_GEMM_WEIGHT_H

#include "core/plan.h"

void gemm_weight_estimate(const struct request *request, struct estimate *ret);
enum partita_status gemm_weight_plan_create(struct partita_plan *plan,
                                            const struct request *request);
void gemm_backward_weight(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                          void *workspace);

#endif
