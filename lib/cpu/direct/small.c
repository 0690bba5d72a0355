// SPDX-License-Identifier: MIT
#include "small.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/sizes.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

enum {
    // Real multiplications. With vectors so many take at most ten microseconds; a plan with the
    // tables of a transform takes longer.
    SMALL_PRODUCTS = 1 << 18,
    SMALL_BYTES = 16 << 10, // of a window of the signal, and of a reversed template, on the stack
};

// y[i] = sum over j < taps of g[j] * x[first + i - j], i < n; x is zero outside its size.
struct small_filter {
    const struct kernels *kernels;
    size_t bytes; // of a sample
    bool complex;
    const char *x, *g;
    size_t size, taps;
    ptrdiff_t first;
};

static void small_window(const struct small_filter *filter, char *y, size_t p, size_t n)
{
    _Alignas(MEM_ALIGN) char window[SMALL_BYTES];
    const size_t history = filter->taps - 1, bytes = filter->bytes;
    const ptrdiff_t first = filter->first + (ptrdiff_t)p - (ptrdiff_t)history;
    const bool inside = first >= 0 && first + (ptrdiff_t)(history + n) <= (ptrdiff_t)filter->size;
    const char *x = inside ? filter->x + first * (ptrdiff_t)bytes : window;
    assert((history + n) * bytes <= sizeof window);
    if (!inside) samples_window(window, filter->x, filter->size, first, 1, history + n, bytes);
    x += history * bytes;
    memset(y, 0, n * bytes);
    filter->kernels->fir(y, x, filter->g, n, filter->taps,
                         filter->complex ? FIR_COMPLEX : FIR_REAL);
}

bool direct_small(void *y, const struct one_shot *call)
{
    _Alignas(MEM_ALIGN) char causal[SMALL_BYTES];
    const enum partita_type type = call->type ? call->type : PARTITA_F32;
    const bool complex = type == PARTITA_CF32 || type == PARTITA_CF64;
    const bool f64 = type == PARTITA_F64 || type == PARTITA_CF64;
    const size_t bytes = partita_type_size(type), shorter = size_min(call->n, call->m);
    const size_t products = size_mul(call->range.size, size_mul(shorter, complex ? 4 : 1));
    const uintptr_t addresses = (uintptr_t)y | (uintptr_t)call->x | (uintptr_t)call->h;
    const bool correlate = call->op == PARTITA_CORRELATE;
    if (bytes < sizeof(float) || products > SMALL_PRODUCTS || addresses % (f64 ? 8 : 4) ||
        shorter > SMALL_BYTES / 2 / bytes || (correlate && call->m > SMALL_BYTES / bytes))
        return false;
    const char *h = call->h;
    if (correlate) {
        const struct shape taps = {.f64 = f64,
                                   .complex_taps = complex,
                                   .tap_bytes = bytes,
                                   .axis[0] = {.kernel = call->m, .dilation = 1, .span = call->m}};
        causal_taps(&taps, causal, h);
        h = causal;
    }
    // The shorter operand is the filter.
    const bool exchanged = call->n < call->m;
    const struct small_filter filter = {.kernels = kernels_select(cpu_detect(), f64),
                                        .bytes = bytes,
                                        .complex = complex,
                                        .x = exchanged ? h : call->x,
                                        .g = exchanged ? call->x : h,
                                        .size = size_max(call->n, call->m),
                                        .taps = shorter,
                                        .first = call->range.first};
    // A signal that becomes the filter is multiplied by the zeros around the other operand too,
    // where an infinity would make NaN.
    const uint64_t infinity = f64 ? (uint64_t)0x7ff << 52 : (uint64_t)0xff << 23;
    if (exchanged && filter.kernels->peak(filter.g, shorter * (complex ? 2 : 1)) >= infinity)
        return false;
    const size_t tile = SMALL_BYTES / bytes - (shorter - 1);
    for (size_t p = 0; p < call->range.size; p += tile)
        small_window(&filter, (char *)y + p * bytes, p, size_min(tile, call->range.size - p));
    return true;
}
