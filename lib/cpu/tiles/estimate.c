// SPDX-License-Identifier: MIT
// The cost of a layout of cpu/tiles, and the search for the cheapest one (decision 15).
#include <math.h>

#include "cpu/conv/cost.h"
#include "geometry/tile_search.h"
#include "tiles.h"

// Seconds of moving scalars once in a working set of so many bytes. The larger it is, the more of
// it the last cache has lost to others, and to factors and the arrays of the call.
// Measured.
static double move_seconds(const struct request *request, double scalars, double bytes)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double near = (double)request->model->cache_bytes;
    // A last cache of hundreds of MiB is several, of other cores.
    const double shared = 0.6 * fmin((double)request->model->shared_bytes, 32 * near);
    if (bytes <= near) return scalars * costs->copy;
    if (bytes > shared) return scalars * costs->copy_far;
    const double filled = (bytes - near) / (shared - near);
    const double far = TILES.far_least + (TILES.far_most - TILES.far_least) * filled;
    return scalars * (costs->copy + far * fmax(0, costs->copy_far - costs->copy));
}

// Multiply-adds of a bin's transposed product, with those of rows of sums that are only padding.
static double transposed_products(const struct tiles *p)
{
    if (p->weight)
        return (double)size_round_up(p->in, TILE_ROWS) * 4 * (double)p->positions *
               (double)size_round_up(p->out, p->lanes);
    return conv_cost_channels(2 * p->positions, p->panel / p->lanes, 1) * 2 * (double)p->in *
           (double)tiles_whole_panels(p, p->out);
}

// A product's multiply-add against one at the peak: worse in Gauss's products with few lines of
// positions, and in transposed backward weight.
static double product_factor(const struct tiles *p)
{
    const double lines = (double)(p->batch / p->lanes);
    if (p->weight && p->product == TILES_TRANSPOSED) return TILES.product + TILES.transposed_weight;
    const bool gauss = p->product == TILES_GAUSS && !p->weight && lines < TILES.wide;
    return TILES.product + (gauss ? TILES.narrow_gauss / (lines * lines) : 0);
}

// The work of a group, in scalars, transforms and products.
struct tiles_work {
    double x, y; // of lines of samples
    double transforms, products;
    double sums, factors; // scalars
};

// Seconds of reading the factors of all batches beyond the products that overlap with it: those of
// all positions of a batch, or in transposed products of the first TILE_ROWS.
static double factor_seconds(const struct request *request, const struct tiles *p,
                             const struct tiles_work *work, double bytes)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double batches = ceil((double)p->positions / (double)p->batch);
    const double positions = fmax((double)p->positions, 1);
    const bool transposed = p->product == TILES_TRANSPOSED;
    const double meeting = transposed ? fmin(1, (double)TILE_ROWS / positions) : 1;
    const double read = move_seconds(request, work->factors * batches * TILES.factor, bytes);
    return fmax(0, read - meeting * work->products * costs->fma * product_factor(p));
}

// Copies of packing x for each chunk of output channels: transposed, four scalars of a term, one by
// one; else three rows of a channel, which were prefetched. Chunks after the first delay the
// products as well: their factors and sums are fewer for the same x.
static double packing_copies(const struct tiles *p, const struct tiles_work *work)
{
    const double chunks = ceil((double)p->out / (double)p->oc_chunk);
    if (p->weight) return 0;
    if (p->product != TILES_TRANSPOSED)
        return (double)p->bins * 2 * work->x *
               (TILES.rows_packed + (chunks - 1) * TILES.rows_packed_again);
    return chunks * (double)p->bins * 4 * (double)p->in * (double)p->positions * TILES.packed;
}

