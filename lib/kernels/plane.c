// SPDX-License-Identifier: MIT
// Depthwise layers plane by plane: a vector holds neighbouring outputs of a row, so that nothing is
// transposed or packed. A tile of rows of sums stays in registers over all taps. A row of x is
// loaded once for all taps of a column, each of which adds to another row of sums: with ROWS rows
// and T taps that is ROWS + T - 1 loads, most of which straddle two lines of the cache, for ROWS *
// T products.
#include "vector.h"

#if VECTOR_BYTES == 32
enum { ROWS = PLANE_ROWS, GROUP = 4 }; // 7 sums + 4 taps + 1 of 16 registers
#else
enum { ROWS = 2 * PLANE_ROWS, GROUP = 8 }; // 14 + 8 + 1 of 32
#endif

// The lanes of a vector at `at` that are inside a row of so many samples.
struct plane_range {
    size_t begin, end;
};
INLINE struct plane_range plane_inside(ptrdiff_t at, size_t size)
{
    const ptrdiff_t begin = at < 0 ? -at : 0, end = (ptrdiff_t)size - at;
    const ptrdiff_t last = end > (ptrdiff_t)LANES ? (ptrdiff_t)LANES : end;
    if (begin >= last) return (struct plane_range){0, 0};
    return (struct plane_range){(size_t)begin, (size_t)last};
}

INLINE vec plane_load(const REAL *x, struct plane_range range)
{
    // Masks of AVX-512 cost nothing.
    if (VECTOR_BYTES < 64 && range.end - range.begin == LANES) return vec_load(x);
    return vec_load_range(x, range.begin, range.end);
}

// A column of adjacent taps, `row` and `col` being the sample that the first one reads for the
// tile's first output.
struct plane_column {
    const REAL *w;
    ptrdiff_t row, col;
};

INLINE void plane_add_taps(vec *sum, const struct plane_conv *call,
                           const struct plane_column *column, size_t rows, size_t taps, size_t step)
{
    const struct plane_axis *axis = call->axis;
    const size_t width = axis[1].size, pitch = axis[0].step * width, height = axis[0].size;
    const struct plane_range range = plane_inside(column->col, width);
    const struct plane_range next = plane_inside(column->col + (ptrdiff_t)LANES, width);
    const REAL *x = (const REAL *)call->x + column->row * (ptrdiff_t)width + column->col;
    size_t row = (size_t)column->row;
    vec tap[GROUP];
    UNROLL
    for (size_t t = 0; t < taps; t++) tap[t] = keep_in_register(vec_broadcast(column->w[t]));
    UNROLL
    for (size_t q = 0; q < rows + taps - 1; q++, x += pitch, row += axis[0].step) {
        if (__builtin_expect(row >= height, 0)) continue; // or negative
        vec v = plane_load(x, range);
        if (step == 2) {
            const vec high = plane_load(x + LANES, next);
            v = __builtin_shufflevector(v, high, EVEN);
        }
        v = keep_in_register(v);
        UNROLL
        for (size_t t = 0; t < taps; t++)
            if (q >= t && q - t < rows) sum[q - t] = vec_multiply_add(tap[t], v, sum[q - t]);
    }
}

// Columns of many taps are several.
#define ADD_TAPS(n) plane_add_taps(sum, call, &column, rows, n, step)
INLINE void plane_add_column(vec *sum, const struct plane_conv *call, struct plane_column column,
                             size_t taps, size_t rows, size_t step)
{
    NO_UNROLL
    while (taps) {
        size_t n = taps;
        if (n > 4 && (GROUP < 7 || n != 7)) n = 4;
        switch (n) {
            CONSTANT_CASE(1, ADD_TAPS)
            CONSTANT_CASE(2, ADD_TAPS)
            CONSTANT_CASE(3, ADD_TAPS)
            CONSTANT_CASE(4, ADD_TAPS)
        default:
            if (GROUP >= 7) ADD_TAPS(GROUP >= 7 ? 7 : 1);
        }
        taps -= n;
        column.w += n;
        column.row += (ptrdiff_t)(n * call->axis[0].step);
    }
}

struct plane_end {
    vec bias;
    bool relu;
};

// Outputs r .. r+rows-1 of the columns from i on.
INLINE void plane_tile(const struct plane_conv *call, size_t r, size_t i, size_t rows,
                       const struct plane_end *end, size_t step)
{
    const struct plane_axis *axis = call->axis;
    const size_t left = axis[1].count - i;
    struct plane_column column = {.w = call->w};
    vec sum[ROWS];
    UNROLL
    for (size_t p = 0; p < rows; p++) sum[p] = (vec){0};
    const size_t phases = axis[0].step < axis[0].taps ? axis[0].step : axis[0].taps;
    NO_UNROLL
    for (size_t k = 0; k < axis[1].taps; k++) {
        NO_UNROLL
        for (size_t h = 0; h < phases; h++) {
            const size_t taps = (axis[0].taps - h + axis[0].step - 1) / axis[0].step;
            column.row = (ptrdiff_t)(r * axis[0].step + h) + axis[0].first;
            column.col = (ptrdiff_t)(i * step + k) + axis[1].first;
            plane_add_column(sum, call, column, taps, rows, step);
            column.w += taps;
        }
    }
    REAL *y = (REAL *)call->y + r * axis[1].count + i;
    UNROLL
    for (size_t p = 0; p < rows; p++, y += axis[1].count) {
        vec v = sum[p] + end->bias;
        if (end->relu) v = vec_positive(v);
        if (left >= LANES) vec_store(y, v);
        else vec_store_first(y, v, left);
    }
}

// Tiles from row r on, as many as there are; rows that are left are those of a last tile that
// overlaps the one before it.
INLINE void plane_conv_tiles(const struct plane_conv *call, const struct plane_end *end,
                             size_t step)
{
    const size_t rows = call->axis[0].count, columns = call->axis[1].count;
    size_t r = 0;
    NO_UNROLL
    for (; rows - r >= ROWS; r += ROWS) {
        NO_UNROLL
        for (size_t i = 0; i < columns; i += LANES) plane_tile(call, r, i, ROWS, end, step);
    }
    NO_UNROLL
    for (; r < rows; r += PLANE_ROWS) {
        if (rows - r < PLANE_ROWS) r = rows - PLANE_ROWS;
        NO_UNROLL
        for (size_t i = 0; i < columns; i += LANES) plane_tile(call, r, i, PLANE_ROWS, end, step);
    }
}

void KERNEL(plane_conv)(const struct plane_conv *call, const void *bias, bool relu)
{
    const struct plane_end end = {bias ? vec_broadcast(*(const REAL *)bias) : (vec){0}, relu};
    if (call->axis[1].step == 1) plane_conv_tiles(call, &end, 1);
    else plane_conv_tiles(call, &end, 2);
}
