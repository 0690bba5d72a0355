// SPDX-License-Identifier: MIT
// Rows become columns by transpositions in registers.
#include "vector.h"

enum { SQUARE_ROWS = (int)CONV_CHANNELS < (int)LANES ? (int)CONV_CHANNELS : (int)LANES };

// rows rows, LANES columns, a vector of the result after each `step` samples.
INLINE void conv_columns_block(REAL *y, size_t step, const REAL *x, size_t x_stride, size_t rows)
{
    vec v[LANES];
    UNROLL
    for (size_t r = 0; r < rows; r++) v[r] = vec_load(x + r * x_stride);
    vec_transpose(v, rows);
    UNROLL
    for (size_t r = 0; r < rows; r++) vec_store(y + r * step, v[r]);
}

void KERNEL(conv_columns)(void *y_, size_t y_stride, const void *x_, size_t x_stride, size_t rows,
                          size_t n)
{
    REAL *y = y_;
    const REAL *x = x_;
    size_t r = 0;
    for (; rows - r >= LANES; r += LANES)
        for (size_t i = 0; i < n; i += LANES)
            conv_columns_block(y + i * y_stride + r, y_stride, x + r * x_stride + i, x_stride,
                               LANES);
    if (rows == SQUARE_ROWS && y_stride == SQUARE_ROWS && (int)SQUARE_ROWS < (int)LANES) {
        for (size_t i = 0; i < n; i += LANES)
            conv_columns_block(y + i * y_stride, LANES, x + i, x_stride, SQUARE_ROWS);
        return;
    }
    for (; r < rows; r++)
        for (size_t i = 0; i < n; i++) y[i * y_stride + r] = x[r * x_stride + i];
}
