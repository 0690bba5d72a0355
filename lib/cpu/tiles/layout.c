// SPDX-License-Identifier: MIT
// How cpu/tiles splits a layer into tiles, batches of them and chunks of channels, what arrays that
// needs and what it costs (decision 15).
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "cpu/conv/cost.h"
#include "geometry/tile_search.h"
#include "geometry/tile_size.h"
#include "tiles.h"

// The shape in tiles; batches and chunks are left to layout_batches.
static bool layout_tiles(const struct request *request, size_t transform, struct tiles *ret)
{
    *ret = (struct tiles){.weight = request->direction == PARTITA_BACKWARD_WEIGHT};
    struct tile_grid *grid = &ret->grid;
    if (!tile_grid_make(request->shape, request->direction, grid) ||
        !tile_size_split(grid, transform, TILES.max_elements, ret->n))
        return false;
    ret->bins = tile_tables_bins(ret->n);
    ret->in = size_mul(grid->in, grid->phases_out ? 1 : grid->phases);
    ret->out = size_mul(grid->out, grid->phases_out ? grid->phases : 1);
    ret->lanes = TILE_LINE_BYTES / grid->scalar_bytes;
    ret->positions = size_mul(size_mul(grid->batch, grid->images), grid->tiles);
    return size_mul(ret->positions, size_mul(ret->in, ret->out)) <= PTRDIFF_MAX / 64;
}

// Bins an odd number of lines apart.
static size_t bin_of(const struct tiles *p, size_t scalars)
{
    return (ceil_div(scalars, p->lanes) | 1) * p->lanes;
}

// One batch of all positions; panels as even as three lines at most can be.
static void layout_transposed(const struct tiles_params *params, struct tiles *p)
{
    const size_t lines = ceil_div(p->out, p->lanes);
    size_t panel = 1;
    if (lines % 3 == 0) panel = 3;
    else if (lines % 2 == 0) panel = 2;
    p->panel = panel * p->lanes;
    p->batch = p->positions;
    p->x_scalars = size_round_up(size_mul(p->in, p->positions), p->lanes);
    p->oc_chunk = params->oc_chunk < p->out ? tiles_whole_panels(p, params->oc_chunk) : p->out;
    p->ic_chunk = size_min(p->in, TILES.weight_in);
    // Positions are few enough for one product.
    p->chunk = p->weight ? p->positions : size_min(p->in, TILES.max_terms / 2);
    const size_t rows = p->weight ? p->ic_chunk : p->positions;
    p->x_bin = bin_of(p, size_mul(2, p->x_scalars));
    p->y_bin = bin_of(p, size_mul(2 * rows, tiles_whole_panels(p, p->oc_chunk)));
    if (!p->weight) return;
    p->gy_bin = bin_of(p, size_mul(2 * p->positions, tiles_whole_panels(p, p->out)));
    p->packed_bin = bin_of(p, size_mul(4 * p->positions, p->ic_chunk));
}

// Batches of one size, whole lines each.
static void layout_batches(const struct tiles_params *params, struct tiles *p)
{
    p->product = params->product;
    p->packed_bin = p->gy_bin = 0;
    if (p->product == TILES_TRANSPOSED) {
        layout_transposed(params, p);
        return;
    }
    const size_t batches = p->positions ? ceil_div(p->positions, params->batch) : 1;
    const bool gauss = p->product == TILES_GAUSS && !p->weight;
    const size_t terms = gauss ? TILES.max_terms : TILES.max_terms / 2;
    p->batch = size_max(size_round_up(ceil_div(p->positions, batches), p->lanes), p->lanes);
    p->oc_chunk = p->weight ? p->out : size_min(params->oc_chunk, p->out);
    p->chunk = size_min(p->weight ? p->batch : p->in, terms);
    const size_t row = 2 * p->batch, out = size_round_up(p->out, p->lanes);
    p->x_bin = bin_of(p, size_mul(p->in, row));
    p->y_bin = bin_of(p, p->weight ? size_mul(p->in, 2 * out) : size_mul(p->oc_chunk, row));
    if (p->weight) p->gy_bin = bin_of(p, size_mul(p->out, row));
    assert(p->batch * batches >= p->positions);
}

