// SPDX-License-Identifier: MIT
// Shared by the files of cpu/direct: its limits and costs.
#ifndef PARTITA_DIRECT_H
#define PARTITA_DIRECT_H

#include "core/plan.h"

static const struct {
    size_t tile, stream_chunk, max_resampled;
} DIRECT = {
    .tile = 1024,         // outputs of a signal computed together: x, y and taps in L1; derived
    .stream_chunk = 1024, // input frames of a stream at once, if the stride is not larger; chosen
    .max_resampled = 8 << 10, // resampling: samples that the outputs of a tile read; derived
};

// Outputs first .. first+n-1 of a channel of a bounded signal, to which an input of its group is
// added.
struct direct_tile {
    const struct partita_filter *filter;
    size_t channel, in; // output channel; input of the group
    const char *x;      // the input's signal
    char *y, *scratch;
    size_t first, n;
};

#endif
