// SPDX-License-Identifier: MIT
// Sample conversion for one type in memory. Compiled twice, with -DREAL=float -DSUFFIX=f32 and with
// -DREAL=double -DSUFFIX=f64. Integers are converted through int32_t, in chunks that fit the L1
// cache.
#include "samples.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "../../../lib/base/sizes.h"
#include "base/wide.h"

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(stem) JOIN(stem, SUFFIX)

typedef uint32_t float_bits;
typedef uint64_t double_bits;
typedef JOIN(REAL, bits) real_bits;

// The one of float and double that REAL is not.
typedef double float_other;
typedef float double_other;
typedef JOIN(REAL, other) other;

#define MAX_FINITE (sizeof(REAL) == 4 ? (REAL)FLT_MAX : (REAL)DBL_MAX)

enum { CHUNK = 1024 };

// IEEE 754 binary16: its exponent is moved by a product, which is exact and also normalises
// subnormal numbers.
static void decode_halves(REAL *y, const unsigned char *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, x + 2 * i, 2);
        uint32_t bits = (uint32_t)(half & 0x7fff) << 13;
        float v;
        memcpy(&v, &bits, 4);
        v *= 0x1p112f;
        memcpy(&bits, &v, 4);
        bits |= (half & 0x7c00) == 0x7c00 ? 0x7f800000 : 0; // infinity and NaN
        bits |= (uint32_t)(half & 0x8000) << 16;
        memcpy(&v, &bits, 4);
        y[i] = (REAL)v;
    }
}

static void decode_floats(REAL *y, const unsigned char *x, size_t n, unsigned bytes)
{
    if (bytes == sizeof(REAL)) {
        memcpy(y, x, n * sizeof *y);
    } else if (bytes == 2) {
        decode_halves(y, x, n);
    } else {
        for (size_t i = 0; i < n; i++) {
            other v;
            memcpy(&v, x + i * sizeof v, sizeof v);
            y[i] = (REAL)v;
        }
    }
}

// Signed 16-bit integers, without a step through int32_t.
WIDE_LOOP(void, decode_shorts, (REAL * y, const unsigned char *x, size_t n), (y, x, n))
{
    for (size_t i = 0; i < n; i++) {
        int16_t v;
        memcpy(&v, x + 2 * i, 2);
        y[i] = (REAL)v * (REAL)0x1p-15;
    }
}

static void decode_integers(REAL *y, const unsigned char *x, size_t n, struct encoding encoding)
{
    int32_t chunk[CHUNK];
    REAL scale = (REAL)ldexp(1.0, 1 - 8 * (int)encoding.bytes);
    if (encoding.bytes == 2 && encoding.kind == ENCODING_SIGNED) {
        decode_shorts(y, x, n);
        return;
    }
    while (n) {
        size_t m = size_min(n, CHUNK);
        integers_unpack(chunk, x, m, encoding);
        for (size_t i = 0; i < m; i++) y[i] = (REAL)chunk[i] * scale;
        y += m;
        x += m * encoding.bytes;
        n -= m;
    }
}

#define DECODE_WHOLE(bits)                                                                         \
    static void decode_whole##bits(REAL *y, const unsigned char *x, size_t n, bool is_signed)      \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##bits##_t v;                                                                      \
            memcpy(&v, x + i * sizeof v, sizeof v);                                                \
            y[i] = is_signed ? (REAL)(int##bits##_t)v : (REAL)v;                                   \
        }                                                                                          \
    }
DECODE_WHOLE(8)
DECODE_WHOLE(16)
DECODE_WHOLE(32)
DECODE_WHOLE(64)

static void decode_whole(REAL *y, const unsigned char *x, size_t n, struct encoding encoding)
{
    const bool is_signed = encoding.kind == ENCODING_WHOLE;
    if (encoding.bytes == 1) decode_whole8(y, x, n, is_signed);
    else if (encoding.bytes == 2) decode_whole16(y, x, n, is_signed);
    else if (encoding.bytes == 4) decode_whole32(y, x, n, is_signed);
    else decode_whole64(y, x, n, is_signed);
}

void NAME(samples_decode)(REAL *y, unsigned char *x, size_t n, struct encoding encoding)
{
    if (encoding.big_endian) samples_swap(x, n, encoding.bytes);
    if (encoding.kind == ENCODING_FLOAT) decode_floats(y, x, n, encoding.bytes);
    else if (encoding.kind > ENCODING_UNSIGNED) decode_whole(y, x, n, encoding);
    else decode_integers(y, x, n, encoding);
}

// Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, ties to even; 1.5 *
// 2^23 does it for a float. Unlike lrint, compilers vectorise this for every instruction set.
static const double ROUND = 0x1.8p52;
static const REAL ROUND_SHORT = sizeof(REAL) == 4 ? (REAL)0x1.8p23 : (REAL)0x1.8p52;

