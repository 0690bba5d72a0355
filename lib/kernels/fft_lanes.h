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
// Lane l of shuffles of two vectors, k = 0 or 1. HALVES: half k of every 2n lanes. PARTS: every
// second n lanes, from lanes k*n on. PAIRS and SINGLES of every four lanes: pair k of one vector
// interleaved with that of the other; lanes k and k + 2 of one, then of the other.
#define HALVES(l, n, k, j) ((l) % (2 * (n)) < (n) ? (l) : LANES - (n) + (l)) + (k) * (n)
#define PARTS(l, n, k, j) ((l) / (n) * 2 + (k)) * (n) + (l) % (n)
#define PAIRS(l, n, k, j) (l) / 4 * 4 + (k) * 2 + (l) % 4 / 2 + (l) % 2 * LANES
#define SINGLES(l, n, k, j) (l) / 4 * 4 + (l) % 2 * 2 + (k) + (l) % 4 / 2 * LANES
#define LOW(n) EACH_LANE(HALVES, n, 0, 0)
#define HIGH(n) EACH_LANE(HALVES, n, 1, 0)
#if LANES_IS(8) && VECTOR_BYTES == 32
#define LOW1 EACH_LANE(SINGLES, 1, 0, 0)
#define HIGH1 EACH_LANE(SINGLES, 1, 1, 0)
#define INVERSE_LOW1 EACH_LANE(PAIRS, 1, 0, 0)
#define INVERSE_HIGH1 EACH_LANE(PAIRS, 1, 1, 0)
#else
#define LOW1 LOW(1)
#define HIGH1 HIGH(1)
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
enum { UNIT = 16 / sizeof(REAL) };
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
TRANSPOSE(units, LOW(LANES / 2), HIGH(LANES / 2), EACH_LANE(PARTS, UNIT, 0, 0),
          EACH_LANE(PARTS, UNIT, 1, 0))
#if LANES_IS(16)
TRANSPOSE(lanes, EACH_LANE(PAIRS, 1, 0, 0), EACH_LANE(PAIRS, 1, 1, 0), LOW(2),
          HIGH(2)) // of each unit
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
        const struct cvec low = CHOOSE(*a, *b, LOW(half)), high = CHOOSE(*a, *b, HIGH(half));      \
        *a = cvec_add(low, high);                                                                  \
        *b = cvec_mul(cvec_sub(low, high), vec_load(lane_re##half), vec_load(lane_im##half));      \
    }                                                                                              \
    INLINE void fft_lanes_inverse##half(struct cvec *a, struct cvec *b)                            \
    {                                                                                              \
        const struct cvec rotated =                                                                \
            cvec_mul(*b, vec_load(lane_re##half), -vec_load(lane_im##half));                       \
        const struct cvec low = cvec_add(*a, rotated), high = cvec_sub(*a, rotated);               \
        *a = CHOOSE(low, high, LOW(half));                                                         \
        *b = CHOOSE(low, high, HIGH(half));                                                        \
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
