// SPDX-License-Identifier: MIT
// The layout of cpu/winograd: batches of tiles, splits of channels, and the memory that they take.
// Everything is chosen by shape, workspace limit and the rate of a row.
#include <assert.h>
#include <math.h>

#include "winograd.h"

// The price of a batch of maps, rows and columns of tiles; transposed, of eights of tiles times
// blocks of channels. Rows of samples are copied and stored one by one.
static double batch_price(const struct winograd *p, const size_t size[3])
{
    // Lanes are a constant here: this is called for every batch that is tried.
    const bool f64 = p->grid.scalar_bytes == sizeof(double);
    const size_t tiles = size[0] * size[1] * size[2];
    const double rows = p->row_price * (double)(size[0] * size[1]);
    if (!p->transposed)
        return rows + (double)(f64 ? ceil_div(tiles, CONV_BLOCK_BYTES / sizeof(double))
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
    const struct tile_axis *depth = winograd_axis(p, WINOGRAD_DEPTH);
    if (!MODE_IS_ON("winograd:map-lanes") || p->grid.images > 1 || p->grid.branches > 1 ||
        depth->extent * depth->in.size * depth->out.size > 1 ||
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
    const size_t tiles = size[1] * size[2];
    p->batch = (struct winograd_batch){size[0], size[1], size[2]};
    for (int a = 0; a < 3; a++) p->batches[a] = ceil_div(count[a], size[a]);
    p->price = batches_price(p, count, size);
    p->map_lanes = suits_map_lanes(p);
    // A map is written in whole vectors, or a tile of all maps: the last one's must not reach a
    // channel that is another thread's.
    const size_t last = p->map_lanes ? size[0] : tiles;
    p->positions = winograd_vectors(p, size[0] * tiles - last + winograd_vectors(p, last));
}

// The cheapest batch of a search, the larger one if equal.
struct best_batch {
    size_t size[3], tiles;
    double price;
};

// A lower bound of the price comes first: the batches inside, and the vectors of all tiles that are
// left. The factor is for roundings.
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

// So many channels of transformed tiles and capacity after the last one's last vector: an odd
// number of blocks, so that frequencies do not fall into the same sets of the cache.
static size_t plane_scalars(const struct winograd *p, size_t channels, size_t positions)
{
    const size_t lanes = winograd_lanes(p);
    return size_mul((size_mul(channels, positions / lanes) + 1) | 1, lanes);
}

// Windows of all maps of a batch, of the channels that are moved together; 0: rows of the array are
// used.
static size_t window_scalars(const struct winograd *p, bool outputs)
{
    const size_t lanes = winograd_lanes(p), position = p->strides[outputs].position;
    const struct tile_axis *along = winograd_axis(p, 1), *depth = winograd_axis(p, WINOGRAD_DEPTH);
    const size_t results = depth->extent > 1 ? depth->extent : 0;
    if (p->map_lanes) return winograd_map_pitch(p) * (position > 1 ? lanes : 1);
    if (tile_side(along, outputs)->step * position == 1 && !p->half && !results) return 0;
    const struct winograd_window window = winograd_window(p, &p->batch, outputs);
    // The last tiles of a window are read in whole vectors.
    const size_t planes = outputs ? depth->tile : depth->extent;
    const size_t windows = p->batch.maps * planes * (position > 1 ? lanes : 1) + results;
    return size_add(size_mul(windows, window.channel), lanes * along->tile + along->extent);
}

// Distances and memory that follow from batch, chunk and split.
static void measure(struct winograd *p)
{
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t lanes = winograd_lanes(p), cols = p->batch.cols;
    const size_t rows = p->batch.rows + (down->extent - 1) / down->tile;
    const size_t out = p->transposed ? size_round_up(p->out, p->oc_block) : p->out;
    p->strip = p->chunk;
    p->steps = ceil_div(p->in, p->chunk);
    if (!p->shared) p->oc_step = p->oc_split;
    p->rounds[0] = p->grid.groups;
    p->rounds[1] = p->weight ? ceil_div(p->in, p->chunk) : 1;
    p->rounds[2] = ceil_div(p->out, p->oc_split);
    if (p->weight) {
        p->strip = size_min(WINOGRAD.strip_vectors * lanes, p->chunk);
        p->steps = ceil_div(winograd_batches(p), p->k_splits);
        p->oc_step =
            size_min(p->oc_split, p->steps > 1 ? WINOGRAD.weight_channels : WINOGRAD.near_outputs);
        p->out_plane = plane_scalars(p, winograd_vectors(p, p->oc_split), p->positions);
        // Taps of a strip on their way from the sums.
        p->tiles_plane =
            size_max(plane_scalars(p, lanes, p->positions), 2 * CONV_CHANNELS * p->strip);
    }
    p->in_plane = plane_scalars(p, size_round_up(p->chunk, p->strip), p->positions);
    p->sums_plane = plane_scalars(p, p->oc_step, p->weight ? p->strip : p->positions);
    p->rows_sums = p->transposed ? size_mul(p->positions, winograd_rows_pitch(p)) : 0;
    p->samples = p->map_lanes ? winograd_map_extent(down, down->extent) *
                                    winograd_map_extent(along, along->extent) * lanes
                              : along->extent * down->tile * (rows * cols + lanes) + lanes;
    p->windows = size_max(window_scalars(p, false), window_scalars(p, true));
    p->stage = down->extent * along->extent * winograd_vectors(p, p->batch.rows * cols);
    p->filter_plane = winograd_vectors(p, size_add(size_mul(p->in, out), lanes));
    struct arena worker = {0}, common = {0};
    winograd_scratch(p, &worker, &common);
    p->worker = worker.used;
    p->common = common.used;
}

struct winograd_scratch winograd_scratch(const struct winograd *p, struct arena *worker,
                                         struct arena *common)
{
    const size_t bytes = p->grid.scalar_bytes, channel = p->frequencies * bytes;
    struct arena *round = p->shared ? common : worker;
    const size_t products = ceil_div(p->chunk, p->strip) * ceil_div(p->oc_split, p->oc_step);
    const size_t sums = size_mul(channel, p->sums_plane);
    return (struct winograd_scratch){
        .in = arena_take(round, size_mul(channel, p->in_plane)),
        .out = arena_take(round, size_mul(channel, p->out_plane)),
        .sums =
            p->steps > 1 ? arena_take(round, size_mul(products, sums)) : arena_take(worker, sums),
        .rows_sums = arena_take(worker, size_mul(p->rows_sums, bytes)),
        .tiles = arena_take(worker, size_mul(channel, p->tiles_plane)),
        .samples = arena_take(worker, size_mul(p->samples, bytes)),
        .windows = arena_take(worker, size_mul(p->windows, bytes)),
        .stage = arena_take(worker, size_mul(p->stage, bytes)),
    };
}

static bool layout_fits(const struct winograd *p, const struct request *request)
{
    return size_add(p->worker, p->common) <= request->workspace_limit;
}

// Rounds of all channels that threads share, products of oc_step output channels each in forward
// and backward data, if there is capacity.
static bool try_shared(struct winograd *p, const struct request *request, size_t oc_step)
{
    struct winograd shared = *p;
    shared.shared = true;
    shared.chunk = p->weight ? winograd_vectors(p, p->in) : p->in;
    shared.oc_split = p->out;
    shared.oc_step = oc_step;
    measure(&shared);
    if (!MODE_IS_ON("winograd:shared") || !layout_fits(&shared, request)) return false;
    *p = shared;
    return true;
}

// Output channels along the vectors, where that costs less and there is capacity.
static void try_transposed(struct winograd *p, const struct request *request)
{
    struct winograd transposed = *p;
    transposed.transposed = true;
    transposed.oc_block = 2 * winograd_lanes(p);
    transposed.chunk = transposed.in;
    transposed.oc_split = size_round_up(p->oc_split, transposed.oc_block);
    set_batch(&transposed, transposed.batch);
    measure(&transposed);
    if (MODE_IS_ON("winograd:transposed") &&
        transposed.price <= WINOGRAD.transposed_gain * p->price &&
        layout_fits(&transposed, request))
        *p = transposed;
}

// Makes splits, chunk and batch smaller until a worker's memory fits.
static void fit_workspace(struct winograd *p, const struct request *request, size_t tiles)
{
    for (;;) {
        p->oc_split = size_min(p->out, size_round_up(p->oc_split, CONV_CHANNELS));
        if (p->weight) p->chunk = winograd_vectors(p, p->chunk);
        measure(p);
        if (layout_fits(p, request)) return;
        if (p->oc_split > CONV_CHANNELS && p->oc_split * 4 > p->chunk)
            p->oc_split = (p->oc_split + 1) / 2;
        else if (p->chunk > 16) p->chunk = (p->chunk + 1) / 2;
        else if (tiles > 1) choose_batch(p, tiles = (tiles + 1) / 2);
        else if (!p->weight && p->chunk > 1) p->chunk = (p->chunk + 1) / 2;
        else return;
    }
}

// Batches, channels of rounds, and splits of the batches of backward weight. Threads share rounds
// of all channels where these are few, since one batch has all tiles, or where many channels meet,
// so that operands and sums of each worker would exceed its cache, or rounds transform the same
// tiles again.
static void choose_weight_layout(struct winograd *p, const struct request *request)
{
    size_t tiles = WINOGRAD.single_tiles;
    p->chunk = size_split_even(p->in, WINOGRAD.weight_channels);
    p->oc_split = size_split_even(p->out, WINOGRAD.weight_channels);
    // More tiles are several batches, which are smaller ones.
    const size_t all = size_mul(p->maps, p->grid.tiles);
    if (all <= tiles) choose_batch(p, tiles);
    if (all > tiles || winograd_batches(p) > 1) choose_batch(p, tiles = WINOGRAD.weight_tiles);
    if ((winograd_batches(p) == 1 && p->grid.groups < WINOGRAD.min_tasks) ||
        size_max(p->in, p->out) > WINOGRAD.few_channels) {
        if (try_shared(p, request, p->out)) return;
    }
    fit_workspace(p, request, tiles);
    const size_t batches = winograd_batches(p), limit = request->workspace_limit;
    const size_t splits =
        split_k_count(request->shape, WINOGRAD.min_tasks, winograd_batch_rounds(p), batches,
                      limit - size_min(limit, p->worker));
    p->k_splits = ceil_div(batches, ceil_div(batches, splits));
    measure(p);
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
    size_t least = WINOGRAD.min_channels;
    // A lone round becomes two, of fewer tiles, or else two tasks of fewer channels.
    if (winograd_batches(p) * p->grid.groups == 1 && p->out <= least) {
        choose_batch(p, max_tiles = WINOGRAD.min_tiles);
        if (winograd_batches(p) == 1) least /= 2;
    }
    fit_workspace(p, request, max_tiles);
    try_transposed(p, request);
    if (size_mul(winograd_batches(p), p->grid.groups) < WINOGRAD.min_tasks && p->out > least) {
        const size_t split =
            size_max(least, size_split_even(p->out, ceil_div(p->out, WINOGRAD.min_tasks)));
        try_shared(p, request,
                   p->transposed ? 2 * p->oc_block : size_round_up(split, CONV_CHANNELS));
    }
    p->segment = p->transposed ? p->in : split_vectors(p, p->chunk, WINOGRAD_TERMS);
}

void winograd_layout(const struct request *request, const struct winograd_split *split,
                     struct winograd *ret)
{
    const struct shape *shape = request->shape;
    const struct tile_axis *depth = &split->grid.axis[0];
    const bool data = request->direction == PARTITA_BACKWARD_DATA;
    *ret = (struct winograd){.grid = split->grid,
                             .weight = request->direction == PARTITA_BACKWARD_WEIGHT,
                             .strides = {shape_strides(shape, data), shape_strides(shape, !data)},
                             .in = split->in,
                             .out = split->out,
                             .frequencies = split->frequencies,
                             .maps = size_mul(split->grid.images * depth->tiles, split->grid.batch),
                             .k_splits = 1,
                             .half = shape->half,
                             .oc_block = CONV_CHANNELS};
    const struct work *rates = &request->model->costs[shape->f64].work;
    const double vectors = 2 * rates->row / rates->fma / (double)winograd_lanes(ret);
    const double pairs = (double)split->in * (double)split->out * (double)split->frequencies;
    const size_t rows = winograd_axis(ret, 0)->tile * depth->extent; // of samples in a row of tiles
    ret->grid.tiles /= depth->tiles;                                 // of a map
    ret->row_price = vectors * (double)rows * (double)(split->in + split->out) / pairs;
    if (ret->weight) choose_weight_layout(ret, request);
    else choose_layout(ret, request);
    assert(ret->positions % winograd_lanes(ret) == 0 && ret->steps > 0);
    assert(!ret->weight || ret->chunk % winograd_lanes(ret) == 0);
    assert(ret->positions >= ret->batch.maps * ret->batch.rows * ret->batch.cols);
}