static struct tiles_work count_work(const struct tiles *p)
{
    const bool transposed = p->product == TILES_TRANSPOSED;
    const bool gauss = p->product == TILES_GAUSS;
    const double bins = (double)p->bins;
    const double batches = ceil((double)p->positions / (double)p->batch);
    const double lines = batches * (double)p->batch;
    const double in = (double)p->in;
    const double out = (double)p->out;
    const double wide =
        (double)(transposed ? tiles_whole_panels(p, p->out) : size_round_up(p->out, p->lanes));
    struct tiles_work work = {.x = transposed ? (double)p->x_scalars : lines * in,
                              .y = lines * (transposed ? wide : out)};
    work.transforms = (p->load * work.x + p->store * work.y) / 2;
    if (p->weight) work.transforms += p->taps * in * wide / 2;
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

// Copies of each sample, beyond those of `edge`, for a pair of rows that fills the L2 cache by half
// or more: transforms read part of it from the next cache in each pass, and elements that a
// butterfly joins are multiples of 4 KiB apart, so the same few places of a cache, if the length is
// a multiple of 512. In backward weight, where x and gy are transformed in turn, and with channels
// last, whose staged rows of several channels leave the cache, shorter rows suffice.
static double long_row_copies(const struct request *request, const struct tiles *p)
{
    const double bytes = (double)p->n[2] * 2 * TILE_LINE_BYTES;
    const double near = (double)request->model->cache_bytes;
    const bool large = bytes >= near * TILES.large_row;
    const bool conflicts = bytes >= near / 2 || (large && p->weight);
    double copies = TILES.beyond * fmax(0, 1 - near / bytes);
    if (conflicts && p->n[2] % 512 == 0) copies += TILES.conflicts;
    if (large && tiles_staged(p)) copies += TILES.staged;
    return copies;
}

// Samples of a tile of x, or of y or gy, that are moved. With positions in the lanes, rows are
// transposed in squares of `lanes` samples.
static double moved_samples(const struct tiles *p, bool transposed, bool outputs)
{
    const struct tile_axis *axis = p->grid.axis;
    const size_t row = outputs ? axis[2].tile : p->n[2];
    const size_t rows = outputs ? axis[0].tile * axis[1].tile : p->n[0] * p->n[1];
    return (double)(rows * (transposed ? row : size_round_up(row, p->lanes)));
}

// Seconds of a group by the cost model, without the moves of spectra: operations of transforms and
// products, samples in and out.
static double work_seconds(const struct request *request, const struct tiles *p,
                           const struct tiles_work *work)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const bool transposed = p->product == TILES_TRANSPOSED;
    const double samples = work->x * moved_samples(p, transposed, false) +
                           work->y * moved_samples(p, transposed, true);
    const double edge =
        (transposed ? TILES.edge_channels : TILES.edge) + long_row_copies(request, p);
    const bool gradient = p->weight && transposed;
    const struct tile_axis *axis = p->grid.axis;
    const double taps = (double)(axis[0].taps * axis[1].taps * axis[2].taps);
    const double gw = p->weight ? taps * (double)p->in * (double)p->out : 0;
    return work->transforms * costs->fma * TILES.transform +
           work->products * costs->fma * product_factor(p) +
           work->sums * costs->copy * (gradient ? TILES.joined : TILES.sums) +
           edge * costs->copy * (samples + gw) +
           TILES.task_calls * costs->fir_call * (work->x + work->y) / (double)p->lanes / 2;
}

// Seconds of all: those of a group's work, and spectra moved to where they fit.
static double all_seconds(const struct request *request, const struct tiles *p,
                          const struct tiles_work *work, double seconds)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double bytes = (double)p->grid.scalar_bytes;
    const double bins = (double)p->bins;
    const double batches = ceil((double)p->positions / (double)p->batch);
    const double chunks = ceil((double)p->out / (double)p->oc_chunk);
    const double x = bins * 2 * work->x;
    const double y = bins * 2 * work->y;
    const double held = x / batches * bytes + y / batches / chunks * bytes;
    if (p->weight && p->product == TILES_TRANSPOSED) {
        // Tasks of a line of output channels read all of x, and each of them the line of gy.
        const double times = ceil((double)p->in / TILE_ROWS);
        const double tasks = ceil((double)p->out / (double)p->lanes);
        const double read = move_seconds(request, x * tasks * TILES.read, (x + y / tasks) * bytes) +
                            move_seconds(request, y * times * TILES.read, y / tasks * bytes);
        seconds += move_seconds(request, x + y, (x + y) * bytes) +
                   fmax(0, read - work->products * costs->fma * product_factor(p));
    } else {
        const double all = work->factors * bytes + held;
        // Sums of gw that are read and written for each batch pass through the caches as well.
        const double reused = p->weight && batches > 1 ? all : held;
        const double packed = packing_copies(p, work) * costs->copy;
        seconds += move_seconds(request, x + 2 * y, reused);
        // x arrives during products, or while transposed products pack scalar by scalar.
        if (p->product == TILES_TRANSPOSED)
            seconds += fmax(move_seconds(request, x * chunks, reused), packed);
        else seconds += packed;
        if (p->weight)
            seconds += move_seconds(request, 2 * x, reused) +
                       move_seconds(request, 2 * work->factors * batches, all);
        else seconds += factor_seconds(request, p, work, all);
    }
    seconds *= (double)p->grid.groups;
    return fmax(seconds, memory_seconds(request->model, request->shape));
}

