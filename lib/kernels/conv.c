// SPDX-License-Identifier: MIT
// The sums of layers. conv: vectors along the positions times output channels, a rectangle of sums
// in registers over all taps and input channels; a vector of x is loaded once and multiplied by the
// weights of every channel, a weight is broadcast once for every vector. conv_weight: the same
// rectangle of output channels times taps, summed along the positions. Source: Goto & van de Geijn,
// Anatomy of high-performance matrix multiplication (2008), for the rectangle; taps as offsets are
// the indirect convolution of Dukhan (2019) without its pointers.
#include "vector.h"

// Rectangles by number of registers: sums, one row or column of operands, one operand in flight.
enum {
#if VECTOR_BYTES == 32
    ROWS = 4,
    WIDTH = 3,   // 12 sums + 3 + 1 of 16
    COLUMNS = 3, // the same
#else
    ROWS = CONV_CHANNELS,
    WIDTH = 3, // 24 sums + 3 + 1 of 32
    COLUMNS = 6,
#endif
    SUMS = ROWS * WIDTH,
    // Outputs are often not in a cache. With more terms than this prefetching them pays.
    PREFETCH_TERMS = 32,
    // Sums of more terms share the vectors of x between the channels of a call.
    SHARED_TERMS = 64,
    WEIGHT_ROWS = 4,
    WEIGHT_SUMS = WEIGHT_ROWS * COLUMNS, // + columns + 1
    CACHE_LINE = 64,
};

// Everything of a call but the part that a rectangle covers.
struct conv {
    const struct conv_operands *operands;
    struct conv_prefetch *prefetch; // NULL: nothing is prefetched besides the operands
    size_t w_channel;               // a constant 1 where weights of a term are adjacent
    bool pairs;                     // operands are pairs of bf16
};

// The sum plus the products of two operands.
INLINE vec conv_add(const struct conv *call, vec a, vec b, vec sum)
{
#if VECTOR_BYTES == 64 && REAL_BYTES == 4
    if (call->pairs) return vec_add_pairs(a, b, sum);
#endif
    (void)call;
    return vec_multiply_add(a, b, sum);
}

// The next line to prefetch.
INLINE void conv_fetch_line(struct conv_prefetch *prefetch)
{
    __builtin_prefetch((const void *)prefetch->at, 0, 2);
    prefetch->at += CACHE_LINE;
    if (--prefetch->left) return;
    prefetch->at += prefetch->skip;
    prefetch->left = prefetch->lines;
}

// The weights of rows channels, to be broadcast one by one, `step` reals apart. With the vectors of
// aarch64 a load brings several adjacent ones, which are multiplied by from their lanes; a load
// that broadcasts takes the place of a multiplication there.
struct conv_weights {
    const REAL *w;
    size_t step, in_lanes;
#if VECTOR_BYTES == 16
    vec lanes[CONV_CHANNELS / LANES];
#endif
};

INLINE struct conv_weights conv_load_weights(const REAL *w, size_t step, size_t rows)
{
    struct conv_weights ret = {.w = w, .step = step};
#if VECTOR_BYTES == 16
    if (step == 1) ret.in_lanes = rows / LANES * LANES;
    UNROLL
    for (size_t r = 0; r < ret.in_lanes; r += LANES)
        ret.lanes[r / LANES] = keep_in_register(vec_load(w + r));
#endif
    (void)rows;
    return ret;
}

// That of channel r, for width vectors.
INLINE vec conv_factor(const struct conv_weights *weights, size_t r, size_t width)
{
#if VECTOR_BYTES == 16
    if (r < weights->in_lanes) return vec_broadcast_lane(weights->lanes[r / LANES], r % LANES);
#endif
    const vec factor = vec_broadcast(weights->w[r * weights->step]);
    return width > 1 ? keep_in_register(factor) : factor;
}

// The operands and sums of the terms of a rectangle.
struct conv_operand {
    const REAL *x, *w;
    vec *sum;
    struct conv_prefetch *prefetch;
    size_t w_ahead; // bytes before their use at which weights are prefetched
};

