// SPDX-License-Identifier: MIT
// See window_norm.h. The energy under the template is a sliding sum. Sliding by differences would
// leave a loud passage's rounding errors in the quiet one behind it, so the frames are divided into
// blocks of the template's length, and a window is the sum of two parts that only grow: from the
// end of one block back to the window's start, and from the start of the next block on to the
// window's end (van Herk 1992). Only one block is stored: the values of the new block replace the
// sums of the old one as the window leaves them.
//
// With zero_mean it is sum_i (x[i] - mean)^2 of each real signal, its variation. There all sums are
// of the differences d[i] = x[i] - r to the sample r behind the border between the blocks, which
// belongs to every window across it:
//   variation = sum d^2 - (sum d)^2 / n.
// An offset is therefore subtracted before anything is squared. The two terms cancel at most by a
// factor of n + 1: sum d^2 = variation + n (mean - r)^2, where (mean - r)^2 <= variation because r
// is in the window.
//
// Error of the variation, in units of u = 2^-53 of sum d^2, to first order: 2 for the rounding of
// d, 1 for its square, 2 for compensated summation, 1 for the sum of both parts, that is 6. For the
// second term, since (sum |d|)^2 <= n sum d^2: 2 (1 + 2 + 1) for the sum, squared, and 2 for square
// and division, that is 10. With the difference this is 17; 18 includes the terms of higher order.
// It is 0 for equal samples.
//
// Error, in units of u, to first order: 2 for a squared magnitude, c - 1 for the sum over c
// inputs, 2 for each part by compensated summation (Kahan 1965), 1 for the sum of the parts; that
// is c + 4 for the energy, and 4 for the template's. A root halves the error and adds 1, and there
// are two divisions: (c + 4) / 2 + 1 + 4 / 2 + 1 + 2 = c / 2 + 8. With zero_mean the signal's part,
// c + 4, is c + 18 (n + 1) for n frames: c / 2 + 9 n + 15.
#include "window_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/scalar.h"
#include "base/memory.h"
#include "base/sample_type.h"

// Numerators come from transforms in double, whose error is 2^-53 of what they read, about. A
// window that varies by less than 2^-40 of its level would have an error of some 2^-12, and of what
// is left of it below that nothing is right. It is taken as constant.
#define MIN_VARIATION 0x1p-80

// A sum whose error does not grow with its length: 2 units in the last place of the sum of
// magnitudes (Kahan 1965).
struct compensated_sum {
    double high, low;
};

static void sum_add(struct compensated_sum *sum, double x)
{
    const double y = x - sum->low, next = sum->high + y;
    sum->low = (next - sum->high) - y;
    sum->high = next;
}

struct moments {
    double sum, squares; // of differences to the lane's reference
};

// The energies of a group, or with zero_mean the samples of a real signal.
struct lane {
    double reference;                    // with zero_mean the first sample of this block, else 0
    struct compensated_sum sum, squares; // of this block
};

struct window_norm {
    struct window_norm_request q; // whose template is not read after it was opened
    size_t at;                    // position of the next frame in its block
    int64_t until_first;          // frames before the one that ends the first wanted window
    size_t until_next;            // frames before the one that ends the next
    double *template_norms;       // [out_channels]
    double *queue;                // [capacity][groups]: norms of the results that are not divided
    size_t head, n_queued, capacity;
    struct lane *lanes;
    struct moments *parts; // [lanes][length]: .sum: values of this block, behind them the last
                           // block's sums back from its end
};

// |x[i]|^2 of samples of `type`.
static double energy_at(enum partita_type type, const void *x, size_t i)
{
    const bool f64 = type_is_double(type), complex = type_is_complex(type);
    const double re = scalar_get(f64, x, complex ? 2 * i : i),
                 im = complex ? scalar_get(f64, x, 2 * i + 1) : 0;
    return re * re + im * im;
}

static size_t scalars_of(const struct window_norm *w)
{
    return type_is_complex(w->q.signal) ? 2 : 1;
}

// Subtracts the mean of n samples that are `step` apart, and then the mean that rounding left:
// beside an offset of both operands it would not be small. Equal samples become 0.
static void subtract_mean(double *samples, size_t n, size_t step)
{
    for (int pass = 0; pass < 2; pass++) {
        const double first = samples[0];
        struct compensated_sum sum = {0};
        for (size_t i = 0; i < n * step; i += step) sum_add(&sum, samples[i] - first);
        const double mean = first + sum.high / (double)n;
        for (size_t i = 0; i < n * step; i += step) samples[i] -= mean;
    }
}

void template_subtract_means(void *template, enum partita_type type, size_t rows, size_t length)
{
    const size_t reals = type_is_complex(type) ? 2 : 1;
    double *row = template;
    for (; rows-- > 0; row += reals * length)
        for (size_t k = 0; k < reals; k++) subtract_mean(row + k, length, reals);
}

bool window_norm_open(struct window_norm **ret, const struct window_norm_request *q,
                      struct fault *fault)
{
    const int64_t length = (int64_t)q->length;
    struct window_norm *w = calloc(1, sizeof *w);
    if (!w) return fault_set(fault, "out of memory");
    *w = (struct window_norm){.q = *q,
                              .at = (size_t)((q->origin % length + length) % length),
                              .until_first = q->wanted - q->origin};
    const size_t lanes = q->zero_mean ? q->in_channels * scalars_of(w) : q->groups;
    w->lanes = calloc(lanes, sizeof *w->lanes);
    w->parts = memory_allocate_zeros(lanes * q->length * sizeof *w->parts);
    w->template_norms = calloc(q->out_channels, sizeof *w->template_norms);
    *ret = w;
    if (!w->template_norms || !w->lanes || !w->parts) {
        window_norm_close(w);
        *ret = NULL;
        return memory_fault(fault, "the norms of %zu frames", q->length);
    }
    const size_t samples = q->in_channels / q->groups * q->length; // of the template of an output
    for (size_t c = 0; c < q->out_channels; c++) {
        struct compensated_sum sum = {0};
        for (size_t i = 0; i < samples; i++)
            sum_add(&sum, energy_at(q->template_type, q->template, c * samples + i));
        w->template_norms[c] = sqrt(sum.high);
    }
    return true;
}

