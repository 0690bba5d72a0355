// SPDX-License-Identifier: MIT
// Filters of all planned directions: paths are spread out where an engine wants dense taps, taps of
// problems with `up` to those of branches.
#ifndef PARTITA_LAYER_FILTER_H
#define PARTITA_LAYER_FILTER_H

#include "core/plan.h"

// Taps that have been checked.
enum partita_status filter_from_taps(const struct partita_plan *plan,
                                     const struct partita_taps *taps,
                                     struct partita_filter **ret_filter);

// See struct device.
enum partita_status cpu_filter_update(struct partita_filter *filter,
                                      const struct operands *operands, void *workspace);

#endif
