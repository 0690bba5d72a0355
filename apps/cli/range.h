// SPDX-License-Identifier: MIT
// Which samples of the full result to compute; the length of the input may still be unknown.
#ifndef PARTITA_APPS_RANGE_H
#define PARTITA_APPS_RANGE_H

#include "options.h"

// Indices into the full result, 0 to n + m - 2 for n input frames and m taps; with --up, n counts
// the zeros after them, too. Samples at other indices are 0.
struct range {
    int64_t begin;
    int64_t end;            // exclusive
    bool end_counts_from_n; // `end` is relative to n
};

// n_seen: the number of input frames if it is less than m, else any number from m on. Only --mode
// valid depends on it.
struct range range_of(const struct settings *settings, int64_t m, int64_t n_seen);

// The number of samples in the range, every `stride`th, for n input frames. An empty input has
// none, unless `end` is absolute.
int64_t range_count(const struct range *range, int64_t n, int64_t stride);

// False, with a usage error, for options that contradict each other. Bounds that were given as
// times are checked only after options_resolve_times.
bool range_check(const struct settings *settings, struct fault *fault);

#endif
