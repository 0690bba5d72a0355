// SPDX-License-Identifier: MIT
// Planes side by side: the sums of depthwise layers. Since a vector holds one sample of many
// planes, any tap of any position is an aligned load and every row is as good as a long one; the
// price is a transposition on the way in and on the way out. lanes_conv keeps a stretch of outputs
// in registers over all taps, and the taps of a run beside them: a vector of x is loaded once a
// run. With WIDTH outputs and T taps that is WIDTH + 2T - 1 loads for WIDTH * T products.
#include "vector.h"

#if VECTOR_BYTES == 32
enum { WIDTH = 8, GROUP = 4 }; // 8 sums + 4 taps + 1 of 16 registers
#else
enum { WIDTH = 16, GROUP = MAX_SPAN_TAPS }; // 16 + 8 + 1 of 32
#endif

// Samples 0, step, ... of at most LANES; n of them are there.
INLINE vec load_apart(const REAL *x, size_t step, size_t n)
{
    if (step == 1) return n >= LANES ? vec_load(x) : vec_load_first(x, n);
    if (step == 2 && n > LANES) {
        const vec a = vec_load(x), b = vec_load(x + LANES);
        return __builtin_shufflevector(a, b, EVEN);
    }
    vec v = {0};
    UNROLL
    for (size_t k = 0; k < LANES; k++)
        if (k < n) v[k] = x[k * step];
    return v;
}

void KERNEL(lanes_read)(void *y_, const void *const *x, size_t step, size_t n)
{
    REAL *y = y_;
    for (size_t first = 0; first < CONV_LANES; first += LANES)
        for (size_t i = 0; i < n; i += LANES) {
            vec v[LANES];
            UNROLL
            for (size_t k = 0; k < LANES; k++) {
                v[k] = (vec){0};
                if (x[first + k])
                    v[k] = load_apart((const REAL *)x[first + k] + i * step, step, n - i);
            }
            vec_transpose(v, LANES);
            UNROLL
            for (size_t k = 0; k < LANES; k++)
                if (i + k < n) vec_store(y + (i + k) * CONV_LANES + first, v[k]);
        }
}

typedef BITS bits_vec __attribute__((vector_size(VECTOR_BYTES), may_alias));

// Negative lanes become 0; NaN stays.
INLINE vec positive(vec v)
{
    return (vec)((bits_vec)v & ~(bits_vec)(v < (vec){0}));
}

INLINE void store_apart(REAL *y, size_t step, vec v, size_t n)
{
    if (step == 1 && n >= LANES) vec_store(y, v);
    else if (step == 1) vec_store_first(y, v, n);
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
        for (size_t i = 0; i < n; i += LANES) {
            vec v[LANES];
            UNROLL
            for (size_t k = 0; k < LANES; k++) {
                v[k] = start;
                if (i + k < n) v[k] += vec_load(x + (i + k) * CONV_LANES + first);
                if (relu) v[k] = positive(v[k]);
            }
            vec_transpose(v, LANES);
            UNROLL
            for (size_t k = 0; k < LANES; k++)
                if (y[first + k]) store_apart((REAL *)y[first + k] + i * step, step, v[k], n - i);
        }
    }
}

// Taps of a run, all of which lie in registers, meet width outputs.
INLINE void meet(vec *sum, const REAL *x, const REAL *w, size_t width, size_t taps)
{
    vec tap[MAX_SPAN_TAPS];
    UNROLL
    for (size_t t = 0; t < taps; t++) tap[t] = keep_in_register(vec_load(w + t * CONV_LANES));
    UNROLL
    for (size_t q = 0; q < width + taps - 1; q++) {
        const vec v = keep_in_register(vec_load(x + q * CONV_LANES));
        UNROLL
        for (size_t t = 0; t < taps; t++)
            if (q >= t && q - t < width) sum[q - t] = vec_multiply_add(tap[t], v, sum[q - t]);
    }
}

struct lanes_conv {
    REAL *y;
    const REAL *x, *w;
    const struct tap_span *run, *end;
};

// All runs of one length that follow each other; returns what comes after them.
INLINE const struct tap_span *same_runs(const struct lanes_conv *call, const struct tap_span *run,
                                        vec *sum, size_t i, const REAL **w, size_t width,
                                        size_t taps)
{
    NO_UNROLL
    do {
        const REAL *x = call->x + (run->offset + i) * CONV_LANES;
        UNROLL
        for (size_t t = 0; t < taps; t += GROUP)
            meet(sum, x + t * CONV_LANES, *w + t * CONV_LANES, width,
                 taps - t < GROUP ? taps - t : GROUP);
        *w += taps * CONV_LANES;
        run++;
    } while (run < call->end && run->taps == taps);
    return run;
}

