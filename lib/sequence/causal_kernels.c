// SPDX-License-Identifier: MIT
// Inner loops of short causal convolution. Everything that rounds is a vec_multiply_add or a single
// operation, so that results have the same bits in every tile.
#include "causal_kernels.h"

#include <assert.h>

#include "kernels/vector.h"

enum { ROWS = 4, GROUP = 4 }; // 4 sums, 4 taps and x are in registers

// exp(z) for z in [-87, 88] as 2^n exp(r), |r| <= log(2)/2, with the polynomial of degree 6 whose
// largest relative error, 2e-8 in f32, is least (Remez).
INLINE vec vec_exp(vec z)
{
    static const float poly[] = {
        0x1.6ac29p-10f, 0x1.126e4ap-7f, 0x1.55589p-5f, 0x1.555408p-3f, 0x1.fffffap-2f, 1, 1};
    const vec rounder = vec_broadcast(0x1.8p23f);
    const vec shifted = vec_multiply_add(z, vec_broadcast(0x1.715476p+0f), rounder);
    const vec n = shifted - rounder;
    vec r = vec_multiply_add(n, vec_broadcast(-0x1.62e4p-1f), z);
    r = vec_multiply_add(n, vec_broadcast(-0x1.7f7d1cp-20f), r);
    vec ret = vec_broadcast(poly[0]);
    UNROLL
    for (size_t k = 1; k < sizeof poly / sizeof *poly; k++)
        ret = vec_multiply_add(ret, r, vec_broadcast(poly[k]));
    return (vec)((bits_vec)ret + ((bits_vec)shifted << 23)); // the rounder has no bits there
}

// x within limits; NaN stays.
INLINE vec vec_clamp(vec x, float least, float largest)
{
    const bits_vec low = (bits_vec)(x < vec_broadcast(least)),
                   high = (bits_vec)(x > vec_broadcast(largest));
    return (vec)(((bits_vec)x & ~(low | high)) | ((bits_vec)vec_broadcast(least) & low) |
                 ((bits_vec)vec_broadcast(largest) & high));
}

INLINE vec vec_silu(vec x)
{
    const vec z = vec_clamp(x, -88, 87);
    const vec numerator =
        (vec)(((bits_vec)x & ~(bits_vec)(x < z)) | ((bits_vec)z & (bits_vec)(x < z)));
    return numerator / (vec_broadcast(1) + vec_exp(-z));
}

// The taps k .. k+n-1 of rows of sums; n and rows are constants.
INLINE void causal_add(vec *sum, const float *x, const float *w, size_t pitch, size_t rows,
                       size_t n)
{
    vec tap[GROUP];
    UNROLL
    for (size_t k = 0; k < n; k++) tap[k] = keep_in_register(vec_load(w + k * pitch));
    UNROLL
    for (size_t q = 0; q < rows + n - 1; q++) {
        const vec v = keep_in_register(vec_load(x + q * pitch));
        UNROLL
        for (size_t k = 0; k < n; k++)
            if (q >= k && q - k < rows) sum[q - k] = vec_multiply_add(tap[k], v, sum[q - k]);
    }
}

INLINE void causal_rows(float *y, const float *x, const struct causal_taps *taps, size_t rows,
                        bool silu)
{
    assert(taps->pitch % CONV_LANES == 0 && taps->taps > 0);
    const size_t pitch = taps->pitch, rest = taps->taps % GROUP, whole = taps->taps - rest;
    NO_UNROLL
    for (size_t c = 0; c < pitch; c += LANES) {
        vec sum[ROWS];
        const float *at = x + c, *w = taps->w + c;
        UNROLL
        for (size_t r = 0; r < rows; r++) sum[r] = vec_load(taps->bias + c);
        NO_UNROLL
        for (size_t k = 0; k < whole; k += GROUP, at += GROUP * pitch, w += GROUP * pitch)
            causal_add(sum, at, w, pitch, rows, GROUP);
        if (rest == 1) causal_add(sum, at, w, pitch, rows, 1);
        else if (rest == 2) causal_add(sum, at, w, pitch, rows, 2);
        else if (rest == 3) causal_add(sum, at, w, pitch, rows, 3);
        UNROLL
        for (size_t r = 0; r < rows; r++)
            vec_store(y + r * pitch + c, silu ? vec_silu(sum[r]) : sum[r]);
    }
}

INLINE void causal_sums(float *y, const float *x, const struct causal_taps *taps, size_t rows,
                        bool silu)
{
    size_t i = 0;
    NO_UNROLL
    for (; rows - i >= ROWS; i += ROWS)
        causal_rows(y + i * taps->pitch, x + i * taps->pitch, taps, ROWS, silu);
    NO_UNROLL
    for (; i < rows; i++) causal_rows(y + i * taps->pitch, x + i * taps->pitch, taps, 1, silu);
}

static void causal_sum(float *y, const float *x, const struct causal_taps *taps, size_t rows,
                       bool silu)
{
    if (silu) causal_sums(y, x, taps, rows, true);
    else causal_sums(y, x, taps, rows, false);
}

// s (1 + z (1 - s)) with s = 1 / (1 + e), 1 - s = e / (1 + e), e = exp(-z).
static void causal_slope(float *g, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        const vec v = vec_clamp(vec_load(z + i), -87, 87), one = vec_broadcast(1);
        const vec e = vec_exp(-v), s = one / (one + e);
        const vec slope = s * vec_multiply_add(v, e * s, one);
        vec_store(g + i, vec_load(g + i) * slope);
    }
}

// Of taps k .. k+n-1, with n a constant.
INLINE void causal_weight_taps(float *w, const float *g, const float *x, size_t rows, size_t pitch,
                               size_t n)
{
    vec sum[GROUP];
    UNROLL
    for (size_t k = 0; k < n; k++) sum[k] = (vec){0};
    NO_UNROLL
    for (size_t i = 0; i < rows; i++, g += pitch, x += pitch) {
        const vec v = vec_load(g);
        UNROLL
        for (size_t k = 0; k < n; k++)
            sum[k] = vec_multiply_add(v, vec_load(x + k * pitch), sum[k]);
    }
    UNROLL
    for (size_t k = 0; k < n; k++) vec_store(w + k * pitch, vec_load(w + k * pitch) + sum[k]);
}

static void causal_weight(float *w, float *bias, const float *g, const float *x, size_t rows,
                          const struct causal_taps *taps)
{
    const size_t pitch = taps->pitch;
    for (size_t c = 0; c < pitch; c += LANES) {
        size_t k = 0;
        for (; taps->taps - k >= GROUP; k += GROUP)
            causal_weight_taps(w + k * pitch + c, g + c, x + k * pitch + c, rows, pitch, GROUP);
        for (; k < taps->taps; k++)
            causal_weight_taps(w + k * pitch + c, g + c, x + k * pitch + c, rows, pitch, 1);
        vec sum = {0};
        for (size_t i = 0; i < rows; i++) sum += vec_load(g + i * pitch + c);
        vec_store(bias + c, vec_load(bias + c) + sum);
    }
}

const struct causal_kernels KERNEL(causal) = {causal_sum, causal_slope, causal_weight};
