// SPDX-License-Identifier: MIT
// What one engine says it would cost, held against the caller's limits.
#ifndef PARTITA_ESTIMATE_H
#define PARTITA_ESTIMATE_H

#include "core/plan.h"

enum { NOT_NAMED = ANY_VARIANT - 1 };

// The variant of an engine that options.engine, "NAME" or "NAME:VARIANT", asks for: ANY_VARIANT
// without a variant, or if `name` is NULL; NOT_NAMED if it is another engine, or no variant of it.
int estimate_variant(const char *name, const struct engine *engine);

// What an engine is asked, FFT size included (0: any).
struct request estimate_request(const struct partita_plan *plan,
                                const struct partita_options *options,
                                const struct cost_model *model, const struct engine *engine,
                                size_t transform);

// Asks engine i of the list for its estimate with one FFT size (0: any) and holds it against the
// options' limits.
void estimate_engine(const struct partita_plan *plan, const struct partita_options *options,
                     const struct cost_model *model, size_t i, size_t transform,
                     struct estimate *ret);

#endif
