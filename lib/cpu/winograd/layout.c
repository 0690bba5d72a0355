// SPDX-License-Identifier: MIT
// The layout of cpu/winograd: batches of tiles, splits of channels, and the memory that they take.
// Everything is chosen by shape and workspace limit alone.
#include <assert.h>
#include <math.h>

#include "winograd.h"

// Vectors of positions, with those that rectangles of three vectors leave over at their price.
static double vectors_price(size_t vectors)
{
    return (double)(vectors / 3 * 3) + WINOGRAD.rest_price[vectors % 3];
}

// The price of a batch of maps, rows and columns of tiles; transposed, of eights of tiles times
// blocks of channels. Rows of samples are copied and stored one by one.
static double batch_price(const struct winograd *p, const size_t size[3])
{
    // Lanes are a constant here: this is called for every batch that is tried.
    const bool f64 = p->grid.scalar_bytes == sizeof(double);
    const size_t tiles = size[0] * size[1] * size[2];
    const double rows = p->row_price * (double)(size[0] * size[1]);
    if (!p->transposed)
        return rows + vectors_price(f64 ? ceil_div(tiles, CONV_BLOCK_BYTES / sizeof(double))
                                        : ceil_div(tiles, CONV_BLOCK_BYTES / sizeof(float)));
    return rows + (double)size_round_up(tiles, CONV_CHANNELS) / (double)winograd_lanes(p) *
                      (double)size_round_up(p->out, p->oc_block) / (double)p->out;
}

// The price of all batches: of those inside and those at the ends of each axis, if there are any.
// Axes have `count` tiles, or maps, and a batch `of` of them.
static double batches_price(const struct winograd *p, const size_t count[3], const size_t size[3])
{
    size_t whole[3], rest[3];
    double price = 0;
    int ended = 0; // axes that end with a smaller batch, as bits
    for (int a = 0; a < 3; a++) {
        whole[a] = count[a] / size[a];
        rest[a] = count[a] - whole[a] * size[a];
        ended |= (rest[a] > 0) << a;
    }
    for (int ends = 0; ends < 8; ends++) {
        size_t sizes[3], batches = 1;
        if (ends & ~ended) continue;
        for (int a = 0; a < 3; a++) {
            const bool end = ends >> a & 1;
            sizes[a] = end ? rest[a] : size[a];
            batches *= end ? 1 : whole[a];
        }
        price += (double)batches * batch_price(p, sizes);
    }
    return price;
}

// Whether transforms of maps side by side in the lanes are worth while for the batch.
static bool suits_map_lanes(const struct winograd *p)
{
    const struct tile_axis *axis[] = {winograd_axis(p, 0), winograd_axis(p, 1)};
    const struct winograd_batch *batch = &p->batch;
    const size_t tiles = axis[0]->tiles * axis[1]->tiles;
    if (!MODE_IS_ON("winograd:map-lanes") || p->grid.images > 1 || p->grid.branches > 1 ||
        winograd_map_samples(p) > WINOGRAD.max_map)
        return false;
    for (int a = 0; a < 2; a++)
        if (axis[a]->in.step != 1 || axis[a]->out.step != 1) return false;
    if (batch->maps < 2 || batch->rows < axis[0]->tiles || batch->cols < axis[1]->tiles)
        return false;
    const double vectors = (double)(batch->maps * winograd_vectors(p, tiles));
    return (double)(tiles * winograd_vectors(p, batch->maps)) <= WINOGRAD.map_lanes_gain * vectors;
}

// Splits the problem into batches of at most this one, and sets the price of all.
static void set_batch(struct winograd *p, struct winograd_batch batch)
{
    const size_t count[3] = {p->maps, winograd_axis(p, 0)->tiles, winograd_axis(p, 1)->tiles};
    const size_t size[3] = {size_min(batch.maps, count[0]), size_min(batch.rows, count[1]),
                            size_min(batch.cols, count[2])};
    p->batch = (struct winograd_batch){size[0], size[1], size[2]};
    p->positions = winograd_vectors(p, size[0] * size[1] * size[2]);
    for (int a = 0; a < 3; a++) p->batches[a] = ceil_div(count[a], size[a]);
    p->price = batches_price(p, count, size);
    p->map_lanes = suits_map_lanes(p);
}

