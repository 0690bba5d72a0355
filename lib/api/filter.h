// SPDX-License-Identifier: MIT
// Filters for what is not every direction of a plan.
#ifndef PARTITA_INTERNAL_FILTER_H
#define PARTITA_INTERNAL_FILTER_H

#include "core/engine.h"

// As partita_filter_create, with the taps packed for forward alone.
enum partita_status filter_create_forward(const struct partita_plan *plan, const void *taps,
                                          struct partita_filter **ret_filter);

#endif
