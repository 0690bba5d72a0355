// SPDX-License-Identifier: MIT
// problem.up: the taps of branches, and outputs from those of branches (struct upsampling).
#ifndef PARTITA_UPSAMPLING_H
#define PARTITA_UPSAMPLING_H

#include "core/plan.h"

// Writes the branches' taps, [out_channels][group_in][kernel] of the shape in causal order, from
// those of the problem, into memory of so many bytes.
void upsampling_taps(const struct partita_plan *plan, const void *taps, char *branches);
size_t upsampling_taps_bytes(const struct shape *shape);

// Bytes of the outputs of all branches of a bounded problem.
static inline size_t upsampling_bytes(const struct shape *shape)
{
    return size_mul(size_mul(shape->batch, shape->out_channels),
                    size_mul(shape->axis[0].out, shape->sample_bytes));
}

// Outputs of the branches of one output channel: branch b is the row b * pitch samples after the
// first. `at`: the position that the first output to take has, counted from the rows' first
// samples.
struct branches {
    const void *rows;
    size_t pitch, at;
};

// y[i*y_stride], i < n: the sample of each output's branch.
void upsampling_take(const struct shape *shape, const struct branches *from, void *y,
                     size_t y_stride, size_t n);

#endif
