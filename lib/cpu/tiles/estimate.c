// SPDX-License-Identifier: MIT
// The work of a layout of cpu/tiles, and the search for the cheapest one (decision 15).
#include <math.h>

#include "cpu/conv/cost.h"
#include "geometry/tile_search.h"
#include "product/product.h"
#include "tiles.h"

// Multiply-adds of a bin's product, with those of lanes and rows that are only padding.
static double bin_products(const struct tiles *p, double lines, double wide)
{
    const double in = (double)p->in;
    const size_t parts = p->product == TILES_GAUSS ? 1 : 2; // as in multiply_bin
    const size_t width = size_min(parts * p->batch / p->lanes, PRODUCT_STRIP_VECTORS);
    if (p->weight && p->product == TILES_COMPLEX) return 4 * lines * in * wide;
    if (p->product != TILES_TRANSPOSED)
        return (parts == 1 ? 3 : 4) * lines * in * conv_cost_channels(p->out, width, 1);
    if (p->weight) return 4 * (double)size_round_up(p->in, TILE_ROWS) * (double)p->positions * wide;
    return conv_cost_channels(2 * p->positions, p->panel / p->lanes, 1) * 2 * in * wide;
}

// Samples of a tile of x, or of y or gy, that are moved. With positions in the lanes, rows are
// transposed in squares of `lanes` samples.
static double moved_samples(const struct tiles *p, bool outputs)
{
    const struct tile_axis *axis = p->grid.axis;
    const size_t row = outputs ? axis[2].tile : p->n[2];
    const size_t rows = outputs ? axis[0].tile * axis[1].tile : p->n[0] * p->n[1];
    const bool transposed = p->product == TILES_TRANSPOSED;
    return (double)(rows * (transposed ? row : size_round_up(row, p->lanes)));
}

// Moves of spectra of so many scalars of x and of y, to where they fit, and of factors.
static void count_moves(const struct tiles *p, const struct cost_model *model, double x, double y,
                        struct ledger *ret)
{
    struct work *work = &ret->work;
    const double bytes = (double)p->grid.scalar_bytes;
    const double batches = fmax(1, ceil((double)p->positions / (double)p->batch));
    const double chunks = ceil((double)p->out / (double)p->oc_chunk);
    const double held = (x / batches + y / batches / chunks) * bytes;
    if (p->weight && p->product == TILES_TRANSPOSED) {
        work_move(work, model, x + y, (x + y) * bytes);
        return;
    }
    const double factors =
        (double)p->bins * (p->weight ? 2 * (double)p->in * (double)size_round_up(p->out, p->lanes)
                                     : (double)tiles_factor_scalars(p, p->out));
    const double all = factors * bytes + held;
    // Sums of gw that are read and written for each batch pass through the caches as well.
    work_move(work, model, (p->weight ? 3 : 1) * x + 2 * y, p->weight && batches > 1 ? all : held);
    if (p->weight) work_move(work, model, 2 * factors * batches, all);
    else work_move(&ret->reads, model, factors * batches, all);
    // Products pack x for each chunk of output channels, transposed ones scalar by scalar.
    if (!p->weight) work->copy += (p->product == TILES_TRANSPOSED ? 10 : 4) * chunks * x;
}

// How often each sample of a pair of rows moves to lanes or back. A pair that fills much of the L2
// cache moves twice if elements that a butterfly joins crowd a few sets of it; beyond the cache all
// passes read part of it from the next one.
static double sample_moves(const struct tiles *p, const struct cost_model *model)
{
    const double bytes = (double)p->n[2] * 2 * TILE_LINE_BYTES, near = (double)model->cache_bytes;
    const double crowded = bytes >= near / 8 && p->n[2] % 512 == 0;
    return 1 + crowded + 2 * fmax(0, 1 - near / bytes);
}

