// SPDX-License-Identifier: MIT
// Butterflies of vectors of complex numbers, and the multiplication by a node's factors: shared by
// the passes of fft_passes.c and lanes_dft.c.
#ifndef PARTITA_FFT_RADIX_H
#define PARTITA_FFT_RADIX_H

#include "vector.h"

enum { MAX_RADIX = 12 };

#define R2 (REAL)0.70710678118654752440

struct cvec {
    vec re, im;
};

INLINE struct cvec cvec_mul(struct cvec a, vec wr, vec wi)
{
    return (struct cvec){a.re * wr - a.im * wi, a.re * wi + a.im * wr};
}

INLINE struct cvec cvec_add(struct cvec a, struct cvec b)
{
    return (struct cvec){a.re + b.re, a.im + b.im};
}

INLINE struct cvec cvec_sub(struct cvec a, struct cvec b)
{
    return (struct cvec){a.re - b.re, a.im - b.im};
}

// Times -i, or +i if inverse.
INLINE struct cvec cvec_rotate(struct cvec a, bool inverse)
{
    return inverse ? (struct cvec){-a.im, a.re} : (struct cvec){a.im, -a.re};
}

INLINE void butterfly2(struct cvec *v)
{
    const struct cvec a = v[0];
    v[0] = cvec_add(a, v[1]);
    v[1] = cvec_sub(a, v[1]);
}

INLINE void butterfly3(struct cvec *v, bool inverse)
{
    const REAL half = (REAL)0.5, sine = (REAL)0.86602540378443864676;
    const struct cvec sum = cvec_add(v[1], v[2]),
                      difference = cvec_rotate(cvec_sub(v[1], v[2]), inverse);
    const struct cvec middle = {v[0].re - half * sum.re, v[0].im - half * sum.im};
    const struct cvec side = {sine * difference.re, sine * difference.im};
    v[0] = cvec_add(v[0], sum);
    v[1] = cvec_add(middle, side);
    v[2] = cvec_sub(middle, side);
}

INLINE void butterfly4(struct cvec *v, bool inverse)
{
    const struct cvec a = cvec_add(v[0], v[2]), b = cvec_sub(v[0], v[2]);
    const struct cvec c = cvec_add(v[1], v[3]), d = cvec_rotate(cvec_sub(v[1], v[3]), inverse);
    v[0] = cvec_add(a, c);
    v[1] = cvec_add(b, d);
    v[2] = cvec_sub(a, c);
    v[3] = cvec_sub(b, d);
}

INLINE void butterfly5(struct cvec *v, bool inverse)
{
    const REAL c1 = (REAL)0.30901699437494742410, c2 = (REAL)-0.80901699437494742410;
    const REAL s1 = (REAL)0.95105651629515357212, s2 = (REAL)0.58778525229247312917;
    const struct cvec a = cvec_add(v[1], v[4]), b = cvec_add(v[2], v[3]);
    const struct cvec c = cvec_rotate(cvec_sub(v[1], v[4]), inverse),
                      d = cvec_rotate(cvec_sub(v[2], v[3]), inverse);
    const struct cvec m1 = {v[0].re + c1 * a.re + c2 * b.re, v[0].im + c1 * a.im + c2 * b.im};
    const struct cvec m2 = {v[0].re + c2 * a.re + c1 * b.re, v[0].im + c2 * a.im + c1 * b.im};
    const struct cvec n1 = {s1 * c.re + s2 * d.re, s1 * c.im + s2 * d.im};
    const struct cvec n2 = {s2 * c.re - s1 * d.re, s2 * c.im - s1 * d.im};
    v[0] = cvec_add(v[0], cvec_add(a, b));
    v[1] = cvec_add(m1, n1);
    v[2] = cvec_add(m2, n2);
    v[3] = cvec_sub(m2, n2);
    v[4] = cvec_sub(m1, n1);
}

// Results k and 7 - k of seven from the sums and rotated differences of elements j and 7 - j.
INLINE void butterfly7_pair(struct cvec *v, const struct cvec sum[4],
                            const struct cvec difference[4], int k)
{
    static const REAL cosine[] = {1, (REAL)0.62348980185873353053, (REAL)-0.22252093395631440429,
                                  (REAL)-0.90096886790241912624};
    static const REAL sine[] = {0, (REAL)0.78183148246802980871, (REAL)0.97492791218182360702,
                                (REAL)0.43388373911755812048};
    struct cvec middle = v[0], side = {{0}, {0}};
    UNROLL
    for (int j = 1; j < 4; j++) {
        const int p = j * k % 7, at = p < 4 ? p : 7 - p;
        const REAL c = cosine[at], s = p < 4 ? sine[at] : -sine[at];
        middle.re += c * sum[j].re;
        middle.im += c * sum[j].im;
        side.re += s * difference[j].re;
        side.im += s * difference[j].im;
    }
    v[k] = cvec_add(middle, side);
    v[7 - k] = cvec_sub(middle, side);
}

