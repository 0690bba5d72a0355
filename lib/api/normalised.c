// SPDX-License-Identifier: MIT
// Normalised cross-correlation: the correlation over the lengths of both operands, in double for
// all types, and scaled by powers of two, so that a result depends on no level. The signal's length
// under the template is a sliding sum of squares, in double. Sliding by differences would leave a
// loud passage's rounding errors in the quiet one behind it, so the sums that share a sample are
// made of two parts that only grow: from the shared sample back to a window's start, and on to its
// end (van Herk 1992; Gil and Werman 1993, for maxima).
#include <math.h>

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

// |x[i]|^2, zero outside the signal.
static double energy_at(const struct signal *signal, ptrdiff_t i)
{
    if (i < 0 || i >= (ptrdiff_t)signal->n) return 0;
    const double re = signal->x[signal->reals * (size_t)i];
    const double im = signal->reals == 2 ? signal->x[2 * (size_t)i + 1] : 0;
    return re * re + im * im;
}

static double energy_between(const struct signal *signal, ptrdiff_t from, ptrdiff_t end)
{
    double sum = 0;
    for (ptrdiff_t i = from; i < end; i++) sum += energy_at(signal, i);
    return sum;
}

// One group of lags: y[at ..] are `count` of them from `lag` on. count <= m, so that all their
// windows of m samples hold the sample before lag + count.
struct lag_group {
    ptrdiff_t lag;
    size_t at, count, m;
    double template; // energy
};

// Divides the lags of a group by the lengths of the template and of the signal under it.
static void divide_lags(const struct signal *signal, double *y, const struct lag_group *group,
                        double *back)
{
    const ptrdiff_t shared = group->lag + (ptrdiff_t)group->count;
    const ptrdiff_t end = group->lag + (ptrdiff_t)group->m;
    double sum = 0;
    for (size_t i = group->count; i-- > 0;)
        back[i] = sum += energy_at(signal, group->lag + (ptrdiff_t)i);
    double on = energy_between(signal, shared, end);
    for (size_t i = 0; i < group->count; i++) {
        const double under = back[i] + on;
        // Roots first: the product of two energies may be too small or too large for a double.
        const double norm = sqrt(under) * sqrt(group->template);
        const double factor = under > 0 && group->template > 0 ? 1 / norm : 0;
        for (size_t k = 0; k < signal->reals; k++) y[signal->reals * (group->at + i) + k] *= factor;
        on += energy_at(signal, end + (ptrdiff_t)i);
    }
}

enum partita_status partita_correlate_normalised_sized(enum partita_type type, void *y,
                                                       const void *x, size_t n, const void *h,
                                                       size_t m, const struct partita_slice *slice,
                                                       const struct partita_options *options,
                                                       size_t options_bytes)
{
    struct partita_options own;
    if (!options_read(&own, options, options_bytes)) return PARTITA_ERR_UNSUPPORTED;
    const struct partita_allocator allocator = own.allocator;
    struct one_shot call = {PARTITA_CORRELATE, type, x, h, n, m, {0}};
    if (type_alignment(type) == 2)
        return log_error(&own.log, PARTITA_ERR_UNSUPPORTED, "type: %s is not normalised",
                         partita_type_name(type));
    if (!one_shot_resolve(&call, __func__, y, slice, &own.log)) return PARTITA_ERR_ARG;
    if (!allocator.allocate != !allocator.release)
        return log_error(&own.log, PARTITA_ERR_ARG,
                         "options.allocator: set both functions or none");
    const struct range range = call.range;
    const bool f64 = type_alignment(type) == 8;
    const size_t reals = partita_type_size(type) / type_alignment(type), lags = range.size * reals;
    const size_t most = size_min(range.size, m), bytes = reals * sizeof(double);
    double *memory =
        mem_reserve(&allocator, size_add(size_mul(size_add(size_add(n, m), range.size), bytes),
                                         size_mul(most, sizeof *memory)));
    if (!memory) return PARTITA_ERR_NOMEM;
    const struct signal signal = {memory, reals, n}, taps = {memory + n * reals, reals, m};
    double *result = taps.x + m * reals, *back = result + lags;
    load_scaled(&signal, f64, x);
    load_scaled(&taps, f64, h);
    const enum partita_status status = partita_correlate(
        reals == 2 ? PARTITA_CF64 : PARTITA_F64, result, signal.x, n, taps.x, m, slice, &own);
    const double template = energy_between(&taps, 0, (ptrdiff_t)m);
    for (size_t at = 0; at < range.size && status == PARTITA_OK; at += most) {
        const ptrdiff_t lag = range.first + (ptrdiff_t)at - (ptrdiff_t)(m - 1);
        const size_t count = size_min(range.size - at, most);
        divide_lags(&signal, result, &(struct lag_group){lag, at, count, m, template}, back);
    }
    for (size_t i = 0; i < lags && status == PARTITA_OK; i++) scalar_put(f64, y, i, result[i]);
    mem_release(&allocator, memory);
    return status;
}
