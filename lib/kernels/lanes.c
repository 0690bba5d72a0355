// SPDX-License-Identifier: MIT
// Planes side by side: the sums of depthwise layers. Since a vector holds one sample of many
// planes, any tap of any position is an aligned load and every row is as good as a long one; the
// price is a transposition on the way in and on the way out. lanes_conv keeps a group of outputs in
// registers over all taps, and the taps of a span beside them: a vector of x is loaded once a span.
// With WIDTH outputs and T taps that is WIDTH + 2T - 1 loads for WIDTH * T products. channels_conv
// does the same with channels last, without moving samples.
#include "vector.h"

#if VECTOR_BYTES == 32
enum { WIDTH = 8, GROUP = 4 }; // 8 sums + 4 taps + 1 of 16 registers
#else
enum { WIDTH = 16, GROUP = MAX_SPAN_TAPS }; // 16 + 8 + 1 of 32
#endif

// Samples 0, step, ... of at most LANES; n of them are there. NULL: zeros.
INLINE vec lanes_load_apart(const REAL *x, size_t step, size_t n)
{
    vec v = {0};
    if (!x) return v;
    if (step == 1) return vec_load_up_to(x, n);
    if (step == 2 && n > LANES) {
        const vec a = vec_load(x), b = vec_load(x + LANES);
        return __builtin_shufflevector(a, b, EVEN);
    }
    UNROLL
    for (size_t k = 0; k < LANES; k++)
        if (k < n) v[k] = x[k * step];
    return v;
}

// The number of lanes if the planes of the first ones are adjacent samples and the others have no
// plane; else 0.
INLINE size_t lanes_adjacent(const void *const *x)
{
    size_t n = x[0] != 0;
    while (n && n < LANES && x[n] == (const REAL *)x[0] + n) n++;
    for (size_t k = n; k < LANES; k++)
        if (x[k]) return 0;
    return n;
}

// One sample of each lane, of adjacent planes.
INLINE void lanes_read_adjacent(REAL *y, size_t pitch, const REAL *x, size_t step, size_t n,
                                size_t lanes)
{
    for (size_t i = 0; i < n; i++, y += pitch, x += step) vec_store(y, vec_load_up_to(x, lanes));
}

void KERNEL(lanes_read)(void *y_, size_t y_stride, const void *const *x, size_t step, size_t n)
{
    const size_t pitch = y_stride * CONV_LANES;
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        REAL *y = (REAL *)y_ + first;
        const size_t adjacent = step > 1 ? lanes_adjacent(x + first) : 0;
        if (adjacent) {
            lanes_read_adjacent(y, pitch, x[first], step, n, adjacent);
            continue;
        }
        bool whole = step == 1; // no lane is without a plane
        for (size_t k = 0; k < LANES; k++) whole = whole && x[first + k];
        for (size_t i = 0; i < n; i += LANES, y += LANES * pitch) {
            vec v[LANES];
            if (whole && n - i >= LANES) {
                UNROLL
                for (size_t k = 0; k < LANES; k++) v[k] = vec_load((const REAL *)x[first + k] + i);
            } else {
                UNROLL
                for (size_t k = 0; k < LANES; k++) {
                    const REAL *from = x[first + k];
                    v[k] = lanes_load_apart(from ? from + i * step : NULL, step, n - i);
                }
            }
            vec_transpose(v, LANES);
            UNROLL
            for (size_t k = 0; k < LANES; k++)
                if (k < n - i) vec_store(y + k * pitch, v[k]);
        }
    }
}

INLINE void lanes_store_apart(REAL *y, size_t step, vec v, size_t n)
{
    if (step == 1) vec_store_up_to(y, v, n);
    else {
        UNROLL
        for (size_t k = 0; k < LANES; k++)
            if (k < n) y[k * step] = v[k];
    }
}

void KERNEL(lanes_write)(void *const *y, size_t step, const void *x_, size_t n, const void *bias,
                         bool relu)
{
    const REAL *x = x_;
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        const vec start = bias ? vec_load((const REAL *)bias + first) : (vec){0};
        const size_t adjacent = step > 1 ? lanes_adjacent((const void *const *)y + first) : 0;
        REAL *to = y[first];
        if (adjacent) {
            for (size_t i = 0; i < n; i++) {
                vec v = start + vec_load(x + i * CONV_LANES + first);
                if (relu) v = vec_positive(v);
                vec_store_up_to(to + i * step, v, adjacent);
            }
            continue;
        }
        for (size_t i = 0; i < n; i += LANES) {
            vec v[LANES];
            UNROLL
            for (size_t k = 0; k < LANES; k++) {
                v[k] = start;
                if (i + k < n) v[k] += vec_load(x + (i + k) * CONV_LANES + first);
                if (relu) v[k] = vec_positive(v[k]);
            }
            vec_transpose(v, LANES);
            UNROLL
            for (size_t k = 0; k < LANES; k++)
                if (y[first + k])
                    lanes_store_apart((REAL *)y[first + k] + i * step, step, v[k], n - i);
        }
    }
}

