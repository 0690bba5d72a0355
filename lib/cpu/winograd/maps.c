// SPDX-License-Identifier: MIT
// Small maps of cpu/winograd: a map with fewer tiles than a vector has lanes would leave lanes
// empty in every transform. Here a lane is a map instead: a vector holds one sample of one channel
// of as many items as there are lanes. Planes are transposed as a whole, and elements of a tile are
// at fixed distances within a padded copy. The tiles of a batch are ordered by tile, then by map.
#include <assert.h>
#include <string.h>

#include "geometry/samples.h"
#include "winograd.h"

enum { MAX_LANES = CONV_BLOCK_BYTES / sizeof(float) };

// The planes of `count` adjacent channels in the lanes, one after the other, of the maps from `map`
// of a batch on.
struct lanes {
    const struct winograd_task *task;
    bool outputs;
    size_t map, channel, count;
};

static char *channel_planes(const struct lanes *at, size_t i)
{
    const struct winograd *p = at->task->p;
    return at->task->scratch.windows + i * winograd_map_pitch(p) * p->grid.scalar_bytes;
}

static size_t plane_samples(const struct lanes *at)
{
    const struct winograd *p = at->task->p;
    return tile_side(winograd_axis(p, 0), at->outputs)->size *
           tile_side(winograd_axis(p, 1), at->outputs)->size;
}

// Transposes planes from the array, or to it.
static void move_planes(const struct lanes *at, bool write)
{
    const struct winograd_task *task = at->task;
    const struct winograd *p = task->p;
    const struct sample_strides *strides = &p->strides[at->outputs];
    const struct partita_plan *plan = task->call->plan;
    const size_t bytes = plan->shape.sample_bytes, lanes = winograd_lanes(p);
    const size_t n = plane_samples(at);
    const size_t maps = size_min(lanes, task->index.batch.maps - at->map);
    char *first = winograd_samples(task, at->outputs, task->index.map + at->map, at->channel);
    void *planes[MAX_LANES] = {0}; // NULL: no map
    for (size_t l = 0; l < maps; l++) planes[l] = first + l * strides->item * bytes;
    if (!write && maps < lanes)
        memset(task->scratch.windows, 0, at->count * winograd_map_pitch(p) * p->grid.scalar_bytes);
    if (plan->shape.half && strides->position == 1) {
        const struct sample_rows rows = {task->scratch.windows, n, lanes, strides->item, maps};
        samples_move(plan, &rows, first, write);
    } else if (strides->position == 1 && write)
        task->kernels->lanes_write(planes, 1, task->scratch.windows, n, NULL, false);
    else if (strides->position == 1)
        task->kernels->lanes_read(task->scratch.windows, 1, (const void *const *)planes, 1, n);
    for (size_t i = 0; i < n && strides->position > 1; i++) {
        char *position = first + i * strides->position * bytes;
        const struct sample_rows rows = {channel_planes(at, 0) + i * CONV_BLOCK_BYTES, at->count,
                                         winograd_map_pitch(p), strides->item, maps};
        samples_move(plan, &rows, position, write);
    }
}

// Copies transposed planes of one channel, with padding around them to wide samples a row, or back.
static void copy_padded(const struct lanes *at, char *planes, size_t high, size_t wide, bool back)
{
    const struct winograd *p = at->task->p;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const struct tile_side *rows = tile_side(down, at->outputs),
                           *columns = tile_side(along, at->outputs);
    const ptrdiff_t top = tile_position(down, at->outputs, 0);
    const ptrdiff_t left = tile_position(along, at->outputs, 0);
    const struct tile_range within = tile_within(columns, 0, 0, left, wide);
    const ptrdiff_t first = tile_sample(columns, 0, 0, left + (ptrdiff_t)within.begin);
    const size_t block = CONV_BLOCK_BYTES, n = within.end - within.begin;
    assert(high * wide * winograd_lanes(p) <= p->samples);
    for (size_t i = 0; i < high; i++) {
        char *padded = at->task->scratch.samples + i * wide * block;
        const ptrdiff_t row = tile_sample(rows, 0, 0, top + (ptrdiff_t)i);
        const bool exists = row >= 0 && row < (ptrdiff_t)rows->size && n > 0;
        char *samples =
            exists ? planes + ((size_t)row * columns->size + (size_t)first) * block : NULL;
        if (exists && back) memcpy(samples, padded + within.begin * block, n * block);
        if (back) continue;
        memset(padded, 0, (exists ? within.begin : wide) * block);
        if (!exists) continue;
        memcpy(padded + within.begin * block, samples, n * block);
        memset(padded + within.end * block, 0, (wide - within.end) * block);
    }
}

