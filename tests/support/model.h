// SPDX-License-Identifier: MIT
// Host models made up for a test, so that the planner's choice does not hang on the machine that
// runs it.
#ifndef PARTITA_TEST_MODEL_H
#define PARTITA_TEST_MODEL_H

#include <partita/plan.h>

// A store whose cost model is one of round figures in which a product costs product[i] nanoseconds
// where 1, 2 or 4 sums are made at once, wherever its operands are. Transforms cost as much in
// proportion as on a machine with vectors, and the direct sum as well.
struct partita_wisdom *model_wisdom(const double product[3]);

#endif
