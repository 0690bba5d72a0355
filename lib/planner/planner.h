// SPDX-License-Identifier: MIT
// Chooses an engine. The planner knows no algorithm, only the engines' estimates.
#ifndef PARTITA_PLANNER_H
#define PARTITA_PLANNER_H

#include "core/plan.h"

// All engines of the CPU, NULL-terminated, and the CPU (engines.c).
extern const struct engine *const cpu_engines[];
extern struct device cpu_device;

// Fills plan->engine, choice, estimates and state for plan->shape. The caller destroys the plan on
// failure.
enum partita_status planner_choose(struct partita_plan *plan,
                                   const struct partita_options *options);

// Plans all three directions on tiles that share transforms, if a step then costs less.
enum partita_status planner_share(struct partita_plan *plan, const struct partita_options *options);

enum { NOT_NAMED = ANY_VARIANT - 1 };

// The variant of an engine that options.engine, "NAME" or "NAME:VARIANT", requests. ANY_VARIANT:
// `name` has no variant or is NULL. NOT_NAMED: it names another engine or an unknown variant.
int estimate_variant(const char *name, const struct engine *engine);

// The part of a limited workspace that is left for an engine beside the outputs of branches
// (problem.up); at least 1.
size_t estimate_engine_limit(const struct partita_plan *plan, size_t limit);

// The request to an engine, with an FFT size (0: any).
struct request estimate_request(const struct partita_plan *plan,
                                const struct partita_options *options,
                                const struct cost_model *model, const struct engine *engine,
                                size_t transform);

// Gets the estimate of engine i of the list with one FFT size (0: any) and checks it against the
// limits of the options.
void estimate_engine(const struct partita_plan *plan, const struct partita_options *options,
                     const struct cost_model *model, size_t i, size_t transform,
                     struct estimate *ret);

// The engine and estimate that cost least without options->error_reach; NULL: none applies.
const struct engine *estimate_unbounded(const struct partita_plan *plan,
                                        const struct partita_options *options,
                                        const struct cost_model *model, struct estimate *ret);

// PARTITA_MEASURE: replaces *index (into engines) and *choice, the cheapest by estimate, by the
// fastest measured choice among all choices whose estimate is at most three times that cost.
// Errors: PARTITA_ERR_NOMEM.
enum partita_status measure_best(const struct partita_plan *plan,
                                 const struct partita_options *options,
                                 const struct cost_model *model, size_t *index,
                                 struct estimate *choice);

// The text of partita_plan_explain.
void explain_plan(const struct partita_plan *plan, struct text *text);

#endif
