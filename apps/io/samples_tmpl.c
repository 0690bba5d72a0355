// SPDX-License-Identifier: MIT
// Conversion of scalars for one type in memory. Compiled twice, with -DREAL=float -DSUFFIX=f32 and with
// -DREAL=double -DSUFFIX=f64. Integers go through int32_t in pieces that stay in the first-level cache.
#include "samples.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(stem) JOIN(stem, SUFFIX)

enum { PIECE = 1024 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void decode_floats(REAL *y, const unsigned char *x, size_t n, unsigned bytes)
{
    if (bytes == sizeof(REAL)) {
        memcpy(y, x, n * sizeof *y);
    } else if (bytes == 4) {
        for (size_t i = 0; i < n; i++) {
            float v;
            memcpy(&v, x + 4 * i, 4);
            y[i] = (REAL)v;
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            double v;
            memcpy(&v, x + 8 * i, 8);
            y[i] = (REAL)v;
        }
    }
}

static void decode_integers(REAL *y, const unsigned char *x, size_t n, struct encoding encoding)
{
    int32_t piece[PIECE];
    REAL scale = (REAL)ldexp(1.0, 1 - 8 * (int)encoding.bytes);
    while (n) {
        size_t m = smaller(n, PIECE);
        integers_unpack(piece, x, m, encoding);
        for (size_t i = 0; i < m; i++) y[i] = (REAL)piece[i] * scale;
        y += m;
        x += m * encoding.bytes;
        n -= m;
    }
}

void NAME(samples_decode)(REAL *y, unsigned char *x, size_t n, struct encoding encoding)
{
    if (encoding.big_endian) samples_swap(x, n, encoding.bytes);
    if (encoding.kind == ENCODING_FLOAT) decode_floats(y, x, n, encoding.bytes);
    else decode_integers(y, x, n, encoding);
}

// Adding 1.5 * 2^52 leaves a double's integer part, rounded to even, in its low bits: unlike lrint, compilers turn
// this into vector code for every instruction set.
static const double ROUND = 0x1.8p52;

static void quantise(int32_t *y, const REAL *x, size_t n, unsigned bits, struct sample_counts *counts)
{
    double scale = ldexp(1.0, (int)bits - 1), low = -scale, high = scale - 1;
    uint32_t clipped = 0, not_finite = 0;
    for (size_t i = 0; i < n; i++) {
        double v = (double)x[i] * scale;
        not_finite += !(fabs(v) <= DBL_MAX);
        v = v == v ? v : 0;
        double kept = v < low ? low : v > high ? high : v;
        clipped += v < low - 0.5 || v >= high + 0.5;
        y[i] = (int32_t)((kept + ROUND) - ROUND);
    }
    counts->clipped += clipped;
    counts->not_finite += not_finite;
}

void NAME(samples_quantise)(int32_t *y, const REAL *x, size_t n, unsigned bits, struct sample_counts *counts)
{
    quantise(y, x, n, bits, counts);
    for (size_t i = 0; i < n; i++) y[i] = (int32_t)((uint32_t)y[i] << (32 - bits));
}

static void encode_integers(unsigned char *y, const REAL *x, size_t n, struct encoding encoding,
                            struct sample_counts *counts)
{
    int32_t piece[PIECE];
    while (n) {
        size_t m = smaller(n, PIECE);
        quantise(piece, x, m, 8 * encoding.bytes, counts);
        integers_pack(y, piece, m, encoding);
        y += m * encoding.bytes;
        x += m;
        n -= m;
    }
}

static uint64_t count_not_finite(const REAL *x, size_t n, REAL limit)
{
    uint64_t count = 0;
    while (n) {
        size_t m = smaller(n, PIECE);
        uint32_t bad = 0;
        for (size_t i = 0; i < m; i++) bad += !(x[i] >= -limit && x[i] <= limit);
        count += bad;
        x += m;
        n -= m;
    }
    return count;
}

static void encode_floats(unsigned char *y, const REAL *x, size_t n, unsigned bytes, struct sample_counts *counts)
{
    counts->not_finite +=
        count_not_finite(x, n, bytes == 4 ? (REAL)FLT_MAX : (REAL)(sizeof(REAL) == 4 ? FLT_MAX : DBL_MAX));
    if (bytes == sizeof(REAL)) {
        memcpy(y, x, n * sizeof *x);
    } else if (bytes == 4) {
        for (size_t i = 0; i < n; i++) {
            float v = (float)x[i];
            memcpy(y + 4 * i, &v, 4);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            double v = (double)x[i];
            memcpy(y + 8 * i, &v, 8);
        }
    }
}

void NAME(samples_encode)(unsigned char *y, const REAL *x, size_t n, struct encoding encoding,
                          struct sample_counts *counts)
{
    if (encoding.kind == ENCODING_FLOAT) encode_floats(y, x, n, encoding.bytes, counts);
    else encode_integers(y, x, n, encoding, counts);
    if (encoding.big_endian) samples_swap(y, n, encoding.bytes);
}

uint64_t NAME(samples_purge)(REAL *x, size_t n)
{
    uint64_t count = 0;
    REAL limit = sizeof(REAL) == 4 ? (REAL)FLT_MAX : (REAL)DBL_MAX;
    while (n) {
        size_t m = smaller(n, PIECE);
        uint64_t bad = count_not_finite(x, m, limit);
        if (bad)
            for (size_t i = 0; i < m; i++) x[i] = x[i] >= -limit && x[i] <= limit ? x[i] : 0;
        count += bad;
        x += m;
        n -= m;
    }
    return count;
}