// The cheapest batch of a search, the larger one if equal.
struct best_batch {
    size_t size[3], tiles;
    double price;
};

// A lower bound of the price comes first: the batches inside, and the vectors of all tiles that are
// left; vectors_price(n) is never less than n. The factor is for roundings.
static void try_batch(const struct winograd *p, const size_t count[3], const size_t size[3],
                      struct best_batch *best)
{
    const size_t tiles = size[0] * size[1] * size[2];
    const size_t inside = (count[0] / size[0]) * (count[1] / size[1]) * (count[2] / size[2]);
    const double rest = (double)(count[0] * count[1] * count[2] - inside * tiles);
    const double least = (double)inside * batch_price(p, size) + rest / (double)winograd_lanes(p);
    if (least * (1 - 1e-9) > best->price) return;
    const double price = batches_price(p, count, size);
    if (price > best->price || (price >= best->price && tiles <= best->tiles)) return;
    *best = (struct best_batch){{size[0], size[1], size[2]}, tiles, price};
}

// The batches of at most so many tiles that cost least.
static void choose_batch(struct winograd *p, size_t max_tiles)
{
    const size_t count[3] = {p->maps, winograd_axis(p, 0)->tiles, winograd_axis(p, 1)->tiles};
    const size_t rows = count[1], cols = count[2];
    struct best_batch best = {{1, 1, 1}, 1, INFINITY};
    size_t tried = 0; // columns
    for (size_t splits = 1; splits <= 8; splits++) {
        const size_t max = ceil_div(cols, splits);
        size_t size[3] = {1, 1, size_split_even(cols, size_min(max, max_tiles))};
        if (size[2] != tried)
            for (; size[1] <= rows && size[1] * size[2] <= max_tiles; size[1]++)
                try_batch(p, count, size, &best);
        tried = size[2];
        // Several maps only where they are whole, and batches as large as one another.
        size[1] = rows;
        for (size[0] = 2;
             size[2] == cols && size[0] <= p->maps && size[0] * rows * cols <= max_tiles; size[0]++)
            if (size[0] == size_split_even(p->maps, size[0])) try_batch(p, count, size, &best);
        if (max <= 1) break;
    }
    set_batch(p, (struct winograd_batch){best.size[0], best.size[1], best.size[2]});
}

// Panels and sums of backward weight; transposed, those of one frequency.
static void measure_panels(struct winograd *p)
{
    const size_t strip = size_min(WINOGRAD.strip_vectors * winograd_lanes(p), p->chunk);
    p->sums = p->in_panel = p->out_panel = 0;
    if (p->transposed) {
        p->in_panel = size_add(size_mul(p->positions, p->chunk), winograd_lanes(p));
        p->out_panel = size_mul(p->positions, p->oc_split);
    }
    if (!p->weight) return;
    const size_t strips = ceil_div(p->chunk, strip), blocks = ceil_div(p->oc_split, CONV_CHANNELS);
    const size_t samples = size_mul(p->frequencies, p->positions);
    p->strip = strip;
    p->sum_blocks = p->single_batch ? size_min(WINOGRAD.sum_blocks, blocks) : blocks;
    p->in_panel = size_mul(samples, strips * strip);
    p->out_panel = size_mul(samples, blocks * CONV_CHANNELS);
    p->sums = size_mul(p->frequencies * CONV_CHANNELS,
                       (p->single_batch ? 1 : strips) * strip * p->sum_blocks);
    // Taps of a strip and block on their way from the sums.
    p->in_plane = size_max(p->in_plane, 2 * CONV_CHANNELS * strip);
}

// So many channels of transformed tiles and capacity after the last one's last vector: an odd
// number of blocks, so that frequencies do not fall into the same sets of the cache.
static size_t plane_scalars(const struct winograd *p, size_t channels)
{
    const size_t lanes = winograd_lanes(p);
    return size_mul((size_mul(channels, p->positions / lanes) + 1) | 1, lanes);
}

struct winograd_window winograd_window(const struct winograd *p, const struct winograd_batch *batch,
                                       const size_t elements[WINOGRAD_AXES])
{
    const size_t lanes = winograd_lanes(p);
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    struct winograd_window ret = {.rows = (batch->rows - 1) * down->tile + elements[0],
                                  .width = ((elements[1] - 1) / along->tile + batch->cols) *
                                           along->tile};
    // An odd number of blocks, so that channels do not fall into the same sets of the cache.
    ret.channel = (ceil_div(ret.rows * ret.width, lanes) | 1) * lanes;
    return ret;
}

