// SPDX-License-Identifier: MIT
// Operations that the vector extensions cannot express, by intrinsics: a multiply-add with one
// rounding, independent of the compiler's optimizations, without which results would not have the
// same bits at every position; and loading and storing the first lanes of a vector. Included by
// vector.h.
#ifndef PARTITA_KERNEL_INTRINSICS_H
#define PARTITA_KERNEL_INTRINSICS_H

#define SUFFIXED_(name, suffix) name##suffix
#define SUFFIXED(name, suffix) SUFFIXED_(name, suffix)
#if REAL_BYTES == 4
#define VEC_OP(op) SUFFIXED(op, _ps)
#else
#define VEC_OP(op) SUFFIXED(op, _pd)
#endif

// vec_multiply_add: a * b + c; in plain C with two roundings. vec_load_first: reads only n < LANES
// reals; the other lanes are zero. vec_store_first: writes only the first n < LANES lanes of v.
// vec_load_masked: the same for lanes begin .. end-1 of a mask vec_lanes, begin and end <= LANES.
// vec_store_range: likewise. vec_store_past_caches: to an address aligned to the vector, past the
// caches if a vector is a whole cache line.
#if VECTOR_BYTES == 64
typedef __typeof__(VEC_OP(_mm512_set1)(0)) native_vec;
typedef __typeof__(__builtin_choose_expr(REAL_BYTES == 4, (__mmask16)0, (__mmask8)0)) vec_mask;

INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)VEC_OP(_mm512_fmadd)((native_vec)a, (native_vec)b, (native_vec)c);
}

// c plus the products of both bf16 of each word of a and b: AVX512-BF16, for which these files are
// not compiled.
INLINE vec vec_add_pairs(vec a, vec b, vec c)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    return (vec)VEC_OP(_mm512_maskz_loadu)((vec_mask)((1u << n) - 1), x);
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    VEC_OP(_mm512_mask_storeu)(y, (vec_mask)((1u << n) - 1), (native_vec)v);
}

INLINE vec_mask vec_lanes(size_t begin, size_t end)
{
    return (vec_mask)(((1u << end) - 1) & ~((1u << begin) - 1));
}

INLINE vec vec_load_masked(const REAL *x, vec_mask mask)
{
    return (vec)VEC_OP(_mm512_maskz_loadu)(mask, x);
}

INLINE void vec_store_range(REAL *y, vec v, size_t begin, size_t end)
{
    VEC_OP(_mm512_mask_storeu)(y, vec_lanes(begin, end), (native_vec)v);
}

INLINE void vec_store_past_caches(REAL *y, vec v)
{
    VEC_OP(_mm512_stream)(y, (native_vec)v);
}
#elif VECTOR_BYTES == 32
typedef __typeof__(VEC_OP(_mm256_set1)(0)) native_vec;
typedef __m256i vec_mask;

INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)VEC_OP(_mm256_fmadd)((native_vec)a, (native_vec)b, (native_vec)c);
}

// All ones in the first n lanes.
INLINE __m256i vec_mask_of(size_t n)
{
#if REAL_BYTES == 4
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
#else
    const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), lane);
#endif
}

INLINE vec_mask vec_lanes(size_t begin, size_t end)
{
    return _mm256_andnot_si256(vec_mask_of(begin), vec_mask_of(end));
}

INLINE vec vec_load_masked(const REAL *x, vec_mask mask)
{
    return (vec)VEC_OP(_mm256_maskload)(x, mask);
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    return vec_load_masked(x, vec_mask_of(n));
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    VEC_OP(_mm256_maskstore)(y, vec_mask_of(n), (native_vec)v);
}
#else
#if defined __aarch64__
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
#if REAL_BYTES == 4
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return (vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#endif
}
#else
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return a * b + c;
}
#endif

// Lane by lane, inlined loads would be most of the code of a kernel that masks.
#if defined __aarch64__
#define LOAD_BY_LANES INLINE
#else
#define LOAD_BY_LANES static __attribute__((noinline, unused))
#endif

typedef struct {
    size_t begin, end;
} vec_mask;

INLINE vec_mask vec_lanes(size_t begin, size_t end)
{
    return (vec_mask){begin, end};
}

LOAD_BY_LANES vec vec_load_masked(const REAL *x, vec_mask mask)
{
    vec v = {0};
    UNROLL
    for (size_t k = 0; k < LANES; k++)
        if (mask.begin <= k && k < mask.end) v[k] = x[k];
    return v;
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    vec v = {0};
    UNROLL
    for (size_t k = 0; k < LANES - 1; k++)
        if (k < n) v[k] = x[k];
    return v;
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    UNROLL
    for (size_t k = 0; k < LANES - 1; k++)
        if (k < n) y[k] = v[k];
}
#endif

#if VECTOR_BYTES != 64
INLINE void vec_store_range(REAL *y, vec v, size_t begin, size_t end)
{
    UNROLL
    for (size_t k = 0; k < LANES; k++)
        if (begin <= k && k < end) y[k] = v[k];
}

INLINE void vec_store_past_caches(REAL *y, vec v)
{
    *(vec *)y = v;
}
#endif

#endif
