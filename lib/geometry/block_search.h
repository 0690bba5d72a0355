// SPDX-License-Identifier: MIT
// How a long signal and long taps are split into blocks that are convolved by transforms, on any
// device: finds the cheapest layout by the device's rates (decision 10).
#ifndef PARTITA_BLOCK_SEARCH_H
#define PARTITA_BLOCK_SEARCH_H

#include "core/engine.h"
#include "signal_blocks.h"
#include "signal_rates.h"

enum block_method {
    BLOCK_PAIRS,   // the spectra of both operands are stored, and the products of all pairs are
                   // summed
    BLOCK_LAGS,    // few outputs of long operands: one sum over all blocks for each window of
                   // outputs
    BLOCK_IMPOSED, // blocks of sizes that the caller imposes; so are variants above it
};

// Along its axis a problem is y[p] = sum over j < taps of g[j] * x[first + stride*p - j], where g
// begins with the first tap that any output reads and ends with the last one (struct trimmed).
struct block_layout {
    enum block_method method;
    struct trimmed trimmed;
    size_t n;                     // samples of a transform; 0: direct sums (imposed)
    size_t tap_block, tap_blocks; // taps of a block; number of blocks
    size_t signal_block;          // imposed: samples of a block of x
    size_t hop, blocks;     // outputs of a block, window or interval; number of blocks, or maximum
                            // number of intervals of a division
    size_t in_flight;       // pairs, imposed: blocks that are computed at once,
    size_t units;           // for that many items of [batch][groups]
    size_t divisions;       // imposed: that are summed at once
    size_t windows, chunks; // lags: windows computed at once; chunks of each window's sum
    double busy;            // lags: share of the device that these keep busy
    size_t shared, worker, filter; // bytes of workspace, shared and per thread, and bytes of a
                                   // filter
    double seconds, flops;
};

// Abilities of a device, and its costs in addition to its rates.
struct block_device {
    const struct signal_rates *rates;
    const struct request *request; // its shape is the problem as a forward problem (shape_forward)
    // Sets how much is computed at once and the bytes, so that they fit the workspace, and sets
    // layout->seconds to the cost of the workspace itself. False: nothing fits.
    bool (*fit)(const struct block_device *device, struct block_layout *layout);
    size_t max_transform; // maximum transform of pairs; SIZE_MAX: any
    size_t max_window;    // maximum transform of a window of lags
    double max_samples;   // maximum samples of all transforms of a call
    double filter_byte;   // cost of a byte of a filter: a call's share of preparing it
    double margin; // a larger transform is chosen only if it costs less than this share of the
                   // cheapest smaller one
    bool gradients_by_lags; // backward weight may be summed in windows of lags
    bool keeps_inputs;      // later blocks reuse the spectra of inputs that they share with earlier
                            // ones
    bool counts_filter;     // the cost includes transforming the taps
    bool imposed_halves;    // each imposed block fits half a transform; false: both together fit
                            // one transform
    bool in_time;           // imposed blocks may be summed directly
    bool overlapped;        // products and memory transfers overlap
    double launches;        // kernels that are queued for the blocks that are computed at once
};

// The cheapest layout that the request allows; false if none fits, with a reason.
bool block_search(const struct block_device *device, struct block_layout *ret, char *reason,
                  size_t size);

// Pairs: the blocks of x that output blocks first .. end-1 read.
struct range block_inputs_read(const struct shape *shape, const struct block_layout *layout,
                               size_t first, size_t end);

// Maximum number of blocks of x that `blocks` blocks of outputs read.
size_t block_input_count(const struct shape *shape, const struct block_layout *layout,
                         size_t blocks);

// Appends a description of the layout.
void block_explain(const struct shape *shape, const struct block_layout *layout, struct text *text);

// Fills the estimate of an engine that executes a layout, and stores the layout in it.
void block_estimate(const struct request *request, const struct block_layout *layout,
                    struct estimate *ret);

#endif
