// SPDX-License-Identifier: MIT
// Measured facts that outlive a process: the cost model, choices made by timing, FFTW's wisdom.
#ifndef PARTITA_WISDOM_H
#define PARTITA_WISDOM_H

#include <partita/plan.h>

#include "core/cost_model.h"

// A choice remembered for a problem.
struct remembered {
    char engine[32];
    size_t transform;
};

// The cost model to plan with: the store's if it has one of this level, else the built-in one.
// wisdom may be NULL.
void wisdom_cost_model(struct partita_wisdom *wisdom, enum cpu_isa level, struct cost_model *ret);

// Looks a problem up by its key; false if it was never measured. wisdom may be NULL.
bool wisdom_recall(struct partita_wisdom *wisdom, const char *key, struct remembered *ret);

// Keeps a choice, replacing an older one of the same key; drops it silently without memory. wisdom
// may be NULL.
void wisdom_remember(struct partita_wisdom *wisdom, const char *key,
                     const struct remembered *choice);

#endif