// Room for n more rows at the end of the queue.
static bool reserve_rows(struct window_norm *w, size_t n, struct fault *fault)
{
    const size_t row = w->q.groups * sizeof *w->queue;
    if (w->head + w->n_queued + n <= w->capacity) return true;
    if (w->head) memmove(w->queue, w->queue + w->head * w->q.groups, w->n_queued * row);
    w->head = 0;
    if (w->n_queued + n <= w->capacity) return true;
    const size_t capacity = 2 * (w->n_queued + n);
    double *grown = memory_resize(w->queue, capacity * row);
    if (!grown) return memory_fault(fault, "the norms of %zu results", capacity);
    w->queue = grown;
    w->capacity = capacity;
    return true;
}

// Replaces values by sums from the end back.
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

// Adds the next value of a lane; returns the moments of the window that it ends.
static struct moments slide(struct window_norm *w, size_t lane, double x)
{
    struct moments *parts = w->parts + lane * w->q.length, back = {0};
    struct lane *l = &w->lanes[lane];
    if (w->at == 0) {
        *l = (struct lane){.reference = w->q.zero_mean ? x : 0};
        sum_moments_backwards(parts, w->q.length, l->reference);
    }
    const double d = x - l->reference;
    sum_add(&l->sum, d);
    sum_add(&l->squares, d * d);
    parts[w->at].sum = x;
    if (w->at + 1 < w->q.length) back = parts[w->at + 1];
    return (struct moments){l->sum.high + back.sum, l->squares.high + back.squares};
}

// Adds one frame of a group; returns the energy of the window that it ends.
static double slide_energy(struct window_norm *w, const void *x, size_t frame, size_t group)
{
    const size_t inputs = w->q.in_channels / w->q.groups,
                 at = frame * w->q.in_channels + group * inputs;
    double energy = 0;
    for (size_t c = 0; x && c < inputs; c++) energy += energy_at(w->q.signal, x, at + c);
    return slide(w, group, energy).sum;
}

// Adds one frame of a group; returns the variation of the window that it ends.
static double slide_variation(struct window_norm *w, const void *x, size_t frame, size_t group)
{
    const size_t reals = w->q.in_channels * scalars_of(w), lanes = reals / w->q.groups;
    const double n = (double)w->q.length;
    double variation = 0, mean_energy = 0;
    for (size_t k = group * lanes; k < (group + 1) * lanes; k++) {
        const double sample = x ? scalar_get(type_is_double(w->q.signal), x, frame * reals + k) : 0;
        const struct moments m = slide(w, k, sample);
        const double whole = n * w->lanes[k].reference + m.sum;
        variation += m.squares - m.sum * m.sum / n;
        mean_energy += whole * whole / n;
    }
    return variation <= MIN_VARIATION * mean_energy ? 0 : variation;
}

bool window_norm_feed(struct window_norm *w, const void *x, size_t n, struct fault *fault)
{
    // The results of n frames, and the row of a frame that ends no result.
    if (!reserve_rows(w, n / w->q.stride + 2, fault)) return false;
    for (size_t i = 0; i < n; i++) {
        double *row = w->queue + (w->head + w->n_queued) * w->q.groups;
        for (size_t g = 0; g < w->q.groups; g++)
            row[g] = sqrt(w->q.zero_mean ? slide_variation(w, x, i, g) : slide_energy(w, x, i, g));
        w->at = w->at + 1 < w->q.length ? w->at + 1 : 0;
        if (w->until_first > 0) {
            w->until_first--;
        } else if (w->until_next > 0) {
            w->until_next--;
        } else {
            w->n_queued++;
            w->until_next = w->q.stride - 1;
        }
    }
    return true;
}

// Of a silent signal or template the result is 0, not what rounding left. Energies beyond the range
// of double give NaN, which the program counts. Two divisions, because the product of the norms may
// be too small for a double.
static double normalise(double y, double norm, double template_norm)
{
    if (norm == 0 || template_norm == 0) return 0;
    return isfinite(norm) ? y / norm / template_norm : NAN;
}

void window_norm_divide(struct window_norm *w, void *y, size_t n)
{
    const size_t scalars = scalars_of(w), outputs = w->q.out_channels / w->q.groups;
    const bool f64 = type_is_double(w->q.signal);
    for (size_t i = 0; i < n; i++) {
        const double *row = w->queue + (w->head + i) * w->q.groups;
        for (size_t k = 0; k < w->q.out_channels * scalars; k++) {
            const size_t c = k / scalars, at = i * w->q.out_channels * scalars + k;
            const double under = row[c / outputs], template_norm = w->template_norms[c];
            scalar_put(f64, y, at, normalise(scalar_get(f64, y, at), under, template_norm));
        }
    }
    w->head += n;
    w->n_queued -= n;
}

void window_norm_close(struct window_norm *norm)
{
    if (!norm) return;
    free(norm->lanes);
    memory_free(norm->parts);
    free(norm->template_norms);
    memory_free(norm->queue);
    free(norm);
}
