// SPDX-License-Identifier: MIT
// Tiles of a grid by the size of their transforms, see tile_cut.h.
#include "tile_size.h"

#include "base/sizes.h"
#include "tile_tables.h"

size_t tile_size_whole(const struct tile_axis *axis)
{
    enum { MAX_TRIES = 64 };
    if (axis->count == 0) return tile_tables_next_size(axis->taps);
    const size_t extent = axis->count + axis->taps - 1;
    const ptrdiff_t q = axis->first + axis->lead;
    struct tile_range seen = {extent, 0};
    if (size_mul(axis->images, axis->phases) > MAX_TRIES) seen = (struct tile_range){0, extent};
    else
        for (size_t i = 0; i < axis->images * axis->phases; i++) {
            const struct tile_range range =
                tile_within(&axis->in, i / axis->phases, i % axis->phases, q, extent);
            if (range.begin >= range.end) continue;
            if (range.begin < seen.begin) seen.begin = range.begin;
            if (range.end > seen.end) seen.end = range.end;
        }
    size_t n = axis->count > axis->taps ? axis->count : axis->taps;
    if (seen.end > n) n = seen.end;
    if (extent - seen.begin > n) n = extent - seen.begin;
    return tile_tables_next_size(n);
}

bool tile_size_split(struct tile_grid *grid, size_t transform, size_t most_elements,
                     size_t ret_n[3])
{
    size_t tile[3], elements = 1;
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid->axis[i];
        if (axis->taps > TILE_SIZE_MAX_TAPS) return false;
        const size_t all = axis->count > TILE_MAX_SIZE ? SIZE_MAX : tile_size_whole(axis);
        ret_n[i] = size_min(transform, all);
        if (ret_n[i] < axis->taps || !tile_tables_has_size(ret_n[i])) return false;
        tile[i] = ret_n[i] - axis->taps + 1;
        if (ret_n[i] == all && axis->count) tile[i] = axis->count;
        elements = size_mul(elements, ret_n[i]);
    }
    if (elements > most_elements) return false;
    tile_grid_split(grid, tile);
    return true;
}
