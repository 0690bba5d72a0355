// SPDX-License-Identifier: MIT
// A problem set up to run: random taps and signal, plan, filter and the gate that its result must
// meet.
#ifndef PARTITA_TEST_RIG_H
#define PARTITA_TEST_RIG_H

// The library's own struct of a plan, for the transform length that gates depend on. It comes
// first: the library names things `complex`, which complex.h makes a macro.
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

// Bounded problem: draws x and w, leaves y filled with NaN, all aligned to one scalar only.
void rig_open(struct rig *rig, const struct partita_problem *problem,
              const struct partita_options *options, struct random *random);
// The same with given taps and signal.
void rig_open_with(struct rig *rig, const struct partita_problem *problem,
                   const struct partita_options *options, const void *x, const void *w);
void rig_forward(struct rig *rig);
void rig_close(struct rig *rig); // checks the guards

// The gate of a plan for n outputs, by the algorithm it chose.
double plan_gate(const struct partita_plan *plan, const struct partita_problem *problem, size_t n);

// Fails unless y is within the gate of the oracle.
void rig_check(struct rig *rig);

#endif
