// SPDX-License-Identifier: MIT
#ifndef PARTITA_EXPLAIN_H
#define PARTITA_EXPLAIN_H

#include "core/plan.h"

// The text of partita_plan_explain.
void explain_plan(const struct partita_plan *plan, struct text *text);

#endif