// Whether some |x| is above the limit or NaN.
WIDE_LOOP(int, any_beyond, (const REAL *x, size_t n, REAL limit), (x, n, limit))
{
    int beyond = 0;
    for (size_t i = 0; i < n; i++) beyond |= !(x[i] >= -limit && x[i] <= limit);
    return beyond;
}

static int32_t clip(double v, double scale, struct sample_counts *counts)
{
    if (!(fabs(v) <= DBL_MAX)) counts->nonfinite++;
    if (v != v) return 0;
    double rounded = (v + ROUND) - ROUND;
    if (rounded >= -scale && rounded <= scale - 1) return (int32_t)rounded;
    counts->clipped++;
    if (fabs(v) <= DBL_MAX) counts->peak = fmax(counts->peak, fabs(v) / scale);
    return (int32_t)(v < 0 ? -scale : scale - 1);
}

// 0.99 is below the largest integer of 8 or more bits.
static const REAL IN_RANGE = (REAL)0.99;

// Rounds n values to 16 bits, little-endian: the last bits of the sum with ROUND_SHORT. Returns
// whether one is not surely in range; then the results are not valid.
WIDE_LOOP(int, encode_shorts, (unsigned char *y, const REAL *x, size_t n), (y, x, n))
{
    int beyond = 0;
    for (size_t i = 0; i < n; i++) {
        const REAL v = x[i] * (REAL)0x1p15 + ROUND_SHORT;
        real_bits bits;
        memcpy(&bits, &v, sizeof bits);
        const uint16_t rounded = (uint16_t)bits;
        memcpy(y + 2 * i, &rounded, 2);
        beyond |= !(x[i] >= -IN_RANGE && x[i] <= IN_RANGE);
    }
    return beyond;
}

// For values in range and up to 16 bits, where REAL is exact.
static void round_short(int32_t *y, const REAL *x, size_t n, REAL scale)
{
    for (size_t i = 0; i < n; i++) y[i] = (int32_t)((x[i] * scale + ROUND_SHORT) - ROUND_SHORT);
}

static void round_long(int32_t *y, const REAL *x, size_t n, double scale)
{
    for (size_t i = 0; i < n; i++) y[i] = (int32_t)(((double)x[i] * scale + ROUND) - ROUND);
}

static void quantise_chunk(int32_t *y, const REAL *x, size_t n, unsigned bits,
                           struct sample_counts *counts)
{
    double scale = ldexp(1.0, (int)bits - 1);
    if (any_beyond(x, n, IN_RANGE))
        for (size_t i = 0; i < n; i++) y[i] = clip((double)x[i] * scale, scale, counts);
    else if (bits <= 16) round_short(y, x, n, (REAL)scale);
    else round_long(y, x, n, scale);
}

void NAME(samples_quantise)(int32_t *y, const REAL *x, size_t n, unsigned bits,
                            struct sample_counts *counts)
{
    for (size_t at = 0; at < n; at += CHUNK)
        quantise_chunk(y + at, x + at, size_min(n - at, CHUNK), bits, counts);
    for (size_t i = 0; i < n; i++) y[i] = (int32_t)((uint32_t)y[i] << (32 - bits));
}

static void encode_integers(unsigned char *y, const REAL *x, size_t n, struct encoding encoding,
                            struct sample_counts *counts)
{
    const bool shorts = encoding.bytes == 2 && encoding.kind == ENCODING_SIGNED;
    int32_t chunk[CHUNK];
    while (n) {
        size_t m = size_min(n, CHUNK);
        if (!shorts || encode_shorts(y, x, m)) {
            quantise_chunk(chunk, x, m, 8 * encoding.bytes, counts);
            integers_pack(y, chunk, m, encoding);
        }
        y += m * encoding.bytes;
        x += m;
        n -= m;
    }
}

static uint64_t count_beyond(const REAL *x, size_t n, REAL limit)
{
    uint64_t count = 0;
    for (size_t at = 0; at < n; at += CHUNK) {
        size_t m = size_min(n - at, CHUNK);
        if (!any_beyond(x + at, m, limit)) continue;
        for (size_t i = at; i < at + m; i++) count += !(x[i] >= -limit && x[i] <= limit);
    }
    return count;
}

static void encode_floats(unsigned char *y, const REAL *x, size_t n, unsigned bytes,
                          struct sample_counts *counts)
{
    counts->nonfinite += count_beyond(x, n, bytes == 4 ? (REAL)FLT_MAX : MAX_FINITE);
    if (!y) return;
    if (bytes == sizeof(REAL)) {
        memcpy(y, x, n * sizeof *x);
    } else {
        for (size_t i = 0; i < n; i++) {
            const other v = (other)x[i];
            memcpy(y + i * sizeof v, &v, sizeof v);
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

uint64_t NAME(samples_zero_nonfinite)(REAL *x, size_t n)
{
    uint64_t count = count_beyond(x, n, MAX_FINITE);
    for (size_t i = 0; count && i < n; i++)
        x[i] = x[i] >= -MAX_FINITE && x[i] <= MAX_FINITE ? x[i] : 0;
    return count;
}