// The work of a layout.
static void tiles_count_work(const struct request *request, const struct tiles *p,
                             struct ledger *ret)
{
    const bool transposed = p->product == TILES_TRANSPOSED, gauss = p->product == TILES_GAUSS;
    const double in = (double)p->in, bins = (double)p->bins;
    const double batches = fmax(1, ceil((double)p->positions / (double)p->batch));
    const double lines = batches * (double)p->batch;
    const double wide =
        (double)(transposed ? tiles_whole_panels(p, p->out) : size_round_up(p->out, p->lanes));
    const double x = transposed ? (double)p->x_scalars : lines * in;
    const double y = lines * (transposed ? wide : (double)p->out);
    const struct tile_axis *axis = p->grid.axis;
    const double taps = (double)(axis[0].taps * axis[1].taps * axis[2].taps);
    const double gradients = p->weight ? in * wide : 0, sums = gauss ? 2 * y : y;
    const double twice = request->shape->half ? 2 : 1; // converted apart from their move
    const double moves = twice * sample_moves(p, request->model);
    const double loaded = request->saved_limit && p->weight ? 0 : 1; // a step has saved x and gy
    const double pairs = ceil(in * ceil((double)p->out / (double)p->lanes) / 2);
    *ret = (struct ledger){
        .work = {.product = bins * bin_products(p, lines, wide),
                 .operation = ((p->load * x + p->store * y) * loaded + p->taps * gradients) / 2,
                 .lanes =
                     moves * ((x * moved_samples(p, false) + y * moved_samples(p, true)) * loaded +
                              taps * gradients),
                 .sum = 2 * bins * (p->weight ? batches * gradients : sums),
                 .block = (x + y) * loaded / (double)p->lanes / 2}};
    count_moves(p, request->model, 2 * bins * x, 2 * bins * y, ret);
    // Pairs of lines whose lanes are output channels, and factors.
    if (!p->weight)
        ret->filter =
            (struct work){.operation = pairs * (double)p->lanes * p->taps,
                          .lanes = 2 * pairs * (double)(p->lanes * p->n[0] * p->n[1] * p->n[2]),
                          .pack = bins * (double)tiles_factor_scalars(p, p->out)};
    if (p->grid.groups == 1) return;
    const double others = (double)(p->grid.groups - 1);
    work_add(&ret->work, &ret->work, others);
    work_add(&ret->reads, &ret->reads, others);
    work_add(&ret->filter, &ret->filter, others);
}

// The layouts of the gradients that share the transforms of a layout of forward.
static struct tiles tiles_of_gradient(const struct tiles *forward, struct tiles_params params,
                                      enum partita_direction direction)
{
    struct tiles tiles = *forward;
    params.product = forward->product;
    params.batch = forward->batch;
    tiles_params_share(&params, direction);
    tiles.weight = direction == PARTITA_BACKWARD_WEIGHT;
    tiles.windows = params.windows;
    tiles_layout_batches(&params, &tiles);
    return tiles;
}

// The work of a step from that of forward: backward data also reads windows and transposes factors.
static void count_step(const struct request *request, const struct tiles_params *params,
                       const struct tiles *p, struct ledger *ret)
{
    const struct tiles weight = tiles_of_gradient(p, *params, PARTITA_BACKWARD_WEIGHT);
    const double x = (double)(p->positions * p->in), out = (double)p->out, bins = (double)p->bins;
    const double windows = (double)(p->positions * size_round_up(p->in, p->lanes));
    const double batches = fmax(1, ceil((double)p->positions / (double)p->batch));
    const double groups = (double)p->grid.groups, factors = bins * (double)p->in * out;
    struct ledger gradient;
    tiles_count_work(request, &weight, &gradient);
    work_add(&ret->work, &ret->work, 1);
    work_add(&ret->reads, &ret->reads, 1);
    work_add(&ret->work, &gradient.work, 1);
    work_add(&ret->reads, &gradient.reads, 1);
    ret->work.product += groups * 4 * bins * out * (windows - x);
    ret->work.operation += groups * p->load / 2 * (windows - x);
    ret->work.copy += groups * factors * batches;
    ret->work.lanes += groups * (2 * factors * batches + sample_moves(p, request->model) * windows *
                                                             moved_samples(p, false));
    ret->work.sum += groups * 4 * bins * windows * ceil(out / (double)TILES.window_terms);
}

