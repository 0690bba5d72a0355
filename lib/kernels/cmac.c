// SPDX-License-Identifier: MIT
// Products of spectra in lines of real and imaginary lanes, summed over terms in registers. The
// four products of a complex multiplication have a sum each, so that no addition waits for another
// of the same term, and the order of operations is the same for every bin. With 16 registers
// (PAIRED) the real and the imaginary part have one sum each, of twice as many vectors.
//
// With h in 16 bits, and not PAIRED, three products take the place of four:
//
//     A = sum of re h (re x + im x)    B = sum of (im h - re h) re x    C = sum of (re h + im h) im
//     x re y = A - C                     im y = A + B
//
// They cost three additions more, which run beside multiply-adds where these limit the loop, and
// make up for widening h. Their roundings are relative to |x| |h|, not to each of the four
// products. Source: the multiplication of complex numbers by three products, Knuth, The Art of
// Computer Programming 2, section 4.6.4 (1969).
#include "vector.h"

enum {
    VECTORS = SPECTRUM_LANES_BYTES / VECTOR_BYTES, // of a line's real or imaginary lanes
    GROUP = CMAC_GROUP,                            // vectors at a time, of all sums together
    REST = VECTORS < GROUP ? VECTORS : 1,          // vectors at a time of the last lines
    LINE = 2 * SPECTRUM_LANES,                     // reals
    PAIRED = VECTOR_BYTES == 32, // with 16 registers: two sums of two products each
};

// Vector v of a spectrum whose lines are `stride` reals apart: its real lanes; the imaginary ones
// are SPECTRUM_LANES further on.
INLINE size_t cmac_position(size_t v, size_t stride)
{
    return v / VECTORS * stride + v % VECTORS * LANES;
}

// The four sums of each vector; with h in 16 bits rr is A, ri is B, ii is C, and ir is not used.
struct cmac_sums {
    vec rr[GROUP], ii[GROUP], ri[GROUP], ir[GROUP];
};

struct cmac_operand {
    const REAL *lanes;
    size_t stride; // in reals
};

// h, of reals or of words of 16 bits twice. For words: the scale of the first line, and the stride
// in lines.
struct cmac_filter {
    const REAL *lanes;
    size_t stride;
    bool i16;
    const float *scale;
    size_t pitch;
};

// Bins of h: of reals; or of 16 bits, with the operands of the two other products.
struct cmac_bins {
    vec re, im;
    vec difference, sum; // im - re, re + im
};

INLINE vec cmac_real(const REAL *x)
{
    return keep_in_register(*(const vec *)x);
}

INLINE vec cmac_imaginary(const REAL *x)
{
    return keep_in_register(*(const vec *)(x + SPECTRUM_LANES));
}

// A product that is rounded before it is added: compilers may not contract the two.
INLINE vec cmac_rounded(vec v)
{
#if defined __x86_64__
    __asm__("" : "+v"(v));
#elif defined __aarch64__
    __asm__("" : "+w"(v));
#endif
    return v;
}

// Words of two mantissas, widened. Each mantissa is converted in the upper half of a lane, where it
// is exact.
INLINE struct cmac_bins cmac_widen(const REAL *words, REAL scale)
{
    typedef __typeof__((vec){0} < (vec){0}) integer_vec;
    const bits_vec word = (bits_vec)keep_in_register(*(const vec *)words), low = {0};
    const integer_vec re = (integer_vec)(word << 16), im = (integer_vec)(word & (low - 0x10000));
    const vec factor = vec_broadcast(scale);
    const vec real = cmac_rounded(__builtin_convertvector(re, vec) * factor),
              imaginary = cmac_rounded(__builtin_convertvector(im, vec) * factor);
    return (struct cmac_bins){real, imaginary, imaginary - real, real + imaginary};
}

// Vector v of h.
INLINE struct cmac_bins cmac_filter_bins(struct cmac_filter h, size_t v)
{
    const REAL *lanes = h.lanes + cmac_position(v, h.stride);
    if (h.i16) return cmac_widen(lanes, (REAL)h.scale[v / VECTORS * h.pitch]);
    return (struct cmac_bins){.re = cmac_real(lanes), .im = cmac_imaginary(lanes)};
}

