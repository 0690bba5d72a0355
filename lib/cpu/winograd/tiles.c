// SPDX-License-Identifier: MIT
// Tiles of cpu/winograd: batches of them, their samples deinterleaved so that tiles lie side by
// side, and the nesting of two transforms along one axis into one along both (Lavin & Gray, eq. 8).
#include <assert.h>
#include <string.h>

#include "geometry/samples.h"
#include "winograd.h"

struct winograd_transform winograd_transform_of(const struct winograd *p,
                                                const struct kernels *kernels,
                                                enum winograd_operand operand)
{
    const bool inverse = operand == WINOGRAD_OUTPUT || operand == WINOGRAD_TAP_SUMS;
    struct winograd_transform ret = {0};
    for (int a = 0; a < WINOGRAD_AXES; a++) {
        const struct tile_axis *axis = winograd_axis(p, a);
        const bool taps = operand == WINOGRAD_TAPS || operand == WINOGRAD_TAP_SUMS;
        size_t count = taps ? axis->taps : axis->tile; // of the matrix; input has none
        if (operand == WINOGRAD_INPUT) count = 0;
        const size_t samples = operand == WINOGRAD_INPUT ? axis->extent : count;
        ret.extent[a] = axis->extent;
        ret.count[a] = count;
        ret.from[a] = inverse ? axis->extent : samples;
        ret.to[a] = inverse ? samples : axis->extent;
    }
    if (!kernels) return ret;
    if (inverse) ret.kernel = kernels->winograd_output;
    else ret.kernel = operand == WINOGRAD_INPUT ? kernels->winograd_input : kernels->winograd_taps;
    return ret;
}

void winograd_transform_tiles(const struct winograd_transform *transform, char *y, const char *x,
                              char *stage)
{
    const size_t *from = transform->from, *to = transform->to, n = transform->n;
    const bool first = transform->extent[0] > 1, second = transform->extent[1] > 1;
    size_t column[WINOGRAD_EXTENT];
    struct winograd_rows lines = {.n = n,
                                  .rows = from[1],
                                  .x_row_stride = transform->x_column,
                                  .y_row_stride = n,
                                  .y_stride = second ? from[1] * n : transform->y_plane,
                                  .offset = transform->x_row};
    if (first)
        transform->kernel(second ? stage : y, x, transform->extent[0], transform->count[0], &lines);
    if (!second) return;
    for (size_t j = 0; j < from[1]; j++)
        column[j] = first ? j * n : transform->x_row[0] + j * transform->x_column;
    lines = (struct winograd_rows){.n = n,
                                   .rows = to[0],
                                   .x_row_stride = from[1] * n,
                                   .y_row_stride = to[1] * transform->y_plane,
                                   .y_stride = transform->y_plane,
                                   .offset = column};
    transform->kernel(y, first ? stage : x, transform->extent[1], transform->count[1], &lines);
}

struct winograd_index winograd_index(const struct winograd *p, size_t batch)
{
    const struct winograd_batch *most = &p->batch;
    size_t at[3];
    size_unravel(batch, p->batches, at);
    struct winograd_index index = {.map = at[0] * most->maps,
                                   .at = {at[1] * most->rows, at[2] * most->cols}};
    index.batch.maps = size_min(most->maps, p->maps - index.map);
    index.batch.rows = size_min(most->rows, winograd_axis(p, 0)->tiles - index.at[0]);
    index.batch.cols = size_min(most->cols, winograd_axis(p, 1)->tiles - index.at[1]);
    index.tiles = index.batch.maps * index.batch.rows * index.batch.cols;
    assert(index.tiles > 0 && index.tiles <= p->positions);
    return index;
}

struct winograd_task winograd_task(const struct winograd_call *call, size_t batch, size_t group,
                                   int worker)
{
    const struct winograd *p = call->plan->state;
    struct arena own = {.base = call->workers + (size_t)worker * p->worker};
    struct arena shared = {0};
    struct winograd_task task = {.call = call,
                                 .p = p,
                                 .kernels = call->plan->kernels,
                                 .group = group,
                                 .n_in = p->in,
                                 .n_out = p->out,
                                 .index = winograd_index(p, batch),
                                 .scratch = winograd_layout_worker(p, &own)};
    if (!p->shared_inputs && !p->shared_panels) return task;
    const size_t i = p->weight ? group - call->first : batch * p->grid.groups + group;
    winograd_layout_shared(p, &shared);
    shared = (struct arena){.base = call->shared + i * shared.used};
    const struct winograd_scratch common = winograd_layout_shared(p, &shared);
    task.scratch.in_panel = common.in_panel;
    if (p->shared_inputs) task.scratch.in = common.in;
    else task.scratch.out_panel = common.out_panel;
    if (p->shared_panels && !p->single_batch) task.scratch.sums = common.sums;
    return task;
}

// n samples of a row from `first` on, zeros where there are none; those within are known.
static void copy_row(char *ret, const char *row, ptrdiff_t first, size_t step,
                     const struct tile_range *within, size_t n, size_t bytes)
{
    memset(ret, 0, within->begin * bytes);
    if (within->begin < within->end)
        samples_copy(ret + within->begin * bytes, 1,
                     row + (first + (ptrdiff_t)(within->begin * step)) * (ptrdiff_t)bytes, step,
                     within->end - within->begin, bytes);
    memset(ret + within->end * bytes, 0, (n - within->end) * bytes);
}

