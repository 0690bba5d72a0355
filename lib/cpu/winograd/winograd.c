// SPDX-License-Identifier: MIT
// cpu/winograd: layers by minimal filtering, F(m x m, r x r): tiles of m outputs along an axis cost
// m + r - 1 products where the defining sum takes m r. This file chooses tiles and blocks;
// winograd_tiles.c deals samples out to tiles, winograd_run.c runs forward and backward data,
// winograd_weight.c backward weight, F(r x r, m x m). Stride is polyphase, dilation sub-images
// (tile_grid.h), so both are served with the taps that are left. Source: Lavin & Gray, Fast
// algorithms for convolutional neural networks (2015); winograd_matrix.h.
#include "winograd.h"
#include "base/sizes.h"

#include <math.h>
#include <stdio.h>

enum {
    MOST_TILES = 256,   // of a block
    WEIGHT_TILES = 128, // the same of several in backward weight, whose panels are to stay near
    ENOUGH_TILES = 96,  // share a pass over the transformed taps
    ENOUGH_BYTES = 16 << 20, // of groups that threads are at together, where a group is less
    MOST_BYTES = 2 << 20,    // of a block's transformed inputs and outputs, where there is a choice
    ENOUGH_TASKS = 4,        // so many are worth transforming the same inputs again ..
    LEAST_CHANNELS = 16 * CONV_CHANNELS, // .. for so many output channels
    FEW_CHANNELS = 128,  // a block of so many is too little work for threads to wait for each other
    MOST_MAPS = 1 << 20, // of one item: images of a dilated layer
    STRIP = 4, // vectors of channels side by side in panels, two and two for kernels->conv
};

// Vectors of positions at the price of a vector of a full rectangle of kernels->conv, three of
// them.
static double price(size_t vectors)
{
    static const double rest[] = {0, 1.4, 2.3};
    return (double)(vectors / 3 * 3) + rest[vectors % 3];
}

// Blocks along an axis of `count` tiles or maps, up to `most` in each; their number.
static size_t cut_axis(size_t count, size_t *most)
{
    *most = size_min(*most, count);
    return ceil_div(count, *most);
}

// The price of a block of so many tiles; turned, of eights of tiles times panels of output
// channels.
static double price_of(const struct winograd *winograd, size_t tiles)
{
    const size_t lanes = CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
    if (!winograd->turned) return price(ceil_div(tiles, lanes));
    return (double)(ceil_div(tiles, CONV_CHANNELS) * CONV_CHANNELS) / (double)lanes *
           (double)(ceil_div(winograd->out, winograd->width) * winograd->width) /
           (double)winograd->out;
}

static double price_of_blocks(struct winograd *winograd, struct winograd_block block)
{
    winograd->most = block;
    winograd->blocks[0] = cut_axis(winograd->maps, &winograd->most.maps);
    winograd->blocks[1] = cut_axis(winograd_axis(winograd, 0)->tiles, &winograd->most.rows);
    winograd->blocks[2] = cut_axis(winograd_axis(winograd, 1)->tiles, &winograd->most.cols);
    const struct winograd_block *most = &winograd->most;
    winograd->positions = winograd_positions(winograd, most->maps * most->rows * most->cols);
    double sum = 0;
    // The blocks within and those at the ends of each axis.
    for (int ends = 0; ends < 8; ends++) {
        const size_t count[3] = {winograd->maps, winograd_axis(winograd, 0)->tiles,
                                 winograd_axis(winograd, 1)->tiles};
        const size_t of[3] = {most->maps, most->rows, most->cols};
        size_t tiles = 1, blocks = 1;
        for (int a = 0; a < 3; a++) {
            const bool end = ends >> a & 1;
            tiles *= end ? count[a] % of[a] : of[a];
            blocks *= end ? 1 : count[a] / of[a];
        }
        sum += (double)blocks * price_of(winograd, tiles);
    }
    return sum;
}

