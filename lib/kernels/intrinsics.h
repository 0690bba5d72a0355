// SPDX-License-Identifier: MIT
// What the vector extensions cannot say, by intrinsics: a product and a sum in one rounding
// whatever the compiler makes of its surroundings, on which "the same bits at every position"
// rests, and the first lanes of a vector from memory and to it. Included by vector.h.
#ifndef PARTITA_KERNEL_INTRINSICS_H
#define PARTITA_KERNEL_INTRINSICS_H

// vec_multiply_add: a * b + c, in plain C in two roundings. vec_load_first: n < LANES reals, which
// are all that is read, then zeros. vec_store_first: the first n < LANES lanes of v, which are all
// that is written.
#if VECTOR_BYTES == 64 && REAL_BYTES == 4
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), x);
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    _mm512_mask_storeu_ps(y, (__mmask16)((1u << n) - 1), (__m512)v);
}
#elif VECTOR_BYTES == 64
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    return (vec)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), x);
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    _mm512_mask_storeu_pd(y, (__mmask8)((1u << n) - 1), (__m512d)v);
}
#elif VECTOR_BYTES == 32 && REAL_BYTES == 4
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return (vec)_mm256_maskload_ps(x, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_maskstore_ps(y, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane), (__m256)v);
}
#elif VECTOR_BYTES == 32
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
    return (vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

INLINE vec vec_load_first(const REAL *x, size_t n)
{
    const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return (vec)_mm256_maskload_pd(x, _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), lane));
}

INLINE void vec_store_first(REAL *y, vec v, size_t n)
{
    const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    _mm256_maskstore_pd(y, _mm256_cmpgt_epi64(_mm256_set1_epi64x((long long)n), lane), (__m256d)v);
}
#elif defined __aarch64__
INLINE vec vec_multiply_add(vec a, vec b, vec c)
{
#if REAL_BYTES == 4
    return (vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return (vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#endif
}
#endif

#if VECTOR_BYTES == 16
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

#endif
