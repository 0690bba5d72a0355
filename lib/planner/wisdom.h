// SPDX-License-Identifier: MIT
// Measurements that are kept after a process ends: the cost model, choices made by timing, FFTW's
// wisdom.
#ifndef PARTITA_WISDOM_H
#define PARTITA_WISDOM_H

#include <partita/advanced.h>

#include "core/cost_model.h"

// Measures this machine in under a second. Errors: PARTITA_ERR_NOMEM. *ret is either complete or
// unchanged.
enum partita_status cost_model_calibrate(struct cost_model *ret, enum cpu_isa isa);

// See the public functions. Arguments have been checked; destroy accepts NULL.
enum partita_status wisdom_create(struct partita_wisdom **ret_wisdom);
void wisdom_destroy(struct partita_wisdom *wisdom);
enum partita_status wisdom_calibrate(struct partita_wisdom *wisdom);
enum partita_status wisdom_save(const struct partita_wisdom *wisdom, const char *path);
enum partita_status wisdom_load(struct partita_wisdom *wisdom, const char *path);

// A choice stored for a problem.
struct remembered {
    char engine[32];
    size_t transform;
};

// The cost model to plan with: the store's if it has one for this instruction set, else the
// built-in one. wisdom may be NULL.
void wisdom_cost_model(struct partita_wisdom *wisdom, enum cpu_isa isa, struct cost_model *ret);

// Looks a problem up by its key; false if it was never measured. wisdom may be NULL.
bool wisdom_recall(struct partita_wisdom *wisdom, const char *key, struct remembered *ret);

// Stores a choice, replacing an older one with the same key; does nothing if there is no memory.
// wisdom may be NULL.
void wisdom_remember(struct partita_wisdom *wisdom, const char *key,
                     const struct remembered *choice);

#endif
