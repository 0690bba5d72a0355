// SPDX-License-Identifier: MIT
// Depthwise layers plane by plane: a vector holds neighbouring outputs of a row, so that nothing is
// transposed or packed. plane_conv: a tile of rows of sums stays in registers over all taps. A row
// of x is loaded once for all taps of a column, each of which adds to another row of sums: with
// ROWS rows and T taps that is ROWS + T - 1 loads, most of which straddle two lines of the cache,
// for ROWS * T products. Where a tile reads no padding, loads need neither masks nor tests.
// plane_weight: the gradient of the taps.
#include "vector.h"

#if VECTOR_BYTES == 32 || (VECTOR_BYTES == 16 && !defined __aarch64__)
enum { ROWS = 8, GROUP = 4 }; // 8 sums + 4 taps + x and its mask of 16 registers
#else
enum { ROWS = 2 * PLANE_ROWS, GROUP = 8 }; // 14 + 8 + 1 of 32
#endif

// The compiler forgets what it knows about a variable. Otherwise it computes the addresses and
// tests of all rows before the loop over columns, and keeps them on the stack.
#define FORGET(variable) __asm__ volatile("" : "+r"(variable))

// A column of taps on the tile's first vector: x and its samples from one row to the next; the
// lanes that are inside its rows, next: those of the vector after it; one bit for each row that is
// inside the plane. whole: they all are.
struct plane_column {
    const REAL *x, *w;
    size_t width;
    vec_mask lanes, next;
    uint64_t inside;
};

// The constants of unrolled loops.
struct plane_shape {
    size_t rows, taps, step;
    bool whole;
};

INLINE vec plane_load(const REAL *x, vec_mask lanes, bool whole)
{
    return whole ? vec_load(x) : vec_load_masked(x, lanes);
}

// Samples 0, step, ... from x on; next: the lanes of the vector after x that are inside.
INLINE vec plane_load_apart(const REAL *x, vec_mask lanes, vec_mask next, size_t step, bool whole)
{
    const vec v = plane_load(x, lanes, whole);
    if (step == 1) return v;
    return __builtin_shufflevector(v, plane_load(x + LANES, next, whole), EVEN);
}

// n taps of a column: first, first + step, ...
INLINE void plane_add_taps(vec *sum, const struct plane_column *column, struct plane_shape shape,
                           size_t first, size_t n)
{
    const size_t pitch = shape.step * column->width;
    const REAL *x = column->x + first * column->width;
    uint64_t inside = column->inside >> first;
    vec tap[GROUP];
    FORGET(x);
    if (!shape.whole) FORGET(inside);
    UNROLL
    for (size_t t = 0; t < n; t++) tap[t] = keep_in_register(vec_broadcast(column->w[t]));
    UNROLL
    for (size_t q = 0; q < shape.rows + n - 1; q++, x += pitch) {
        if (!shape.whole && __builtin_expect(!(inside >> q * shape.step & 1), 0)) continue;
        const vec v = keep_in_register(
            plane_load_apart(x, column->lanes, column->next, shape.step, shape.whole));
        UNROLL
        for (size_t t = 0; t < n; t++)
            if (q >= t && q - t < shape.rows) sum[q - t] = vec_multiply_add(tap[t], v, sum[q - t]);
    }
}

// All taps, those of one residue modulo the step after the other. Without loops, since clang
// unrolls inner loops first, whose lengths are then not known.
INLINE void plane_add_column(vec *sum, struct plane_column *column, struct plane_shape shape)
{
    const size_t group = shape.taps < GROUP ? shape.taps : GROUP;
    const size_t n = shape.step == 2 ? (shape.taps + 1) / 2 : group, left = shape.taps - n;
    plane_add_taps(sum, column, shape, 0, n);
    column->w += n;
    if (left) plane_add_taps(sum, column, shape, shape.step == 2 ? 1 : n, left);
    column->w += left;
}

// The lanes of a vector at `at` that are inside a row of so many samples.
INLINE vec_mask plane_lanes(ptrdiff_t at, size_t size)
{
    return vec_lanes(vec_lane(-at), vec_lane((ptrdiff_t)size - at));
}

// The rest of a plane that is prefetched, and the bytes of it that each tile prefetches.
struct plane_ahead {
    const char *at, *end;
    size_t share;
};

INLINE void plane_prefetch(struct plane_ahead *ahead, bool write)
{
    const char *last =
        ahead->at + ahead->share < ahead->end ? ahead->at + ahead->share : ahead->end;
    NO_UNROLL
    for (; ahead->at < last; ahead->at += 64)
        if (write) __builtin_prefetch(ahead->at, 1, 2);
        else __builtin_prefetch(ahead->at, 0, 2);
}

