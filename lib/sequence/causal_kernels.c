// SPDX-License-Identifier: MIT
// Inner loops of short causal convolution. Everything that rounds is a vec_multiply_add or a single
// operation, so that results have the same bits in every tile.
#include "causal.h"

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

// The larger one of a limit and x; NaN stays.
INLINE vec vec_at_least(float limit, vec x)
{
#if VECTOR_BYTES == 64
    return (vec)_mm512_max_ps(_mm512_set1_ps(limit), (native_vec)x);
#elif VECTOR_BYTES == 32
    return (vec)_mm256_max_ps(_mm256_set1_ps(limit), (native_vec)x);
#else
    const bits_vec below = (bits_vec)(x < vec_broadcast(limit));
    return (vec)(((bits_vec)x & ~below) | ((bits_vec)vec_broadcast(limit) & below));
#endif
}

INLINE vec vec_silu(vec x)
{
    const vec numerator = vec_at_least(-88, x);
    return numerator / (vec_broadcast(1) + vec_exp(vec_at_least(-87, -numerator)));
}

typedef uint16_t half_vec __attribute__((vector_size(VECTOR_BYTES / 2), aligned(2), may_alias));

// Element i and those after it.
INLINE vec load_lanes(const void *x, size_t i, bool bf16)
{
    if (!bf16) return vec_load((const float *)x + i);
    const half_vec half = *(const half_vec *)((const uint16_t *)x + i);
#if VECTOR_BYTES == 64
    return (vec)((bits_vec)_mm512_cvtepu16_epi32((__m256i)half) << 16);
#elif VECTOR_BYTES == 32
    return (vec)((bits_vec)_mm256_cvtepu16_epi32((__m128i)half) << 16);
#else
    return (vec)(__builtin_convertvector(half, bits_vec) << 16);
#endif
}

// To the nearest even, as narrow_bf16; a NaN is quiet here.
INLINE void store_lanes(void *y, size_t i, vec v, bool bf16)
{
    const bits_vec bits = (bits_vec)v, number = (bits_vec)(v == v);
    const bits_vec rounded = bits + ((0x7fff + (bits >> 16 & 1)) & number);
    if (!bf16) vec_store((float *)y + i, v);
    else *(half_vec *)((uint16_t *)y + i) = __builtin_convertvector(rounded >> 16, half_vec);
}

// The constants of a loop.
struct causal_kind {
    size_t rows;
    bool bf16, silu, shared;
};

INLINE vec load_tap(const float *w, bool shared)
{
    return shared ? vec_broadcast(*w) : vec_load(w);
}

// n taps of x from element i on; n is a constant.
INLINE void causal_add(vec *sum, const struct causal_sum *call, size_t i, const float *w, size_t n,
                       struct causal_kind kind)
{
    vec tap[GROUP];
    UNROLL
    for (size_t k = 0; k < n; k++)
        tap[k] = keep_in_register(load_tap(w + (ptrdiff_t)k * call->w_pitch, kind.shared));
    UNROLL
    for (size_t q = 0; q < kind.rows + n - 1; q++) {
        const vec v = keep_in_register(load_lanes(call->x, i + q * call->x_pitch, kind.bf16));
        UNROLL
        for (size_t k = 0; k < n; k++)
            if (q >= k && q - k < kind.rows) sum[q - k] = vec_multiply_add(tap[k], v, sum[q - k]);
    }
}

#define ADD_TAPS(n) causal_add(sum, call, i, w, n, kind)

