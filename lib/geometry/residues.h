// SPDX-License-Identifier: MIT
// Strides as residues, on any device: along an axis the taps of one residue modulo the period meet
// the inputs of one residue modulo the stride, and in backward data reach the samples of one.
#ifndef PARTITA_RESIDUES_H
#define PARTITA_RESIDUES_H

#include "base/sizes.h"
#include "core/problem.h"

static inline size_t axis_tap_period(const struct axis *axis)
{
    return axis->stride / size_gcd(axis->stride, axis->dilation);
}

// Residues that any tap has.
static inline size_t axis_residues(const struct axis *axis)
{
    return size_min(axis->kernel, axis_tap_period(axis));
}

#endif
