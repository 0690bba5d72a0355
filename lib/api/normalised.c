// SPDX-License-Identifier: MIT
// Normalised cross-correlation: the correlation over the lengths of both operands. The signal's
// length under the template is a sliding sum of squares, in double. Sliding by differences would
// leave a loud passage's rounding errors in the quiet one behind it, so the sums that share a
// sample are made of two parts that only grow: from the shared sample back to a window's start, and
// on to its end (van Herk 1992; Gil and Werman 1993, for maxima).
#include <math.h>

#include "base/mem.h"
#include "core/slice.h"

#include <partita/partita.h>

static double square(enum partita_type type, const void *x, size_t i)
{
    const float *f = x;
    const double *d = x;
    switch (type) {
    case PARTITA_F32:
        return (double)f[i] * (double)f[i];
    case PARTITA_F64:
        return d[i] * d[i];
    case PARTITA_CF32:
        return (double)f[2 * i] * (double)f[2 * i] + (double)f[2 * i + 1] * (double)f[2 * i + 1];
    case PARTITA_CF64:
        return d[2 * i] * d[2 * i] + d[2 * i + 1] * d[2 * i + 1];
    case PARTITA_F16: // refused
    case PARTITA_BF16:
        break;
    }
    return 0;
}

struct signal {
    enum partita_type type;
    const void *x;
    size_t n;
};

// |x[i]|^2, zero outside the signal.
static double energy_at(const struct signal *signal, ptrdiff_t i)
{
    return i >= 0 && i < (ptrdiff_t)signal->n ? square(signal->type, signal->x, (size_t)i) : 0;
}

static double energy(const struct signal *signal, ptrdiff_t from, ptrdiff_t end)
{
    double sum = 0;
    if (from < 0) from = 0;
    if (end > (ptrdiff_t)signal->n) end = (ptrdiff_t)signal->n;
    for (ptrdiff_t i = from; i < end; i++) sum += square(signal->type, signal->x, (size_t)i);
    return sum;
}

static void scale(enum partita_type type, void *y, size_t i, double factor)
{
    float *f = y;
    double *d = y;
    switch (type) {
    case PARTITA_F32:
        f[i] = (float)((double)f[i] * factor);
        break;
    case PARTITA_F64:
        d[i] *= factor;
        break;
    case PARTITA_CF32:
        f[2 * i] = (float)((double)f[2 * i] * factor);
        f[2 * i + 1] = (float)((double)f[2 * i + 1] * factor);
        break;
    case PARTITA_CF64:
        d[2 * i] *= factor;
        d[2 * i + 1] *= factor;
        break;
    case PARTITA_F16: // refused
    case PARTITA_BF16:
        break;
    }
}

// Divides y[count], the lags from `lag` on, by the lengths; count <= m, so all windows hold the
// sample before lag + count.
static void divide(const struct signal *signal, void *y, size_t at, ptrdiff_t lag, size_t count,
                   size_t m, double template, double *back)
{
    const ptrdiff_t shared = lag + (ptrdiff_t)count;
    double sum = 0;
    for (size_t i = count; i-- > 0;) back[i] = sum += energy_at(signal, lag + (ptrdiff_t)i);
    double on = energy(signal, shared, lag + (ptrdiff_t)m);
    for (size_t i = 0; i < count; i++) {
        const double under = back[i] + on;
        // Roots first: the product of two energies may be too small or too large for a double.
        scale(signal->type, y, at + i,
              under > 0 && template > 0 ? 1 / (sqrt(under) * sqrt(template)) : 0);
        on += energy_at(signal, lag + (ptrdiff_t)(m + i));
    }
}

enum partita_status partita_correlate_normalised(enum partita_type type, void *y, const void *x,
                                                 size_t n, const void *h, size_t m,
                                                 const struct partita_slice *slice)
{
    static const struct partita_allocator plain;
    const struct range range = slice_resolve(PARTITA_CORRELATE, n, m, slice);
    if (!y || !x || !h || !range.size) return PARTITA_ERR_ARG;
    if (type == PARTITA_F16 || type == PARTITA_BF16) return PARTITA_ERR_UNSUPPORTED;
    const size_t most = range.size < m ? range.size : m;
    double *back = mem_reserve(&plain, size_mul(most, sizeof *back));
    if (!back) return PARTITA_ERR_NOMEM;
    const enum partita_status status = partita_correlate(type, y, x, n, h, m, slice);
    if (status == PARTITA_OK) {
        const struct signal signal = {type, x, n}, taps = {type, h, m};
        const double template = energy(&taps, 0, (ptrdiff_t)m);
        for (size_t at = 0, count; at < range.size; at += count) {
            count = range.size - at < most ? range.size - at : most;
            divide(&signal, y, at, range.first + (ptrdiff_t)at - (ptrdiff_t)(m - 1), count, m,
                   template, back);
        }
    }
    mem_release(&plain, back);
    return status;
}