bool tiles_layout(const struct request *request, const struct tiles_params *params,
                  struct tiles *ret)
{
    if (!layout_tiles(request, params->transform, ret)) return false;
    layout_batches(params, ret);
    return true;
}

size_t tiles_spectra_bytes(const struct tiles *p, size_t bin)
{
    return mem_round(size_mul(size_mul(p->bins, bin), p->grid.scalar_bytes));
}

struct tiles_shared tiles_layout_shared(const struct tiles *p, bool cached, struct arena *arena)
{
    const size_t positions = size_mul(p->batch, sizeof(struct tiles_position));
    return (struct tiles_shared){
        .position = arena_take(arena, positions),
        .x = arena_take(arena, cached ? 0 : tiles_spectra_bytes(p, p->x_bin)),
        .y = arena_take(arena, tiles_spectra_bytes(p, p->y_bin)),
        .gy = arena_take(arena, tiles_spectra_bytes(p, p->gy_bin)),
        .packed = arena_take(arena, tiles_spectra_bytes(p, p->packed_bin))};
}

size_t tiles_shared_bytes(const struct tiles *p, bool cached)
{
    struct arena arena = {0};
    tiles_layout_shared(p, cached, &arena);
    return arena.used;
}

struct tiles_worker tiles_layout_worker(const struct tiles *p, struct arena *arena)
{
    const size_t rows = size_mul((p->lanes + 1) * p->grid.scalar_bytes, p->n[2]);
    return (struct tiles_worker){.rows = arena_take(arena, rows),
                                 .z = arena_take(arena, tiles_transform_bytes(p->n))};
}

struct tiles_product_worker tiles_layout_product_worker(const struct tiles *p, struct arena *arena)
{
    const size_t bytes = p->grid.scalar_bytes, row = p->batch * bytes;
    const size_t scalars = p->chunk * 2 * CONV_CHANNELS * bytes;
    if (p->product == TILES_TRANSPOSED)
        return (struct tiles_product_worker){.packed = arena_take(arena, scalars)};
    const size_t out = size_round_up(p->out, p->lanes) * bytes;
    if (p->weight)
        return (struct tiles_product_worker){.zeros = arena_take(arena, p->chunk * bytes),
                                             .weights = arena_take(arena, scalars),
                                             .packed =
                                                 arena_take(arena, size_mul(p->chunk * 3, out))};
    return (struct tiles_product_worker){.packed = arena_take(arena, size_mul(p->chunk, 3 * row)),
                                         .sums = arena_take(arena, CONV_CHANNELS * row)};
}

size_t tiles_worker_bytes(const struct tiles *p)
{
    struct arena transform = {0}, product = {0};
    tiles_layout_worker(p, &transform);
    tiles_layout_product_worker(p, &product);
    return size_max(transform.used, product.used);
}

size_t tiles_filter_scalars(const struct tiles *p, size_t bins)
{
    const size_t out = p->product == TILES_TRANSPOSED ? tiles_whole_panels(p, p->out) : p->out;
    const size_t paths = size_mul(size_mul(p->in, out), p->grid.groups);
    return size_mul(size_mul(paths, bins), p->product == TILES_GAUSS ? 3 : 2);
}

// Seconds of moving scalars once in a working set of so many bytes.
static double move_seconds(const struct request *request, double scalars, double bytes)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double near = (double)request->model->cache_bytes;
    // A last cache of hundreds of MiB is several, of other cores.
    const double shared = fmin((double)request->model->shared_bytes, 32 * near);
    if (bytes <= near) return scalars * costs->copy;
    if (bytes <= shared / 2) return scalars * ((costs->copy + costs->copy_far) / 3);
    return scalars * costs->copy_far;
}

// Tiles of one size, and the operations of a pair of them: loaded, stored, and of taps stored.
struct candidate {
    struct tiles tiles;
    double load, store, taps;
};

// Multiply-adds of a bin's transposed product, with those of rows of sums that are only padding.
static double transposed_products(const struct tiles *p)
{
    const size_t rows = p->weight ? p->in : p->positions, terms = p->weight ? p->positions : p->in;
    return conv_cost_channels(2 * rows, p->panel / p->lanes, 1) * 2 * (double)terms *
           (double)tiles_whole_panels(p, p->out);
}

