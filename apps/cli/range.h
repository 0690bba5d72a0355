// SPDX-License-Identifier: MIT
// Which samples of the full result the user wants, while the length of the input may not be known
// yet.
#ifndef PARTITA_APPS_RANGE_H
#define PARTITA_APPS_RANGE_H

#include "options.h"

// Indices into the full result, 0 to n + m - 2 for n input frames and m taps. Other indices hold
// zeros.
struct range {
    int64_t begin;
    int64_t end;            // one past the last
    bool end_counts_from_n; // `end` is to be added to n
};

// `n_seen`: input frames, or at least m if there are so many; only --mode valid asks for it.
struct range range_of(const struct settings *settings, int64_t m, int64_t n_seen);

// Samples in the range once n is known, one in `stride`. Nothing comes of nothing, unless an end
// was named.
int64_t range_count(const struct range *range, int64_t n, int64_t stride);

// Options that contradict each other. False: a usage error.
bool range_check(const struct settings *settings, struct fault *fault);

#endif
