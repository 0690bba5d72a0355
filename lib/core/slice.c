// SPDX-License-Identifier: MIT
#include "slice.h"

#include "arguments.h"

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

enum partita_status slice_error(const struct partita_log *log, size_t n, size_t m)
{
    return log_error(log, PARTITA_ERR_ARG,
                     "slice: of %zu samples with %zu it is empty or malformed", n, m);
}

bool one_shot_resolve(struct one_shot *call, const char *function, const void *y,
                      const struct partita_slice *slice, const struct partita_log *log)
{
    const size_t bytes = partita_type_size(call->type), alignment = type_alignment(call->type);
    const struct range range = call->range = slice_resolve(call->op, call->n, call->m, slice);
    const size_t y_bytes = range.size * bytes, x_bytes = call->n * bytes, h_bytes = call->m * bytes;
    const uintptr_t addresses = (uintptr_t)y | (uintptr_t)call->x | (uintptr_t)call->h;
    // Nearly all calls end here: a small one takes 60 ns.
    if (y && call->x && call->h && range.size && !(addresses & (alignment - 1)) &&
        arrays_apart(y, y_bytes, call->x, x_bytes) && arrays_apart(y, y_bytes, call->h, h_bytes))
        return true;
    const struct call_array arrays[] = {{"y", y, y_bytes, alignment, true},
                                        {"x", call->x, x_bytes, alignment, false},
                                        {"h", call->h, h_bytes, alignment, false},
                                        {.name = NULL}};
    if (!arguments_check_null(*log, function, "y, x, h", (const void *const[]){y, call->x, call->h},
                              3))
        return false;
    if (!range.size) return slice_error(log, call->n, call->m) == PARTITA_OK;
    return arrays_check(*log, function, arrays);
}