// A product's multiply-add against one at the peak: worse with few lines of positions, of which
// Gauss's products have half as many at once, and where scalars are packed for few output channels.
static double product_factor(const struct tiles *p)
{
    const double lines = (double)(p->batch / p->lanes);
    if (p->product == TILES_TRANSPOSED) return TILES.product + TILES.transposed;
    if (p->weight) return TILES.product;
    return TILES.product + TILES.narrow / lines +
           (p->product == TILES_GAUSS ? TILES.narrow_gauss / (lines * lines) : 0);
}

// Seconds of moving spectra between the stages of transposed backward weight, where a chunk of the
// sums is in memory at once.
static double transposed_weight_moves(const struct request *request, const struct tiles *p,
                                      double sums)
{
    const double bins = (double)p->bins, scalar = (double)p->grid.scalar_bytes;
    const double chunks = ceil((double)p->out / (double)p->oc_chunk);
    const double times = ceil((double)p->in / (double)p->ic_chunk);
    const double wide = (double)tiles_whole_panels(p, p->out);
    const double x = bins * 2 * (double)p->x_scalars;
    const double held = bins * 2 * (double)p->ic_chunk * wide / chunks;
    const double gy = bins * 2 * wide * (double)p->positions;
    // Sums of a few terms are cleared, loaded, stored and read by the transform.
    return move_seconds(request, 4 * sums + x * (3 + chunks), scalar * (held + 2 * x / times)) +
           move_seconds(request, gy * (1 + times / 2), scalar * (held + gy));
}

// What a group takes, in scalars, transforms and products.
struct tiles_work {
    double x, y; // of lines of samples
    double transforms, products;
    double sums, factors; // scalars
};

static struct tiles_work count_work(const struct candidate *candidate)
{
    const struct tiles *p = &candidate->tiles;
    const bool transposed = p->product == TILES_TRANSPOSED, gauss = p->product == TILES_GAUSS;
    const double bins = (double)p->bins;
    const double batches = ceil((double)p->positions / (double)p->batch);
    const double lines = batches * (double)p->batch;
    const double in = (double)p->in;
    const double out = (double)p->out;
    const double wide =
        (double)(transposed ? tiles_whole_panels(p, p->out) : size_round_up(p->out, p->lanes));
    struct tiles_work work = {.x = transposed ? (double)p->x_scalars : lines * in,
                              .y = lines * (transposed ? wide : out)};
    work.transforms = (candidate->load * work.x + candidate->store * work.y) / 2;
    if (p->weight) work.transforms += candidate->taps * in * wide / 2;
    double products = lines * in * out * (gauss ? 3 : 4);
    if (p->weight) products = lines * in * wide * 4;
    if (transposed) products = transposed_products(p);
    work.products = bins * products;
    const double terms = gauss ? 2 : 1;
    work.sums = p->weight ? batches * bins * 2 * in * wide : bins * 2 * work.y * terms;
    work.factors = p->weight ? bins * 2 * in * wide
                             : (double)tiles_filter_scalars(p, 1) / (double)p->grid.groups * bins;
    return work;
}

// Seconds by the cost model: operations of transforms and products, samples in and out, spectra
// moved to where they fit.
static double work_seconds(const struct request *request, const struct tiles *p,
                           const struct tiles_work *work)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double bytes = (double)p->grid.scalar_bytes, bins = (double)p->bins;
    const double batches = ceil((double)p->positions / (double)p->batch);
    const double chunks = ceil((double)p->out / (double)p->oc_chunk);
    const double samples = (double)(p->n[0] * p->n[1] * p->n[2]), lines = work->x + work->y;
    const double x = bins * 2 * work->x;
    const double y = bins * 2 * work->y;
    const double held = x / batches * bytes + y / batches / chunks * bytes;
    double seconds = work->transforms * costs->fma * TILES.transform +
                     work->products * costs->fma * product_factor(p) +
                     work->sums * costs->copy * TILES.sums +
                     TILES.edge * costs->copy * samples * lines +
                     TILES.task_seconds * lines / (double)p->lanes / 2;
    if (p->weight && p->product == TILES_TRANSPOSED) {
        seconds += transposed_weight_moves(request, p, work->factors);
    } else {
        seconds += move_seconds(request, x * (1 + (p->weight ? 2 : chunks)), held) +
                   move_seconds(request, 2 * y, held);
        seconds += move_seconds(request, work->factors * batches * (p->weight ? 2 : 0.5),
                                work->factors * bytes + held);
    }
    seconds *= (double)p->grid.groups;
    return fmax(seconds, memory_seconds(request->model, request->shape));
}

