// SPDX-License-Identifier: MIT
#include "paths.h"

#include <string.h>

#include "geometry/samples.h"
#include "kernels/kernels.h"

bool taps_are_zero(const struct partita_plan *plan, const char *taps, size_t n)
{
    return n == 0 || plan->kernels->peak(taps, n * (plan->shape.complex_taps ? 2 : 1)) == 0;
}

void path_causal_taps(const struct shape *shape, const struct partita_cell *cell, char *row,
                      char *causal)
{
    const struct axis *axis = &shape->axis[0];
    memset(row, 0, axis->kernel * shape->tap_bytes);
    memset(causal, 0, axis->span * shape->tap_bytes);
    memcpy(row + cell->delay * shape->tap_bytes, cell->taps, cell->length * shape->tap_bytes);
    causal_taps(shape, causal, row);
}

static bool same_contents(const struct shape *shape, const struct path_view *base,
                          const struct path_source *a, const struct path_source *b)
{
    if (!a->fresh || !b->fresh)
        return !a->fresh && !b->fresh &&
               base->contents(base->filter, a->kept) == base->contents(base->filter, b->kept);
    return a->fresh->delay == b->fresh->delay && a->fresh->length == b->fresh->length &&
           !memcmp(a->fresh->taps, b->fresh->taps, a->fresh->length * shape->tap_bytes);
}

static bool named(const struct partita_cell *cells, size_t n, size_t out, size_t in)
{
    for (size_t i = 0; i < n; i++)
        if (cells[i].out == out && cells[i].in == in) return true;
    return false;
}

size_t paths_list(const struct partita_plan *plan, const struct partita_cell *cells, size_t n_cells,
                  const struct path_view *base, struct path_source *ret_sources)
{
    const struct shape *shape = &plan->shape;
    size_t n = 0;
    for (size_t out = 0; out < shape->out_channels; out++) {
        for (size_t i = 0; i < n_cells; i++)
            if (cells[i].out == out && !taps_are_zero(plan, cells[i].taps, cells[i].length))
                ret_sources[n++] =
                    (struct path_source){.out = out, .in = cells[i].in, .fresh = &cells[i]};
        if (!base->first_path) continue;
        for (size_t i = base->first_path[out]; i < base->first_path[out + 1]; i++) {
            const size_t in = base->in(base->filter, i);
            if (!named(cells, n_cells, out, in))
                ret_sources[n++] = (struct path_source){.out = out, .in = in, .kept = i};
        }
    }
    for (size_t i = 0; i < n; i++) {
        size_t twin = 0;
        while (twin < i && !same_contents(shape, base, &ret_sources[twin], &ret_sources[i])) twin++;
        ret_sources[i].twin = twin;
    }
    return n;
}

void paths_of_dense(const struct shape *shape, const void *taps, struct partita_cell *ret_cells)
{
    const size_t row = shape->axis[0].kernel * shape->tap_bytes;
    for (size_t i = 0; i < dense_paths(shape); i++) {
        const size_t out = i / shape->group_in, group = out / shape->group_out;
        ret_cells[i] = (struct partita_cell){.out = out,
                                             .in = group * shape->group_in + i % shape->group_in,
                                             .length = shape->axis[0].kernel,
                                             .taps = (const char *)taps + i * row};
    }
}