// The four products of bins of x and h.
INLINE void cmac_add_product(struct cmac_sums *s, size_t i, vec xr, vec xi,
                             const struct cmac_bins *h)
{
    s->rr[i] = vec_multiply_add(xr, h->re, s->rr[i]);
    s->ri[i] = vec_multiply_add(xr, h->im, s->ri[i]);
    if (PAIRED) {
        s->rr[i] = vec_multiply_add(-xi, h->im, s->rr[i]);
        s->ri[i] = vec_multiply_add(xi, h->re, s->ri[i]);
        return;
    }
    s->ii[i] = vec_multiply_add(xi, h->im, s->ii[i]);
    s->ir[i] = vec_multiply_add(xi, h->re, s->ir[i]);
}

INLINE void cmac_add_product_i16(struct cmac_sums *s, size_t i, vec xr, vec xi,
                                 const struct cmac_bins *h)
{
    s->rr[i] = vec_multiply_add(xr + xi, h->re, s->rr[i]);
    s->ri[i] = vec_multiply_add(xr, h->difference, s->ri[i]);
    s->ii[i] = vec_multiply_add(xi, h->sum, s->ii[i]);
}

// `count` vectors of h by those of each of n spectra, a line of x apart; strides from line to line.
INLINE void cmac_add_products(struct cmac_sums *s, struct cmac_operand x, struct cmac_filter h,
                              size_t n, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const struct cmac_bins own_h = cmac_filter_bins(h, v);
        UNROLL
        for (size_t k = 0; k < n; k++) {
            const size_t i = k * count + v;
            const REAL *bins = x.lanes + k * LINE + cmac_position(v, x.stride);
            const vec xr = cmac_real(bins), xi = cmac_imaginary(bins);
            if (h.i16 && !PAIRED) cmac_add_product_i16(s, i, xr, xi, &own_h);
            else cmac_add_product(s, i, xr, xi, &own_h);
        }
    }
}

// The spectra that the sums of a partition are multiplied by: sum k by the one k slots after the
// partition's. If a partition is one slot, the next one needs all of them but the last again.
struct cmac_window {
    vec re[GROUP], im[GROUP];
};

INLINE void cmac_window_load(struct cmac_window *window, struct cmac_operand x, size_t k,
                             size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const REAL *bins = x.lanes + k * LINE + cmac_position(v, x.stride);
        window->re[k * count + v] = cmac_real(bins);
        window->im[k * count + v] = cmac_imaginary(bins);
    }
}

INLINE void cmac_add_window(struct cmac_sums *s, struct cmac_window *window, struct cmac_filter h,
                            size_t n, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const struct cmac_bins taps = cmac_filter_bins(h, v);
        UNROLL
        for (size_t k = n; k-- > 0;) {
            const size_t i = k * count + v;
            cmac_add_product(s, i, window->re[i], window->im[i], &taps);
            if (k + 1 == n) continue;
            window->re[i + count] = window->re[i];
            window->im[i + count] = window->im[i];
        }
    }
}

// `count` vectors of sum k, to and from memory.
INLINE void cmac_store_sums(REAL *y, const struct cmac_sums *s, size_t k, size_t count, bool i16)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const size_t i = k * count + v;
        vec re = s->rr[i], im = s->ri[i];
        if (!PAIRED) re -= s->ii[i], im += i16 ? s->rr[i] : s->ir[i];
        *(vec *)(y + cmac_position(v, LINE)) = re;
        *(vec *)(y + cmac_position(v, LINE) + SPECTRUM_LANES) = im;
    }
}

INLINE void cmac_load_sums(const REAL *y, struct cmac_sums *s, size_t k, size_t count, bool i16)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const size_t i = k * count + v;
        const vec re = cmac_real(y + cmac_position(v, LINE));
        if (i16 && !PAIRED) s->ii[i] = -re;
        else s->rr[i] = re;
        s->ri[i] = cmac_imaginary(y + cmac_position(v, LINE));
    }
}

// `count` vectors of all terms; strides from term to term.
INLINE void cmac_sum_terms(REAL *y, struct cmac_operand x, struct cmac_filter h, size_t terms,
                           size_t count)
{
    struct cmac_sums sums = {0};
    for (size_t t = 0; t < terms; t++, x.lanes += x.stride, h.lanes += h.stride)
        cmac_add_products(&sums, (struct cmac_operand){x.lanes, LINE},
                          (struct cmac_filter){.lanes = h.lanes, .stride = LINE}, 1, count);
    cmac_store_sums(y, &sums, 0, count, false);
}

