// SPDX-License-Identifier: MIT
// The rates of a device for the searches for partitions (partition_search.h) and blocks
// (block_search.h): the times of its elementary operations on one type of samples, in seconds.
#ifndef PARTITA_SIGNAL_RATES_H
#define PARTITA_SIGNAL_RATES_H

#include "core/cost_model.h"

struct signal_rates {
    const void *context; // of the functions below
    // The smallest transform of at least n samples; 0: there is none.
    size_t (*good_size)(const struct signal_rates *rates, size_t n);
    // `count` forward or inverse transforms of n samples that may run at the same time.
    double (*transforms)(const struct signal_rates *rates, size_t n, double count);
    // One complex product of a bin that is added to a sum, by the location of the operands and by
    // whether 1, 2 or 4 sums share one read of the filter.
    double product[COST_DISTANCES][3];
    struct work work;    // the caches are fast memory
    double launch;       // queueing a kernel
    size_t fast_bytes;   // fast memory of one core
    size_t shared_bytes; // fast memory that all cores share
};

#endif