// Adjacent rows of outputs, and the samples that the first one reads.
struct plane_strip {
    const struct plane_conv *call;
    const REAL *x;
    REAL *y;
    struct plane_ahead ahead[2];
    uint64_t inside; // as in plane_column
    bool whole;
    vec bias;
    bool relu;
};

// Outputs of a strip's columns from i on.
INLINE void plane_tile(struct plane_strip *strip, size_t i, struct plane_shape shape)
{
    const struct plane_axis *axis = strip->call->axis;
    const size_t count = axis[1].count, size = axis[1].size;
    const ptrdiff_t first = (ptrdiff_t)(i * shape.step) + axis[1].first;
    const ptrdiff_t last =
        (ptrdiff_t)size - (ptrdiff_t)(LANES * shape.step); // with all lanes inside
    struct plane_column column = {.w = strip->call->w, .width = size, .inside = strip->inside};
    vec sum[ROWS];
    UNROLL
    for (size_t p = 0; p < shape.rows; p++) sum[p] = strip->bias;
    NO_UNROLL
    for (ptrdiff_t at = first; at < first + (ptrdiff_t)axis[1].taps; at++) {
        column.x = strip->x + at;
        shape.whole = strip->whole && at >= 0 && at <= last;
        if (shape.whole) {
            shape.whole = true; // for the compiler
            plane_add_column(sum, &column, shape);
            continue;
        }
        shape.whole = false;
        column.lanes = plane_lanes(at, size);
        column.next = plane_lanes(at + (ptrdiff_t)LANES, size);
        plane_add_column(sum, &column, shape);
    }
    plane_prefetch(&strip->ahead[0], false);
    plane_prefetch(&strip->ahead[1], true);
    REAL *y = strip->y + i;
    UNROLL
    for (size_t p = 0; p < shape.rows; p++, y += count) {
        const vec v = strip->relu ? vec_positive(sum[p]) : sum[p];
        vec_store_up_to(y, v, count - i);
    }
}

// Outputs of rows r .. r+rows-1. With AVX2, whose masked stores are slow, a last vector overlaps
// the one before it.
INLINE void plane_rows(struct plane_strip *strip, size_t r, struct plane_shape shape)
{
    const struct plane_axis *axis = strip->call->axis;
    const size_t count = axis[1].count, read = (shape.rows - 1) * shape.step + shape.taps;
    const ptrdiff_t row = (ptrdiff_t)(r * shape.step) + axis[0].first;
    strip->x = (const REAL *)strip->call->x + row * (ptrdiff_t)axis[1].size;
    strip->y = (REAL *)strip->call->y + r * count;
    strip->inside = 0;
    NO_UNROLL
    for (size_t q = 0; q < read; q++)
        strip->inside |= (uint64_t)((size_t)row + q < axis[0].size) << q;
    strip->whole = strip->inside == ((uint64_t)1 << read) - 1;
    NO_UNROLL
    for (size_t i = 0; i < count; i += LANES) {
        if (VECTOR_BYTES < 64 && count >= LANES && count - i < LANES) i = count - LANES;
        plane_tile(strip, i, shape);
    }
}

// Strips from row 0 on, as many as there are; rows that are left are those of a last strip that
// overlaps the one before it.
INLINE void plane_conv_taps(struct plane_strip *strip, size_t taps, size_t step)
{
    const size_t rows = strip->call->axis[0].count;
    struct plane_shape shape = {.rows = ROWS, .taps = taps, .step = step};
    size_t r = 0;
    NO_UNROLL
    for (; rows - r >= ROWS; r += ROWS) plane_rows(strip, r, shape);
    shape.rows = PLANE_ROWS;
    NO_UNROLL
    for (; r < rows; r += PLANE_ROWS) {
        if (rows - r < PLANE_ROWS) r = rows - PLANE_ROWS;
        plane_rows(strip, r, shape);
    }
}

#define PLANE_CONV(taps)                                                                           \
    if (call->axis[0].step == 1) plane_conv_taps(&strip, taps, 1);                                 \
    else plane_conv_taps(&strip, taps, 2)