void KERNEL(cmac)(void *y, const void *x, size_t x_stride, const void *h, size_t h_stride,
                  size_t terms, size_t n_lines)
{
    const size_t end = n_lines * VECTORS;
    for (size_t v = 0, count; v < end; v += count) {
        const size_t at = cmac_position(v, LINE);
        const struct cmac_operand from = {(const REAL *)x + at, x_stride * LINE};
        const struct cmac_filter filter = {.lanes = (const REAL *)h + at,
                                           .stride = h_stride * LINE};
        count = end - v >= GROUP ? GROUP : REST;
        if (count == GROUP) cmac_sum_terms((REAL *)y + at, from, filter, terms, GROUP);
        else cmac_sum_terms((REAL *)y + at, from, filter, terms, REST);
    }
}

// Prefetches operands some reals further on, which may not exist, into the L2 cache, since they
// are not needed soon.
INLINE void cmac_prefetch(const REAL *x, size_t distance, size_t stride, size_t count)
{
    UNROLL
    for (size_t v = 0; v < count; v++) {
        const uintptr_t later = (uintptr_t)x + (distance + cmac_position(v, stride)) * sizeof *x;
        __builtin_prefetch((const void *)later, 0, 2);
        __builtin_prefetch((const void *)(later + SPECTRUM_LANES_BYTES), 0, 2);
    }
}

// The same for h. In 16 bits a line is one cache line, and sixteen lines have their scales in one.
INLINE void cmac_prefetch_filter(const struct cmac_filter *h, size_t lines, size_t count)
{
    if (!h->i16) {
        cmac_prefetch(h->lanes, lines * LINE, h->stride, count);
        return;
    }
    UNROLL
    for (size_t v = 0; v < count; v += VECTORS) {
        const size_t line = lines + v / VECTORS * h->pitch;
        const uintptr_t words = (uintptr_t)h->lanes + line * SPECTRUM_I16_BYTES;
        const uintptr_t scale = (uintptr_t)h->scale + line * sizeof *h->scale;
        __builtin_prefetch((const void *)words, 0, 2);
        __builtin_prefetch((const void *)scale, 0, 2);
    }
}

// A call of cmac_partitions but its sums, with the paths whose products are being added.
struct cmac_call {
    const struct cmac_terms *terms;
    const struct cmac_path *paths, *end;
    const struct cmac_next *next; // of these paths
    bool ahead;
    bool i16;       // h has 16 bits
    size_t beyond;  // line after the last
    size_t x_lines; // by which x is prefetched; 0: it is not
};

// `count` vectors from `at` on of sums k .. k+n-1.
struct cmac_span {
    size_t at, k, n, count;
};

// Distances of prefetched operands: of x in reals, of h in lines. They may be negative, modulo the
// size of the address space.
struct cmac_distance {
    size_t x, h;
};

INLINE size_t cmac_units_between(const void *from, const void *to, size_t unit)
{
    return (size_t)((ptrdiff_t)((uintptr_t)to - (uintptr_t)from) / (ptrdiff_t)unit);
}

INLINE struct cmac_distance cmac_prefetch_distance(const struct cmac_call *call,
                                                   const struct cmac_span *span)
{
    const struct cmac_path *path = call->paths;
    const size_t x_stride = path->x_pitch * LINE, line = span->at / VECTORS;
    const struct cmac_next *next = call->next;
    if (!next) {
        const size_t lines = span->count < VECTORS ? 1 : span->count / VECTORS;
        const size_t x_lines = lines > call->x_lines ? lines : call->x_lines;
        return (struct cmac_distance){x_lines * x_stride, call->terms->ahead};
    }
    const size_t later = line + next->lines;
    if (later < call->beyond)
        return (struct cmac_distance){next->lines * x_stride, next->lines * path->h_pitch};
    const size_t lines = next->first + (later - call->beyond) - line;
    const size_t h_line = call->i16 ? SPECTRUM_I16_BYTES : SPECTRUM_LINE_BYTES;
    return (struct cmac_distance){
        cmac_units_between(path->x, next->x, sizeof(REAL)) + lines * x_stride,
        cmac_units_between(path->h, next->h, h_line) + lines * path->h_pitch};
}

