// SPDX-License-Identifier: MIT
// Conversion of scalars between their encoding in a file and float or double in memory. Full scale
// of an integer is 1.0, unless it is a whole number of an .npy array. Values out of range are
// clipped and counted; NaN becomes 0 in an integer encoding and is counted.
#ifndef PARTITA_APPS_SAMPLES_H
#define PARTITA_APPS_SAMPLES_H

#include <stdint.h>

#include "encoding.h"

struct sample_counts {
    uint64_t clipped;   // beyond the range of the integer encoding
    uint64_t nonfinite; // NaN or infinite
    double peak;        // the largest magnitude that was clipped; full scale is 1
    uint64_t digest;    // samples_digest of all, if it is wanted (audio_digest_begin)
};

// Decodes n scalars. Big-endian input is swapped in place in `x`.
void samples_decode_f32(float *y, unsigned char *x, size_t n, struct encoding encoding);
void samples_decode_f64(double *y, unsigned char *x, size_t n, struct encoding encoding);

// Encodes n scalars and adds to the counts. y NULL: only counts, where the encoding is plain.
void samples_encode_f32(unsigned char *y, const float *x, size_t n, struct encoding encoding,
                        struct sample_counts *counts);
void samples_encode_f64(unsigned char *y, const double *x, size_t n, struct encoding encoding,
                        struct sample_counts *counts);

// y = x plus noise of triangular distribution, within one step of integers of `bits` bits on either
// side, which makes their rounding error independent of the signal. position: of x[0] in the whole
// signal, in scalars; the noise depends on nothing else.
void samples_dither(double *y, const void *x, bool as_double, size_t n, unsigned bits,
                    uint64_t position);

// Continues a digest of 64 bits over n scalars of 1, 2, 3, 4 or 8 bytes, which does not depend on
// how they are divided into calls.
uint64_t samples_digest(uint64_t digest, const void *x, size_t n, unsigned bytes);

// Rounds n scalars to integers of `bits` bits, stored in the upper bits of y, as libsndfile expects
// them.
void samples_quantise_f32(int32_t *y, const float *x, size_t n, unsigned bits,
                          struct sample_counts *counts);
void samples_quantise_f64(int32_t *y, const double *x, size_t n, unsigned bits,
                          struct sample_counts *counts);

// Replaces NaN and infinities by 0 and returns how many there were.
uint64_t samples_zero_nonfinite_f32(float *x, size_t n);
uint64_t samples_zero_nonfinite_f64(double *x, size_t n);

// Reverses the bytes of n scalars of `bytes` bytes each.
void samples_swap(unsigned char *x, size_t n, unsigned bytes);

// Multiplies n floats or doubles.
void samples_scale(void *x, size_t n, bool as_double, double factor);

// Little-endian integers of 1 to 4 bytes from and to right-justified int32_t.
void integers_unpack(int32_t *y, const unsigned char *x, size_t n, struct encoding encoding);
void integers_pack(unsigned char *y, const int32_t *x, size_t n, struct encoding encoding);

#endif