// Deinterleaves the samples that a batch's tiles of one map take from a plane, and sets where the
// transform finds them. Rows of samples fall into residues modulo the tile, as columns do.
static void deinterleave_tiles(const struct winograd_task *task, bool outputs,
                               const struct winograd_plane *plane,
                               struct winograd_transform *transform)
{
    const struct winograd *p = task->p;
    const struct winograd_index *index = &task->index;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const struct tile_side *rows = outputs ? &down->out : &down->in;
    const struct tile_side *columns = outputs ? &along->out : &along->in;
    const ptrdiff_t top =
        outputs ? tile_output(down, index->at[0]) : tile_input(down, index->at[0]);
    const ptrdiff_t left =
        outputs ? tile_output(along, index->at[1]) : tile_input(along, index->at[1]);
    const size_t high = transform->from[0], wide = transform->from[1], step = along->tile;
    const size_t cols = index->batch.cols, n = cols * step, bytes = p->grid.scalar_bytes;
    const size_t all = (index->batch.rows - 1) * down->tile + high;
    const size_t lines = index->batch.rows + (high - 1) / down->tile;
    const size_t residue = winograd_residue(p, lines, cols), column = down->tile * residue;
    assert(wide * column <= p->samples);
    // Columns in groups of a tile: rows that begin with the group, end to end, are one row of
    // tiles.
    for (size_t group = 0; group < wide; group += step) {
        const ptrdiff_t q = left + (ptrdiff_t)group;
        const ptrdiff_t first = tile_sample(columns, plane->image[2], plane->branch[2], q);
        const struct tile_range within =
            tile_within(columns, plane->image[2], plane->branch[2], q, n);
        for (size_t r = 0; r < down->tile && r < all; r++) {
            char *to = task->scratch.rows;
            for (size_t i = r; i < all; i += down->tile, to += n * bytes) {
                const ptrdiff_t at =
                    tile_sample(rows, plane->image[1], plane->branch[1], top + (ptrdiff_t)i);
                if (tile_inside(rows, at))
                    copy_row(to, plane->samples + (size_t)at * columns->size * bytes, first,
                             columns->step, &within, n, bytes);
                else memset(to, 0, n * bytes);
            }
            const size_t tiles = (size_t)(to - task->scratch.rows) / step / bytes;
            task->kernels->deinterleave(
                task->scratch.samples + (r * residue + group * column) * bytes, column,
                task->scratch.rows, step, size_min(wide - group, step), tiles);
        }
    }
    transform->x_column = column;
    for (size_t i = 0; i < high; i++)
        transform->x_row[i] = i % down->tile * residue + i / down->tile * cols;
}

void winograd_prefetch(const struct winograd_task *task, const struct winograd_plane *plane,
                       bool outputs, bool write)
{
    const struct winograd *p = task->p;
    const struct winograd_index *index = &task->index;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const struct tile_side *side = outputs ? &down->out : &down->in;
    const size_t image = plane->image[1], branch = plane->branch[1];
    const size_t last_tile = (index->batch.rows - 1) * down->tile;
    const size_t elements = last_tile + (outputs ? down->tile : down->extent);
    const ptrdiff_t q = outputs ? tile_output(down, index->at[0]) : tile_input(down, index->at[0]);
    const struct tile_range range = tile_within(side, image, branch, q, elements);
    if (range.begin == range.end) return;
    const ptrdiff_t first = tile_sample(side, image, branch, q + (ptrdiff_t)range.begin);
    const ptrdiff_t last = tile_sample(side, image, branch, q + (ptrdiff_t)range.end - 1);
    const size_t row = (outputs ? along->out.size : along->in.size) * p->grid.scalar_bytes;
    const char *from = plane->samples + (size_t)first * row;
    const char *end = plane->samples + ((size_t)last + 1) * row;
    if (write)
        for (; from < end; from += MEM_ALIGN) __builtin_prefetch(from, 1);
    else
        for (; from < end; from += MEM_ALIGN) __builtin_prefetch(from, 0);
}

struct winograd_plane winograd_plane(const struct winograd_task *task, bool outputs, size_t map,
                                     size_t channel)
{
    const struct winograd_call *call = task->call;
    const struct tile_grid *grid = &task->p->grid;
    const struct tile_axis *down = winograd_axis(task->p, 0), *along = winograd_axis(task->p, 1);
    const size_t size = outputs ? down->out.size * along->out.size : down->in.size * along->in.size;
    const size_t channels = outputs ? grid->out : grid->in; // without branches
    struct winograd_plane plane = {.item = map / grid->images};
    tile_grid_image(grid, map % grid->images, plane.image);
    tile_grid_branch(grid, channel / channels, plane.branch);
    const size_t at = (plane.item * grid->groups + task->group) * channels + channel % channels;
    plane.samples = (outputs ? call->y : (char *)call->x) + at * size * grid->scalar_bytes;
    return plane;
}

void winograd_transform_channels(const struct winograd_task *task, bool outputs, size_t first,
                                 size_t n, char *to)
{
    const struct winograd *p = task->p;
    const size_t maps = task->index.batch.maps, map = task->index.map;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, outputs ? WINOGRAD_GRADIENT : WINOGRAD_INPUT);
    transform.n = winograd_vectors(p, tiles);
    transform.y_plane = outputs ? p->out_plane : p->in_plane;
    struct winograd_plane next = winograd_plane(task, outputs, map, first);
    for (size_t i = 0; i < n * maps; i++) {
        const struct winograd_plane plane = next;
        const size_t at = i / maps * p->positions + i % maps * tiles;
        if (i + 1 < n * maps) {
            next = winograd_plane(task, outputs, map + (i + 1) % maps, first + (i + 1) / maps);
            winograd_prefetch(task, &next, outputs, false);
        }
        deinterleave_tiles(task, outputs, &plane, &transform);
        winograd_transform_tiles(&transform, to + at * p->grid.scalar_bytes, task->scratch.samples,
                                 task->scratch.stage);
    }
}