// Some outputs and taps, constants of unrolled loops.
struct lanes_shape {
    size_t width, taps, step;
};

// Samples begin .. end-1 of those that the outputs read are inside the row; reals from one sample
// and from one tap to the next.
struct lanes_window {
    size_t begin, end, pitch, w_pitch;
};

// Adds the products of taps, all of which lie in registers.
INLINE void lanes_add_taps(vec *sum, const REAL *x, const REAL *w,
                           const struct lanes_window *window, struct lanes_shape shape)
{
    vec tap[MAX_SPAN_TAPS];
    UNROLL
    for (size_t t = 0; t < shape.taps; t++)
        tap[t] = keep_in_register(vec_load(w + t * window->w_pitch));
    UNROLL
    for (size_t q = 0; q < (shape.width - 1) * shape.step + shape.taps; q++, x += window->pitch) {
        // Outside, in one comparison of unsigned numbers.
        if (__builtin_expect(q - window->begin >= window->end - window->begin, 0)) continue;
        const vec v = keep_in_register(vec_load(x));
        UNROLL
        for (size_t t = 0; t < shape.taps; t++) {
            const size_t p = (q - t) / shape.step;
            if (q >= t && (q - t) % shape.step == 0 && p < shape.width)
                sum[p] = vec_multiply_add(tap[t], v, sum[p]);
        }
    }
}

// Outputs of a call under way: x at the first of them, and the taps that come next.
struct lanes_conv {
    const REAL *x, *w;
    const struct tap_span *span, *end;
};

// All spans of so many taps that follow each other.
INLINE void lanes_add_spans(struct lanes_conv *at, vec *sum, size_t width, size_t taps)
{
    NO_UNROLL
    do {
        const REAL *x = at->x + at->span->offset * CONV_LANES;
        const struct lanes_window all = {0, SIZE_MAX, CONV_LANES, CONV_LANES};
        UNROLL
        for (size_t t = 0; t < taps; t += GROUP) {
            const struct lanes_shape shape = {width, taps - t < GROUP ? taps - t : GROUP, 1};
            lanes_add_taps(sum, x + t * CONV_LANES, at->w + t * CONV_LANES, &all, shape);
        }
        at->w += taps * CONV_LANES;
        at->span++;
    } while (at->span < at->end && at->span->taps == taps);
}

#define ADD_SPANS(taps) lanes_add_spans(&at, sum, width, taps)

// width outputs.
INLINE void lanes_conv_outputs(REAL *y, struct lanes_conv at, size_t width)
{
    vec sum[WIDTH];
    UNROLL
    for (size_t p = 0; p < width; p++) sum[p] = (vec){0};
    NO_UNROLL
    while (at.span < at.end) WITH_CONSTANT8(at.span->taps, ADD_SPANS, 1, 2, 3, 4, 5, 6, 7, 8)
    UNROLL
    for (size_t p = 0; p < width; p++, y += CONV_LANES) vec_store(y, vec_load(y) + sum[p]);
}

// As many groups of width outputs from output i on as there are before n; returns the first left.
INLINE size_t lanes_conv_groups(REAL *y, struct lanes_conv call, size_t i, size_t n, size_t width)
{
    NO_UNROLL
    for (; n - i >= width; i += width) {
        struct lanes_conv at = call;
        at.x += i * CONV_LANES;
        lanes_conv_outputs(y + i * CONV_LANES, at, width);
    }
    return i;
}

void KERNEL(lanes_conv)(void *y_, const void *x, const void *w, const struct tap_span *span,
                        size_t n_spans, size_t n)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        REAL *y = (REAL *)y_ + first;
        const struct lanes_conv call = {(const REAL *)x + first, (const REAL *)w + first, span,
                                        span + n_spans};
        size_t i = 0;
        if (n % 7 == 0) { // maps of 7, 14, 28, 56, ...
            if (WIDTH > 14) i = lanes_conv_groups(y, call, i, n, 14);
            lanes_conv_groups(y, call, i, n, 7);
            continue;
        }
        i = lanes_conv_groups(y, call, i, n, WIDTH);
        if (WIDTH > 8) i = lanes_conv_groups(y, call, i, n, 8);
        i = lanes_conv_groups(y, call, i, n, 4);
        i = lanes_conv_groups(y, call, i, n, 2);
        lanes_conv_groups(y, call, i, n, 1);
    }
}

