// SPDX-License-Identifier: MIT
// How a layer is cut into tiles, blocks and parts, what arrays that needs and what it costs: the
// choice of cpu/tiles (decision 15).
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "cpu/conv/cost.h"
#include "geometry/tile_search.h"
#include "geometry/tile_size.h"
#include "tiles.h"

enum {
    MOST_TERMS = 512,        // summed in registers before a sum is rounded
    MOST_ELEMENTS = 1 << 17, // of a tile
    FEW = 32,                // positions up to which turned products are considered
    WEIGHT_IN = 32, // input channels of turned sums of backward weight: gy is read once for so many
};

// The shape in tiles; what hangs on blocks and parts is left to cut_blocks.
static bool cut_tiles(const struct request *request, size_t transform, struct tiles *ret,
                      size_t ret_n[3])
{
    *ret = (struct tiles){.direction = request->direction};
    struct tile_grid *grid = &ret->grid;
    if (!tile_grid_make(request->shape, request->direction, grid) ||
        !tile_size_split(grid, transform, MOST_ELEMENTS, ret_n))
        return false;
    ret->in = size_mul(grid->in, grid->phases_out ? 1 : grid->phases);
    ret->out = size_mul(grid->out, grid->phases_out ? grid->phases : 1);
    ret->lanes = TILE_LINE_BYTES / grid->scalar_bytes;
    ret->positions = size_mul(size_mul(grid->batch, grid->images), grid->tiles);
    return size_mul(ret->positions, size_mul(ret->in, ret->out)) <= PTRDIFF_MAX / 64;
}

// Bins an odd number of lines apart.
static size_t bin_of(const struct tiles *tiles, size_t scalars)
{
    return (ceil_div(scalars, tiles->lanes) | 1) * tiles->lanes;
}

// One block of all positions; panels as even as three lines at most can be.
static void cut_turned(const struct tiles_way *way, struct tiles *tiles)
{
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t lines = ceil_div(tiles->out, tiles->lanes);
    tiles->panel = (lines % 3 == 0 ? 3 : lines % 2 == 0 ? 2 : 1) * tiles->lanes;
    tiles->block = tiles->positions;
    tiles->cells = size_round_up(size_mul(tiles->in, tiles->positions), tiles->lanes);
    tiles->part = way->part < tiles->out ? tiles_wide(tiles, way->part) : tiles->out;
    tiles->in_part = size_min(tiles->in, WEIGHT_IN);
    tiles->chunk =
        weight ? tiles->positions : size_min(tiles->in, MOST_TERMS / 2); // FEW positions at most
    const size_t rows = weight ? tiles->in_part : tiles->positions;
    tiles->x_bin = bin_of(tiles, size_mul(2, tiles->cells));
    tiles->y_bin = bin_of(tiles, size_mul(2 * rows, tiles_wide(tiles, tiles->part)));
    tiles->d_bin =
        weight ? bin_of(tiles, size_mul(2 * tiles->positions, tiles_wide(tiles, tiles->out))) : 0;
    tiles->packed_bin = weight ? bin_of(tiles, size_mul(4 * tiles->positions, tiles->in_part)) : 0;
}

// Blocks of one size, whole lines each.
static void cut_blocks(const struct tiles_way *way, struct tiles *tiles)
{
    tiles->product = way->product;
    tiles->packed_bin = 0;
    if (way->product == TILES_TURNED) {
        cut_turned(way, tiles);
        return;
    }
    const size_t blocks = tiles->positions ? (tiles->positions + way->block - 1) / way->block : 1;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    tiles->block = size_round_up((tiles->positions + blocks - 1) / blocks, tiles->lanes);
    if (tiles->block == 0) tiles->block = tiles->lanes;
    tiles->part = weight ? tiles->out : size_min(way->part, tiles->out);
    tiles->chunk =
        weight ? size_min(tiles->block, MOST_TERMS / 2)
               : size_min(tiles->in, way->product == TILES_COMPLEX ? MOST_TERMS / 2 : MOST_TERMS);
    const size_t row = 2 * tiles->block,
                 outputs = weight ? 2 * size_round_up(tiles->out, tiles->lanes) : row;
    tiles->x_bin = bin_of(tiles, size_mul(tiles->in, row));
    tiles->y_bin = bin_of(tiles, size_mul(weight ? tiles->in : tiles->part, outputs));
    tiles->d_bin = weight ? bin_of(tiles, size_mul(tiles->out, row)) : 0;
}