// The blocks of at most so many tiles that cost least; the larger one in doubt.
static double cut_blocks(struct winograd *winograd, size_t most_tiles)
{
    const size_t rows = winograd_axis(winograd, 0)->tiles, cols = winograd_axis(winograd, 1)->tiles;
    struct winograd_block best = {1, 1, 1};
    double best_price = INFINITY;
    for (size_t parts = 1; parts <= 8; parts++) {
        struct winograd_block block = {
            1, 1, size_split_even(cols, size_min(ceil_div(cols, parts), most_tiles))};
        for (block.rows = 1; block.rows <= rows && block.rows * block.cols <= most_tiles;
             block.rows++)
            for (block.maps = 1; block.maps <= winograd->maps; block.maps++) {
                if (block.maps > 1 && (block.rows < rows || block.cols < cols)) break;
                if (block.maps * block.rows * block.cols > most_tiles) break;
                const double now = price_of_blocks(winograd, block);
                const size_t tiles = block.maps * block.rows * block.cols;
                if (now > best_price ||
                    (now == best_price && tiles <= best.maps * best.rows * best.cols))
                    continue;
                best_price = now;
                best = block;
            }
        if (ceil_div(cols, parts) <= 1) break;
    }
    return price_of_blocks(winograd, best);
}

// Panels and sums of backward weight; turned, those of one frequency.
static void measure_panels(struct winograd *winograd, bool weight)
{
    const size_t lanes = CONV_BLOCK_BYTES / winograd->grid.scalar_bytes,
                 strip = size_min(STRIP * lanes, winograd->chunk);
    winograd->sums = winograd->in_panel = winograd->out_panel = 0;
    if (winograd->turned) {
        winograd->in_panel = size_add(size_mul(winograd->positions, winograd->chunk), lanes);
        winograd->out_panel = size_mul(winograd->positions, winograd->part);
    }
    if (!weight) return;
    const size_t strips = ceil_div(winograd->chunk, strip),
                 blocks = ceil_div(winograd->part, CONV_CHANNELS);
    const size_t samples = size_mul(winograd->frequencies, winograd->positions);
    winograd->strip = strip;
    winograd->held = winograd->once ? size_min(WINOGRAD_HELD, blocks) : blocks;
    winograd->in_panel = size_mul(samples, strips * strip);
    winograd->out_panel = size_mul(samples, blocks * CONV_CHANNELS);
    winograd->sums = size_mul(winograd->frequencies * CONV_CHANNELS,
                              (winograd->once ? 1 : strips) * strip * winograd->held);
    // Taps of a strip and block on their way from the sums.
    winograd->in_plane = size_max(winograd->in_plane, 2 * CONV_CHANNELS * strip);
}

// So many channels of transformed tiles and room behind the last one's last vector: an odd number
// of lines, so that frequencies do not meet in the same sets of the cache.
static size_t plane_of(const struct winograd *winograd, size_t channels)
{
    const size_t lanes = CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
    return size_mul((size_mul(channels, winograd->positions / lanes) + 1) | 1, lanes);
}

// Distances and scratch that follow from blocks, chunk and part.
static void measure(struct winograd *winograd, bool weight)
{
    const struct tile_axis *down = winograd_axis(winograd, 0), *along = winograd_axis(winograd, 1);
    const size_t bytes = winograd->grid.scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t rows = winograd->most.rows, cols = winograd->most.cols;
    const size_t positions = winograd_positions(winograd, rows * cols);
    // Backward weight turns channels over as soon as there is a vector or block of them.
    winograd->in_plane = plane_of(winograd, weight             ? lanes
                                            : winograd->shares ? winograd->in
                                                               : winograd->chunk);
    winograd->out_plane = plane_of(winograd, weight ? CONV_CHANNELS : winograd->part);
    const size_t lines = rows + (down->extent - 1) / down->tile;
    winograd->dealt =
        size_max(along->extent * down->tile * winograd_residue(winograd, lines, cols) + lanes,
                 down->tile * along->tile * positions + lanes);
    winograd->joined = winograd_positions(winograd, lines * cols) * along->tile;
    winograd->between = winograd->frequencies * positions;
    const size_t out = winograd->turned
                           ? size_mul(ceil_div(winograd->out, winograd->width), winograd->width)
                           : winograd->out;
    winograd->filter_plane =
        winograd_positions(winograd, size_add(size_mul(winograd->in, out), lanes));
    measure_panels(winograd, weight);
    const size_t both = size_add(winograd->shares ? 0 : winograd_inputs_bytes(winograd),
                                 winograd_outputs_bytes(winograd));
    winograd->worker =
        size_add(both, mem_round(winograd->dealt * bytes) + mem_round(winograd->joined * bytes) +
                           mem_round(winograd->between * bytes));
    if (!winograd->together || winograd->once)
        winograd->worker = size_add(winograd->worker, mem_round(size_mul(winograd->sums, bytes)));
    if (winograd->shares)
        winograd->worker = size_add(winograd->worker, mem_round(winograd->out_panel * bytes));
    else if (!winograd->together)
        winograd->worker = size_add(winograd->worker, winograd_panels_bytes(winograd));
}