// Values for all paths of a span: strides, and distances from a path's operands.
struct cmac_rows {
    size_t x_stride, h_stride, h_line; // in reals
    size_t pitch;                      // of h in lines
    size_t x, h, scale;                // where the span begins
    bool prefetch;                     // once a line, where it takes several spans
    struct cmac_distance distance;
};

INLINE struct cmac_rows cmac_rows_of(const struct cmac_call *call, struct cmac_span span)
{
    const size_t h_line = call->i16 ? SPECTRUM_LANES : LINE;
    struct cmac_rows rows = {.h_line = h_line};
    if (call->paths == call->end) return rows;
    rows.pitch = call->paths->h_pitch;
    rows.x_stride = call->paths->x_pitch * LINE;
    rows.h_stride = rows.pitch * h_line;
    rows.x = cmac_position(span.at, rows.x_stride) + span.k * LINE;
    rows.h = cmac_position(span.at, rows.h_stride);
    rows.scale = span.at / VECTORS * rows.pitch;
    rows.prefetch = call->ahead && span.at % VECTORS == 0;
    if (call->ahead) rows.distance = cmac_prefetch_distance(call, &span);
    return rows;
}

// The products of one path. `adjacent`: with spectra in a window.
INLINE void cmac_add_path(struct cmac_sums *sums, const struct cmac_call *call,
                          const struct cmac_path *path, const struct cmac_rows *rows,
                          struct cmac_span span, bool adjacent)
{
    const struct cmac_terms *terms = call->terms;
    const size_t multiple = terms->multiple, slots = terms->slots, back = path->first * multiple;
    const REAL *ring = (const REAL *)path->x + rows->x;
    struct cmac_filter h = {.lanes = (const REAL *)path->h + rows->h,
                            .stride = rows->h_stride,
                            .i16 = call->i16,
                            .pitch = rows->pitch};
    if (call->i16) h.scale = path->scale + rows->scale;
    size_t slot = terms->newest >= back ? terms->newest - back : terms->newest + slots - back;
    struct cmac_window window;
    if (adjacent) {
        UNROLL
        for (size_t k = 1; k < span.n; k++)
            cmac_window_load(&window, (struct cmac_operand){ring + slot * LINE, rows->x_stride}, k,
                             span.count);
    }
    for (size_t p = 0; p < path->count; p++, h.lanes += rows->h_line) {
        const REAL *x = ring + slot * LINE;
        const struct cmac_operand operand = {x, rows->x_stride};
        if (adjacent) {
            cmac_window_load(&window, operand, 0, span.count);
            cmac_add_window(sums, &window, h, span.n, span.count);
        } else cmac_add_products(sums, operand, h, span.n, span.count);
        if (call->ahead && rows->prefetch) {
            if (call->x_lines) cmac_prefetch(x, rows->distance.x, rows->x_stride, span.count);
            cmac_prefetch_filter(&h, rows->distance.h, span.count);
        }
        if (call->i16) h.scale++;
        slot = slot >= multiple ? slot - multiple : slot + slots - multiple;
    }
}

INLINE void cmac_add_paths(struct cmac_sums *sums, const struct cmac_call *call,
                           struct cmac_span span)
{
    const struct cmac_rows rows = cmac_rows_of(call, span);
    const bool adjacent = !PAIRED && span.n > 1 && !call->i16 && call->terms->multiple == 1;
    for (const struct cmac_path *path = call->paths; path < call->end; path++)
        if (adjacent) cmac_add_path(sums, call, path, &rows, span, true);
        else cmac_add_path(sums, call, path, &rows, span, false);
}

// Those of terms->more, which may have fewer sums than the span.
INLINE void cmac_add_more(struct cmac_sums *sums, const struct cmac_call *call,
                          struct cmac_span span)
{
    const struct cmac_more *more = call->terms->more;
    for (size_t i = 0; i < call->terms->n_more; i++, more++) {
        struct cmac_call others = *call;
        others.paths = more->paths, others.end = more->paths + more->n_paths, others.next = NULL;
        if (more->sums == span.k + 1)
            cmac_add_paths(sums, &others, (struct cmac_span){span.at, span.k, 1, span.count});
        else if (span.n > 1 && more->sums == span.k + 2)
            cmac_add_paths(sums, &others, (struct cmac_span){span.at, span.k, 2, span.count});
    }
}