void KERNEL(plane_conv)(const struct plane_conv *call, const void *bias, bool relu)
{
    struct plane_strip strip = {.call = call, .relu = relu};
    const struct plane_axis *axis = call->axis;
    const size_t tiles = (axis[0].count + ROWS - 1) / ROWS * ((axis[1].count + LANES - 1) / LANES);
    const size_t samples[] = {axis[0].size * axis[1].size, axis[0].count * axis[1].count};
    for (int k = 0; k < 2; k++) {
        const char *next = call->next[k];
        const size_t bytes = next ? samples[k] * sizeof(REAL) : 0;
        strip.ahead[k] = (struct plane_ahead){next, next + bytes, bytes / tiles};
    }
    if (bias) strip.bias = vec_broadcast(*(const REAL *)bias);
    WITH_CONSTANT6(call->axis[0].taps, PLANE_CONV, 1, 2, 3, 4, 5, 7)
}

// Some of the taps: along the rows `first` and every step-th from there, n of them, in adjacent
// columns. n, columns and step are constants of unrolled loops.
struct plane_taps {
    size_t first, n, column, columns, step;
};

enum { MAX_COLUMNS = 5, MAX_COLUMN_TAPS = 7, MAX_WEIGHT_SUMS = 25 };

// LANES columns of gy on their way down: the last n rows of gy are in registers, so that each row
// of x is loaded once for each column of taps, and gy once. lanes: those of gy that are inside its
// rows; inside: those of x for each column of taps; next: those of the vector after it. Masks are
// not used where all lanes are inside.
struct plane_strip_weight {
    const REAL *x, *gy;
    vec *sum, y[MAX_COLUMN_TAPS];
    vec_mask lanes, inside[MAX_COLUMNS], next[MAX_COLUMNS];
    uintptr_t ahead[2]; // from x and gy to prefetched samples; 0: none
};

INLINE void plane_weight_next(struct plane_strip_weight *strip, struct plane_taps set, vec y)
{
    UNROLL
    for (size_t t = set.n; t-- > 1;) strip->y[t] = strip->y[t - 1];
    strip->y[0] = y;
}

INLINE void plane_weight_row(struct plane_strip_weight *strip, struct plane_taps set, bool whole)
{
    UNROLL
    for (size_t u = 0; u < set.columns; u++) {
        const vec v = keep_in_register(
            plane_load_apart(strip->x + u, strip->inside[u], strip->next[u], set.step, whole));
        UNROLL
        for (size_t t = 0; t < set.n; t++) {
            vec *sum = &strip->sum[t * set.columns + u];
            *sum = vec_multiply_add(strip->y[t], v, *sum);
        }
    }
}

INLINE void plane_weight_prefetch(const struct plane_strip_weight *strip, size_t step)
{
    const uintptr_t x = (uintptr_t)strip->x + strip->ahead[0];
    if (strip->ahead[0]) __builtin_prefetch((const void *)x, 0, 2);
    if (strip->ahead[0] && step == 2) __builtin_prefetch((const void *)(x + VECTOR_BYTES), 0, 2);
    if (strip->ahead[1])
        __builtin_prefetch((const void *)((uintptr_t)strip->gy + strip->ahead[1]), 0, 2);
}

// The first row of x that the taps meet has index `row`, which may be outside.
INLINE void plane_weight_down(const struct plane_weight *call, struct plane_strip_weight *strip,
                              ptrdiff_t row, struct plane_taps set, bool whole)
{
    const struct plane_axis *axis = call->axis;
    const size_t count = axis[0].count, pitch = set.step * axis[1].size, all = count + set.n - 1;
    const ptrdiff_t step = (ptrdiff_t)set.step, rest = (ptrdiff_t)axis[0].size - row + step - 1;
    const size_t begin = row < 0 ? (size_t)((step - 1 - row) / step) : 0;
    const size_t reach = rest > 0 ? (size_t)(rest / step) : 0, end = reach < all ? reach : all;
    size_t q = 0;
    NO_UNROLL
    for (; q < begin && q < end; q++, strip->x += pitch) {
        const bool more = q < count;
        plane_weight_next(strip, set, more ? plane_load(strip->gy, strip->lanes, whole) : (vec){0});
        if (more) strip->gy += axis[1].count;
    }
    NO_UNROLL
    for (; q < count && q < end; q++, strip->x += pitch, strip->gy += axis[1].count) {
        plane_weight_next(strip, set, plane_load(strip->gy, strip->lanes, whole));
        plane_weight_prefetch(strip, set.step);
        plane_weight_row(strip, set, whole);
    }
    NO_UNROLL
    for (; q < end; q++, strip->x += pitch) {
        plane_weight_next(strip, set, (vec){0});
        plane_weight_row(strip, set, whole);
    }
}