static double layout_cost(const struct request *request, const struct tiles_params *params,
                          struct tiles *p, struct ledger *ledger)
{
    tiles_layout_batches(params, p);
    tiles_count_work(request, p, ledger);
    if (request->saved_limit) count_step(request, params, p, ledger);
    return ledger_cost(request, ledger);
}

// Bytes of the saved transforms of a step.
static size_t step_bytes(const struct tiles *forward, const struct tiles_params *params)
{
    const struct tiles data = tiles_of_gradient(forward, *params, PARTITA_BACKWARD_DATA);
    const size_t batches = ceil_div(forward->positions, size_max(forward->batch, 1));
    return size_mul(
        size_mul(batches, forward->grid.groups),
        size_add(tiles_spectra_bytes(&data, data.x_bin), tiles_spectra_bytes(&data, data.gy_bin)));
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
    struct ledger ledger;
    double least = INFINITY;
    if (!tiles_layout_size(request, problem->grid, transform, &tiles)) return INFINITY;
    for (size_t i = 0; i < (may_transpose(&tiles) ? 2 : 1); i++) {
        const struct tiles_params params = {.transform = transform,
                                            .batch = DEFAULT_BATCH,
                                            .oc_chunk = SIZE_MAX,
                                            .product = i ? TILES_TRANSPOSED : TILES_COMPLEX};
        least = fmin(least, layout_cost(request, &params, &tiles, &ledger));
    }
    return least;
}

// Takes a layout if its memory fits.
static void take_layout(const struct request *request, const struct tiles *p,
                        const struct tiles_params *params, const struct ledger *ledger,
                        struct estimate *ret)
{
    const size_t shared = tiles_shared_bytes(p, false), worker = tiles_worker_bytes(p);
    if (size_add(shared, worker) > request->workspace_limit) return;
    if (request->saved_limit && step_bytes(p, params) > request->saved_limit) return;
    const size_t filter = p->weight ? 0 : tiles_filter_scalars(p, p->bins);
    struct tiles_params decision = *params;
    decision.batch = p->batch;
    decision.oc_chunk = p->oc_chunk < p->out ? p->oc_chunk : SIZE_MAX;
    *ret = (struct estimate){.applicable = true};
    ledger_price(request, ledger, ret);
    ret->spread = 1;
    ret->peaks = !p->weight;
    ret->reach = SIZE_MAX; // two tiles are the real and the imaginary part of one transform
    ret->transform = params->transform;
    ret->hop = p->batch;
    ret->flops = ledger->work.operation + 2 * ledger->work.product;
    ret->shared = shared;
    ret->worker = worker;
    ret->bytes = size_add(size_add(shared, worker), size_mul(filter, p->grid.scalar_bytes));
    ret->error = tile_error(request->shape, p->n, p->product == TILES_GAUSS);
    estimate_store(ret, &decision, sizeof decision);
}

// All output channels at once, then ever fewer, as long as this costs less or the workspace is
// limited.
static void try_chunks(const struct request *request, struct tiles *p, struct tiles_params *params,
                       struct estimate *ret)
{
    enum { MAX_CHUNK = 128, MIN_CHUNK = 8 };
    double before = INFINITY;
    for (size_t chunk = p->out; chunk; chunk = chunk > MAX_CHUNK ? MAX_CHUNK : chunk / 2) {
        struct ledger ledger;
        if (chunk < size_min(MIN_CHUNK, p->out)) break;
        params->oc_chunk = chunk;
        const double cost = layout_cost(request, params, p, &ledger);
        if (cost >= before && request->workspace_limit == SIZE_MAX) break;
        before = cost;
        if (!ret->applicable || cost < request_cost(request, ret))
            take_layout(request, p, params, &ledger, ret);
        if (p->weight) break;
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
        params.product = TILES_COMPLEX;
        try_chunks(request, &tiles, &params, ret);
        if (tiles.weight || request->saved_limit || !MODE_IS_ON("tiles:gauss")) continue;
        params.product = TILES_GAUSS;
        try_chunks(request, &tiles, &params, ret);
    }
    params.product = TILES_TRANSPOSED;
    if (may_transpose(&tiles)) try_chunks(request, &tiles, &params, ret);
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
