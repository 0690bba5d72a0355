// SPDX-License-Identifier: MIT
// Plans for the public functions of other topics.
#ifndef PARTITA_API_PLAN_H
#define PARTITA_API_PLAN_H

#include <partita/plan.h>

// As partita_plan_create, for so many streams of a bank; 0: one stream or a bounded problem.
enum partita_status plan_create(const struct partita_problem *problem,
                                const struct partita_options *options, size_t streams,
                                struct partita_plan **ret_plan);

#endif