bool tiles_cut(const struct request *request, const struct tiles_way *way, struct tiles *ret,
               size_t ret_n[3])
{
    if (!cut_tiles(request, way->transform, ret, ret_n)) return false;
    cut_blocks(way, ret);
    return true;
}

size_t tiles_spectra_bytes(const struct tiles *tiles, const size_t n[3], size_t bin)
{
    return mem_round(size_mul(size_mul(tile_tables_bins(n), bin), tiles->grid.scalar_bytes));
}

size_t tiles_shared_bytes(const struct tiles *tiles, const size_t n[3])
{
    size_t bytes = mem_round(size_mul(tiles->block, sizeof(struct tiles_place)));
    bytes = size_add(bytes, tiles_spectra_bytes(tiles, n, tiles->x_bin));
    bytes = size_add(bytes, tiles_spectra_bytes(tiles, n, tiles->y_bin));
    bytes = size_add(bytes, tiles_spectra_bytes(tiles, n, tiles->packed_bin));
    return size_add(bytes, tiles_spectra_bytes(tiles, n, tiles->d_bin));
}

size_t tiles_worker_bytes(const struct tiles *tiles, const size_t n[3])
{
    const size_t transform = size_add(tiles_rows_bytes(tiles, n), tiles_transform_bytes(n));
    const size_t bytes = tiles->grid.scalar_bytes, row = tiles->block * bytes;
    size_t product = size_add(size_mul(tiles->chunk, 3 * row), CONV_CHANNELS * row);
    if (tiles->product == TILES_TURNED) product = size_mul(tiles->chunk, 2 * CONV_CHANNELS * bytes);
    else if (tiles->direction == PARTITA_BACKWARD_WEIGHT)
        product = mem_round(tiles->chunk * bytes) +
                  mem_round(tiles->chunk * 2 * CONV_CHANNELS * bytes) +
                  size_mul(tiles->chunk * 3, size_round_up(tiles->out, tiles->lanes) * bytes);
    return mem_round(transform > product ? transform : product);
}

size_t tiles_filter_scalars(const struct tiles *tiles, size_t bins)
{
    const size_t out = tiles->product == TILES_TURNED ? tiles_wide(tiles, tiles->out) : tiles->out;
    const size_t cells = size_mul(size_mul(tiles->in, out), tiles->grid.groups);
    return size_mul(size_mul(cells, bins), tiles->product == TILES_GAUSS ? 3 : 2);
}

// Seconds of moving scalars once, a working set of so many bytes.
static double moving(const struct request *request, double scalars, double bytes)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double near = (double)request->model->cache_bytes;
    // A last cache of hundreds of MiB is several, of other cores.
    const double shared = fmin((double)request->model->shared_bytes, 32 * near);
    return scalars * (bytes <= near         ? costs->copy
                      : bytes <= shared / 2 ? (costs->copy + costs->copy_far) / 3
                                            : costs->copy_far);
}

// A shape cut into tiles, and the operations of a pair of them: loaded, stored, and of taps stored.
struct candidate {
    struct tiles tiles;
    size_t n[3], bins;
    double load, store, taps;
};

// Multiply-adds of a bin's turned product, those that rows of sums which are not there would have
// done included.
static double turned_sums(const struct tiles *tiles)
{
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t rows = weight ? tiles->in : tiles->positions,
                 terms = weight ? tiles->positions : tiles->in;
    return conv_cost_channels(2 * rows, tiles->panel / tiles->lanes, 1) * 2 * (double)terms *
           (double)tiles_wide(tiles, tiles->out);
}

