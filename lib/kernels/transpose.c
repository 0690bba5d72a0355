// SPDX-License-Identifier: MIT
// Transposing a matrix of any size, square by square in registers: samples of adjacent channels
// into rows of each channel, and back.
#include "vector.h"

// At most LANES rows of x and columns of it.
INLINE void transpose_square(REAL *y, size_t y_stride, const REAL *x, size_t x_stride, size_t rows,
                             size_t n)
{
    vec v[LANES];
    UNROLL
    for (size_t k = 0; k < LANES; k++) {
        v[k] = (vec){0};
        if (k < rows)
            v[k] = n < LANES ? vec_load_first(x + k * x_stride, n) : vec_load(x + k * x_stride);
    }
    vec_transpose(v, LANES);
    UNROLL
    for (size_t k = 0; k < LANES; k++) {
        if (k >= n) continue;
        if (rows < LANES) vec_store_first(y + k * y_stride, v[k], rows);
        else vec_store(y + k * y_stride, v[k]);
    }
}

void KERNEL(transpose)(void *y_, size_t y_stride, const void *x_, size_t x_stride, size_t rows,
                       size_t n)
{
    for (size_t k = 0; k < rows; k += LANES)
        for (size_t i = 0; i < n; i += LANES) {
            REAL *y = (REAL *)y_ + i * y_stride + k;
            const REAL *x = (const REAL *)x_ + k * x_stride + i;
            // Whole squares have no tests.
            if (rows - k >= LANES && n - i >= LANES)
                transpose_square(y, y_stride, x, x_stride, LANES, LANES);
            else transpose_square(y, y_stride, x, x_stride, rows - k, n - i);
        }
}