// Distances and memory that follow from batch, chunk and split.
static void measure(struct winograd *p)
{
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t lanes = winograd_lanes(p), cols = p->batch.cols;
    const size_t positions = winograd_vectors(p, p->batch.rows * cols);
    const size_t rows = p->batch.rows + (down->extent - 1) / down->tile;
    // Backward weight moves channels into panels as soon as there is a vector or block of them.
    size_t channels = p->shared_inputs ? p->in : p->chunk;
    if (p->weight) channels = lanes;
    p->in_plane = plane_scalars(p, channels);
    p->out_plane = plane_scalars(p, p->weight ? CONV_CHANNELS : p->oc_split);
    p->samples = size_max(along->extent * down->tile * (rows * cols + lanes),
                          down->tile * along->tile * positions) +
                 lanes;
    const size_t extent[] = {down->extent, along->extent};
    const struct winograd_window window = winograd_window(p, &p->batch, extent);
    // The last tiles of a window are read in whole vectors.
    const size_t beyond = lanes * along->tile + along->extent;
    p->rows = size_max(window.rows * window.width + beyond, positions * along->tile);
    if (p->map_lanes) {
        p->samples = winograd_map_extent(down, down->extent) *
                     winograd_map_extent(along, along->extent) * lanes;
        p->rows = winograd_map_pitch(p) * (p->channels_last ? lanes : 1);
    }
    p->stage = p->frequencies * positions;
    if (p->channels_last && !p->map_lanes)
        p->windows = size_add(size_mul(p->batch.maps, lanes * window.channel), beyond);
    const size_t out = p->transposed ? size_round_up(p->out, p->oc_block) : p->out;
    p->filter_plane = winograd_vectors(p, size_add(size_mul(p->in, out), lanes));
    measure_panels(p);
    struct arena arena = {0};
    winograd_layout_worker(p, &arena);
    p->worker = arena.used;
}

struct winograd_scratch winograd_layout_worker(const struct winograd *p, struct arena *arena)
{
    const size_t bytes = p->grid.scalar_bytes, channel = p->frequencies * bytes;
    const bool own_sums = !p->shared_panels || p->single_batch;
    const bool own_in_panel = !p->shared_panels && !p->shared_inputs;
    return (struct winograd_scratch){
        .in = arena_take(arena, p->shared_inputs ? 0 : size_mul(channel, p->in_plane)),
        .out = arena_take(arena, p->weight ? 0 : size_mul(channel, p->out_plane)),
        .samples = arena_take(arena, p->samples * bytes),
        .rows = arena_take(arena, p->rows * bytes),
        .stage = arena_take(arena, p->stage * bytes),
        .windows = arena_take(arena, size_mul(p->windows, bytes)),
        .sums = arena_take(arena, own_sums ? size_mul(p->sums, bytes) : 0),
        .in_panel = arena_take(arena, own_in_panel ? size_mul(p->in_panel, bytes) : 0),
        .out_panel = arena_take(arena, p->shared_panels ? 0 : size_mul(p->out_panel, bytes)),
    };
}

struct winograd_scratch winograd_layout_shared(const struct winograd *p, struct arena *arena)
{
    const size_t bytes = p->grid.scalar_bytes;
    const size_t panel = mem_round(size_mul(p->in_panel, bytes));
    if (p->shared_inputs)
        return (struct winograd_scratch){
            .in = arena_take(arena, size_mul(p->frequencies * bytes, p->in_plane)),
            .in_panel = arena_take(arena, size_mul(p->frequencies, panel))};
    return (struct winograd_scratch){
        .in_panel = arena_take(arena, panel),
        .out_panel = arena_take(arena, size_mul(p->out_panel, bytes)),
        .sums = arena_take(arena, p->single_batch ? 0 : size_mul(p->sums, bytes))};
}

size_t winograd_shared_bytes(const struct winograd *p)
{
    struct arena arena = {0};
    if (!p->shared_inputs && !p->shared_panels) return 0;
    winograd_layout_shared(p, &arena);
    const size_t batches = size_mul(winograd_batches(p), p->grid.groups);
    return size_mul(p->shared_inputs ? batches : p->group_chunk, arena.used);
}

