// SPDX-License-Identifier: MIT
// Transforms of LANES points inside vectors, two vectors at a time. Every step pairs lanes that are
// `half` apart and leaves sums in one vector and twisted differences in the other. Results are not
// sorted, so each step costs one shuffle per vector. Compilers translate the index lists below to
// single instructions.
#ifndef PARTITA_FFT_LANES_H
#define PARTITA_FFT_LANES_H

#include "fft_radix.h"

// clang-format off
#if LANES_IS(16)
#define LOW8 0,1,2,3,4,5,6,7, 16,17,18,19,20,21,22,23
#define HIGH8 8,9,10,11,12,13,14,15, 24,25,26,27,28,29,30,31
#define LOW4 0,1,2,3, 8,9,10,11, 16,17,18,19, 24,25,26,27
#define HIGH4 4,5,6,7, 12,13,14,15, 20,21,22,23, 28,29,30,31
#define INVERSE_LOW4 0,1,2,3, 16,17,18,19, 4,5,6,7, 20,21,22,23
#define INVERSE_HIGH4 8,9,10,11, 24,25,26,27, 12,13,14,15, 28,29,30,31
#define LOW2 0,1,16,17, 4,5,20,21, 8,9,24,25, 12,13,28,29
#define HIGH2 2,3,18,19, 6,7,22,23, 10,11,26,27, 14,15,30,31
#define LOW1 0,2,16,18, 4,6,20,22, 8,10,24,26, 12,14,28,30
#define HIGH1 1,3,17,19, 5,7,21,23, 9,11,25,27, 13,15,29,31
#define INVERSE_LOW1 0,16,1,17, 4,20,5,21, 8,24,9,25, 12,28,13,29
#define INVERSE_HIGH1 2,18,3,19, 6,22,7,23, 10,26,11,27, 14,30,15,31
#elif LANES_IS(8)
#define LOW4 0,1,2,3, 8,9,10,11
#define HIGH4 4,5,6,7, 12,13,14,15
#define INVERSE_LOW4 LOW4
#define INVERSE_HIGH4 HIGH4
#define LOW2 0,1,8,9, 4,5,12,13
#define HIGH2 2,3,10,11, 6,7,14,15
#if REAL_BYTES == 4
#define LOW1 0,2,8,10, 4,6,12,14
#define HIGH1 1,3,9,11, 5,7,13,15
#define INVERSE_LOW1 0,8,1,9, 4,12,5,13
#define INVERSE_HIGH1 2,10,3,11, 6,14,7,15
#else
#define LOW1 0,8, 2,10, 4,12, 6,14
#define HIGH1 1,9, 3,11, 5,13, 7,15
#define INVERSE_LOW1 LOW1
#define INVERSE_HIGH1 HIGH1
#endif
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
// e^(-2 pi i j / (2 half)) for the lanes j of one group, repeated.
static const REAL lane_re8[16] = {1, C16, R2, S16, 0, -S16, -R2, -C16,
                                  1, C16, R2, S16, 0, -S16, -R2, -C16};
static const REAL lane_im8[16] = {0, -S16, -R2, -C16, -1, -C16, -R2, -S16,
                                  0, -S16, -R2, -C16, -1, -C16, -R2, -S16};
static const REAL lane_re4[16] = {1, R2, 0, -R2, 1, R2, 0, -R2, 1, R2, 0, -R2, 1, R2, 0, -R2};
static const REAL lane_im4[16] = {0, -R2, -1, -R2, 0, -R2, -1, -R2,
                                  0, -R2, -1, -R2, 0, -R2, -1, -R2};
static const REAL lane_re2[16] = {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0};
static const REAL lane_im2[16] = {0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1};
#undef C16
#undef S16
// clang-format on

#define CHOOSE(a, b, ...)                                                                          \
    (struct cvec)                                                                                  \
    {                                                                                              \
        __builtin_shufflevector((a).re, (b).re, __VA_ARGS__),                                      \
            __builtin_shufflevector((a).im, (b).im, __VA_ARGS__)                                   \
    }

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
        *a = CHOOSE(low, high, INVERSE_LOW##half);                                                 \
        *b = CHOOSE(low, high, INVERSE_HIGH##half);                                                \
    }

#define INVERSE_LOW8 LOW8
#define INVERSE_HIGH8 HIGH8
#define INVERSE_LOW2 LOW2
#define INVERSE_HIGH2 HIGH2
#if LANES_IS(16)
LANE_STEP(8)
#endif
#if LANES_IS(16) || LANES_IS(8)
LANE_STEP(4)
#endif
#if !LANES_IS(2)
LANE_STEP(2)
#endif

INLINE void fft_lanes_forward(struct cvec *a, struct cvec *b)
{
#if LANES_IS(16)
    fft_lanes_step8(a, b);
#endif
#if LANES_IS(16) || LANES_IS(8)
    fft_lanes_step4(a, b);
#endif
#if !LANES_IS(2)
    fft_lanes_step2(a, b);
#endif
    const struct cvec low = CHOOSE(*a, *b, LOW1), high = CHOOSE(*a, *b, HIGH1);
    *a = cvec_add(low, high);
    *b = cvec_sub(low, high);
}

INLINE void fft_lanes_inverse(struct cvec *a, struct cvec *b)
{
    const struct cvec low = cvec_add(*a, *b), high = cvec_sub(*a, *b);
    *a = CHOOSE(low, high, INVERSE_LOW1);
    *b = CHOOSE(low, high, INVERSE_HIGH1);
#if !LANES_IS(2)
    fft_lanes_inverse2(a, b);
#endif
#if LANES_IS(16) || LANES_IS(8)
    fft_lanes_inverse4(a, b);
#endif
#if LANES_IS(16)
    fft_lanes_inverse8(a, b);
#endif
}

#endif
