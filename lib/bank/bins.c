// SPDX-License-Identifier: MIT
#include "bins.h"

#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "kernels/kernels.h"

// The sample of the second impulse, and the length of a transform from which it is used.
enum { FINE = 64, MIN_FINE = 4096 };

static size_t index_of_bin(const struct fft *fft, size_t bin)
{
    const size_t lanes = bins_lanes(fft->f64);
    return bin / lanes * 2 * lanes + bin % lanes;
}

// The spectrum of a unit impulse.
static void transform_impulse(const struct fft *fft, void *spectrum, void *x, size_t at,
                              void *scratch)
{
    const size_t i = fft->complex ? 2 * at : at;
    scalar_put(fft->f64, x, i, 1);
    fft_forward(fft, spectrum, x, scratch);
    scalar_put(fft->f64, x, i, 0);
}

// Revolutions by which a bin of an impulse's spectrum is rotated, negative; NaN if there is no bin.
static double rotation_at(const struct fft *fft, const void *spectrum, size_t bin)
{
    const size_t at = index_of_bin(fft, bin), imaginary = bins_lanes(fft->f64);
    const double re = scalar_get(fft->f64, spectrum, at),
                 im = scalar_get(fft->f64, spectrum, at + imaginary);
    return re * re + im * im > 0.5 ? -atan2(im, re) / (2 * M_PI) : (double)NAN;
}

// Twice the frequency of a bin times n. The impulse one sample late rotates it by its frequency,
// with the error of the transform; the impulse at FINE by a multiple, which divides this error.
static size_t twice_frequency(size_t n, double coarse, double fine)
{
    double at = coarse * (double)n;
    if (n >= MIN_FINE) {
        const double period = (double)n / FINE, rest = fine * period;
        at = rest + period * round((at - rest) / period);
    }
    return (size_t)(llround(2 * at) + 2 * (long long)n) % (2 * n);
}

static void index_all(const struct fft *fft, struct bins *bins, const void *spectrum,
                      const void *fine)
{
    const size_t n = fft->n, count = fft->lines * bins_lanes(fft->f64);
    memset(bins->index, 0xff, n * sizeof *bins->index);
    for (size_t i = 0; i < count; i++) {
        const double coarse = rotation_at(fft, spectrum, i);
        if (isnan(coarse)) continue;
        const size_t twice = twice_frequency(n, coarse, rotation_at(fft, fine, i));
        const size_t mirror = (2 * n - twice) % (2 * n) / 2;
        bins->half = twice % 2;
        bins->index[twice / 2] = (uint32_t)index_of_bin(fft, i);
        if (!fft->complex && bins->index[mirror] == UINT32_MAX)
            bins->index[mirror] = (uint32_t)index_of_bin(fft, i) | BINS_CONJUGATE;
    }
    for (size_t j = 0; j < n; j++) assert(bins->index[j] != UINT32_MAX);
}

enum partita_status bins_find(const struct fft *fft, struct bins *ret)
{
    const size_t bytes = fft->n * (fft->f64 ? 8 : 4) * (fft->complex ? 2 : 1);
    struct arena arena = {0};
    void *x, *spectrum, *fine, *scratch;
    struct bins bins = {0};
    for (int pass = 0; pass < 2; pass++) {
        x = arena_take(&arena, bytes);
        spectrum = arena_take(&arena, fft->spectrum_bytes);
        fine = arena_take(&arena, fft->spectrum_bytes);
        scratch = arena_take(&arena, fft->scratch_bytes);
        if (pass == 0 && !arena_allocate(&arena, &fft->allocator)) return PARTITA_ERR_NOMEM;
    }
    bins.index = mem_reserve(&fft->allocator, size_mul(fft->n, sizeof *bins.index));
    if (bins.index) {
        transform_impulse(fft, spectrum, x, size_min(1, fft->n - 1), scratch);
        if (fft->n >= MIN_FINE) transform_impulse(fft, fine, x, FINE, scratch);
        index_all(fft, &bins, spectrum, fine);
        *ret = bins;
    }
    mem_release(&fft->allocator, arena.base);
    return bins.index ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

void bins_release(const struct fft *fft, struct bins *bins)
{
    if (fft) mem_release(&fft->allocator, bins->index);
}
