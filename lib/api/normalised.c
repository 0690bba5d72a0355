// SPDX-License-Identifier: MIT
// Normalised cross-correlation: the correlation over the lengths of both operands, in double for
// all types, and scaled by powers of two, so that a result depends on no level. The signal's length
// under the template is a sliding sum of squares, in double. Sliding by differences would leave a
// loud passage's rounding errors in the quiet one behind it, so the sums that share a sample are
// made of two parts that only grow: from the shared sample back to a window's start, and on to its
// end (van Herk 1992; Gil and Werman 1993, for maxima).
#include <math.h>
#include <string.h>

#include "base/scalar.h"
#include "base/sizes.h"
#include "core/arguments.h"
#include "core/slice.h"
#include "sized.h"

#include <partita/partita.h>

// Samples of `reals` scalars each, 1 or 2, as doubles.
struct signal {
    double *x;
    size_t reals, n;
};

// Converts a signal and scales it by a power of two, so that nothing of it overflows or vanishes.
static void load_scaled(const struct signal *signal, bool f64, const void *from)
{
    const size_t n = signal->reals * signal->n;
    for (size_t i = 0; i < n; i++) signal->x[i] = scalar_get(f64, from, i);
    const double scale = scale_to_one(signal->x, n);
    for (size_t i = 0; i < n; i++) signal->x[i] *= scale;
}

// Subtracts the mean of n samples that are `step` apart, and then the mean that rounding left:
// beside an offset of both operands it would not be small. Equal samples become 0.
static void subtract_mean(double *x, size_t n, size_t step)
{
    for (int pass = 0; pass < 2; pass++) {
        const double first = x[0];
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += x[i * step] - first;
        const double mean = first + sum / (double)n;
        for (size_t i = 0; i < n; i++) x[i * step] -= mean;
    }
}

// Sums of the differences of samples to a reference.
struct moments {
    double reference[2], sum[2], squares;
};

// Adds sample i; it is zero outside the signal.
static void add_sample(struct moments *moments, const struct signal *signal, ptrdiff_t i)
{
    const bool exists = i >= 0 && i < (ptrdiff_t)signal->n;
    const double *x = exists ? signal->x + signal->reals * (size_t)i : NULL;
    double squares = 0;
    for (size_t k = 0; k < signal->reals; k++) {
        const double d = (x ? x[k] : 0) - moments->reference[k];
        moments->sum[k] += d;
        squares += d * d;
    }
    moments->squares += squares;
}

// One group of lags: y[at ..] are `count` of them from `lag` on. count <= m, so that all their
// windows of m samples hold the sample before lag + count.
struct lag_group {
    ptrdiff_t lag;
    size_t at, count, m;
    double template; // energy
    bool zero_mean;
};

// The energy of a window of m samples, in two parts, or its variation: the energy without the mean.
// A window that varies by less than 2^-40 of its level is constant: nothing is left of a numerator.
static double energy_of(const struct moments *a, const struct moments *b, size_t m, bool zero_mean)
{
    double energy = a->squares + b->squares, level = 0;
    for (int k = 0; zero_mean && k < 2; k++) {
        const double sum = a->sum[k] + b->sum[k], whole = a->reference[k] * (double)m + sum;
        energy -= sum * sum / (double)m;
        level += whole * whole / (double)m;
    }
    return energy <= 0x1p-80 * level ? 0 : energy;
}

