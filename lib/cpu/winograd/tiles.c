// SPDX-License-Identifier: MIT
// Tiles of cpu/winograd: blocks of them, their samples dealt out so that tiles lie side by side,
// and the nesting of two transforms along one axis into one along both (Lavin & Gray, eq. 8).
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "winograd.h"

static struct winograd_both both_of(const struct winograd *winograd)
{
    struct winograd_both both = {0};
    for (int a = 0; a < AXES; a++) both.extent[a] = winograd_axis(winograd, a)->extent;
    return both;
}

struct winograd_both winograd_of_input(const struct winograd *winograd)
{
    struct winograd_both both = both_of(winograd);
    for (int a = 0; a < AXES; a++) both.from[a] = both.to[a] = both.extent[a];
    return both;
}

struct winograd_both winograd_of_output(const struct winograd *winograd)
{
    struct winograd_both both = both_of(winograd);
    for (int a = 0; a < AXES; a++) {
        both.from[a] = both.extent[a];
        both.to[a] = both.count[a] = winograd_axis(winograd, a)->tile;
    }
    return both;
}

struct winograd_both winograd_of_taps(const struct winograd *winograd)
{
    struct winograd_both both = both_of(winograd);
    for (int a = 0; a < AXES; a++) {
        both.from[a] = both.count[a] = winograd_axis(winograd, a)->taps;
        both.to[a] = both.extent[a];
    }
    return both;
}

struct winograd_both winograd_of_gradient(const struct winograd *winograd)
{
    struct winograd_both both = both_of(winograd);
    for (int a = 0; a < AXES; a++) {
        both.from[a] = both.count[a] = winograd_axis(winograd, a)->tile;
        both.to[a] = both.extent[a];
    }
    return both;
}

struct winograd_both winograd_of_tap_sums(const struct winograd *winograd)
{
    struct winograd_both both = both_of(winograd);
    for (int a = 0; a < AXES; a++) {
        both.from[a] = both.extent[a];
        both.to[a] = both.count[a] = winograd_axis(winograd, a)->taps;
    }
    return both;
}

void winograd_transform(winograd_fn *kernel, const struct winograd_both *both, char *y,
                        const char *x, char *between)
{
    const size_t *from = both->from, *to = both->to;
    size_t column[WINOGRAD_EXTENT];
    const bool second = both->extent[1] > 1;
    struct winograd_rows lines = {.n = both->n,
                                   .lines = from[1],
                                   .x_line = both->x_column,
                                   .y_line = both->n,
                                   .y_stride = second ? from[1] * both->n : both->y_plane,
                                   .offset = both->x_row};
    if (both->extent[0] > 1)
        kernel(second ? between : y, x, both->extent[0], both->count[0], &lines);
    if (!second) return;
    const bool first = both->extent[0] > 1;
    for (size_t j = 0; j < from[1]; j++)
        column[j] = first ? j * both->n : both->x_row[0] + j * both->x_column;
    lines = (struct winograd_rows){.n = both->n,
                                    .lines = to[0],
                                    .x_line = from[1] * both->n,
                                    .y_line = to[1] * both->y_plane,
                                    .y_stride = both->y_plane,
                                    .offset = column};
    kernel(y, first ? between : x, both->extent[1], both->count[1], &lines);
}

struct winograd_place winograd_place(const struct winograd *winograd, size_t block)
{
    const struct winograd_block *most = &winograd->most;
    struct winograd_place place;
    place.at[1] = block % winograd->blocks[2] * most->cols;
    block /= winograd->blocks[2];
    place.at[0] = block % winograd->blocks[1] * most->rows;
    place.map = block / winograd->blocks[1] * most->maps;
    place.block.maps = size_min(most->maps, winograd->maps - place.map);
    place.block.rows = size_min(most->rows, winograd_axis(winograd, 0)->tiles - place.at[0]);
    place.block.cols = size_min(most->cols, winograd_axis(winograd, 1)->tiles - place.at[1]);
    return place;
}

struct winograd_map winograd_map(const struct winograd *winograd, size_t map)
{
    struct winograd_map ret = {.item = map / winograd->grid.images};
    tile_grid_image(&winograd->grid, map % winograd->grid.images, ret.image);
    return ret;
}

// n samples of a row on one side, zeros where there are none; those within are known.
static void copy_row(char *ret, const char *row, ptrdiff_t first, size_t step,
                     struct tile_range within, size_t n, size_t bytes)
{
    memset(ret, 0, within.begin * bytes);
    if (within.begin < within.end)
        samples_copy(ret + within.begin * bytes, 1,
                     row + (first + (ptrdiff_t)(within.begin * step)) * (ptrdiff_t)bytes, step,
                     within.end - within.begin, bytes);
    memset(ret + within.end * bytes, 0, (n - within.end) * bytes);
}