// Adds all terms of rows channels to width vectors of sums. fetch: of the first rectangle, or while
// x is prefetched; other rectangles are left without a test in the loop. Of factors and vectors the
// fewer stay in registers, the others pass through one.
INLINE void conv_terms(const struct conv *call, const struct conv_operand *from, size_t rows,
                       size_t width, bool fetch)
{
    const size_t *offset = call->operands->offset, *end = offset + call->operands->terms;
    const size_t step = call->operands->w_term, ahead = call->operands->ahead,
                 w_ahead = from->w_ahead;
    size_t lines = fetch && call->prefetch ? from->prefetch->count : 0;
    // So that gcc adds an offset to x once, not to the array's start and x's distance from it.
    const REAL *x = keep_address(from->x), *w = from->w;
    vec *sum = from->sum;
    NO_UNROLL
    for (; offset < end; offset++, w += step) {
        const REAL *in = x + *offset;
        vec v[SUMS], factor[ROWS];
        if (lines) {
            conv_fetch_line(from->prefetch);
            lines--;
        }
        // The weights that follow, or those of this term. A number, for they may lie beyond the
        // array.
        if (fetch) __builtin_prefetch((const void *)((uintptr_t)w + w_ahead), 0, 2);
        // Into the L2 cache: it will be a while. A number, for the line need not be one of the
        // array's.
        if (fetch && ahead) {
            UNROLL
            for (size_t p = 0; p < width; p += CACHE_LINE / VECTOR_BYTES)
                __builtin_prefetch((const void *)((uintptr_t)(in + p * LANES) + ahead), 0, 2);
        }
        const struct conv_weights weights = conv_load_weights(w, call->w_channel, rows);
        UNROLL
        for (size_t r = 0; r < rows && rows < width; r++)
            factor[r] = conv_factor(&weights, r, width);
        UNROLL
        for (size_t p = 0; p < width; p++) {
            v[p] = rows > 1 ? keep_in_register(vec_load(in + p * LANES)) : vec_load(in + p * LANES);
            UNROLL
            for (size_t r = 0; r < rows && rows < width; r++)
                sum[r * width + p] = conv_add(call, factor[r], v[p], sum[r * width + p]);
        }
        UNROLL
        for (size_t r = 0; r < rows && rows >= width; r++) {
            factor[r] = conv_factor(&weights, r, width);
            UNROLL
            for (size_t p = 0; p < width; p++)
                sum[r * width + p] = conv_add(call, factor[r], v[p], sum[r * width + p]);
        }
    }
}

// rows channels from k on, width vectors from position i on.
INLINE void conv_rectangle(const struct conv *call, size_t k, size_t i, size_t rows, size_t width)
{
    const struct conv_operands *operands = call->operands;
    REAL *y = (REAL *)operands->y + k * operands->y_stride + i;
    // The first rectangle walks for all.
    const bool first = k == 0 && i == 0;
    struct conv_prefetch prefetch = {0};
    if (call->prefetch && first) prefetch = *call->prefetch;
    vec sum[SUMS];
    const struct conv_operand from = {
        (const REAL *)operands->x + i, (const REAL *)operands->w + k * call->w_channel, sum,
        &prefetch, first && call->w_channel == 1 ? CONV_AHEAD_BYTES : 0};
    UNROLL
    for (size_t s = 0; s < rows * width; s++) sum[s] = (vec){0};
    if (operands->terms > PREFETCH_TERMS) {
        UNROLL
        for (size_t s = 0; s < rows * width; s++)
            __builtin_prefetch(y + s / width * operands->y_stride + s % width * LANES);
    }
    if (first || (operands->ahead && k == 0)) conv_terms(call, &from, rows, width, true);
    else conv_terms(call, &from, rows, width, false);
    if (!operands->overwrite) {
        UNROLL
        for (size_t s = 0; s < rows * width; s++)
            sum[s] += vec_load(y + s / width * operands->y_stride + s % width * LANES);
    }
    if (__builtin_expect(operands->past_caches, 0)) {
        UNROLL
        for (size_t s = 0; s < rows * width; s++)
            vec_store_past_caches(y + s / width * operands->y_stride + s % width * LANES, sum[s]);
    } else {
        UNROLL
        for (size_t s = 0; s < rows * width; s++)
            vec_store(y + s / width * operands->y_stride + s % width * LANES, sum[s]);
    }
    if (call->prefetch && first) *call->prefetch = prefetch;
}

// Rectangles of one size as far as they go, at each position `times` of them for adjacent channels,
// which share the vectors of x in the L1 cache; returns the first position left.
INLINE size_t conv_rectangles(const struct conv *call, size_t k, size_t times, size_t i, size_t n,
                              size_t rows, size_t width)
{
    for (; width && n - i >= width * LANES; i += width * LANES)
        for (size_t c = 0; c < times; c++) conv_rectangle(call, k + c * rows, i, rows, width);
    return i;
}

// All positions of times * rows channels; returns the first channel left.
INLINE size_t conv_channels(const struct conv *call, size_t k, size_t times, size_t rows,
                            size_t width)
{
    const size_t n = call->operands->n;
    // Two vectors and two rather than three and one: a lone vector leaves few sums in flight.
    const size_t pairs = width == 3 && n / LANES % 3 == 1 && n / LANES > 3 ? 4 * LANES : 0;
    size_t i = conv_rectangles(call, k, times, 0, n - pairs, rows, width);
    i = conv_rectangles(call, k, times, i, n, rows, width > 2 ? 2 : 1);
    conv_rectangles(call, k, times, i, n, rows, 1);
    return k + times * rows;
}

INLINE void conv_all(const struct conv *call)
{
    enum { MAX_WIDTH = 6 };
    const size_t channels = call->operands->channels;
    // Rows of few terms are written one after the other, line by line.
    const bool shared = ROWS == 4 && call->operands->terms > SHARED_TERMS;
    size_t k = 0;
    while (channels - k >= ROWS)
        k = conv_channels(call, k, shared ? channels / ROWS : 1, ROWS, WIDTH);
    if (ROWS > 4 && channels - k >= 4)
        k = conv_channels(call, k, 1, 4, SUMS / 4 < MAX_WIDTH ? SUMS / 4 : MAX_WIDTH);
    if (channels - k == 3)
        k = conv_channels(call, k, 1, 3, SUMS / 3 < MAX_WIDTH ? SUMS / 3 : MAX_WIDTH);
    if (channels - k >= 2)
        k = conv_channels(call, k, 1, 2, SUMS / 2 < MAX_WIDTH ? SUMS / 2 : MAX_WIDTH);
    if (channels - k) conv_channels(call, k, 1, 1, 8);
}

