// SPDX-License-Identifier: MIT
#include "interleave.h"

#include <string.h>

#include "wide.h"

// Copies n samples with strides, given in samples.
static void copy_strided(char *y, size_t y_stride, const char *x, size_t x_stride, size_t n,
                         size_t bytes)
{
    if (x_stride == 1 && y_stride == 1) {
        memcpy(y, x, n * bytes);
    } else if (bytes == 4) {
        for (size_t i = 0; i < n; i++) memcpy(y + 4 * i * y_stride, x + 4 * i * x_stride, 4);
    } else if (bytes == 8) {
        for (size_t i = 0; i < n; i++) memcpy(y + 8 * i * y_stride, x + 8 * i * x_stride, 8);
    } else {
        for (size_t i = 0; i < n; i++) memcpy(y + 16 * i * y_stride, x + 16 * i * x_stride, 16);
    }
}

// Both of two channels of 4 bytes.
WIDE_LOOP(void, interleave_pairs, (char *y, const char *x0, const char *x1, size_t n),
          (y, x0, x1, n))
{
    for (size_t i = 0; i < n; i++) {
        memcpy(y + 8 * i, x0 + 4 * i, 4);
        memcpy(y + 8 * i + 4, x1 + 4 * i, 4);
    }
}

WIDE_LOOP(void, deinterleave_pairs, (char *y0, char *y1, const char *x, size_t n), (y0, y1, x, n))
{
    for (size_t i = 0; i < n; i++) {
        memcpy(y0 + 4 * i, x + 8 * i, 4);
        memcpy(y1 + 4 * i, x + 8 * i + 4, 4);
    }
}

void frames_interleave(void *y, const void *x, const struct channel_rows *x_rows, size_t n)
{
    const size_t bytes = x_rows->bytes, row = x_rows->length * bytes;
    const char *from = x;
    if (x_rows->channels == 2 && bytes == 4) {
        interleave_pairs(y, from, from + row, n);
        return;
    }
    for (size_t c = 0; c < x_rows->channels; c++)
        copy_strided((char *)y + c * bytes, x_rows->channels, from + c * row, 1, n, bytes);
}

void frames_deinterleave(void *y, const void *x, const struct channel_rows *y_rows, size_t n)
{
    const size_t bytes = y_rows->bytes, row = y_rows->length * bytes;
    char *to = y;
    if (y_rows->channels == 2 && bytes == 4) {
        deinterleave_pairs(to, to + row, x, n);
        return;
    }
    for (size_t c = 0; c < y_rows->channels; c++)
        copy_strided(to + c * row, 1, (const char *)x + c * bytes, y_rows->channels, n, bytes);
}