// A product's multiply-add against one at the peak: worse with few lines of positions, of which
// Gauss's products have half as many at once, and where scalars are packed for few output channels.
// Measured; decision 15.
static double product_factor(const struct tiles *tiles)
{
    static const double PRODUCT = 1.12, NARROW = 0.4, NARROW_GAUSS = 0.6, TURNED = 0.3;
    const double lines = (double)tiles_lines(tiles);
    if (tiles->product == TILES_TURNED) return PRODUCT + TURNED;
    if (tiles->direction == PARTITA_BACKWARD_WEIGHT) return PRODUCT;
    return PRODUCT + NARROW / lines +
           (tiles->product == TILES_GAUSS ? NARROW_GAUSS / (lines * lines) : 0);
}

// Seconds of moving spectra between the stages of turned backward weight, where a part of the sums
// is held at once.
static double moving_turned_weight(const struct request *request, const struct tiles *tiles,
                                   double bins, double sums)
{
    const double parts = ceil((double)tiles->out / (double)tiles->part);
    const double x = bins * 2 * (double)tiles->cells,
                 times = ceil((double)tiles->in / (double)tiles->in_part);
    const double scalar = (double)tiles->grid.scalar_bytes,
                 wide = (double)tiles_wide(tiles, tiles->out);
    const double held = bins * 2 * (double)tiles->in_part * wide / parts,
                 d = bins * 2 * wide * (double)tiles->positions;
    // Sums of a few terms are cleared, loaded, stored and read by the transform.
    return moving(request, 4 * sums + x * (3 + parts), scalar * (held + 2 * x / times)) +
           moving(request, d * (1 + times / 2), scalar * (held + d));
}

// Seconds by the cost model: operations of transforms and products, samples in and out, spectra to
// where they fit.
static double seconds_of(const struct request *request, const struct candidate *candidate,
                         double *ret_flops)
{
    // A transform's operation takes so much of a multiply-add, its loads and stores included; a
    // sample on its way in or out so many copies; products clear, load and store their sums.
    // Decision 15.
    static const double TRANSFORM = 0.8, EDGE = 4, SUMS = 3, TASK = 1e-6;
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const struct tiles *tiles = &candidate->tiles;
    const size_t *n = candidate->n;
    const bool weight = tiles->direction == PARTITA_BACKWARD_WEIGHT,
               turned = tiles->product == TILES_TURNED;
    const double bytes = (double)tiles->grid.scalar_bytes, bins = (double)candidate->bins;
    const double blocks = ceil((double)tiles->positions / (double)tiles->block);
    const double lines = blocks * (double)tiles->block, samples = (double)(n[0] * n[1] * n[2]);
    const double in = (double)tiles->in, out = (double)tiles->out,
                 parts = ceil(out / (double)tiles->part);
    const double wide =
        (double)(tiles->product == TILES_TURNED ? tiles_wide(tiles, tiles->out)
                                                : size_round_up(tiles->out, tiles->lanes));
    const double x_cells = turned ? (double)tiles->cells : lines * in,
                 y_cells = turned ? lines * wide : lines * out;
    const double taps = weight ? candidate->taps * in * wide / 2 : 0;
    const double transforms = (candidate->load * x_cells + candidate->store * y_cells) / 2 + taps;
    const double products =
        bins * (turned   ? turned_sums(tiles)
                : weight ? lines * in * wide * 4
                         : lines * in * out * (tiles->product == TILES_GAUSS ? 3 : 4));
    const double sums = weight ? blocks * bins * 2 * in * wide
                               : bins * 2 * y_cells * (tiles->product == TILES_GAUSS ? 2 : 1);
    const double x = bins * 2 * x_cells, y = bins * 2 * y_cells;
    const double factors =
        weight ? bins * 2 * in * wide
               : (double)tiles_filter_scalars(tiles, 1) / (double)tiles->grid.groups * bins;
    const double x_bytes = x / blocks * bytes, y_bytes = y / blocks / parts * bytes,
                 held = x_bytes + y_bytes;
    double seconds = transforms * costs->fma * TRANSFORM +
                     products * costs->fma * product_factor(tiles) + sums * costs->copy * SUMS +
                     EDGE * costs->copy * samples * (x_cells + y_cells) +
                     TASK * (x_cells + y_cells) / (double)tiles->lanes / 2;
    if (weight && turned) {
        seconds += moving_turned_weight(request, tiles, bins, factors);
    } else {
        seconds +=
            moving(request, x * (1 + (weight ? 2 : parts)), held) + moving(request, 2 * y, held);
        seconds += moving(request, factors * blocks * (weight ? 2 : 0.5), factors * bytes + held);
    }
    seconds *= (double)tiles->grid.groups;
    *ret_flops = (double)tiles->grid.groups * (transforms + 2 * products);
    return fmax(seconds, memory_seconds(request->model, request->shape));
}