// Partial sums of each tap, used one after the other, where taps alone are fewer than a
// multiply-add takes to finish, times the ones done at once.
INLINE size_t lanes_sums_per_tap(size_t taps)
{
    if (taps == 1) return 8;
    if (taps <= 3) return 4;
    return taps <= 5 ? 2 : 1;
}

enum { MAX_DOTS = 16 };

// Products of `step` positions.
INLINE void lanes_add_positions(vec *sum, const REAL *y, const REAL *x, size_t step, size_t taps)
{
    const size_t sums = lanes_sums_per_tap(taps);
    vec v[MAX_SPAN_TAPS]; // samples of x that the next y meets
    UNROLL
    for (size_t t = 0; t + 1 < taps; t++) v[t] = keep_in_register(vec_load(x + t * CONV_LANES));
    UNROLL
    for (size_t k = 0; k < step; k++) {
        const vec factor = keep_in_register(vec_load(y + k * CONV_LANES));
        v[(k + taps - 1) % taps] = keep_in_register(vec_load(x + (k + taps - 1) * CONV_LANES));
        UNROLL
        for (size_t t = 0; t < taps; t++) {
            vec *to = &sum[k % sums * taps + t];
            *to = vec_multiply_add(factor, v[(k + t) % taps], *to);
        }
    }
}

// Gradients of the taps of one span.
INLINE void lanes_weight_span(REAL *w, const REAL *y, const REAL *x, size_t n, size_t taps)
{
    const size_t sums = lanes_sums_per_tap(taps);
    vec sum[MAX_DOTS];
    UNROLL
    for (size_t s = 0; s < sums * taps; s++) sum[s] = (vec){0};
    const REAL *end = y + n * CONV_LANES;
    const size_t step = n % 7 ? 8 : 7; // maps of 7, 14, 28, 56, ...
    NO_UNROLL
    for (; (size_t)(end - y) >= step * CONV_LANES; x += step * CONV_LANES, y += step * CONV_LANES) {
        if (step == 8) lanes_add_positions(sum, y, x, 8, taps);
        else lanes_add_positions(sum, y, x, 7, taps);
    }
    NO_UNROLL
    for (; y < end; x += CONV_LANES, y += CONV_LANES) lanes_add_positions(sum, y, x, 1, taps);
    UNROLL
    for (size_t half = sums / 2; half; half /= 2) {
        UNROLL
        for (size_t s = 0; s < half * taps; s++) sum[s] += sum[half * taps + s];
    }
    UNROLL
    for (size_t t = 0; t < taps; t++, w += CONV_LANES) vec_store(w, vec_load(w) + sum[t]);
}

#define WEIGHT_SPAN(taps) lanes_weight_span(w, y, x, n, taps)

void KERNEL(lanes_weight)(void *w_, const void *y_, const void *x_, const struct tap_span *span,
                          size_t n_spans, size_t n)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        REAL *w = (REAL *)w_ + first;
        const REAL *y = (const REAL *)y_ + first;
        for (size_t s = 0; s < n_spans; w += span[s++].taps * CONV_LANES) {
            const REAL *x = (const REAL *)x_ + first + span[s].offset * CONV_LANES;
            WITH_CONSTANT8(span[s].taps, WEIGHT_SPAN, 1, 2, 3, 4, 5, 6, 7, 8)
        }
    }
}

// channels_conv: a vector holds one position of adjacent channels, which is how samples lie in
// memory with channels last. As in lanes_conv, neighbouring outputs stay in registers over all
// taps, and a sample is loaded once for GROUP taps. Channels are the inner loop, since positions
// may be so far apart that few of them fit the sets of a cache at once. The last outputs and
// channels of a row are computed with some before them, which get the same bits again.

// The first output and channel of a tile.
struct channels_tile {
    size_t i, c;
};

