// SPDX-License-Identifier: MIT
// The part of sample conversion that is the same for float and double: byte order and integer
// widths; a factor, noise and a digest for either.
#include "samples.h"

#include <math.h>
#include <string.h>

#include "../../../lib/base/hash.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "files are converted from and to a little-endian machine");

#define SWAP_BYTES(bits)                                                                           \
    static void swap_bytes##bits(unsigned char *x, size_t n)                                       \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##bits##_t v;                                                                      \
            memcpy(&v, x + i * sizeof v, sizeof v);                                                \
            v = __builtin_bswap##bits(v);                                                          \
            memcpy(x + i * sizeof v, &v, sizeof v);                                                \
        }                                                                                          \
    }
SWAP_BYTES(16)
SWAP_BYTES(32)
SWAP_BYTES(64)

void samples_swap(unsigned char *x, size_t n, unsigned bytes)
{
    if (bytes == 2) swap_bytes16(x, n);
    if (bytes == 4) swap_bytes32(x, n);
    if (bytes == 8) swap_bytes64(x, n);
    if (bytes != 3) return;
    for (size_t i = 0; i < n; i++) {
        const unsigned char low = x[3 * i];
        x[3 * i] = x[3 * i + 2];
        x[3 * i + 2] = low;
    }
}

// An unsigned integer is a signed one with its top bit inverted.
static int32_t sign_flip(struct encoding e)
{
    return e.kind == ENCODING_UNSIGNED ? (int32_t)(1u << (8 * e.bytes - 1)) : 0;
}

void integers_unpack(int32_t *y, const unsigned char *x, size_t n, struct encoding encoding)
{
    switch (encoding.bytes) {
    case 1:
        for (size_t i = 0; i < n; i++) y[i] = (int8_t)x[i];
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            int16_t v;
            memcpy(&v, x + 2 * i, 2);
            y[i] = v;
        }
        break;
    case 3:
        for (size_t i = 0; i < n; i++)
            y[i] = (int32_t)((uint32_t)x[3 * i] << 8 | (uint32_t)x[3 * i + 1] << 16 |
                             (uint32_t)x[3 * i + 2] << 24) >>
                   8;
        break;
    default:
        memcpy(y, x, 4 * n);
        break;
    }
    if (encoding.kind != ENCODING_UNSIGNED) return;
    unsigned shift = 32 - 8 * encoding.bytes;
    for (size_t i = 0; i < n; i++)
        y[i] = (int32_t)((uint32_t)(y[i] ^ sign_flip(encoding)) << shift) >> shift;
}

void integers_pack(unsigned char *y, const int32_t *x, size_t n, struct encoding encoding)
{
    int32_t flip = sign_flip(encoding);
    switch (encoding.bytes) {
    case 1:
        for (size_t i = 0; i < n; i++) y[i] = (unsigned char)(x[i] ^ flip);
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            uint16_t v = (uint16_t)(x[i] ^ flip);
            memcpy(y + 2 * i, &v, 2);
        }
        break;
    case 3:
        for (size_t i = 0; i < n; i++) {
            uint32_t v = (uint32_t)(x[i] ^ flip);
            y[3 * i] = (unsigned char)v;
            y[3 * i + 1] = (unsigned char)(v >> 8);
            y[3 * i + 2] = (unsigned char)(v >> 16);
        }
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            uint32_t v = (uint32_t)(x[i] ^ flip);
            memcpy(y + 4 * i, &v, 4);
        }
        break;
    }
}

void samples_scale(void *x, size_t n, bool as_double, double factor)
{
    float *f = x;
    double *d = x;
    for (size_t i = 0; i < n; i++) {
        if (as_double) d[i] *= factor;
        else f[i] = (float)((double)f[i] * factor);
    }
}

// FNV-1a (lib/base/hash.h) over scalars instead of bytes. `bytes` is a constant where this is
// called.
static inline uint64_t digest_scalars(uint64_t digest, const unsigned char *x, size_t n,
                                      size_t bytes)
{
    for (size_t i = 0; i < n; i++) digest = hash_words(digest, x + i * bytes, bytes);
    return digest;
}

uint64_t samples_digest(uint64_t digest, const void *x, size_t n, unsigned bytes)
{
    if (bytes == 1) return digest_scalars(digest, x, n, 1);
    if (bytes == 2) return digest_scalars(digest, x, n, 2);
    if (bytes == 3) return digest_scalars(digest, x, n, 3);
    if (bytes == 4) return digest_scalars(digest, x, n, 4);
    return digest_scalars(digest, x, n, 8);
}

// Dither. The generator is the finalizer of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", 2014), applied to the position. Uniform on all 64 bits.
static uint64_t scramble(uint64_t position)
{
    uint64_t z = position * UINT64_C(0x9e3779b97f4a7c15) + UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void samples_dither(double *y, const void *x, bool as_double, size_t n, unsigned bits,
                    uint64_t position)
{
    const double step = ldexp(1, 1 - (int)bits - 32); // of the integers, times 2^-32
    for (size_t i = 0; i < n; i++) {
        const uint64_t z = scramble(position + i);
        const double noise = (double)(uint32_t)z - (double)(uint32_t)(z >> 32);
        y[i] = (as_double ? ((const double *)x)[i] : (double)((const float *)x)[i]) + noise * step;
    }
}
