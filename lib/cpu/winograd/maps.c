// SPDX-License-Identifier: MIT
// Small maps of cpu/winograd: a map with fewer tiles than a vector has lanes would leave lanes
// empty in every transform. Here a lane is a map instead: a vector holds one sample of one channel
// of as many items as there are lanes. Planes are transposed as a whole (kernels->lanes_read), and
// elements of a tile are at fixed distances within a padded copy. The tiles of a batch are ordered
// by tile, then by map.
#include <assert.h>
#include <string.h>

#include "winograd.h"

enum { MAX_LANES = CONV_BLOCK_BYTES / sizeof(float) };

// The planes of one channel of the maps `map` .. of a batch, one for each lane; NULL in lanes
// beyond the batch.
static void find_planes(const struct winograd_task *task, bool outputs, size_t map, size_t channel,
                        void *ret[MAX_LANES])
{
    const size_t left = task->index.batch.maps - map;
    const struct winograd_plane first =
        winograd_plane(task, outputs, task->index.map + map, channel);
    const struct winograd_plane second =
        winograd_plane(task, outputs, task->index.map + map + 1, channel);
    for (size_t l = 0; l < MAX_LANES; l++)
        ret[l] = l < left && l < winograd_lanes(task->p)
                     ? first.samples + (ptrdiff_t)l * (second.samples - first.samples)
                     : NULL;
}

static char *channel_rows(const struct winograd_task *task, size_t i)
{
    return task->scratch.rows + i * winograd_map_pitch(task->p) * task->p->grid.scalar_bytes;
}

// Transposes the planes of n adjacent channels, more than one only with channels last.
static void read_planes(const struct winograd_task *task, bool outputs, size_t map, size_t channel,
                        size_t n)
{
    const struct winograd *p = task->p;
    const struct sample_strides *strides = &p->strides[outputs];
    const size_t plane = tile_side(winograd_axis(p, 0), outputs)->size *
                         tile_side(winograd_axis(p, 1), outputs)->size;
    const size_t bytes = p->grid.scalar_bytes, lanes = winograd_lanes(p);
    void *planes[MAX_LANES];
    find_planes(task, outputs, map, channel, planes);
    if (!p->channels_last)
        task->kernels->lanes_read(task->scratch.rows, (const void *const *)planes, 1, plane);
    for (size_t i = 0; i < plane && p->channels_last; i++)
        task->kernels->transpose(task->scratch.rows + i * lanes * bytes, winograd_map_pitch(p),
                                 (char *)planes[0] + i * strides->position * bytes, strides->item,
                                 size_min(lanes, task->index.batch.maps - map), n);
}

// Copies transposed planes with padding around them.
static void pad_planes(const struct winograd_task *task, bool outputs, const char *planes,
                       size_t high, size_t wide)
{
    const struct winograd *p = task->p;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const struct tile_side *rows = tile_side(down, outputs), *columns = tile_side(along, outputs);
    const ptrdiff_t top = tile_position(down, outputs, 0);
    const ptrdiff_t left = tile_position(along, outputs, 0);
    const struct tile_range within = tile_within(columns, 0, 0, left, wide);
    const ptrdiff_t first = tile_sample(columns, 0, 0, left);
    const size_t block = CONV_BLOCK_BYTES, n = within.end - within.begin;
    assert(high * wide * winograd_lanes(p) <= p->samples);
    for (size_t i = 0; i < high; i++) {
        char *to = task->scratch.samples + i * wide * block;
        const ptrdiff_t row = tile_sample(rows, 0, 0, top + (ptrdiff_t)i);
        if (!tile_inside(rows, row) || n == 0) {
            memset(to, 0, wide * block);
            continue;
        }
        const size_t at = (size_t)row * columns->size + (size_t)(first + (ptrdiff_t)within.begin);
        memset(to, 0, within.begin * block);
        memcpy(to + within.begin * block, planes + at * block, n * block);
        memset(to + within.end * block, 0, (wide - within.end) * block);
    }
}

// Transforms all tiles of the planes in the lanes to `to`, that of tile 0.
static void transform_planes(const struct winograd_task *task, struct winograd_transform *transform,
                             size_t wide, char *to)
{
    const struct winograd *p = task->p;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t lanes = winograd_lanes(p), bytes = p->grid.scalar_bytes;
    for (size_t r = 0; r < down->tiles; r++)
        for (size_t c = 0; c < along->tiles; c++) {
            const size_t tile = r * along->tiles + c;
            for (size_t i = 0; i < transform->from[0]; i++)
                transform->x_row[i] = ((r * down->tile + i) * wide + c * along->tile) * lanes;
            winograd_transform_tiles(transform, to + tile * task->index.batch.maps * bytes,
                                     task->scratch.samples, task->scratch.stage);
        }
}

static void transform_maps(const struct winograd_task *task, bool outputs, size_t first, size_t n,
                           char *to)
{
    const struct winograd *p = task->p;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t lanes = winograd_lanes(p);
    const size_t samples = down->in.size * along->in.size; // of a plane of x
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, outputs ? WINOGRAD_GRADIENT : WINOGRAD_INPUT);
    const size_t high = winograd_map_extent(down, transform.from[0]);
    const size_t wide = winograd_map_extent(along, transform.from[1]);
    transform.n = transform.x_column = lanes;
    transform.y_plane = outputs ? p->out_plane : p->in_plane;
    for (size_t c = 0, count; c < n; c += count) {
        count = p->channels_last ? winograd_together(task, outputs, first + c, first + n) : 1;
        // The last maps come first: where they do not fill a vector, its other lanes reach into the
        // first maps of the next tile, or of the next channel.
        for (size_t map = winograd_vectors(p, task->index.batch.maps); map > 0; map -= lanes) {
            read_planes(task, outputs, map - lanes, first + c, count);
            winograd_raise_peak(task, task->scratch.rows, samples * lanes);
            for (size_t i = 0; i < count; i++) {
                const size_t at = (c + i) * p->positions + map - lanes;
                pad_planes(task, outputs, channel_rows(task, i), high, wide);
                transform_planes(task, &transform, wide, to + at * p->grid.scalar_bytes);
            }
        }
    }
}