void winograd_deal(const struct winograd *winograd, const struct kernels *kernels, bool outputs,
                   const struct winograd_place *place, const struct winograd_map *map,
                   const size_t phase[3], const char *plane, char *dealt, char *joined,
                   struct winograd_both *both)
{
    const struct tile_axis *down = winograd_axis(winograd, 0), *along = winograd_axis(winograd, 1);
    const struct tile_side *rows = outputs ? &down->out : &down->in,
                           *columns = outputs ? &along->out : &along->in;
    const ptrdiff_t top =
                        outputs ? tile_output(down, place->at[0]) : tile_input(down, place->at[0]),
                    left = outputs ? tile_output(along, place->at[1])
                                   : tile_input(along, place->at[1]);
    const size_t high = outputs ? down->tile : down->extent,
                 wide = outputs ? along->tile : along->extent;
    const size_t cols = place->block.cols, bytes = winograd->grid.scalar_bytes, step = along->tile;
    // Rows of samples fall into residues modulo the tile, as columns do. Behind the lines of a
    // residue there is room for the last one's last vector.
    const size_t all = (place->block.rows - 1) * down->tile + high,
                 lines = place->block.rows + (high - 1) / down->tile;
    const size_t residue = winograd_residue(winograd, lines, cols), column = down->tile * residue;
    // Columns in groups of a tile: rows that begin with the group, end to end, are one row of
    // tiles.
    for (size_t group = 0; group < wide; group += step) {
        const ptrdiff_t q = left + (ptrdiff_t)group,
                        first = tile_sample(columns, map->image[2], phase[2], q);
        const struct tile_range within =
            tile_within(columns, map->image[2], phase[2], q, cols * step);
        for (size_t r = 0; r < down->tile && r < all; r++) {
            char *to = joined;
            for (size_t i = r; i < all; i += down->tile, to += cols * step * bytes) {
                const ptrdiff_t at = tile_sample(rows, map->image[1], phase[1], top + (ptrdiff_t)i);
                if (tile_inside(rows, at))
                    copy_row(to, plane + (size_t)at * columns->size * bytes, first, columns->step,
                             within, cols * step, bytes);
                else memset(to, 0, cols * step * bytes);
            }
            kernels->deinterleave(dealt + (r * residue + group * column) * bytes, column, joined, step,
                          wide - group < step ? wide - group : step,
                          (size_t)(to - joined) / step / bytes);
        }
    }
    both->x_column = column;
    for (size_t i = 0; i < high; i++)
        both->x_row[i] = i % down->tile * residue + i / down->tile * cols;
}

void winograd_fetch(const struct winograd *winograd, bool outputs,
                    const struct winograd_place *place, const struct winograd_map *map,
                    size_t phase, const char *plane, bool write)
{
    enum { LINE = 64 };
    const struct tile_axis *down = winograd_axis(winograd, 0), *along = winograd_axis(winograd, 1);
    const struct tile_side *side = outputs ? &down->out : &down->in;
    const size_t elements =
        (place->block.rows - 1) * down->tile + (outputs ? down->tile : down->extent);
    const ptrdiff_t q = outputs ? tile_output(down, place->at[0]) : tile_input(down, place->at[0]);
    const struct tile_range range = tile_within(side, map->image[1], phase, q, elements);
    if (range.begin == range.end) return;
    const size_t first =
                     (size_t)tile_sample(side, map->image[1], phase, q + (ptrdiff_t)range.begin),
                 last =
                     (size_t)tile_sample(side, map->image[1], phase, q + (ptrdiff_t)range.end - 1);
    const size_t row = (outputs ? along->out.size : along->in.size) * winograd->grid.scalar_bytes;
    if (write)
        for (size_t at = first * row; at < (last + 1) * row; at += LINE)
            __builtin_prefetch(plane + at, 1);
    else
        for (size_t at = first * row; at < (last + 1) * row; at += LINE)
            __builtin_prefetch(plane + at, 0);
}

// Where channel `first` + i / maps of map i % maps is, and which phase of it.
static const char *plane_of(const struct winograd_inputs *inputs, size_t first, size_t i,
                            struct winograd_map *ret_map, size_t ret_phase[3])
{
    const struct winograd *winograd = inputs->winograd;
    const struct tile_grid *grid = &winograd->grid;
    const struct tile_axis *down = winograd_axis(winograd, 0), *along = winograd_axis(winograd, 1);
    const size_t plane =
        inputs->outputs ? down->out.size * along->out.size : down->in.size * along->in.size;
    const size_t channels = inputs->outputs ? grid->out : grid->in, maps = inputs->place.block.maps;
    const size_t c = first + i / maps;
    *ret_map = winograd_map(winograd, inputs->place.map + i % maps);
    tile_grid_phase(grid, c / channels, ret_phase);
    const size_t channel = (ret_map->item * grid->groups + inputs->group) * channels + c % channels;
    return inputs->from + channel * plane * grid->scalar_bytes;
}

void winograd_transform_inputs(const struct winograd_inputs *inputs, size_t first, size_t n)
{
    const struct winograd *winograd = inputs->winograd;
    const struct winograd_place *place = &inputs->place;
    const bool outputs = inputs->outputs;
    const size_t bytes = winograd->grid.scalar_bytes, maps = place->block.maps,
                 tiles = place->block.rows * place->block.cols;
    struct winograd_both both =
        outputs ? winograd_of_gradient(winograd) : winograd_of_input(winograd);
    both.n = winograd_positions(winograd, tiles);
    both.y_plane = outputs ? winograd->out_plane : winograd->in_plane;
    struct winograd_map map;
    size_t phase[3];
    const char *plane = plane_of(inputs, first, 0, &map, phase);
    for (size_t i = 0; i < n * maps; i++) {
        const struct winograd_map this_map = map;
        const size_t this_phase[3] = {phase[0], phase[1], phase[2]};
        const char *this_plane = plane;
        if (i + 1 < n * maps) {
            plane = plane_of(inputs, first, i + 1, &map, phase);
            winograd_fetch(winograd, outputs, place, &map, phase[1], plane, false);
        }
        winograd_deal(winograd, inputs->kernels, outputs, place, &this_map, this_phase, this_plane,
                      inputs->at->dealt, inputs->at->joined, &both);
        winograd_transform(
            outputs ? inputs->kernels->winograd_taps : inputs->kernels->winograd_input, &both,
            inputs->to + (i / maps * winograd->positions + i % maps * tiles) * bytes,
            inputs->at->dealt, inputs->at->between);
    }
}
