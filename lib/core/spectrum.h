// SPDX-License-Identifier: MIT
// Spectra as objects, of any device: what the public functions (spectrum.c) ask of whoever keeps
// them, the CPU (cpu/spectra.c) or a device's module (decision 28).
#ifndef PARTITA_INTERNAL_SPECTRUM_H
#define PARTITA_INTERNAL_SPECTRUM_H

#include <partita/spectrum.h>
#include <stdbool.h>

#include "base/sizes.h"
#include "device.h"
#include "slice.h"

struct partita_spectrum {
    const struct spectrum_backend *backend;
    struct device *device; // NULL: the CPU
    const struct partita_spectrum
        *shared_with; // of the same type and block, whose device and transforms
                      // this one uses while it lives; NULL: it has its own
    enum partita_type type;
    size_t scalar_bytes, sample_bytes;
    size_t n, block, bytes; // samples; those of a block; what all blocks take
    int threads;
    size_t workspace_limit; // 0: none
    struct partita_allocator allocator;
    struct partita_log log;
    void *state; // the backend's
};

// Keeps the spectra of blocks on one kind of device. Arguments were checked; spectra that meet have
// one type, block and backend.
struct spectrum_backend {
    // Sets block and bytes of a spectrum and makes its state from x [n], in blocks of so many
    // samples at least (0: spectrum_wished). On failure the caller calls destroy.
    enum partita_status (*create)(struct partita_spectrum *spectrum, const void *x, size_t block);
    void (*destroy)(struct partita_spectrum *spectrum); // half-built ones too
    // Whether two spectra's bins may be multiplied: one order, one memory.
    bool (*meet)(const struct partita_spectrum *x, const struct partita_spectrum *h);
    // y [range->size] = these samples of the full result.
    enum partita_status (*multiply)(enum partita_op op, void *y, const struct partita_spectrum *x,
                                    const struct partita_spectrum *h, const struct range *range);
};

extern const struct spectrum_backend cpu_spectra;

enum { SPECTRUM_LARGEST_BLOCK = 1 << 27 };

// Samples of a block: what the caller asked for, or where that was left open, what suits the
// signal.
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

// What is wanted of a result, on the grid of its blocks, lag 0 being the first sample of block 0:
// `size` samples from `first` on, and the blocks among theirs that anything falls into.
struct spectrum_wanted {
    ptrdiff_t first;
    size_t size;
    ptrdiff_t block, end; // none: end <= block
};

// Sums reach one block on; with lags one block back.
static inline struct spectrum_wanted spectrum_wanted(enum partita_op op,
                                                     const struct partita_spectrum *x,
                                                     const struct partita_spectrum *h,
                                                     const struct range *range)
{
    const bool lags = op == PARTITA_CORRELATE;
    const ptrdiff_t left = (ptrdiff_t)spectrum_count(h), right = (ptrdiff_t)spectrum_count(x);
    const ptrdiff_t low = lags ? -left : 0, high = lags ? right : right + left;
    const ptrdiff_t first = lags ? range->first - (ptrdiff_t)(h->n - 1) : range->first;
    const ptrdiff_t block = floor_div(first, x->block);
    const ptrdiff_t end = floor_div(first + (ptrdiff_t)range->size - 1, x->block) + 1;
    return (struct spectrum_wanted){first, range->size, block > low ? block : low,
                                    end < high ? end : high};
}

#endif
