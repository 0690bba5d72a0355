// SPDX-License-Identifier: MIT
// Transposing a matrix of any size, square by square in registers: samples of adjacent channels
// into rows of each channel, and back.
#include "vector.h"

struct transpose_part {
    size_t rows, columns;
};

// At most LANES rows of x and `most` columns of it, a constant: shuffles whose results no column
// takes are left out by the compiler.
INLINE void transpose_square(REAL *y, size_t y_stride, const REAL *x, size_t x_stride,
                             struct transpose_part part, size_t count)
{
    const size_t rows = part.rows, n = part.columns;
    vec v[LANES];
    UNROLL
    for (size_t k = 0; k < LANES; k++) {
        v[k] = (vec){0};
        if (k < rows) v[k] = vec_load_up_to(x + (ptrdiff_t)(k * x_stride), n);
    }
    vec_transpose(v, LANES);
    UNROLL
    for (size_t k = 0; k < count; k++) {
        if (k >= n) continue;
        vec_store_up_to(y + k * y_stride, v[k], rows);
    }
}

// Reals from row to row that are taken apart, or put together, in registers.
enum { MAX_APART = 7, MAX_TOGETHER = 8 };

// Rows of x that are so near that a few vectors hold them all; returns how many were written. A row
// must follow them, since vectors are read up to the next row's start.
INLINE size_t transpose_narrow(REAL *y, size_t y_stride, const REAL *x, size_t x_stride,
                               size_t rows, size_t n)
{
    size_t k = 0;
    NO_UNROLL
    for (; rows - k > LANES; k += LANES, x += LANES * x_stride) {
        vec v[MAX_APART];
        UNROLL
        for (size_t c = 0; c < x_stride; c++) v[c] = vec_load(x + c * LANES);
        vec_deinterleave(v, x_stride);
        UNROLL
        for (size_t c = 0; c < x_stride; c++)
            if (c < n) vec_store(y + c * y_stride + k, v[c]);
    }
    return k;
}

// Few rows of x whose columns fill y without gaps; returns how many columns were written.
INLINE size_t transpose_to_narrow(REAL *y, const REAL *x, size_t x_stride, size_t rows, size_t n)
{
    size_t i = 0;
    NO_UNROLL
    for (; n - i >= LANES; i += LANES, y += LANES * rows) {
        vec v[MAX_TOGETHER];
        UNROLL
        for (size_t k = 0; k < rows; k++) v[k] = vec_load(x + (ptrdiff_t)(k * x_stride + i));
        vec_interleave(v, rows);
        UNROLL
        for (size_t k = 0; k < rows; k++) vec_store(y + k * LANES, v[k]);
    }
    return i;
}

#define FROM_NARROW(stride) done = transpose_narrow(y, y_stride, x, stride, rows, n)
#define TO_NARROW(stride) done = transpose_to_narrow(y, x, x_stride, stride, n)

void KERNEL(transpose)(void *y_, size_t y_stride, const void *x_, size_t x_stride, size_t rows,
                       size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    size_t done = 0;
    if (n == 0 || rows == 0) return;
    if (n <= x_stride && x_stride <= MAX_APART) {
        WITH_CONSTANT8(x_stride, FROM_NARROW, 1, 2, 3, 4, 5, 6, 7, 7)
        rows -= done, y += done, x += done * x_stride;
    } else if (rows == y_stride && rows <= MAX_TOGETHER) {
        WITH_CONSTANT8(rows, TO_NARROW, 1, 2, 3, 4, 5, 6, 7, 8)
        n -= done, y += done * y_stride, x += done;
    }
    // Whole squares have no tests. The last ones begin earlier rather than end late.
    for (size_t k = 0; k < rows; k += LANES)
        for (size_t i = 0; i < n; i += LANES) {
            const size_t row = rows >= LANES && rows - k < LANES ? rows - LANES : k;
            const size_t column = n >= LANES && n - i < LANES ? n - LANES : i;
            REAL *to = y + column * y_stride + row;
            const REAL *from = x + (ptrdiff_t)(row * x_stride + column);
            const struct transpose_part whole = {LANES, LANES}, part = {rows - row, n - column};
            if (rows >= LANES && n >= LANES)
                transpose_square(to, y_stride, from, x_stride, whole, LANES);
            else if (part.columns <= LANES / 4)
                transpose_square(to, y_stride, from, x_stride, part, LANES / 4);
            else if (part.columns <= LANES / 2)
                transpose_square(to, y_stride, from, x_stride, part, LANES / 2);
            else transpose_square(to, y_stride, from, x_stride, part, LANES);
        }
}
