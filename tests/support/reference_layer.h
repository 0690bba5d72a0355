// SPDX-License-Identifier: MIT
// The oracle of layers: the formulas of partita/plan.h for forward with bias and activation and
// for the gradients, as plain loops over long doubles. It shares no code with the library.
#ifndef PARTITA_TEST_REFERENCE_LAYER_H
#define PARTITA_TEST_REFERENCE_LAYER_H

#include <partita/problem.h>

// Real bounded problems. All arrays are doubles: x [batch][in][size], w [out][in/groups][kernel],
// gy and y [batch][out][outputs], bias and gb [out]. bias may be NULL.
void reference_layer_forward(const struct partita_problem *problem, double *y, const double *x,
                             const double *w, const double *bias);
void reference_backward_data(const struct partita_problem *problem, double *gx, const double *gy,
                             const double *w);
void reference_backward_weight(const struct partita_problem *problem, double *gw, const double *x,
                               const double *gy);
void reference_backward_bias(const struct partita_problem *problem, double *gb, const double *gy);

#endif
