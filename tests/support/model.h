// SPDX-License-Identifier: MIT
// Cost models with invented rates, so that the planner's choice does not depend on the machine.
#ifndef PARTITA_TEST_MODEL_H
#define PARTITA_TEST_MODEL_H

#include <partita/plan.h>

// A wisdom store with a cost model of round figures. A product costs product[i] nanoseconds where
// 1, 2 or 4 sums are computed together, wherever its operands are. Transforms and the direct sum
// have costs in the same proportion as on a machine with vectors.
struct partita_wisdom *model_wisdom(const double product[3]);

#endif