INLINE void causal_lanes(const struct causal_sum *call, size_t row, size_t c,
                         struct causal_kind kind)
{
    const float *w = call->w + (kind.shared ? 0 : c), *bias = call->bias + (kind.shared ? 0 : c);
    size_t i = row * call->x_pitch + c, step = GROUP * call->x_pitch;
    vec sum[ROWS];
    UNROLL
    for (size_t r = 0; r < kind.rows; r++) sum[r] = load_tap(bias, kind.shared);
    NO_UNROLL
    for (size_t k = GROUP; k <= call->taps; k += GROUP, i += step, w += GROUP * call->w_pitch)
        causal_add(sum, call, i, w, GROUP, kind);
    WITH_CONSTANT4(call->taps % GROUP, ADD_TAPS, 0, 1, 2, 3)
    UNROLL
    for (size_t r = 0; r < kind.rows; r++)
        store_lanes(call->y, (row + r) * call->y_pitch + c, kind.silu ? vec_silu(sum[r]) : sum[r],
                    kind.bf16);
}

// The samples and results of rows from `row` on, in lanes from c on.
INLINE void causal_prefetch(const struct causal_sum *call, size_t row, size_t c,
                            struct causal_kind kind)
{
    const size_t size = kind.bf16 ? sizeof(uint16_t) : sizeof(float), past = call->taps - 1;
    const uintptr_t x = (uintptr_t)call->x, y = (uintptr_t)call->y;
    UNROLL
    for (size_t r = row; r < row + kind.rows; r++) {
        __builtin_prefetch((const void *)(x + size * ((r + past) * call->x_pitch + c)));
        __builtin_prefetch((const void *)(y + size * (r * call->y_pitch + c)), 1);
    }
}

// Rows row .. row+kind.rows-1.
INLINE void causal_rows(const struct causal_sum *call, size_t row, struct causal_kind kind)
{
    NO_UNROLL
    for (size_t c = 0; c < call->lanes; c += LANES) {
        if (call->ahead) causal_prefetch(call, row + kind.rows, c, kind);
        causal_lanes(call, row, c, kind);
    }
}

INLINE void causal_sums(const struct causal_sum *call, struct causal_kind kind)
{
    const struct causal_kind one = {1, kind.bf16, kind.silu, kind.shared};
    size_t i = 0;
    NO_UNROLL
    for (; call->rows - i >= ROWS; i += ROWS) causal_rows(call, i, kind);
    NO_UNROLL
    for (; i < call->rows; i++) causal_rows(call, i, one);
}

#define SUMS(k) causal_sums(&copy, (struct causal_kind){ROWS, (k)&1, (k)&2, (k)&4})

static void causal_sum(const struct causal_sum *call)
{
    const struct causal_sum copy = *call; // stores change no field
    assert(call->lanes % CONV_LANES == 0 && call->taps > 0);
    WITH_CONSTANT8(call->bf16 + 2 * call->silu + 4 * call->shared, SUMS, 0, 1, 2, 3, 4, 5, 6, 7)
}

// With u = -z: s (1 - u (1 - s)) with s = 1 / (1 + e), 1 - s = e / (1 + e), e = exp(u).
static void causal_slope(float *g, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        const vec u = -vec_at_least(-87, -vec_at_least(-87, -vec_load(z + i)));
        const vec one = vec_broadcast(1), e = vec_exp(u), s = one / (one + e);
        const vec slope = s * vec_multiply_add(-u, e * s, one);
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

static void causal_weight(float *w, float *bias, const float *g, const float *x,
                          struct causal_size size)
{
    const size_t rows = size.rows, taps = size.taps, pitch = size.pitch;
    for (size_t c = 0; c < pitch; c += LANES) {
        size_t k = 0;
        for (; taps - k >= GROUP; k += GROUP)
            causal_weight_taps(w + k * pitch + c, g + c, x + k * pitch + c, rows, pitch, GROUP);
        for (; k < taps; k++)
            causal_weight_taps(w + k * pitch + c, g + c, x + k * pitch + c, rows, pitch, 1);
        vec sum = {0};
        for (size_t i = 0; i < rows; i++) sum += vec_load(g + i * pitch + c);
        vec_store(bias + c, vec_load(bias + c) + sum);
    }
}

const struct causal_kernels KERNEL(causal) = {causal_sum, causal_slope, causal_weight};
