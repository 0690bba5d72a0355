// SPDX-License-Identifier: MIT
// A bounded problem ready to execute: random taps and signal, plan, filter and the gate of its
// result.
#ifndef PARTITA_TEST_RIG_H
#define PARTITA_TEST_RIG_H

// The library's struct of a plan, for the transform length that gates depend on. It is included
// first, because the library has names `complex`, which complex.h defines as a macro.
#include "core/plan.h"

#include "support/test.h"

struct rig {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    void *x, *w, *y;                    // guarded
    size_t n_x, n_w, n_y, sample_bytes; // samples
    double complex *reference;          // NULL until rig_reference
};

// Samples of x, w and y of a bounded problem.
size_t problem_inputs(const struct partita_problem *problem);
size_t problem_taps(const struct partita_problem *problem);
size_t problem_outputs(const struct partita_problem *problem);

// Samples from the first tap to the last along one axis.
size_t problem_span(const struct partita_problem *problem);

// Draws x and w and fills y with NaN; all are aligned to one scalar only.
void rig_open(struct rig *rig, const struct partita_problem *problem,
              const struct partita_options *options, struct random *random);
// The same with a given signal and given taps.
void rig_open_with(struct rig *rig, const struct partita_problem *problem,
                   const struct partita_options *options, const void *x, const void *w);
void rig_forward(struct rig *rig);
void rig_close(struct rig *rig); // checks the guard bytes

// Executes a copy of the rig, after rig_forward, with other options. Fails unless y has the same
// bits.
void rig_check_copy(const struct rig *rig, const struct partita_options *options);

// The gate of a plan for n outputs, by its algorithm.
double plan_gate(const struct partita_plan *plan, const struct partita_problem *problem, size_t n);

// Fails unless y is within the gate of the oracle.
void rig_check(struct rig *rig);

#endif
