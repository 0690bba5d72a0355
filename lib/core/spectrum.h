// SPDX-License-Identifier: MIT
// Spectra as objects, on any device: the interface between the public functions (api/spectrum.c)
// and the backend that stores the spectra, of the CPU (cpu/blocks/spectra.c) or of a device's
// module (decision 28).
#ifndef PARTITA_INTERNAL_SPECTRUM_H
#define PARTITA_INTERNAL_SPECTRUM_H

#include <partita/advanced.h>
#include <stdbool.h>

#include "base/sizes.h"
#include "device.h"
#include "slice.h"

struct partita_spectrum {
    const struct spectrum_backend *backend;
    struct device *device;
    enum partita_type type;
    size_t scalar_bytes, sample_bytes;
    size_t n, block, bytes; // samples of the signal, of a block; bytes of all blocks
    int threads;
    size_t workspace_limit; // 0: none
    struct partita_allocator allocator;
    struct partita_log log;
    void *state; // the backend's
};

// Stores the spectra of blocks on one class of devices. Arguments have been checked; spectra that
// are multiplied have the same type, block and backend.
struct spectrum_backend {
    // Sets block and bytes of a spectrum and makes its state from x [n], in blocks of at least
    // `block` samples (0: spectrum_wished). On failure the caller calls destroy.
    enum partita_status (*create)(struct partita_spectrum *spectrum, const void *x, size_t block);
    void (*destroy)(struct partita_spectrum *spectrum); // also half-built ones
    // Whether the bins of two spectra may be multiplied: they have the same order and are in the
    // same memory.
    bool (*meet)(const struct partita_spectrum *x, const struct partita_spectrum *h);
    // y [range->size] = the samples of the full result in the range.
    enum partita_status (*multiply)(enum partita_op op, void *y, const struct partita_spectrum *x,
                                    const struct partita_spectrum *h, const struct range *range);
};

extern const struct spectrum_backend cpu_spectra;

enum { SPECTRUM_LARGEST_BLOCK = 1 << 27 };

// Samples of a block: as the caller requested, or if that is 0, by the length of the signal.
static inline size_t spectrum_wished(size_t n, size_t block)
{
    enum { DEFAULT_BLOCK = 1 << 16, MAX_BLOCKS = 512 };
    if (block) return block;
    block = n < DEFAULT_BLOCK ? n : DEFAULT_BLOCK;
    if (n / MAX_BLOCKS <= block) return block;
    return size_min(n / MAX_BLOCKS, SPECTRUM_LARGEST_BLOCK);
}

static inline size_t spectrum_count(const struct partita_spectrum *spectrum)
{
    return ceil_div(spectrum->n, spectrum->block);
}

// The samples of a result that are wanted, on the grid of its blocks, and the blocks that hold any
// of them and are not zero. Lag 0 is the first sample of block 0.
struct spectrum_wanted {
    struct range samples, blocks;
};

// The product of two blocks extends into the next output block, with lags into the previous one.
static inline struct spectrum_wanted spectrum_wanted(enum partita_op op,
                                                     const struct partita_spectrum *x,
                                                     const struct partita_spectrum *h,
                                                     const struct range *range)
{
    const bool lags = op == PARTITA_CORRELATE;
    const ptrdiff_t left = (ptrdiff_t)spectrum_count(h), right = (ptrdiff_t)spectrum_count(x);
    const ptrdiff_t low = lags ? -left : 0, high = lags ? right : right + left;
    const struct windows blocks = {0, x->block, x->block};
    struct range samples = *range;
    if (lags) samples.first -= (ptrdiff_t)(h->n - 1);
    return (struct spectrum_wanted){samples,
                                    range_within(windows_outputs(&blocks, samples), low, high)};
}

#endif
