// SPDX-License-Identifier: MIT
// Transforms of LANES points inside each of four vectors. Results are not sorted. Compilers
// translate the index lists below to single instructions.
//
// With vectors of 64 bytes point j = UNIT * a + b, b < UNIT, is lane b of unit a, 16 bytes. Units
// are transposed, so that the four values of a are in four vectors, and transformed by 4; then b
// is, in f32 after another transposition, inside units. With smaller vectors every step pairs lanes
// that are `half` apart, of two vectors, and leaves sums in one vector and twisted differences in
// the other.
#ifndef PARTITA_FFT_LANES_H
#define PARTITA_FFT_LANES_H

#include "fft_radix.h"

// clang-format off
// UNITS: units 0 and 1, 2 and 3, 0 and 2, 1 and 3 of two vectors. PAIRS: pairs of lanes in a unit.
#if LANES_IS(16)
#define UNITS01 0,1,2,3,4,5,6,7, 16,17,18,19,20,21,22,23
#define UNITS23 8,9,10,11,12,13,14,15, 24,25,26,27,28,29,30,31
#define UNITS02 0,1,2,3, 8,9,10,11, 16,17,18,19, 24,25,26,27
#define UNITS13 4,5,6,7, 12,13,14,15, 20,21,22,23, 28,29,30,31
#define PAIRS0 0,1,16,17, 4,5,20,21, 8,9,24,25, 12,13,28,29
#define PAIRS1 2,3,18,19, 6,7,22,23, 10,11,26,27, 14,15,30,31
#define LANES01 0,16,1,17, 4,20,5,21, 8,24,9,25, 12,28,13,29
#define LANES23 2,18,3,19, 6,22,7,23, 10,26,11,27, 14,30,15,31
#elif LANES_IS(8) && VECTOR_BYTES == 64
#define UNITS01 0,1,2,3, 8,9,10,11
#define UNITS23 4,5,6,7, 12,13,14,15
#define UNITS02 0,1,4,5, 8,9,12,13
#define UNITS13 2,3,6,7, 10,11,14,15
#define LOW1 0,8, 2,10, 4,12, 6,14
#define HIGH1 1,9, 3,11, 5,13, 7,15
#define INVERSE_LOW1 LOW1
#define INVERSE_HIGH1 HIGH1
#elif LANES_IS(8)
#define LOW4 0,1,2,3, 8,9,10,11
#define HIGH4 4,5,6,7, 12,13,14,15
#define LOW2 0,1,8,9, 4,5,12,13
#define HIGH2 2,3,10,11, 6,7,14,15
#define LOW1 0,2,8,10, 4,6,12,14
#define HIGH1 1,3,9,11, 5,7,13,15
#define INVERSE_LOW1 0,8,1,9, 4,12,5,13
#define INVERSE_HIGH1 2,10,3,11, 6,14,7,15
#elif LANES_IS(4)
#define LOW2 0,1, 4,5
#define HIGH2 2,3, 6,7
#define LOW1 0,4, 2,6
#define HIGH1 1,5, 3,7
#define INVERSE_LOW1 LOW1
#define INVERSE_HIGH1 HIGH1
#else
#define LOW1 0,2
#define HIGH1 1,3
#define INVERSE_LOW1 LOW1
#define INVERSE_HIGH1 HIGH1
#endif

#define C16 (REAL)0.92387953251128675613
#define S16 (REAL)0.38268343236508977173
// e^(-2 pi i b r / LANES) for r = 1, 2, 3 and the lanes b of a unit, repeated.
#define TIMES4(...) {__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__}
#if LANES_IS(16)
static const REAL unit_re[3][16] = {
    TIMES4(1, C16, R2, S16), TIMES4(1, R2, 0, -R2), TIMES4(1, S16, -R2, -C16)};
static const REAL unit_im[3][16] = {
    TIMES4(0, -S16, -R2, -C16), TIMES4(0, -R2, -1, -R2), TIMES4(0, -C16, -R2, S16)};
#elif VECTOR_BYTES == 64
static const REAL unit_re[3][8] = {TIMES4(1, R2), TIMES4(1, 0), TIMES4(1, -R2)};
static const REAL unit_im[3][8] = {TIMES4(0, -R2), TIMES4(0, -1), TIMES4(0, -R2)};
#else
// e^(-2 pi i j / (2 half)) for the lanes j of one group, repeated.
static const REAL lane_re4[8] = {1, R2, 0, -R2, 1, R2, 0, -R2};
static const REAL lane_im4[8] = {0, -R2, -1, -R2, 0, -R2, -1, -R2};
static const REAL lane_re2[8] = {1, 0, 1, 0, 1, 0, 1, 0};
static const REAL lane_im2[8] = {0, -1, 0, -1, 0, -1, 0, -1};
#endif
#undef C16
#undef S16
// clang-format on

#define CHOOSE(a, b, ...)                                                                          \
    (struct cvec)                                                                                  \
    {                                                                                              \
        __builtin_shufflevector((a).re, (b).re, __VA_ARGS__),                                      \
            __builtin_shufflevector((a).im, (b).im, __VA_ARGS__)                                   \
    }

