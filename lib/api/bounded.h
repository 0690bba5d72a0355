// SPDX-License-Identifier: MIT
// What the public calls that run a bounded problem begin with, whatever their direction.
#ifndef PARTITA_BOUNDED_H
#define PARTITA_BOUNDED_H

#include "core/engine.h"

// Whether a plan of the caller's runs a direction on these pointers; `of` is the direction's plan,
// NULL: not planned.
enum partita_status bounded_check(const struct partita_plan *plan, const struct partita_plan *of,
                                  const void *to, const void *from, const void *workspace);

// The caller's workspace, or if that is NULL one of the call's own, which the caller of this
// releases: *ret_own, else NULL. Returns NULL without memory.
void *bounded_workspace(const struct partita_plan *of, void *workspace, void **ret_own);

#endif