// Backward weight turns whole vectors of input channels and whole blocks of output channels.
static void whole_panels(struct winograd *winograd)
{
    winograd->chunk = winograd_positions(winograd, winograd->chunk);
    winograd->part = ceil_div(winograd->part, CONV_CHANNELS) * CONV_CHANNELS;
    winograd->parts = ceil_div(winograd->out, winograd->part);
}

// Bytes that the threads of a call share, runs aside.
static size_t shared_bytes(const struct winograd *winograd)
{
    const size_t groups = winograd->grid.groups;
    if (winograd->shares)
        return size_mul(size_mul(winograd_blocks(winograd), groups),
                        winograd_shared_bytes(winograd));
    return winograd->together ? size_mul(winograd->at_once, winograd_together_bytes(winograd)) : 0;
}

static bool fits(const struct winograd *winograd, const struct request *request)
{
    return size_add(winograd->worker, shared_bytes(winograd)) <= request->workspace_limit;
}

// Forward and backward data, few blocks: small parts of the output channels, with room for all
// transformed inputs.
static void share(struct winograd *winograd, const struct request *request)
{
    struct winograd shares = *winograd;
    const struct winograd_block *most = &shares.most;
    const size_t tiles = most->rows * most->cols;
    if (winograd->parts == 1) return;
    shares.shares = true;
    // A map is written in whole vectors: the last one's must not reach a channel that is another
    // thread's.
    shares.positions =
        winograd_positions(&shares, (most->maps - 1) * tiles + winograd_positions(&shares, tiles));
    if (shares.turned) shares.part = 2 * shares.width;
    shares.parts = ceil_div(shares.out, shares.part);
    measure(&shares, false);
    if (fits(&shares, request)) *winograd = shares;
}

// Backward weight by all threads together, if there is room: where one block has all tiles, or many
// channels meet, so that panels and sums of each thread's own would not stay near, or tasks
// transform the same tiles again.
static bool cut_together(struct winograd *winograd, const struct request *request)
{
    struct winograd together = *winograd;
    together.once = winograd_blocks(&together) == 1;
    if (!together.once && size_max(together.in, together.out) <= FEW_CHANNELS) return false;
    together.together = true;
    together.chunk = together.in;
    together.part = together.out;
    whole_panels(&together);
    measure(&together, true);
    const size_t left =
        request->workspace_limit - size_min(request->workspace_limit, together.worker);
    together.at_once =
        size_max(1, size_min(left, ENOUGH_BYTES) / winograd_together_bytes(&together));
    together.at_once = size_min(together.at_once, together.grid.groups);
    if (!fits(&together, request)) return false;
    *winograd = together;
    return true;
}

// Output channels as positions, where that costs less and there is room; returns the price.
static double turn(struct winograd *winograd, const struct request *request, double cost)
{
    struct winograd turned = *winograd;
    turned.turned = true;
    turned.width = 2 * CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
    turned.chunk = turned.in;
    turned.part = ceil_div(turned.part, turned.width) * turned.width;
    turned.parts = ceil_div(turned.out, turned.part);
    const double turned_cost = price_of_blocks(&turned, turned.most);
    measure(&turned, false);
    // Moving tiles into panels and back costs a little.
    if (turned_cost > 0.85 * cost || turned.worker > request->workspace_limit) return cost;
    *winograd = turned;
    return turned_cost;
}

