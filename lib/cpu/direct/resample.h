// SPDX-License-Identifier: MIT
// The variant of cpu/direct that computes the outputs of a problem with `up` one by one.
#ifndef PARTITA_DIRECT_RESAMPLE_H
#define PARTITA_DIRECT_RESAMPLE_H

#include "direct.h"

enum { RESAMPLE_SEGMENT = 64 }; // products that are summed one after the other, at most

void resample_estimate(const struct request *request, struct estimate *ret);
size_t resample_filter_bytes(const struct shape *shape);
enum partita_status resample_filter_pack(struct partita_filter *filter, const void *taps);
void resample_add_tile(const struct direct_tile *tile); // of a bounded call

// Where outputs come from: x is the sample at position 0.
struct resampled {
    const void *x;
    size_t position;    // of the first output: sample position / branches, branch the remainder
    size_t channel, in; // output channel; input of its group
};

// Adds n outputs of one path to y.
void resample_add(const struct partita_filter *filter, const struct resampled *from, void *y,
                  size_t n);

#endif
