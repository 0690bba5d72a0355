// SPDX-License-Identifier: MIT
// Creates the filters of one direction, for the public calls and for the planner's measurements.
#ifndef PARTITA_INTERNAL_FILTER_H
#define PARTITA_INTERNAL_FILTER_H

#include "plan.h"

// Allocates a filter without taps; NULL: out of memory.
struct partita_filter *filter_allocate(const struct partita_plan *plan);

// Makes the filter of dense taps for the plan's own direction, if it was planned; `workspace` as
// below.
enum partita_status filter_fill(struct partita_filter *filter, const void *taps, void *workspace);

// Packs other taps into the memory of a filter of a bounded problem on the CPU, for the plan's own
// direction. Without a workspace of plan_workspace bytes, and plan_wide_taps behind them, it
// allocates scratch memory meanwhile.
enum partita_status filter_repack(struct partita_filter *filter, const void *taps, void *workspace);

// Whether the magnitude of one of n scalars of a problem on the CPU is not below the limit, which
// is given by its bits.
bool plan_scan(const struct partita_plan *plan, const void *values, size_t n, uint64_t limit);

// Whether all taps of a bounded problem on the CPU, those in two bytes as f32, are finite.
bool taps_are_finite(const struct partita_plan *plan, const void *taps);

// Creates a filter for the plan's own direction only. workspace: as of filter_repack, or NULL.
enum partita_status filter_create(const struct partita_plan *plan, const void *taps,
                                  void *workspace, struct partita_filter **ret_filter);

// Half-built filters and NULL are allowed.
void filter_destroy(struct partita_filter *filter);

#endif