// Blocks, chunk and part within a limit of bytes; returns the price of all blocks.
static double cut(struct winograd *winograd, const struct request *request)
{
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t channel = winograd->frequencies * winograd->grid.scalar_bytes;
    const size_t usual =
        MOST_BYTES / (channel * (size_min(winograd->in, WINOGRAD_TERMS) + winograd->out));
    size_t tiles = size_min(MOST_TILES, size_max(usual, ENOUGH_TILES));
    winograd->chunk =
        size_split_even(winograd->in, weight ? WINOGRAD_WEIGHT_CHANNELS : WINOGRAD_TERMS);
    winograd->width = CONV_CHANNELS;
    winograd->part =
        size_split_even(winograd->out, weight ? WINOGRAD_WEIGHT_CHANNELS : winograd->out);
    if (weight) tiles = MOST_TILES;
    double cost = cut_blocks(winograd, tiles);
    if (weight && winograd_blocks(winograd) > 1) cost = cut_blocks(winograd, tiles = WEIGHT_TILES);
    if (weight && cut_together(winograd, request)) return cost;
    const size_t tasks = size_mul(winograd_blocks(winograd), winograd->grid.groups);
    if (!weight && tasks < ENOUGH_TASKS && winograd->out > LEAST_CHANNELS)
        winograd->part =
            size_max(LEAST_CHANNELS,
                     size_split_even(winograd->out, ceil_div(winograd->out * tasks, ENOUGH_TASKS)));
    for (;;) {
        winograd->part =
            size_min(winograd->out, ceil_div(winograd->part, CONV_CHANNELS) * CONV_CHANNELS);
        winograd->parts = ceil_div(winograd->out, winograd->part);
        if (weight) whole_panels(winograd);
        measure(winograd, weight);
        if (winograd->worker <= request->workspace_limit) break;
        if (winograd->part > CONV_CHANNELS && winograd->part * 4 > winograd->chunk)
            winograd->part = (winograd->part + 1) / 2;
        else if (winograd->chunk > 16) winograd->chunk = (winograd->chunk + 1) / 2;
        else if (tiles > 1) cost = cut_blocks(winograd, tiles = (tiles + 1) / 2);
        else if (!weight && winograd->chunk > 1) winograd->chunk = (winograd->chunk + 1) / 2;
        else break;
    }
    if (weight) return cost;
    cost = turn(winograd, request, cost);
    share(winograd, request);
    return cost;
}

// Backward weight: runs of blocks, if there are too few tasks without and room for their sums.
static void cut_runs(struct winograd *winograd, const struct request *request)
{
    const struct shape *shape = request->shape;
    const size_t blocks = winograd_blocks(winograd);
    const size_t tasks = shape->groups * winograd->parts * ceil_div(winograd->in, winograd->chunk);
    const size_t left = request->workspace_limit > winograd->worker
                            ? request->workspace_limit - winograd->worker
                            : 0;
    winograd->run_bytes = mem_round(size_mul(size_mul(shape->out_channels, shape->group_in),
                                             shape_taps(shape) * shape->scalar_bytes));
    // The first run sums in the caller's gw.
    winograd->runs = winograd->together ? 1
                                        : size_min(size_min(ceil_div(ENOUGH_TASKS, tasks), blocks),
                                                   1 + left / winograd->run_bytes);
}

// Multiply-adds of a vector in each transform of a whole tile, roughly: rows of half as many terms
// as an extent.
static double transform_work(const size_t from[AXES], const size_t to[AXES],
                             const size_t extent[AXES])
{
    const double first = extent[0] > 1 ? (double)(from[1] * to[0] * extent[0]) / 2 : 0;
    const double second = extent[1] > 1 ? (double)(to[0] * to[1] * extent[1]) / 2 : 0;
    return first + second;
}

// Samples that pass through memory nearby: read and written at each step.
static double moved(const struct winograd_both *both)
{
    return (double)(both->from[0] * both->from[1] + both->to[0] * both->from[1] +
                    both->to[0] * both->to[1]);
}

// What a scalar of transformed tiles takes more, written and read again, where a block of them does
// not fit a core's cache: half way between the caches and memory, for part of it is still near.
static double distance_seconds(const struct winograd *winograd, const struct request *request)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double scalars = (double)(winograd->in + winograd->out) *
                           (double)(winograd->frequencies * winograd->positions);
    const bool far =
        scalars * (double)request->shape->scalar_bytes > (double)request->model->cache_bytes;
    return far ? fmax(0, costs->copy_far - costs->copy) / 2 : 0;
}

static double transform_seconds(const struct winograd *winograd, const struct cost_rates *costs,
                                bool outputs)
{
    const struct winograd_both both =
        outputs ? winograd_of_output(winograd) : winograd_of_input(winograd);
    const struct tile_axis *down = winograd_axis(winograd, 0), *along = winograd_axis(winograd, 1);
    const size_t lanes = CONV_BLOCK_BYTES / winograd->grid.scalar_bytes;
    // Rows are dealt out and collected by shuffles where tiles are 2 or 4 apart, else sample by
    // sample.
    const bool vectors = along->tile <= 4 && along->tile != 3;
    const double dealt = (double)(down->tile * (outputs ? along->tile : along->extent));
    const double spilled =
        down->extent * along->extent > 36 ? 2 : 1; // 48 and 64 vectors do not stay in registers
    return spilled * (transform_work(both.from, both.to, both.extent) * costs->fma +
                      moved(&both) * costs->copy) +
           dealt * (vectors ? 2 * costs->copy : (double)lanes * costs->fma);
}

