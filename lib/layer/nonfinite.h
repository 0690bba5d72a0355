// SPDX-License-Identifier: MIT
// Infinite and NaN samples in bounded problems. A transform spreads one over all outputs of its
// block. After a call whose engine does that (estimate.spread), the call is repeated with zeros in
// place of such samples, and the outputs that depend on one become NaN. Streams do the same as they
// go (stream/history.h).
#ifndef PARTITA_NONFINITE_H
#define PARTITA_NONFINITE_H

#include "core/plan.h"

// Mends the result of a call on the CPU that has just run with these arguments. Costs a look at a
// few outputs or one pass over the inputs if all is finite, else the call again and copies of its
// inputs. Data that the call has saved for backward weight is kept.
// Errors: PARTITA_ERR_NOMEM.
enum partita_status nonfinite_confine(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace);

#endif
