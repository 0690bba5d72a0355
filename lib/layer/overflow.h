// SPDX-License-Identifier: MIT
// Sums that overflow within an engine although the results do not: a bin of a spectrum is the sum
// of all samples of a block, and a product of spectra holds products of samples and taps that no
// result adds. Where finite inputs have given results that are not finite, the call is repeated
// with inputs that are scaled down by a power of two, which is exact, until all results of it are
// finite.
#ifndef PARTITA_OVERFLOW_H
#define PARTITA_OVERFLOW_H

#include "core/plan.h"

// Mends those results of a call on the CPU that are not finite; its inputs are finite. A result is
// infinite then only if its own value is. Others keep their bits. Reads all results; where one is
// not finite it takes at least one more call and memory for copies of an input and of the results.
// Nothing is mended where a tap is not finite: results that depend on it are not finite at any
// scale. Errors: PARTITA_ERR_NOMEM.
enum partita_status overflow_confine(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace);

#endif