static bool layout_fits(const struct winograd *p, const struct request *request)
{
    return size_add(p->worker, winograd_shared_bytes(p)) <= request->workspace_limit;
}

// Backward weight moves whole vectors of input channels and whole blocks of output channels.
static void whole_panels(struct winograd *p)
{
    p->chunk = winograd_vectors(p, p->chunk);
    p->oc_split = size_round_up(p->oc_split, CONV_CHANNELS);
    p->oc_splits = ceil_div(p->out, p->oc_split);
}

// Forward and backward data with few batches: small splits of the output channels, if there is
// capacity for all transformed inputs.
static void try_shared_inputs(struct winograd *p, const struct request *request)
{
    struct winograd shared = *p;
    const struct winograd_batch *batch = &shared.batch;
    const size_t tiles = batch->rows * batch->cols;
    if (p->oc_splits == 1) return;
    shared.shared_inputs = true;
    // A map is written in whole vectors, or a tile of all maps: the last one's must not reach a
    // channel that is another thread's.
    const size_t last = shared.map_lanes ? batch->maps : tiles;
    shared.positions =
        winograd_vectors(&shared, batch->maps * tiles - last + winograd_vectors(&shared, last));
    if (shared.transposed) shared.oc_split = 2 * shared.oc_block;
    shared.oc_splits = ceil_div(shared.out, shared.oc_split);
    measure(&shared);
    if (layout_fits(&shared, request)) *p = shared;
}

// Backward weight with shared panels, if there is capacity: where one batch has all tiles, or where
// many channels meet, so that panels and sums of each worker would exceed its cache, or tasks
// transform the same tiles again.
static bool try_shared_panels(struct winograd *p, const struct request *request)
{
    struct winograd shared = *p;
    shared.single_batch = winograd_batches(&shared) == 1 && MODE_IS_ON("winograd:single-batch");
    if (!shared.single_batch && size_max(shared.in, shared.out) <= WINOGRAD.few_channels)
        return false;
    shared.shared_panels = true;
    shared.chunk = shared.in;
    shared.oc_split = shared.out;
    whole_panels(&shared);
    measure(&shared);
    struct arena group = {0};
    winograd_layout_shared(&shared, &group);
    const size_t limit = request->workspace_limit,
                 capacity = limit - size_min(limit, shared.worker);
    const size_t groups = size_min(capacity, WINOGRAD.group_bytes) / group.used;
    shared.group_chunk = size_min(size_max(1, groups), shared.grid.groups);
    if (!layout_fits(&shared, request)) return false;
    *p = shared;
    return true;
}

// Output channels as positions, where that costs less and there is capacity.
static void try_transposed(struct winograd *p, const struct request *request)
{
    struct winograd transposed = *p;
    transposed.transposed = true;
    transposed.oc_block = 2 * winograd_lanes(p);
    transposed.chunk = transposed.in;
    transposed.oc_split = size_round_up(p->oc_split, transposed.oc_block);
    transposed.oc_splits = ceil_div(transposed.out, transposed.oc_split);
    set_batch(&transposed, transposed.batch);
    measure(&transposed);
    if (transposed.price <= WINOGRAD.transposed_gain * p->price &&
        transposed.worker <= request->workspace_limit)
        *p = transposed;
}

// Makes splits, chunk and batch smaller until a worker's memory fits.
static void fit_workspace(struct winograd *p, const struct request *request, size_t tiles)
{
    for (;;) {
        p->oc_split = size_min(p->out, size_round_up(p->oc_split, CONV_CHANNELS));
        p->oc_splits = ceil_div(p->out, p->oc_split);
        if (p->weight) whole_panels(p);
        measure(p);
        if (p->worker <= request->workspace_limit) return;
        if (p->oc_split > CONV_CHANNELS && p->oc_split * 4 > p->chunk)
            p->oc_split = (p->oc_split + 1) / 2;
        else if (p->chunk > 16) p->chunk = (p->chunk + 1) / 2;
        else if (tiles > 1) choose_batch(p, tiles = (tiles + 1) / 2);
        else if (!p->weight && p->chunk > 1) p->chunk = (p->chunk + 1) / 2;
        else return;
    }
}