void KERNEL(conv)(const struct conv_operands *operands, struct conv_prefetch *prefetch)
{
    if (!prefetch && operands->w_channel == 1) conv_all(&(struct conv){operands, NULL, 1, false});
    else if (operands->w_channel == 1) conv_all(&(struct conv){operands, prefetch, 1, false});
    else conv_all(&(struct conv){operands, prefetch, operands->w_channel, false});
}

#if VECTOR_BYTES == 64 && REAL_BYTES == 4
void KERNEL(conv_pairs)(const struct conv_operands *operands, struct conv_prefetch *prefetch)
{
    if (operands->w_channel == 1) conv_all(&(struct conv){operands, prefetch, 1, true});
    else conv_all(&(struct conv){operands, prefetch, operands->w_channel, true});
}
#endif

// Lane j of the result is the sum of the lanes of v[j].
INLINE vec conv_sum_lanes(vec v[LANES])
{
    UNROLL
    for (size_t n = LANES; n > 1; n /= 2) {
        UNROLL
        for (size_t j = 0; j < n / 2; j++)
            v[j] = __builtin_shufflevector(v[2 * j], v[2 * j + 1], EVEN) +
                   __builtin_shufflevector(v[2 * j], v[2 * j + 1], ODD);
    }
    return v[0];
}

// Adds the lanes of rows x columns sums, with zeros behind them up to a multiple of LANES, to w,
// and overwrites the sums. A function of its own, so that its constants do not take the registers
// of sums.
static __attribute__((noinline)) void conv_weight_add(REAL *w, size_t w_stride, vec *sum,
                                                      size_t rows, size_t columns)
{
    REAL total[WEIGHT_SUMS + LANES];
    for (size_t first = 0; first < rows * columns; first += LANES)
        vec_store(total + first, conv_sum_lanes(sum + first));
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) w[r * w_stride + c] += total[r * columns + c];
}

// rows channels from k on, columns taps from t on.
INLINE void conv_weight_rectangle(const struct conv_weight_operands *call, size_t k, size_t t,
                                  size_t rows, size_t columns)
{
    const REAL *y = (const REAL *)call->y + k * call->y_stride, *x[WEIGHT_SUMS];
    // Without it a line that is loaded anyway, which costs less than a test.
    const uintptr_t ahead = (uintptr_t)(call->ahead && k + t == 0 ? call->ahead : y);
    vec sum[WEIGHT_SUMS + LANES];
    UNROLL
    for (size_t c = 0; c < columns; c++) x[c] = (const REAL *)call->x + call->offset[t + c];
    UNROLL
    for (size_t s = 0; s < (rows * columns + LANES - 1) / LANES * LANES; s++) sum[s] = (vec){0};
    NO_UNROLL
    for (size_t i = 0; i < call->n; i += LANES) {
        vec v[COLUMNS];
        __builtin_prefetch((const void *)(ahead + i * sizeof(REAL)), 0, 2);
        UNROLL
        for (size_t c = 0; c < columns; c++) v[c] = keep_in_register(vec_load(x[c] + i));
        UNROLL
        for (size_t r = 0; r < rows; r++) {
            const vec factor = keep_in_register(vec_load(y + r * call->y_stride + i));
            UNROLL
            for (size_t c = 0; c < columns; c++)
                sum[r * columns + c] = vec_multiply_add(v[c], factor, sum[r * columns + c]);
        }
    }
    conv_weight_add((REAL *)call->w + k * call->w_stride + t, call->w_stride, sum, rows, columns);
}

INLINE void conv_weight_channels(const struct conv_weight_operands *call, size_t k, size_t terms,
                                 size_t rows)
{
    size_t t = 0;
    for (; terms - t >= COLUMNS; t += COLUMNS) conv_weight_rectangle(call, k, t, rows, COLUMNS);
    if (COLUMNS > 3 && terms - t >= 3) {
        conv_weight_rectangle(call, k, t, rows, 3);
        t += 3;
    }
    for (; t < terms; t++) conv_weight_rectangle(call, k, t, rows, 1);
}

void KERNEL(conv_weight)(const struct conv_weight_operands *operands)
{
    const size_t channels = operands->channels, terms = operands->terms;
    size_t k = 0;
    for (; channels - k >= WEIGHT_ROWS; k += WEIGHT_ROWS)
        conv_weight_channels(operands, k, terms, WEIGHT_ROWS);
    if (channels - k >= 2) {
        conv_weight_channels(operands, k, terms, 2);
        k += 2;
    }
    if (channels - k) conv_weight_channels(operands, k, terms, 1);
}
