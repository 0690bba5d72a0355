// SPDX-License-Identifier: MIT
// How a long signal and long taps are cut into segments that are convolved by transforms, on any
// device: the cheapest layout by the device's rates (decision 10).
#ifndef PARTITA_BLOCK_SEARCH_H
#define PARTITA_BLOCK_SEARCH_H

#include "core/engine.h"
#include "segments.h"
#include "signal_rates.h"

enum block_method {
    BLOCK_PAIRS, // spectra of both operands are kept, the products of all pairs summed
    BLOCK_LAGS,  // few outputs of long operands: for a window of outputs one sum over all segments
    BLOCK_IMPOSED, // segments of sizes that the caller imposes
};

// Along its axis a problem is y[p] = sum over j < taps of g[j] * x[first + stride*p - j], with g
// from the first tap that any output reads to the last (struct trimmed).
struct block_layout {
    enum block_method method;
    struct trimmed trimmed;
    size_t n;                 // samples of a transform; 0: sums in time (imposed)
    size_t segment, segments; // taps of a segment, segments
    size_t signal_segment;    // imposed: samples of a segment of x
    size_t hop, blocks;     // outputs of a block, window or interval, blocks; of intervals as many
                            // as a division has at most
    size_t in_flight;       // pairs, imposed: blocks that are worked on at once,
    size_t units;           // of so many items of [batch][groups]
    size_t windows, chunks; // lags: windows at once, each summed in so many chunks
    double busy;            // lags: the share of the device that these keep busy
    size_t shared, worker, filter; // bytes of workspace, once and for each thread, and of a filter
    double seconds, flops;
};

// What a device can do, and what that costs beside its rates.
struct block_device {
    const struct signal_rates *rates;
    const struct request *request; // whose shape is the problem as a forward one (shape_forward)
    // Fills in what is done at once and the bytes, so that they fit the workspace, and starts
    // layout->seconds with what the workspace itself takes. False: nothing fits.
    bool (*fit)(const struct block_device *device, struct block_layout *layout);
    size_t max_transform; // of pairs; SIZE_MAX: any
    size_t max_window;    // transform of a window of lags
    double max_samples;   // that all transforms of a call have together
    double margin; // a larger transform is taken if it costs less than this share of the cheapest
    bool gradients_by_lags; // backward weight may be summed in windows of lags
    bool keeps_inputs;      // blocks that are worked on later find the spectra of inputs they share
    bool counts_filter;     // a lone signal pays for transforming the taps
    bool imposed_halves;    // imposed segments each take half a transform; false: both fit one
    bool in_time;           // imposed segments may be summed in time
    bool overlapped;        // products and moves go on at the same time
    double launches;        // kernels that are queued for what is worked on at once
};

// The cheapest layout that the request allows; false if none fits, with a reason.
bool block_search(const struct block_device *device, struct block_layout *ret, char *reason,
                  size_t size);

// Segments of x that `blocks` blocks of outputs read at most.
size_t block_inputs(const struct shape *shape, const struct block_layout *layout, size_t blocks);

// The layout in words.
void block_explain(const struct shape *shape, const struct block_layout *layout, struct text *text);

// Predicted relative L2 error.
double block_error(const struct request *request, const struct block_layout *layout);

#endif