void winograd_transform_channels(const struct winograd_task *task, bool outputs, size_t first,
                                 size_t n, char *to)
{
    if (task->p->map_lanes) transform_maps(task, outputs, first, n, to);
    else winograd_transform_planes(task, outputs, first, n, to);
}

// Copies the outputs of tile (r, c) to where their planes have them.
static void copy_tile(const struct winograd_task *task, char *planes, size_t r, size_t c)
{
    const struct tile_axis *down = winograd_axis(task->p, 0), *along = winograd_axis(task->p, 1);
    const ptrdiff_t q = tile_output(along, c);
    const struct tile_range within = tile_within(&along->out, 0, 0, q, along->tile);
    const ptrdiff_t column = tile_sample(&along->out, 0, 0, q + (ptrdiff_t)within.begin);
    const size_t block = CONV_BLOCK_BYTES;
    for (size_t i = 0; i < down->tile && within.begin < within.end; i++) {
        const ptrdiff_t row = tile_sample(&down->out, 0, 0, tile_output(down, r) + (ptrdiff_t)i);
        if (!tile_inside(&down->out, row)) continue;
        memcpy(planes + ((size_t)row * along->out.size + (size_t)column) * block,
               task->scratch.samples + (i * along->tile + within.begin) * block,
               (within.end - within.begin) * block);
    }
}

// Channels last: the planes of n adjacent output channels from k on.
static void store_adjacent_planes(const struct winograd_task *task, size_t map, size_t k, size_t n)
{
    const struct winograd *p = task->p;
    const struct sample_strides *strides = &p->strides[1];
    const size_t bytes = p->grid.scalar_bytes, lanes = winograd_lanes(p);
    const size_t plane = winograd_axis(p, 0)->out.size * winograd_axis(p, 1)->out.size;
    char *y = winograd_plane(task, true, task->index.map + map, k).samples;
    for (size_t c = 0; c < n; c++) {
        const struct conv_finish finish = winograd_finish(task, k + c);
        char *rows = channel_rows(task, c);
        if (finish.bias || finish.relu)
            task->kernels->conv_store(rows, 1, rows, plane * lanes, &finish);
    }
    for (size_t i = 0; i < plane; i++)
        task->kernels->transpose(y + i * strides->position * bytes, strides->item,
                                 task->scratch.rows + i * lanes * bytes, winograd_map_pitch(p), n,
                                 size_min(lanes, task->index.batch.maps - map));
}

// Stores the planes of output channel k from the lanes.
static void store_planes(const struct winograd_task *task, size_t map, size_t k)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes;
    const struct conv_finish finish = winograd_finish(task, k);
    _Alignas(CONV_BLOCK_BYTES) char biases[CONV_BLOCK_BYTES];
    void *planes[MAX_LANES];
    for (size_t l = 0; finish.bias && l < winograd_lanes(p); l++)
        memcpy(biases + l * bytes, finish.bias, bytes);
    find_planes(task, true, map, k, planes);
    task->kernels->lanes_write(planes, 1, task->scratch.rows,
                               winograd_axis(p, 0)->out.size * winograd_axis(p, 1)->out.size,
                               finish.bias ? biases : NULL, finish.relu);
}

// Transforms the sums of output channel k of the task and of the maps `map` .. to their planes.
static void transform_map_sums(const struct winograd_task *task,
                               const struct winograd_transform *transform, size_t map, size_t k,
                               char *planes)
{
    const struct winograd *p = task->p;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    for (size_t r = 0; r < down->tiles; r++)
        for (size_t c = 0; c < along->tiles; c++) {
            const size_t tile = r * along->tiles + c;
            const size_t at = k * p->positions + tile * task->index.batch.maps + map;
            winograd_transform_tiles(transform, task->scratch.samples,
                                     task->scratch.out + at * p->grid.scalar_bytes,
                                     task->scratch.stage);
            copy_tile(task, planes, r, c);
        }
}

void winograd_store_maps(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, lanes = winograd_lanes(p);
    const size_t end = task->out + task->n_out;
    struct winograd_transform transform = winograd_transform_of(p, task->kernels, WINOGRAD_OUTPUT);
    transform.n = transform.y_plane = lanes;
    transform.x_column = p->out_plane;
    for (size_t i = 0; i < transform.from[0]; i++)
        transform.x_row[i] = i * transform.from[1] * p->out_plane;
    if (!p->grid.covers) memset(task->scratch.rows, 0, p->rows * bytes);
    for (size_t k = task->out, count; k < end; k += count) {
        count = p->channels_last ? winograd_together(task, true, k, end) : 1;
        for (size_t map = 0; map < task->index.batch.maps; map += lanes) {
            for (size_t i = 0; i < count; i++)
                transform_map_sums(task, &transform, map, k + i - task->out, channel_rows(task, i));
            if (p->channels_last) store_adjacent_planes(task, map, k, count);
            else store_planes(task, map, k);
        }
    }
}
