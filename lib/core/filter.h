// SPDX-License-Identifier: MIT
// Making the filters of one direction, for the public calls and for the planner's trials.
#ifndef PARTITA_INTERNAL_FILTER_H
#define PARTITA_INTERNAL_FILTER_H

#include "plan.h"

// A filter without taps; NULL without memory.
struct partita_filter *filter_allocate(const struct partita_plan *plan);

// Packs dense taps for the plan's own direction, if it was planned.
enum partita_status filter_pack(struct partita_filter *filter, const void *taps);

// A filter for the plan's own direction alone.
enum partita_status filter_create(const struct partita_plan *plan, const void *taps,
                                  struct partita_filter **ret_filter);

// Half-built filters and NULL are allowed.
void filter_destroy(struct partita_filter *filter);

#endif