// Transforms all tiles of the padded copy of a channel to `matrix`, tile 0 of the first map, or
// back.
static void transform_maps(const struct lanes *at, struct winograd_transform *transform,
                           char *matrix, size_t wide, bool back)
{
    const struct winograd *p = at->task->p;
    const struct winograd_scratch *scratch = &at->task->scratch;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t lanes = winograd_lanes(p), bytes = p->grid.scalar_bytes;
    for (size_t tile = 0; tile < p->grid.tiles; tile++) {
        const size_t r = tile / along->tiles * down->tile, c = tile % along->tiles * along->tile;
        char *frequencies = matrix + tile * at->task->index.batch.maps * bytes;
        char *samples = scratch->samples + (r * wide + c) * lanes * bytes;
        if (back) winograd_transform_tiles(transform, samples, frequencies, scratch->stage);
        else winograd_transform_tiles(transform, frequencies, samples, scratch->stage);
    }
}

void winograd_load_maps(const struct winograd_task *task, bool outputs, size_t first, size_t n,
                        char *to, size_t frequency)
{
    const struct winograd *p = task->p;
    const size_t lanes = winograd_lanes(p), maps = winograd_vectors(p, task->index.batch.maps);
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, outputs ? WINOGRAD_GRADIENT : WINOGRAD_INPUT);
    const size_t high = winograd_map_extent(winograd_axis(p, 0), transform.from[0]);
    const size_t wide = winograd_map_extent(winograd_axis(p, 1), transform.from[1]);
    winograd_transform_strides(&transform, lanes, lanes, frequency);
    for (size_t i = 0; i < transform.from[0]; i++) transform.x_row[i] = i * wide * lanes;
    struct lanes at = {.task = task, .outputs = outputs};
    for (size_t c = 0; c < n; c += at.count) {
        at.channel = first + c;
        at.count = winograd_together(task, outputs, at.channel, first + n);
        // The last maps come first: where they do not fill a vector, its other lanes reach into the
        // first maps of the next tile, or of the next channel.
        for (size_t left = maps; left > 0; left -= lanes) {
            at.map = left - lanes;
            move_planes(&at, false);
            for (size_t i = 0; i < at.count; i++) {
                winograd_raise_peak(task, channel_planes(&at, i), plane_samples(&at) * lanes);
                copy_padded(&at, channel_planes(&at, i), high, wide, false);
                transform_maps(&at, &transform,
                               to + ((c + i) * p->positions + at.map) * p->grid.scalar_bytes, wide,
                               false);
            }
        }
    }
}

void winograd_store_maps(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t lanes = winograd_lanes(p), end = task->out + task->n_out;
    struct winograd_transform transform = winograd_transform_of(p, task->kernels, WINOGRAD_OUTPUT);
    const size_t high = winograd_map_extent(winograd_axis(p, 0), transform.to[0]);
    const size_t wide = winograd_map_extent(winograd_axis(p, 1), transform.to[1]);
    winograd_transform_strides(&transform, lanes, p->sums_plane, lanes);
    transform.y_row = wide * lanes;
    struct lanes at = {.task = task, .outputs = true};
    for (at.channel = task->out; at.channel < end; at.channel += at.count) {
        at.count = winograd_together(task, true, at.channel, end);
        for (at.map = 0; at.map < task->index.batch.maps; at.map += lanes) {
            for (size_t i = 0; i < at.count; i++) {
                const size_t k = at.channel + i;
                const struct conv_finish finish = winograd_finish(task, k);
                char *planes = channel_planes(&at, i);
                transform_maps(&at, &transform,
                               task->scratch.sums +
                                   ((k - task->out) * p->positions + at.map) * p->grid.scalar_bytes,
                               wide, true);
                copy_padded(&at, planes, high, wide, true);
                if (finish.bias || finish.relu)
                    task->kernels->conv_store(planes, 1, planes, plane_samples(&at) * lanes,
                                              &finish);
            }
            move_planes(&at, true);
        }
    }
}