// Seconds and error of what was cut; `blocks` is the price of all blocks in vectors.
static void account(const struct winograd *winograd, const struct request *request, double blocks,
                    struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const double lanes = (double)(CONV_BLOCK_BYTES / shape->scalar_bytes),
                 groups = (double)shape->groups;
    const double pairs =
        groups * (double)winograd->in * (double)winograd->out * (double)winograd->frequencies;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double n_blocks =
        (double)(winograd->blocks[0] * winograd->blocks[1]) * (double)winograd->blocks[2];
    const struct winograd_block *most = &winograd->most; // transforms fill vectors map by map
    const double mapped = (double)(winograd->maps) *
                          (double)(winograd->blocks[1] * winograd->blocks[2]) *
                          (double)winograd_positions(winograd, most->rows * most->cols);
    const double in = (double)winograd->in * (winograd->shares ? 1 : (double)winograd->parts),
                 out = (double)winograd->out *
                       (weight ? (double)ceil_div(winograd->in, winograd->chunk) : 1);
    const double each =
        1.1 *
        (1 + 5 / (double)winograd->grid.tiles); // few tiles a map: what a map takes weighs more
    const double products = pairs * blocks * lanes * costs->fma * each;
    // Every block reads all transformed taps, while products go on; from memory, if they do not fit
    // into the caches.
    const bool far = pairs * (double)shape->scalar_bytes > (double)request->model->shared_bytes / 2;
    const double taps = pairs * n_blocks * (far ? costs->copy_far / 2 : costs->copy / 4);
    ret->applicable = true;
    ret->flops = 2 * pairs * (double)winograd->maps * (double)winograd->grid.tiles;
    ret->seconds = fmax(products, taps) + groups * mapped *
                                              (in * transform_seconds(winograd, costs, false) +
                                               out * transform_seconds(winograd, costs, true));
    ret->seconds += groups * mapped * (in + out) * (double)winograd->frequencies *
                    distance_seconds(winograd, request);
    if (weight) { // sums are read and written for every block, where they are not nearby, and
                  // transformed once
        const struct winograd_both sums = winograd_of_tap_sums(winograd);
        const double far_sums = winograd->once ? 0 : pairs * n_blocks;
        ret->seconds +=
            (far_sums + pairs / (double)winograd->frequencies * moved(&sums)) * costs->copy;
    }
    ret->seconds += memory_seconds(request->model, shape);
    ret->error = winograd_error(&winograd->grid, shape->f64,
                                weight ? (double)winograd->grid.tiles * (double)winograd->maps
                                       : (double)winograd->in);
    ret->worker = winograd->worker;
    ret->shared =
        size_add(weight ? (winograd->runs - 1) * winograd->run_bytes : 0, shared_bytes(winograd));
    ret->hop = most->maps * most->rows * most->cols;
    ret->bytes =
        size_add(winograd->worker, size_mul(size_mul(winograd->filter_plane, winograd->frequencies),
                                            shape->groups * shape->scalar_bytes));
}

// Extents by number: 0 leaves an axis alone.
static const size_t extents[] = {1, 4, 6, 8};
enum { EXTENTS = sizeof extents / sizeof *extents, VARIANTS = EXTENTS * EXTENTS };

