// SPDX-License-Identifier: MIT
#include "slice.h"

struct range slice_resolve(enum partita_op op, size_t n, size_t m,
                           const struct partita_slice *slice)
{
    const struct range none = {0, 0};
    const size_t longer = n > m ? n : m, shorter = n > m ? m : n;
    // Sizes that leave room for every index of the result and of ranges around it.
    if (!shorter || longer > PTRDIFF_MAX / 8 || (op != PARTITA_CONVOLVE && op != PARTITA_CORRELATE))
        return none;
    const struct range full = {0, n + m - 1};
    if (!slice) return full;
    if (slice->mode != PARTITA_RANGE && (slice->first || slice->last)) return none;
    switch (slice->mode) {
    case PARTITA_FULL:
        return full;
    case PARTITA_SAME:
        return (struct range){(ptrdiff_t)((m - 1) / 2), n};
    case PARTITA_VALID:
        return (struct range){(ptrdiff_t)(shorter - 1), longer - shorter + 1};
    case PARTITA_RANGE:
        break;
    default:
        return none;
    }
    const ptrdiff_t limit = PTRDIFF_MAX / 8, lag = op == PARTITA_CORRELATE ? (ptrdiff_t)m - 1 : 0;
    if (slice->first >= slice->last || slice->first < -limit || slice->last > limit) return none;
    return (struct range){slice->first + lag, (size_t)(slice->last - slice->first)};
}