// The last step of a pair, whose lanes are adjacent, and its inverse.
#if !LANES_IS(16)
INLINE void fft_lanes_step1(struct cvec *a, struct cvec *b)
{
    const struct cvec low = CHOOSE(*a, *b, LOW1), high = CHOOSE(*a, *b, HIGH1);
    *a = cvec_add(low, high);
    *b = cvec_sub(low, high);
}

INLINE void fft_lanes_inverse1(struct cvec *a, struct cvec *b)
{
    const struct cvec low = cvec_add(*a, *b), high = cvec_sub(*a, *b);
    *a = CHOOSE(low, high, INVERSE_LOW1);
    *b = CHOOSE(low, high, INVERSE_HIGH1);
}
#endif

#if VECTOR_BYTES == 64
// Part i of vector k becomes part k of vector i, by lists of the halves of two vectors,
// then in every second part.
#define TRANSPOSE(parts, FIRST, SECOND, EVEN_PARTS, ODD_PARTS)                                     \
    INLINE void fft_transpose_##parts(struct cvec *v)                                              \
    {                                                                                              \
        const struct cvec a = CHOOSE(v[0], v[1], FIRST), b = CHOOSE(v[0], v[1], SECOND),           \
                          c = CHOOSE(v[2], v[3], FIRST), d = CHOOSE(v[2], v[3], SECOND);           \
        v[0] = CHOOSE(a, c, EVEN_PARTS);                                                           \
        v[1] = CHOOSE(a, c, ODD_PARTS);                                                            \
        v[2] = CHOOSE(b, d, EVEN_PARTS);                                                           \
        v[3] = CHOOSE(b, d, ODD_PARTS);                                                            \
    }
TRANSPOSE(units, UNITS01, UNITS23, UNITS02, UNITS13)
#if LANES_IS(16)
TRANSPOSE(lanes, LANES01, LANES23, PAIRS0, PAIRS1) // of each unit
#endif

INLINE void fft_twist_units(struct cvec *v, bool inverse)
{
    UNROLL
    for (size_t r = 1; r < 4; r++) {
        const vec re = vec_load(unit_re[r - 1]), im = vec_load(unit_im[r - 1]);
        v[r] = cvec_mul(v[r], re, inverse ? -im : im);
    }
}

INLINE void fft_lanes_forward(struct cvec *v)
{
    fft_transpose_units(v);
    butterfly4(v, false);
    fft_twist_units(v, false);
#if LANES_IS(16)
    fft_transpose_lanes(v);
    butterfly4(v, false);
#else
    fft_lanes_step1(&v[0], &v[1]);
    fft_lanes_step1(&v[2], &v[3]);
#endif
}

INLINE void fft_lanes_inverse(struct cvec *v)
{
#if LANES_IS(16)
    butterfly4(v, true);
    fft_transpose_lanes(v);
#else
    fft_lanes_inverse1(&v[0], &v[1]);
    fft_lanes_inverse1(&v[2], &v[3]);
#endif
    fft_twist_units(v, true);
    butterfly4(v, true);
    fft_transpose_units(v);
}
#else
#define LANE_STEP(half)                                                                            \
    INLINE void fft_lanes_step##half(struct cvec *a, struct cvec *b)                               \
    {                                                                                              \
        const struct cvec low = CHOOSE(*a, *b, LOW##half), high = CHOOSE(*a, *b, HIGH##half);      \
        *a = cvec_add(low, high);                                                                  \
        *b = cvec_mul(cvec_sub(low, high), vec_load(lane_re##half), vec_load(lane_im##half));      \
    }                                                                                              \
    INLINE void fft_lanes_inverse##half(struct cvec *a, struct cvec *b)                            \
    {                                                                                              \
        const struct cvec rotated =                                                                \
            cvec_mul(*b, vec_load(lane_re##half), -vec_load(lane_im##half));                       \
        const struct cvec low = cvec_add(*a, rotated), high = cvec_sub(*a, rotated);               \
        *a = CHOOSE(low, high, LOW##half);                                                         \
        *b = CHOOSE(low, high, HIGH##half);                                                        \
    }

#if LANES_IS(8)
LANE_STEP(4)
#endif
#if !LANES_IS(2)
LANE_STEP(2)
#endif

INLINE void fft_lanes_forward(struct cvec *v)
{
    UNROLL
    for (size_t q = 0; q < 4; q += 2) {
#if LANES_IS(8)
        fft_lanes_step4(&v[q], &v[q + 1]);
#endif
#if !LANES_IS(2)
        fft_lanes_step2(&v[q], &v[q + 1]);
#endif
        fft_lanes_step1(&v[q], &v[q + 1]);
    }
}

INLINE void fft_lanes_inverse(struct cvec *v)
{
    UNROLL
    for (size_t q = 0; q < 4; q += 2) {
        fft_lanes_inverse1(&v[q], &v[q + 1]);
#if !LANES_IS(2)
        fft_lanes_inverse2(&v[q], &v[q + 1]);
#endif
#if LANES_IS(8)
        fft_lanes_inverse4(&v[q], &v[q + 1]);
#endif
    }
}
#endif

#endif