// The plan of one variant, a pair of extents; false if it has none.
static bool decide(const struct request *request, int variant, struct winograd *ret,
                   struct estimate *estimate)
{
    const size_t edge[AXES] = {extents[variant / EXTENTS], extents[variant % EXTENTS]};
    size_t tile[3] = {1, 1, 1};
    *ret = (struct winograd){.frequencies = edge[0] * edge[1]};
    if (!tile_grid_make(request->shape, request->direction, &ret->grid)) return false;
    for (int a = 0; a < AXES; a++) {
        const size_t taps = winograd_axis(ret, a)->taps;
        if (taps >= edge[a] && !(taps == 1 && edge[a] == 1)) return false;
        if (taps == 1 && edge[a] > 1) return false;
        tile[FIRST_AXIS + a] = edge[a] + 1 - taps;
    }
    if (ret->frequencies == 1 || ret->grid.images > MOST_MAPS) return false;
    tile_grid_split(&ret->grid, tile);
    const struct tile_grid *grid = &ret->grid;
    if (grid->tiles == 0) return false;
    ret->in = grid->in * (grid->phases_out ? 1 : grid->phases);
    ret->out = grid->out * (grid->phases_out ? grid->phases : 1);
    ret->maps = size_mul(grid->images, grid->batch);
    const double blocks = cut(ret, request);
    if (request->direction == PARTITA_BACKWARD_WEIGHT) cut_runs(ret, request);
    *estimate = (struct estimate){.variant = variant, .transform = size_max(edge[0], edge[1])};
    account(ret, request, blocks, estimate);
    snprintf(estimate->summary, sizeof estimate->summary, "F(%zux%zu,%zux%zu)", tile[1], tile[2],
             winograd_axis(ret, 0)->taps, winograd_axis(ret, 1)->taps);
    return true;
}

static void winograd_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    double least_error = INFINITY;
    if (shape->stream || shape->complex_signal) {
        snprintf(ret->reason, sizeof ret->reason, "runs layers of real types alone");
        return;
    }
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct winograd winograd;
        struct estimate estimate;
        if (!decide(request, variant, &winograd, &estimate)) continue;
        if (request->transform && estimate.transform != request->transform) continue;
        least_error = fmin(least_error, estimate.error);
        if (estimate.error > winograd_budget(request)) continue;
        const bool fits = size_add(estimate.worker, estimate.shared) <= request->workspace_limit,
                   fitted = size_add(ret->worker, ret->shared) <= request->workspace_limit;
        if (!ret->applicable || (fits && !fitted) ||
            (fits == fitted && estimate.seconds < ret->seconds))
            *ret = estimate;
    }
    if (ret->applicable) return;
    struct tile_grid grid;
    if (!tile_grid_make(shape, request->direction, &grid))
        snprintf(ret->reason, sizeof ret->reason, "steps are beyond the range of positions");
    else if (grid.images > MOST_MAPS)
        snprintf(ret->reason, sizeof ret->reason, "dilation makes %zu sub-images; at most %d",
                 grid.images, MOST_MAPS);
    else if (least_error < INFINITY)
        snprintf(ret->reason, sizeof ret->reason, "error %.1e is beyond the budget of %.1e",
                 least_error, winograd_budget(request));
    else if (request->transform)
        snprintf(ret->reason, sizeof ret->reason, "has no tiles of %zu for these taps",
                 request->transform);
    else
        snprintf(ret->reason, sizeof ret->reason, "serves 2 to %d taps of a phase along an axis",
                 WINOGRAD_EXTENT - 1);
}

static enum partita_status winograd_plan_create(struct partita_plan *plan,
                                                const struct request *request)
{
    struct winograd decided, *winograd;
    struct estimate estimate;
    decide(request, plan->choice.variant, &decided, &estimate);
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t terms = weight ? decided.positions : decided.chunk;
    const size_t between = weight           ? decided.strip
                           : decided.turned ? decided.width
                                            : decided.positions;
    plan->state = mem_allocate(
        &plan->allocator, size_add(mem_round(sizeof *winograd), terms * sizeof *winograd->offset));
    if (!plan->state) return PARTITA_ERR_NOMEM;
    winograd = plan->state;
    *winograd = decided;
    winograd->offset = (size_t *)((char *)plan->state + mem_round(sizeof *winograd));
    for (size_t c = 0; c < terms; c++) winograd->offset[c] = c * between;
    return PARTITA_OK;
}

static void winograd_plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

static enum partita_status winograd_run(const struct partita_plan *plan,
                                        const struct partita_filter *filter,
                                        const struct operands *operands, void *workspace)
{
    if (plan->direction == PARTITA_BACKWARD_WEIGHT)
        winograd_backward_weight(plan, operands->to, operands->from[0], operands->from[1],
                                 workspace);
    else winograd_forward(plan, filter, operands->to, operands->from[0], workspace);
    return PARTITA_OK;
}

const struct engine engine_winograd = {
    .name = "cpu/winograd",
    .max_rank = AXES,
    .estimate = winograd_estimate,
    .plan_create = winograd_plan_create,
    .plan_destroy = winograd_plan_destroy,
    .filter_create = winograd_filter_create,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .run = winograd_run,
};
