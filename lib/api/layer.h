// SPDX-License-Identifier: MIT
// What forward does after an engine that leaves it to others.
#ifndef PARTITA_INTERNAL_LAYER_H
#define PARTITA_INTERNAL_LAYER_H

#include "core/engine.h"

// Adds the filter's bias to y and applies the problem's activation, unless there is neither or the
// engine has done it.
void layer_finish(const struct partita_plan *plan, const struct partita_filter *filter, void *y);

#endif
