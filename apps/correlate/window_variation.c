// SPDX-License-Identifier: MIT
// See window_variation.h. As in window_norm.c, a window is the end of one block and the beginning
// of the next, and sums are added up from the border between them. All sums are of the differences
// d[i] = x[i] - r to the sample r behind the border, which belongs to every window across it:
//   variation = sum d^2 - (sum d)^2 / n.
// An offset is therefore subtracted before anything is squared. The two terms cancel at most by a
// factor of n + 1: sum d^2 = variation + n (mean - r)^2, where (mean - r)^2 <= variation because r
// is in the window.
//
// Error, in units of u = 2^-53 of sum d^2, to first order: 2 for the rounding of d, 1 for its
// square, 2 for compensated summation, 1 for the sum of both parts, that is 6. For the second term,
// since (sum |d|)^2 <= n sum d^2: 2 (1 + 2 + 1) for the sum, squared, and 2 for square and
// division, that is 10. With the difference this is 17; 18 includes the terms of higher order. A
// root halves it.
#include "window_variation.h"

#include <stdlib.h>

#include "base/memory.h"
#include "compensated_sum.h"

struct moments {
    double sum, squares; // of differences to the signal's reference
};

struct signal {
    double reference; // the first sample of this block
    struct compensated_sum sum, squares;
};

struct window_variation {
    size_t length;
    struct signal *signals;
    struct moments *parts; // [signals][length]: .sum: samples of this block, behind them the last
                           // block's sums back from its end
};

struct window_variation *window_variation_open(size_t length, size_t signals)
{
    struct window_variation *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->length = length;
    w->signals = calloc(signals, sizeof *w->signals);
    w->parts = memory_allocate_zeros(signals * length * sizeof *w->parts);
    if (w->signals && w->parts) return w;
    window_variation_close(w);
    return NULL;
}

// Replaces samples by sums from the end back.
static void sum_moments_backwards(struct moments *parts, size_t n, double reference)
{
    struct compensated_sum sum = {0}, squares = {0};
    while (n-- > 0) {
        const double d = parts[n].sum - reference;
        sum_add(&sum, d);
        sum_add(&squares, d * d);
        parts[n] = (struct moments){sum.high, squares.high};
    }
}

struct window_spread window_variation_slide(struct window_variation *variation, size_t signal,
                                            size_t at, double x)
{
    struct window_variation *w = variation;
    struct moments *parts = w->parts + signal * w->length, back = {0};
    struct signal *s = &w->signals[signal];
    const double n = (double)w->length;
    if (at == 0) {
        *s = (struct signal){.reference = x};
        sum_moments_backwards(parts, w->length, x);
    }
    const double d = x - s->reference;
    sum_add(&s->sum, d);
    sum_add(&s->squares, d * d);
    parts[at].sum = x;
    if (at + 1 < w->length) back = parts[at + 1];
    const double sum = s->sum.high + back.sum, squares = s->squares.high + back.squares,
                 whole = n * s->reference + sum;
    return (struct window_spread){squares - sum * sum / n, whole * whole / n};
}

void window_variation_close(struct window_variation *variation)
{
    if (!variation) return;
    free(variation->signals);
    memory_free(variation->parts);
    free(variation);
}

void samples_subtract_mean(double *samples, size_t n, size_t step)
{
    for (int pass = 0; pass < 2; pass++) {
        const double first = samples[0];
        struct compensated_sum sum = {0};
        for (size_t i = 0; i < n * step; i += step) sum_add(&sum, samples[i] - first);
        const double mean = first + sum.high / (double)n;
        for (size_t i = 0; i < n * step; i += step) samples[i] -= mean;
    }
}