static void try_layout(const struct request *request, struct candidate *candidate,
                       const struct tiles_params *params, struct estimate *ret)
{
    struct tiles *p = &candidate->tiles;
    layout_batches(params, p);
    const size_t shared = tiles_shared_bytes(p, false), worker = tiles_worker_bytes(p);
    if (size_add(shared, worker) > request->workspace_limit) return;
    const struct tiles_work work = count_work(candidate);
    const double seconds = work_seconds(request, p, &work);
    if (ret->applicable && ret->seconds <= seconds) return;
    const size_t filter = p->weight ? 0 : tiles_filter_scalars(p, p->bins);
    const struct tiles_params decision = {params->transform, p->batch, p->oc_chunk, p->product};
    *ret = (struct estimate){
        .applicable = true,
        .transform = params->transform,
        .hop = p->batch,
        .seconds = seconds,
        .flops = (double)p->grid.groups * (work.transforms + 2 * work.products),
        .shared = shared,
        .worker = worker,
        .bytes = size_add(size_add(shared, worker), size_mul(filter, p->grid.scalar_bytes)),
        .error = tile_error(request->shape, p->n, p->product == TILES_GAUSS)};
    estimate_store(ret, &decision, sizeof decision);
}

// All batches and chunks of tiles of one size.
static void try_size(const struct request *request, size_t transform, struct estimate *ret)
{
    static const size_t batches[] = {16, 32, 48, 96, 192, 384, 768};
    static const size_t chunks[] = {8, 16, 32, 64, 128, SIZE_MAX}; // of output channels
    enum { BATCHES = sizeof batches / sizeof *batches, CHUNKS = sizeof chunks / sizeof *chunks };
    struct candidate candidate;
    const struct tiles *p = &candidate.tiles;
    if (!layout_tiles(request, transform, &candidate.tiles)) return;
    const size_t *n = p->n;
    const struct tile_axis *axis = p->grid.axis;
    candidate.load = tile_tables_flops(n, n[0] * n[1]);
    candidate.store = tile_tables_flops(n, axis[0].tile * axis[1].tile);
    candidate.taps = tile_tables_flops(n, axis[0].taps * axis[1].taps);
    struct tiles_params params = {.transform = transform};
    for (size_t i = 0; i < BATCHES && (i == 0 || batches[i - 1] < p->positions); i++)
        for (size_t k = p->weight ? CHUNKS - 1 : 0; k < CHUNKS; k++) {
            if (k + 1 < CHUNKS && chunks[k] >= p->out) continue; // the last one is all of them
            params.batch = batches[i];
            params.oc_chunk = chunks[k];
            params.product = TILES_COMPLEX;
            try_layout(request, &candidate, &params, ret);
            params.product = TILES_GAUSS;
            if (!p->weight) try_layout(request, &candidate, &params, ret);
        }
    params.batch = p->positions;
    params.product = TILES_TRANSPOSED;
    const bool few = p->positions > 0 && p->positions <= TILES.transposed_positions;
    for (size_t k = 0; k < CHUNKS && few && (k == 0 || chunks[k - 1] < p->out); k++) {
        params.oc_chunk = chunks[k];
        try_layout(request, &candidate, &params, ret);
    }
}

void tiles_estimate(const struct request *request, struct estimate *ret)
{
    tile_search(request, try_size, ret);
    if (!ret->applicable && !*ret->reason)
        snprintf(ret->reason, sizeof ret->reason,
                 "no tile of %s samples fits the taps, or the workspace",
                 request->transform ? "so many" : "any number of");
}