// Packing a filter: transforms of pairs of lines, whose lanes are output channels, and factors.
static double taps_seconds(const struct request *request, const struct tiles *p)
{
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double pairs = ceil((double)p->in * ceil((double)p->out / (double)p->lanes) / 2);
    const double lanes = 2 * pairs * (double)p->lanes * (double)p->grid.groups;
    const double samples = (double)(p->n[0] * p->n[1] * p->n[2]);
    const double factors = (double)tiles_filter_scalars(p, p->bins);
    const bool transposed = p->product == TILES_TRANSPOSED;
    return lanes * (p->taps / 2 * costs->fma * TILES.transform +
                    (TILES.edge_channels + long_row_copies(request, p)) * costs->copy * samples) +
           filter_seconds(request, factors, transposed ? TILES.panel_copies : TILES.filter_copies);
}

// Whether transposed products are tried.
static bool may_transpose(const struct tiles *p)
{
    return MODE_IS_ON("tiles:transposed") && p->positions > 0 &&
           p->positions <= TILES.transposed_positions;
}

// Cost of tiles of a size in batches of DEFAULT_BATCH positions, all output channels at once.
// INFINITY: the size is not possible.
static double size_cost(const struct tile_problem *problem, size_t transform)
{
    enum { DEFAULT_BATCH = 96 };
    const struct request *request = problem->request;
    struct tiles tiles;
    double least = INFINITY;
    if (!tiles_layout_size(request, problem->grid, transform, &tiles)) return INFINITY;
    for (size_t i = 0; i < (may_transpose(&tiles) ? 2 : 1); i++) {
        const struct tiles_params params = {transform, DEFAULT_BATCH, SIZE_MAX,
                                            i ? TILES_TRANSPOSED : TILES_COMPLEX};
        tiles_layout_batches(&params, &tiles);
        const struct tiles_work work = count_work(&tiles);
        const bool prepared = request->filter_uses && !tiles.weight;
        const struct estimate layout = {
            .seconds = all_seconds(request, &tiles, &work, work_seconds(request, &tiles, &work)),
            .filter_seconds = prepared ? taps_seconds(request, &tiles) : 0};
        least = fmin(least, request_cost(request, &layout));
    }
    return least;
}

// Takes a layout that takes so many seconds, if its cost is less than before and its memory fits.
static void take_layout(const struct request *request, const struct tiles *p,
                        const struct tiles_params *params, const struct tiles_work *work,
                        double seconds, struct estimate *ret)
{
    const struct estimate cost = {.seconds = seconds,
                                  .filter_seconds = p->weight ? 0 : taps_seconds(request, p)};
    if (ret->applicable && request_cost(request, ret) <= request_cost(request, &cost)) return;
    const size_t shared = tiles_shared_bytes(p, false);
    const size_t worker = tiles_worker_bytes(p);
    if (size_add(shared, worker) > request->workspace_limit) return;
    const size_t filter = p->weight ? 0 : tiles_filter_scalars(p, p->bins);
    const struct tiles_params decision = {params->transform, p->batch, p->oc_chunk, p->product};
    *ret = (struct estimate){
        .applicable = true,
        .spread = 1,
        .peaks = !p->weight,
        .reach = SIZE_MAX, // two tiles are the real and the imaginary part of one transform
        .transform = params->transform,
        .hop = p->batch,
        .seconds = seconds,
        .flops = (double)p->grid.groups * (work->transforms + 2 * work->products),
        .shared = shared,
        .worker = worker,
        .bytes = size_add(size_add(shared, worker), size_mul(filter, p->grid.scalar_bytes)),
        .filter_seconds = cost.filter_seconds,
        .error = tile_error(request->shape, p->n, p->product == TILES_GAUSS)};
    estimate_store(ret, &decision, sizeof decision);
}