// Chooses batches, chunk and splits.
static void choose_weight_layout(struct winograd *p, const struct request *request)
{
    size_t tiles = WINOGRAD.single_tiles;
    p->chunk = size_split_even(p->in, WINOGRAD.weight_channels);
    p->oc_split = size_split_even(p->out, WINOGRAD.weight_channels);
    // More tiles are several batches, which are smaller ones.
    const size_t all = size_mul(p->maps, p->grid.tiles);
    if (all <= tiles) choose_batch(p, tiles);
    if (all > tiles || winograd_batches(p) > 1) choose_batch(p, tiles = WINOGRAD.weight_tiles);
    if (!MODE_IS_ON("winograd:shared-panels") || !try_shared_panels(p, request))
        fit_workspace(p, request, tiles);
    const size_t tasks = p->grid.groups * p->oc_splits * ceil_div(p->in, p->chunk);
    const size_t limit = request->workspace_limit, capacity = limit - size_min(limit, p->worker);
    p->k_splits = p->shared_panels ? 1
                                   : split_k_count(request->shape, WINOGRAD.weight_tasks, tasks,
                                                   winograd_batches(p), capacity);
}

// Channels of even parts, whole vectors, of at most `max` channels, which is whole vectors.
static size_t split_vectors(const struct winograd *p, size_t channels, size_t max)
{
    return size_min(channels, winograd_vectors(p, size_split_even(channels, max)));
}

static void choose_layout(struct winograd *p, const struct request *request)
{
    // Every batch reads the taps again, and larger batches leave the caches: both move as many
    // bytes where tiles * (in + out) = in * out.
    const double balanced =
        WINOGRAD.batch_gain * (double)p->in * (double)p->out / (double)(p->in + p->out);
    size_t max_tiles =
        (size_t)fmin(fmax(balanced, (double)WINOGRAD.min_tiles), (double)WINOGRAD.max_tiles);
    p->chunk = split_vectors(p, p->in, WINOGRAD_TERMS);
    p->oc_split = p->out;
    choose_batch(p, max_tiles);
    size_t tasks = size_mul(winograd_batches(p), p->grid.groups), least = WINOGRAD.min_channels;
    // A lone task becomes two, of fewer tiles or else of fewer channels.
    if (tasks == 1 && p->out <= least) {
        choose_batch(p, max_tiles = WINOGRAD.min_tiles);
        tasks = winograd_batches(p);
        if (tasks == 1) least /= 2;
    }
    if (tasks < WINOGRAD.min_tasks && p->out > least) {
        const size_t max = ceil_div(p->out * tasks, WINOGRAD.min_tasks);
        p->oc_split = size_max(least, size_split_even(p->out, max));
    }
    fit_workspace(p, request, max_tiles);
    if (MODE_IS_ON("winograd:transposed")) try_transposed(p, request);
    if (MODE_IS_ON("winograd:shared-inputs")) try_shared_inputs(p, request);
    p->segment = p->transposed ? p->in : split_vectors(p, p->chunk, WINOGRAD_TERMS);
}

void winograd_layout(const struct request *request, const struct winograd_split *split,
                     struct winograd *ret)
{
    const struct shape *shape = request->shape;
    const bool data = request->direction == PARTITA_BACKWARD_DATA;
    *ret = (struct winograd){.grid = split->grid,
                             .weight = request->direction == PARTITA_BACKWARD_WEIGHT,
                             .channels_last = shape->channels_last,
                             .strides = {shape_strides(shape, data), shape_strides(shape, !data)},
                             .in = split->in,
                             .out = split->out,
                             .frequencies = split->frequencies,
                             .maps = size_mul(split->grid.images, split->grid.batch),
                             .oc_block = CONV_CHANNELS};
    const double pairs = (double)split->in * (double)split->out;
    const size_t rows = winograd_axis(ret, 0)->tile; // of samples in a row of tiles
    ret->row_price = WINOGRAD.row * (double)rows * (double)(split->in + split->out) /
                     (pairs * (double)split->frequencies);
    if (ret->weight) choose_weight_layout(ret, request);
    else choose_layout(ret, request);
    assert(ret->oc_split * ret->oc_splits >= ret->out);
    assert(ret->positions % winograd_lanes(ret) == 0);
    assert(ret->positions >= ret->batch.maps * ret->batch.rows * ret->batch.cols);
}
