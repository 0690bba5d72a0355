// SPDX-License-Identifier: MIT
// Scalars between their encoding in a file and float or double in memory. Full scale of an integer
// is 1.0. Nothing wraps: out of range values are clipped and counted, NaN becomes 0 and is counted.
#ifndef PARTITA_APPS_SAMPLES_H
#define PARTITA_APPS_SAMPLES_H

#include <stdint.h>

#include "encoding.h"

struct sample_counts {
    uint64_t clipped;    // written at the limit of an integer encoding instead of their value
    uint64_t not_finite; // NaN or infinite when they were to be written
};

// Decodes n scalars. `x` is used as scratch when the byte order has to be changed.
void samples_decode_f32(float *y, unsigned char *x, size_t n, struct encoding encoding);
void samples_decode_f64(double *y, unsigned char *x, size_t n, struct encoding encoding);

// Encodes n scalars and adds to the counts.
void samples_encode_f32(unsigned char *y, const float *x, size_t n, struct encoding encoding,
                        struct sample_counts *counts);
void samples_encode_f64(unsigned char *y, const double *x, size_t n, struct encoding encoding,
                        struct sample_counts *counts);

// Of n scalars how many are NaN or infinite.
uint64_t samples_not_finite_f32(const float *x, size_t n);
uint64_t samples_not_finite_f64(const double *x, size_t n);

// Rounds n scalars to integers of `bits` bits and leaves them in the upper bits of y, as libsndfile
// takes them.
void samples_quantise_f32(int32_t *y, const float *x, size_t n, unsigned bits,
                          struct sample_counts *counts);
void samples_quantise_f64(int32_t *y, const double *x, size_t n, unsigned bits,
                          struct sample_counts *counts);

// Replaces every NaN and infinity by 0 and returns how many there were.
uint64_t samples_purge_f32(float *x, size_t n);
uint64_t samples_purge_f64(double *x, size_t n);

// Reverses the bytes of n scalars of `bytes` bytes each.
void samples_swap(unsigned char *x, size_t n, unsigned bytes);

// Integers of 1 to 4 bytes, little endian, between memory and files; the integer is
// right-justified.
void integers_unpack(int32_t *y, const unsigned char *x, size_t n, struct encoding encoding);
void integers_pack(unsigned char *y, const int32_t *x, size_t n, struct encoding encoding);

#endif