// width outputs from position i on.
INLINE void stretch(const struct lanes_conv *call, size_t i, size_t width)
{
    vec sum[WIDTH];
    const REAL *w = call->w;
    UNROLL
    for (size_t p = 0; p < width; p++) sum[p] = (vec){0};
    const struct tap_span *run = call->run;
    NO_UNROLL
    while (run < call->end) switch (run->taps) {
        case 1:
            run = same_runs(call, run, sum, i, &w, width, 1);
            break;
        case 2:
            run = same_runs(call, run, sum, i, &w, width, 2);
            break;
        case 3:
            run = same_runs(call, run, sum, i, &w, width, 3);
            break;
        case 4:
            run = same_runs(call, run, sum, i, &w, width, 4);
            break;
        case 5:
            run = same_runs(call, run, sum, i, &w, width, 5);
            break;
        case 6:
            run = same_runs(call, run, sum, i, &w, width, 6);
            break;
        case 7:
            run = same_runs(call, run, sum, i, &w, width, 7);
            break;
        default:
            run = same_runs(call, run, sum, i, &w, width, 8);
            break;
        }
    UNROLL
    for (size_t p = 0; p < width; p++) {
        REAL *y = call->y + (i + p) * CONV_LANES;
        vec_store(y, vec_load(y) + sum[p]);
    }
}

// Stretches of one width as far as they go; returns the first position left.
INLINE size_t stretches(const struct lanes_conv *call, size_t i, size_t n, size_t width)
{
    NO_UNROLL
    for (; n - i >= width; i += width) stretch(call, i, width);
    return i;
}

void KERNEL(lanes_conv)(void *y, const void *x, const void *w, const struct tap_span *run,
                        size_t n_runs, size_t n)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        const struct lanes_conv call = {(REAL *)y + first, (const REAL *)x + first,
                                        (const REAL *)w + first, run, run + n_runs};
        size_t i = 0;
        if (n % 7 == 0) { // maps of 7, 14, 28, 56, ...
            if (WIDTH > 14) i = stretches(&call, i, n, 14);
            stretches(&call, i, n, 7);
            continue;
        }
        i = stretches(&call, i, n, WIDTH);
        if (WIDTH > 8) i = stretches(&call, i, n, 8);
        i = stretches(&call, i, n, 4);
        i = stretches(&call, i, n, 2);
        stretches(&call, i, n, 1);
    }
}

// Sums in turn where taps alone are fewer than a multiply-add takes to finish, times the ones done
// at once.
INLINE size_t turns_for(size_t taps)
{
    return taps == 1 ? 8 : taps <= 3 ? 4 : taps <= 5 ? 2 : 1;
}

enum { MAX_DOTS = 16 };

// Products of `step` positions.
INLINE void some(vec *sum, const REAL *y, const REAL *x, size_t step, size_t taps, size_t turns)
{
    vec v[MAX_SPAN_TAPS]; // samples of x that the next y meets
    UNROLL
    for (size_t t = 0; t + 1 < taps; t++) v[t] = keep_in_register(vec_load(x + t * CONV_LANES));
    UNROLL
    for (size_t k = 0; k < step; k++) {
        const vec factor = keep_in_register(vec_load(y + k * CONV_LANES));
        v[(k + taps - 1) % taps] = keep_in_register(vec_load(x + (k + taps - 1) * CONV_LANES));
        UNROLL
        for (size_t t = 0; t < taps; t++) {
            vec *to = &sum[k % turns * taps + t];
            *to = vec_multiply_add(factor, v[(k + t) % taps], *to);
        }
    }
}

// Gradients of the taps of one run.
INLINE void dots(REAL *w, const REAL *y, const REAL *x, size_t n, size_t taps)
{
    const size_t turns = turns_for(taps);
    vec sum[MAX_DOTS];
    UNROLL
    for (size_t s = 0; s < turns * taps; s++) sum[s] = (vec){0};
    const REAL *end = y + n * CONV_LANES;
    const size_t step = n % 7 ? 8 : 7; // maps of 7, 14, 28, 56, ...
    NO_UNROLL
    for (; (size_t)(end - y) >= step * CONV_LANES; x += step * CONV_LANES, y += step * CONV_LANES) {
        if (step == 8) some(sum, y, x, 8, taps, turns);
        else some(sum, y, x, 7, taps, turns);
    }
    NO_UNROLL
    for (; y < end; x += CONV_LANES, y += CONV_LANES) some(sum, y, x, 1, taps, turns);
    UNROLL
    for (size_t half = turns / 2; half; half /= 2) {
        UNROLL
        for (size_t s = 0; s < half * taps; s++) sum[s] += sum[half * taps + s];
    }
    UNROLL
    for (size_t t = 0; t < taps; t++)
        vec_store(w + t * CONV_LANES, vec_load(w + t * CONV_LANES) + sum[t]);
}

void KERNEL(lanes_weight)(void *w_, const void *y_, const void *x_, const struct tap_span *run,
                          size_t n_runs, size_t n)
{
    for (size_t first = 0; first < CONV_LANES; first += LANES) {
        REAL *w = (REAL *)w_ + first;
        const REAL *y = (const REAL *)y_ + first;
        for (size_t r = 0; r < n_runs; w += run[r++].taps * CONV_LANES) {
            const REAL *x = (const REAL *)x_ + first + run[r].offset * CONV_LANES;
            switch (run[r].taps) {
            case 1:
                dots(w, y, x, n, 1);
                break;
            case 2:
                dots(w, y, x, n, 2);
                break;
            case 3:
                dots(w, y, x, n, 3);
                break;
            case 4:
                dots(w, y, x, n, 4);
                break;
            case 5:
                dots(w, y, x, n, 5);
                break;
            case 6:
                dots(w, y, x, n, 6);
                break;
            case 7:
                dots(w, y, x, n, 7);
                break;
            default:
                dots(w, y, x, n, 8);
                break;
            }
        }
    }
}