// Divides the lags of a group by the lengths of the template and of the signal under it. Without
// the mean sums are of differences to a sample of all windows, so that no offset is squared.
static void divide_lags(const struct signal *signal, double *y, const struct lag_group *group,
                        struct moments *back)
{
    const ptrdiff_t shared = group->lag + (ptrdiff_t)group->count;
    const ptrdiff_t end = group->lag + (ptrdiff_t)group->m;
    struct moments sum = {{0}, {0}, 0};
    if (group->zero_mean && shared > 0 && shared <= (ptrdiff_t)signal->n)
        memcpy(sum.reference, signal->x + (ptrdiff_t)signal->reals * (shared - 1),
               signal->reals * sizeof(double));
    struct moments on = sum;
    for (size_t i = group->count; i-- > 0;) {
        add_sample(&sum, signal, group->lag + (ptrdiff_t)i);
        back[i] = sum;
    }
    for (ptrdiff_t i = shared; i < end; i++) add_sample(&on, signal, i);
    for (size_t i = 0; i < group->count; i++) {
        const double under = energy_of(&back[i], &on, group->m, group->zero_mean);
        // Roots first: the product of two energies may be too small or too large for a double.
        const double norm = sqrt(under) * sqrt(group->template);
        const double factor = under > 0 && group->template > 0 ? 1 / norm : 0;
        for (size_t k = 0; k < signal->reals; k++) y[signal->reals * (group->at + i) + k] *= factor;
        add_sample(&on, signal, end + (ptrdiff_t)i);
    }
}

enum partita_status partita_correlate_normalised_sized(enum partita_type type, void *y,
                                                       const void *x, size_t n, const void *h,
                                                       size_t m, const struct partita_slice *slice,
                                                       const struct partita_options *options,
                                                       size_t options_bytes)
{
    struct partita_options settings;
    if (!options_read(&settings, options, options_bytes)) return PARTITA_ERR_UNSUPPORTED;
    const struct partita_allocator allocator = settings.allocator;
    const bool zero_mean = settings.zero_mean;
    struct one_shot call = {PARTITA_CORRELATE, type, x, h, n, m, {0}};
    if (type_alignment(type) == 2)
        return log_error(&settings.log, PARTITA_ERR_UNSUPPORTED, "type: %s is not normalised",
                         partita_type_name(type));
    if (!one_shot_resolve(&call, __func__, y, slice, &settings.log)) return PARTITA_ERR_ARG;
    if (!allocator.allocate != !allocator.release)
        return log_error(&settings.log, PARTITA_ERR_ARG,
                         "options.allocator: set both functions or none");
    const struct range range = call.range;
    const bool f64 = type_alignment(type) == 8;
    const size_t reals = partita_type_size(type) / type_alignment(type), lags = range.size * reals;
    const size_t capacity = size_min(range.size, m), bytes = reals * sizeof(double);
    struct moments template = {{0}, {0}, 0}, *back;
    double *memory =
        mem_reserve(&allocator, size_add(size_mul(size_add(size_add(n, m), range.size), bytes),
                                         size_mul(capacity, sizeof *back)));
    if (!memory) return PARTITA_ERR_NOMEM;
    const struct signal signal = {memory, reals, n}, taps = {memory + n * reals, reals, m};
    double *result = taps.x + m * reals;
    back = (struct moments *)(result + lags);
    settings.zero_mean = false;
    load_scaled(&signal, f64, x);
    load_scaled(&taps, f64, h);
    for (size_t k = 0; zero_mean && k < reals; k++) subtract_mean(taps.x + k, m, reals);
    for (size_t i = 0; i < m; i++) add_sample(&template, &taps, (ptrdiff_t)i);
    const enum partita_status status = partita_correlate(
        reals == 2 ? PARTITA_CF64 : PARTITA_F64, result, signal.x, n, taps.x, m, slice, &settings);
    for (size_t at = 0; at < range.size && status == PARTITA_OK; at += capacity) {
        const ptrdiff_t lag = range.first + (ptrdiff_t)at - (ptrdiff_t)(m - 1);
        const size_t count = size_min(range.size - at, capacity);
        const struct lag_group group = {lag, at, count, m, template.squares, zero_mean};
        divide_lags(&signal, result, &group, back);
    }
    for (size_t i = 0; i < lags && status == PARTITA_OK; i++) scalar_put(f64, y, i, result[i]);
    mem_release(&allocator, memory);
    return status;
}