// Sums of the columns of gy from i on.
INLINE void plane_weight_strip(const struct plane_weight *call, vec *sum, size_t i,
                               struct plane_taps set)
{
    const struct plane_axis *axis = call->axis;
    const size_t size = axis[1].size, left = axis[1].count - i;
    const ptrdiff_t at = (ptrdiff_t)(i * set.step + set.column) + axis[1].first;
    const ptrdiff_t row = axis[0].first + (ptrdiff_t)set.first;
    const size_t reach = LANES * set.step + set.columns - 1;
    struct plane_strip_weight strip = {.x = (const REAL *)call->x + row * (ptrdiff_t)size + at,
                                       .gy = (const REAL *)call->gy + i,
                                       .sum = sum};
    if (call->next[0] && set.column == 0)
        strip.ahead[0] = (uintptr_t)call->next[0] - (uintptr_t)call->x;
    if (call->next[1] && set.column == 0 && set.first == 0)
        strip.ahead[1] = (uintptr_t)call->next[1] - (uintptr_t)call->gy;
    if (left >= LANES && at >= 0 && (size_t)at + reach <= size) {
        plane_weight_down(call, &strip, row, set, true);
        return;
    }
    strip.lanes = vec_lanes(0, left < LANES ? left : LANES);
    UNROLL
    for (size_t u = 0; u < set.columns; u++) {
        // x where gy ends is not multiplied by 0, for it may be infinite. A negative end: no lane.
        const ptrdiff_t begin = at + (ptrdiff_t)u, last = begin + (ptrdiff_t)(left * set.step);
        const size_t end = last < (ptrdiff_t)size ? (size_t)last : size;
        strip.inside[u] = plane_lanes(begin, end);
        strip.next[u] = plane_lanes(begin + (ptrdiff_t)LANES, end);
    }
    plane_weight_down(call, &strip, row, set, false);
}

INLINE void plane_weight_taps(const struct plane_weight *call, struct plane_taps set)
{
    const struct plane_axis *axis = call->axis;
    vec sum[MAX_WEIGHT_SUMS];
    UNROLL
    for (size_t k = 0; k < set.n * set.columns; k++) sum[k] = (vec){0};
    NO_UNROLL
    for (size_t i = 0; i < axis[1].count; i += LANES) plane_weight_strip(call, sum, i, set);
    REAL *w = (REAL *)call->w + (set.first * axis[1].taps + set.column) * CONV_LANES;
    UNROLL
    for (size_t t = 0; t < set.n; t++, w += set.step * axis[1].taps * CONV_LANES) {
        UNROLL
        for (size_t u = 0; u < set.columns; u++)
            vec_store(w + u * CONV_LANES, vec_load(w + u * CONV_LANES) + sum[t * set.columns + u]);
    }
}

// As many columns at a time as there are registers for their sums and n rows of gy, beside a vector
// of x and its mask: 30 of 32, or 14 of 16.
INLINE void plane_weight_columns(const struct plane_weight *call, struct plane_taps part)
{
    const size_t max = VECTOR_BYTES == 64 ? 30 : 14, fit = (max - part.n) / part.n;
    const size_t wide = fit >= 5 && part.step == 1 ? 5 : 3, taps = call->axis[1].taps;
    part.columns = wide;
    if (fit >= wide) {
        NO_UNROLL
        for (; taps - part.column >= wide; part.column += wide) plane_weight_taps(call, part);
    }
    part.columns = 3;
    if (wide > 3 && taps - part.column >= 3) {
        plane_weight_taps(call, part);
        part.column += 3;
    }
    part.columns = 1;
    NO_UNROLL
    for (; part.column < taps; part.column++) plane_weight_taps(call, part);
}

#define PLANE_WEIGHT(taps) plane_weight_columns(call, (struct plane_taps){first, taps, .step = 1})
#define PLANE_WEIGHT_APART(taps)                                                                   \
    plane_weight_columns(call, (struct plane_taps){first, taps, .step = 2})

void KERNEL(plane_weight)(const struct plane_weight *call)
{
    const struct plane_axis *axis = call->axis;
    const size_t step = axis[0].step;
    for (size_t first = 0; first < step && first < axis[0].taps; first++) {
        const size_t n = (axis[0].taps - first + step - 1) / step;
        if (step == 2) WITH_CONSTANT4(n, PLANE_WEIGHT_APART, 1, 2, 3, 4)
        else WITH_CONSTANT6(n, PLANE_WEIGHT, 1, 2, 3, 4, 5, 7)
    }
}