static const size_t oc_chunks[] = {8, 16, 32, 64, 128, SIZE_MAX}; // output channels at once
enum { OC_CHUNKS = sizeof oc_chunks / sizeof *oc_chunks };

// All chunks of one batch, with complex products and by Gauss.
static void try_batch(const struct request *request, struct tiles *p, struct tiles_params *params,
                      struct estimate *ret)
{
    struct tiles_work work[2];
    double seconds[2];
    const size_t products = p->weight || !MODE_IS_ON("tiles:gauss") ? 1 : 2;
    for (size_t i = 0; i < products; i++) {
        params->product = i ? TILES_GAUSS : TILES_COMPLEX;
        tiles_choose_batches(params, p);
        work[i] = count_work(p);
        seconds[i] = work_seconds(request, p, &work[i]);
    }
    for (size_t k = p->weight ? OC_CHUNKS - 1 : 0; k < OC_CHUNKS; k++) {
        if (k + 1 < OC_CHUNKS && oc_chunks[k] >= p->out) continue; // the last one is all of them
        params->oc_chunk = oc_chunks[k];
        for (size_t i = 0; i < products; i++) {
            // Moves of spectra are added to the work.
            if (ret->applicable && seconds[i] * (double)p->grid.groups > request_cost(request, ret))
                continue;
            params->product = i ? TILES_GAUSS : TILES_COMPLEX;
            tiles_choose_batches(params, p);
            const double all = all_seconds(request, p, &work[i], seconds[i]);
            if (ret->applicable && all > request_cost(request, ret)) continue;
            tiles_layout_batches(params, p);
            take_layout(request, p, params, &work[i], all, ret);
        }
    }
}

// All batches and chunks of tiles of one size.
static void try_size(const struct tile_problem *problem, size_t transform, struct estimate *ret)
{
    static const size_t batches[] = {16, 32, 48, 96, 192, 384, 768};
    enum { BATCHES = sizeof batches / sizeof *batches };
    const struct request *request = problem->request;
    struct tiles tiles;
    if (!tiles_layout_size(request, problem->grid, transform, &tiles)) return;
    struct tiles_params params = {.transform = transform};
    for (size_t i = 0; i < BATCHES && (i == 0 || batches[i - 1] < tiles.positions); i++) {
        params.batch = batches[i];
        try_batch(request, &tiles, &params, ret);
    }
    params.batch = tiles.positions;
    params.product = TILES_TRANSPOSED;
    const bool few = may_transpose(&tiles);
    for (size_t k = 0; k < OC_CHUNKS && few && (k == 0 || oc_chunks[k - 1] < tiles.out); k++) {
        params.oc_chunk = oc_chunks[k];
        tiles_layout_batches(&params, &tiles);
        const struct tiles_work work = count_work(&tiles);
        const double seconds = work_seconds(request, &tiles, &work);
        take_layout(request, &tiles, &params, &work, all_seconds(request, &tiles, &work, seconds),
                    ret);
    }
}

void tiles_estimate(const struct request *request, struct estimate *ret)
{
    static const struct tile_engine engine = {
        .sevens = true, .try_size = try_size, .size_cost = size_cost};
    tile_search(request, &engine, ret);
    if (!ret->applicable && !*ret->reason)
        estimate_refuse(ret, "no tile of %s samples fits the taps, or the workspace",
                        request->transform ? "so many" : "any number of");
}