INLINE void butterfly7(struct cvec *v, bool inverse)
{
    struct cvec sum[4], difference[4], all = v[0];
    UNROLL
    for (int j = 1; j < 4; j++) {
        sum[j] = cvec_add(v[j], v[7 - j]);
        difference[j] = cvec_rotate(cvec_sub(v[j], v[7 - j]), inverse);
        all = cvec_add(all, sum[j]);
    }
    UNROLL
    for (int k = 1; k < 4; k++) butterfly7_pair(v, sum, difference, k);
    v[0] = all;
}

// Times e^(-i pi / 4), or its inverse.
INLINE struct cvec cvec_rotate_eighth(struct cvec a, bool inverse)
{
    const REAL r = R2;
    const struct cvec t = cvec_rotate(a, inverse);
    return (struct cvec){r * (a.re + t.re), r * (a.im + t.im)};
}

// The odd half's transform times the eighths of a circle that it needs.
INLINE void butterfly8_rotate(struct cvec *odd, bool inverse)
{
    odd[1] = cvec_rotate_eighth(odd[1], inverse);
    odd[2] = cvec_rotate(odd[2], inverse);
    odd[3] = cvec_rotate_eighth(cvec_rotate(odd[3], inverse), inverse);
}

INLINE void butterfly8(struct cvec *v, bool inverse)
{
    struct cvec even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
    butterfly4(even, inverse);
    butterfly4(odd, inverse);
    butterfly8_rotate(odd, inverse);
    UNROLL
    for (int q = 0; q < 4; q++) {
        v[q] = cvec_add(even[q], odd[q]);
        v[q + 4] = cvec_sub(even[q], odd[q]);
    }
}

INLINE void butterfly_small(struct cvec *v, int radix, bool inverse)
{
    if (radix == 2) butterfly2(v);
    if (radix == 3) butterfly3(v, inverse);
    if (radix == 4) butterfly4(v, inverse);
    if (radix == 5) butterfly5(v, inverse);
    if (radix == 7) butterfly7(v, inverse);
    if (radix == 8) butterfly8(v, inverse);
}

// a*b elements, where a and b have no common factor: element n = b i + a j of a transform is
// element (i, j) of one of a times b, whose result (k mod a, k mod b) is result k, so that no
// factors stand between the two. Source: Good, The interaction algorithm and practical Fourier
// analysis (1958).
INLINE void butterfly_coprime(struct cvec *v, int a, int b, bool inverse)
{
    struct cvec w[MAX_RADIX]; // [j][i]
    UNROLL
    for (int j = 0; j < b; j++) {
        UNROLL
        for (int i = 0; i < a; i++) w[j * a + i] = v[(b * i + a * j) % (a * b)];
        butterfly_small(w + j * a, a, inverse);
    }
    UNROLL
    for (int i = 0; i < a; i++) {
        struct cvec u[MAX_RADIX];
        UNROLL
        for (int j = 0; j < b; j++) u[j] = w[j * a + i];
        butterfly_small(u, b, inverse);
        UNROLL
        for (int k = i; k < a * b; k += a) v[k] = u[k % b];
    }
}

INLINE void butterfly(struct cvec *v, int radix, bool inverse)
{
    if (radix == 6) butterfly_coprime(v, 2, 3, inverse);
    else if (radix == 10) butterfly_coprime(v, 2, 5, inverse);
    else if (radix == 12) butterfly_coprime(v, 4, 3, inverse);
    else butterfly_small(v, radix, inverse);
}

// Element p > 0 of a node times its factor, conjugated if inverse.
INLINE struct cvec cvec_apply_factor(struct cvec v, int p, const REAL *factors, bool inverse)
{
    const vec wr = vec_broadcast(factors[2 * p - 2]), wi = vec_broadcast(factors[2 * p - 1]);
    return cvec_mul(v, wr, inverse ? -wi : wi);
}

INLINE void butterfly_apply_factors(struct cvec *v, int radix, const REAL *factors, bool inverse)
{
    UNROLL
    for (int p = 1; p < radix; p++) v[p] = cvec_apply_factor(v[p], p, factors, inverse);
}

#endif