// Prefetches, with row r of the taps, its share of the next call's inputs and of the outputs behind
// this tile. All at once would keep loads that miss the first cache waiting.
INLINE void channels_prefetch(const struct channels_conv *call, const struct channels_tile *tile,
                              struct lanes_shape shape, size_t r)
{
    const size_t position = call->channels * sizeof(REAL), channel = tile->c * sizeof(REAL);
    uintptr_t x = (uintptr_t)call->next_x + tile->i * shape.step * position + channel;
    const uintptr_t y = (uintptr_t)call->y + (tile->i + shape.width) * position + channel;
    NO_UNROLL
    for (size_t k = 0; k < call->next_rows; k++, x += call->axis.size * position) {
        NO_UNROLL
        for (size_t p = r; p < shape.width * shape.step; p += call->rows)
            __builtin_prefetch((const void *)(x + p * position), 0, 3);
    }
    NO_UNROLL
    for (size_t p = r; p < shape.width; p += call->rows)
        __builtin_prefetch((const void *)(y + p * position), 1, 3);
}

INLINE void channels_store(const struct channels_conv *call, const struct channels_tile *tile,
                           vec *sum, size_t width)
{
    const REAL *bias = call->bias;
    const vec start = bias ? vec_load(bias + tile->c) : (vec){0};
    REAL *y = (REAL *)call->y + tile->i * call->channels + tile->c;
    UNROLL
    for (size_t p = 0; p < width; p++, y += call->channels) {
        sum[p] += start;
        if (call->relu) sum[p] = vec_positive(sum[p]);
        vec_store(y, sum[p]);
    }
}

INLINE void channels_vector(const struct channels_conv *call, const struct channels_tile *tile,
                            struct lanes_shape shape)
{
    const struct plane_axis *axis = &call->axis;
    const ptrdiff_t position = (ptrdiff_t)(tile->i * shape.step) + axis->first;
    const ptrdiff_t reach = (ptrdiff_t)((shape.width - 1) * shape.step + shape.taps);
    const ptrdiff_t end = (ptrdiff_t)axis->size - position;
    const REAL *w = (const REAL *)call->w + tile->c;
    vec sum[WIDTH];
    UNROLL
    for (size_t p = 0; p < shape.width; p++) sum[p] = (vec){0};
    NO_UNROLL
    for (size_t r = 0; r < call->rows; r++, w += shape.taps * call->w_pitch) {
        const REAL *x = (const REAL *)call->x[r] + position * (ptrdiff_t)call->channels + tile->c;
        UNROLL
        for (size_t t = 0; t < shape.taps; t += GROUP) {
            const ptrdiff_t before = -position - (ptrdiff_t)t, rest = end - (ptrdiff_t)t;
            struct lanes_window window = {.pitch = call->channels, .w_pitch = call->w_pitch};
            struct lanes_shape part = shape;
            if (before > 0) window.begin = (size_t)(before < reach ? before : reach);
            window.end = rest < (ptrdiff_t)window.begin ? window.begin : (size_t)rest;
            part.taps = shape.taps - t < GROUP ? shape.taps - t : GROUP;
            lanes_add_taps(sum, x + t * call->channels, w + t * call->w_pitch, &window, part);
        }
        if (call->next_rows) channels_prefetch(call, tile, shape, r);
    }
    channels_store(call, tile, sum, shape.width);
}

INLINE void channels_outputs(const struct channels_conv *call, size_t i, struct lanes_shape shape,
                             size_t width)
{
    const size_t last = call->channels - LANES;
    struct channels_tile tile = {.i = i};
    shape.width = width;
    NO_UNROLL
    for (size_t c = 0; c < call->channels; c += LANES) {
        tile.c = c < last ? c : last;
        channels_vector(call, &tile, shape);
    }
}

INLINE void channels_sum_row(const struct channels_conv *call, size_t taps, size_t step)
{
    const struct lanes_shape shape = {.taps = taps, .step = step};
    const size_t n = call->axis.count;
    size_t i = 0;
    if (n % 7 == 0) { // maps of 7, 14, 28, 56, ...
        for (; WIDTH > 14 && step == 1 && n - i >= 14; i += 14)
            channels_outputs(call, i, shape, 14);
        for (; i < n; i += 7) channels_outputs(call, i, shape, 7);
    } else
        for (; i < n; i += 8) channels_outputs(call, i < n - 8 ? i : n - 8, shape, 8);
}

INLINE void channels_any_step(const struct channels_conv *call, size_t taps)
{
    if (call->axis.step == 1) channels_sum_row(call, taps, 1);
    else channels_sum_row(call, taps, 2);
}

void KERNEL(channels_conv)(const struct channels_conv *call)
{
    const size_t taps = call->axis.taps;
    if (taps == 3) channels_any_step(call, 3);
    else if (taps == 5) channels_any_step(call, 5);
    else channels_any_step(call, 7);
}
