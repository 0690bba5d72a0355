// SPDX-License-Identifier: MIT
// Calls of bounded problems below the public functions, and the CPU as a device for them.
#ifndef PARTITA_LAYER_BOUNDED_H
#define PARTITA_LAYER_BOUNDED_H

#include "core/plan.h"

// A call of a plan of one direction, on arrays that have been checked.
struct bounded_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter; // NULL: taps, or backward weight
    const void *taps;
    struct operands operands;
    void *workspace; // bounded_call_workspace bytes; NULL: allocated for the call
};

// Bytes of workspace of one call: the engine's and behind them, where it computes the outputs of
// branches (problem.up), those outputs or, of samples in two bytes, taps or their gradient in f32;
// and the extended x (problem.boundary).
size_t bounded_workspace(const struct partita_plan *plan);

// The same of a call with these operands: behind those bytes lie results that are added to others.
size_t bounded_call_workspace(const struct partita_plan *plan, const struct operands *operands);

enum partita_status bounded_run(const struct bounded_call *call);

// Bytes of the extended x of problem.boundary (struct ghosts), which is in the workspace; 0 if
// there are no ghost cells other than zeros.
static inline size_t boundary_bytes(const struct shape *shape)
{
    return shape->ghosts.boundary ? shape_samples(shape, false) * shape->sample_bytes : 0;
}

// Writes the extended x from the caller's, or for backward data the transpose: gx, in which the
// gradient of each ghost cell is added to that of the sample that it copies. The order of additions
// does not depend on the number of threads; f16 and bf16 are rounded after each.
void boundary_move(const struct partita_plan *plan, void *extended, void *x);

// See struct device.
enum partita_status cpu_run(const struct partita_plan *plan, const struct partita_filter *filter,
                            const struct operands *operands, void *workspace);
enum partita_status cpu_backward_bias(const struct partita_plan *plan,
                                      const struct operands *operands);

#endif
