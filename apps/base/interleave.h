// SPDX-License-Identifier: MIT
// Between interleaved frames and channels that lie one after the other.
#ifndef PARTITA_APPS_INTERLEAVE_H
#define PARTITA_APPS_INTERLEAVE_H

#include <stddef.h>

struct channel_rows {
    size_t channels;
    size_t bytes;  // of a sample: 4, 8 or 16
    size_t length; // samples from a channel to the next
};

// n frames; x and y do not overlap.
void frames_interleave(void *y, const void *x, const struct channel_rows *x_rows, size_t n);
void frames_deinterleave(void *y, const void *x, const struct channel_rows *y_rows, size_t n);

#endif
