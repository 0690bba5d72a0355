// SPDX-License-Identifier: MIT
// Strides as residues, on any device. Along an axis the taps of one residue modulo the period read
// inputs of one residue modulo the stride, and in backward data contribute to samples of one
// residue.
#ifndef PARTITA_RESIDUES_H
#define PARTITA_RESIDUES_H

#include "base/sizes.h"
#include "core/problem.h"

static inline size_t axis_tap_period(const struct axis *axis)
{
    return axis->stride / size_gcd(axis->stride, axis->dilation);
}

// Number of residues that taps have.
static inline size_t axis_residues(const struct axis *axis)
{
    return size_min(axis->kernel, axis_tap_period(axis));
}

#endif