INLINE void cmac_sum_paths(void *const *y, const struct cmac_call *call, struct cmac_span span)
{
    struct cmac_sums sums = {0};
    UNROLL
    for (size_t i = 0; i < span.n; i++)
        if (!call->terms->overwrite[span.k + i])
            cmac_load_sums((const REAL *)y[span.k + i] + cmac_position(span.at, LINE), &sums, i,
                           span.count, call->i16);
    if (call->ahead) {
        UNROLL
        for (size_t i = 0; i < span.n; i++)
            cmac_prefetch((const REAL *)y[span.k + i] + cmac_position(span.at, LINE), 8 * LINE,
                          LINE, span.count);
    }
    cmac_add_paths(&sums, call, span);
    if (span.n > 1) cmac_add_more(&sums, call, span);
    UNROLL
    for (size_t i = 0; i < span.n; i++)
        cmac_store_sums((REAL *)y[span.k + i] + cmac_position(span.at, LINE), &sums, i, span.count,
                        call->i16);
}

// All lines of sums k .. k+n-1: as many vectors at a time as there are registers for, then a line
// at a time.
INLINE void cmac_sum_lines(void *const *y, const struct cmac_call *call, size_t first, size_t end,
                           size_t k, size_t n)
{
    const size_t count = GROUP / n, rest = count < VECTORS ? count : VECTORS;
    size_t at = first * VECTORS;
    for (; end * VECTORS - at >= count; at += count)
        cmac_sum_paths(y, call, (struct cmac_span){at, k, n, count});
    for (; at < end * VECTORS; at += rest)
        cmac_sum_paths(y, call, (struct cmac_span){at, k, n, rest});
}

INLINE void cmac_sum_all(void *const *y, const struct cmac_call *call, size_t first, size_t end)
{
    const size_t group = GROUP, count = group < CMAC_SUMS ? group : CMAC_SUMS; // sums at a time
    if (call->terms->sums == 1) cmac_sum_lines(y, call, first, end, 0, 1);
    else if (call->terms->sums == 2) cmac_sum_lines(y, call, first, end, 0, 2);
    else
        for (size_t k = 0; k < call->terms->sums; k += count)
            cmac_sum_lines(y, call, first, end, k, count);
}

// So many lines have enough products that the operands of the next one arrive in time.
static size_t cmac_lines_ahead(const struct cmac_terms *terms, const struct cmac_path *paths,
                               size_t n_paths)
{
    enum { PRODUCTS = 48 };
    size_t products = 1;
    if (terms->x_near) return 0;
    for (size_t i = 0; i < n_paths; i++) products += paths[i].count;
    for (size_t i = 0; i < terms->n_more; i++)
        if (terms->more[i].n_paths)
            products += terms->more[i].n_paths * terms->more[i].paths->count;
    return PRODUCTS / products + 1;
}

INLINE struct cmac_call cmac_call_of(const struct cmac_terms *terms, const struct cmac_path *paths,
                                     size_t n_paths, size_t end, bool ahead, bool i16)
{
    return (struct cmac_call){.terms = terms,
                              .paths = paths,
                              .end = paths + n_paths,
                              .next = terms->next,
                              .ahead = ahead,
                              .i16 = i16,
                              .beyond = end,
                              .x_lines = ahead ? cmac_lines_ahead(terms, paths, n_paths) : 0};
}

void KERNEL(cmac_partitions)(void *const *y, const struct cmac_terms *terms,
                             const struct cmac_path *paths, size_t n_paths, size_t first,
                             size_t end)
{
    // In 16 bits with prefetching always: these spectra come from memory.
    if (terms->i16 && REAL_BYTES == 4) {
        const struct cmac_call words = cmac_call_of(terms, paths, n_paths, end, true, true);
        cmac_sum_all(y, &words, first, end);
    } else if (terms->ahead) {
        const struct cmac_call far = cmac_call_of(terms, paths, n_paths, end, true, false);
        cmac_sum_all(y, &far, first, end);
    } else {
        const struct cmac_call near = cmac_call_of(terms, paths, n_paths, end, false, false);
        cmac_sum_all(y, &near, first, end);
    }
}