static void consider(const struct request *request, const struct candidate *candidate,
                     size_t transform, struct estimate *ret)
{
    const struct tiles *tiles = &candidate->tiles;
    double flops;
    const size_t shared = tiles_shared_bytes(tiles, candidate->n),
                 worker = tiles_worker_bytes(tiles, candidate->n);
    if (size_add(shared, worker) > request->workspace_limit) return;
    const double seconds = seconds_of(request, candidate, &flops);
    if (ret->applicable && ret->seconds <= seconds) return;
    const size_t filter = tiles->direction == PARTITA_BACKWARD_WEIGHT
                              ? 0
                              : tiles_filter_scalars(tiles, candidate->bins);
    *ret = (struct estimate){
        .applicable = true,
        .transform = transform,
        .variant = tiles_variant(tiles),
        .hop = tiles->block,
        .seconds = seconds,
        .flops = flops,
        .shared = shared,
        .worker = worker,
        .bytes = size_add(size_add(shared, worker), size_mul(filter, tiles->grid.scalar_bytes))};
    ret->error = tile_error(request->shape, candidate->n, tiles->product == TILES_GAUSS);
}

// All blocks and parts of tiles of one size.
static void consider_blocks(const struct request *request, size_t transform, struct estimate *ret)
{
    static const size_t blocks[] = {16, 32, 48, 96, 192, 384, 768},
                        parts[] = {8, 16, 32, 64, 128, (size_t)1 << 20};
    enum { N_BLOCKS = sizeof blocks / sizeof *blocks, N_PARTS = sizeof parts / sizeof *parts };
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    struct candidate candidate;
    struct tiles *tiles = &candidate.tiles;
    const size_t *n = candidate.n;
    if (!cut_tiles(request, transform, tiles, candidate.n)) return;
    const struct tile_axis *axis = tiles->grid.axis;
    candidate.bins = tile_tables_bins(n);
    candidate.load = tile_tables_flops(n, n[0] * n[1]);
    candidate.store = tile_tables_flops(n, axis[0].tile * axis[1].tile);
    candidate.taps = tile_tables_flops(n, axis[0].taps * axis[1].taps);
    for (size_t i = 0; i < N_BLOCKS && (i == 0 || blocks[i - 1] < tiles->positions); i++)
        for (size_t k = weight ? N_PARTS - 1 : 0; k < N_PARTS; k++) {
            if (k + 1 < N_PARTS && parts[k] >= tiles->out) continue; // the last does it
            for (int product = TILES_COMPLEX; product <= (weight ? TILES_COMPLEX : TILES_GAUSS);
                 product++) {
                cut_blocks(&(struct tiles_way){transform, blocks[i], parts[k],
                                               (enum tiles_product)product},
                           tiles);
                consider(request, &candidate, transform, ret);
            }
        }
    if (tiles->positions == 0 || tiles->positions > FEW) return;
    for (size_t k = 0; k < N_PARTS; k++) {
        if (k && parts[k - 1] >= tiles->out) continue;
        cut_blocks(&(struct tiles_way){transform, tiles->positions, parts[k], TILES_TURNED}, tiles);
        consider(request, &candidate, transform, ret);
    }
}

void tiles_estimate(const struct request *request, struct estimate *ret)
{
    tile_search(request, consider_blocks, ret);
    if (!ret->applicable && !ret->reason[0])
        snprintf(ret->reason, sizeof ret->reason,
                 "no tile of %s samples fits the taps, or the workspace",
                 request->transform ? "so many" : "any number of");
}
