// SPDX-License-Identifier: MIT
// Layers by transforms of tiles (decision 15). A layer is a grid of tiles without stride or
// dilation (geometry/tile_grid.h). Tiles overlap by the taps, as in overlap-save along every axis;
// the products of all tiles and channels at one frequency are one matrix product. Backward data are
// the same with gy and reversed taps; backward weight multiplies x by the conjugate of gy without
// its overlap, sums over tiles and keeps the lags that are taps. Directions that share transforms
// have one grid: backward data then transposes forward, with the spectra of gy of backward weight
// and the factors of forward, and adds windows of gx (overlap-add). Source: Mathieu, Henaff &
// LeCun, Fast training of convolutional networks through FFTs (2013); Zlateski, Jia, Li & Durand,
// FFT convolutions are faster than Winograd on modern CPUs, here's why (2018), for tiles of any
// size.
#include "tiles.h"

#include <assert.h>
#include <string.h>

// One arena: the plan's state, then its tables.
static void *build_state(const struct partita_plan *plan, const struct request *request,
                         struct arena *arena)
{
    struct tiles *state = arena_take(arena, sizeof *state), tiles;
    struct tiles_params params;
    estimate_load(&plan->choice, &params, sizeof params);
    const bool made = tiles_layout(request, &params, &tiles);
    assert(made && tiles.batch == params.batch);
    assert(tiles_worker_bytes(&tiles) == plan->choice.worker);
    (void)made;
    tile_tables_make(tiles.n, request->shape->f64, arena, &tiles.tables);
    tiles.offset = arena_take(arena, 2 * tiles.chunk * sizeof *tiles.offset);
    if (!state) return NULL;
    // Where terms of a complex product begin in the packed rows [-im | re | im] of channels.
    for (size_t i = 0; i < 2 * tiles.chunk; i++)
        tiles.offset[i] = (i / 2 * 3 + (i % 2 ? 0 : 1)) * tiles.batch;
    *state = tiles;
    return state;
}

static void tiles_plan_explain(const struct partita_plan *plan, struct text *text)
{
    static const char *const products[] = {[TILES_COMPLEX] = "complex products",
                                           [TILES_GAUSS] = "products by Gauss, 3 real ones",
                                           [TILES_TRANSPOSED] =
                                               "products with output channels along the vectors"};
    const struct tiles *p = plan->state;
    const struct tile_axis *axis = p->grid.axis;
    text_add(text,
             "  tiles of %zux%zux%zu samples for %zux%zux%zu %s, %zu of them in blocks of %zu, %zu "
             "channels at once; %s\n",
             p->n[0], p->n[1], p->n[2], axis[0].tile, axis[1].tile, axis[2].tile,
             p->weight || p->windows ? "of gy" : "outputs", p->positions, p->batch, p->oc_chunk,
             products[p->product]);
}

// Memory of a worker that transforms taps, with the spectra of a pair of lines.
static size_t taps_worker_bytes(const struct tiles *p)
{
    return size_add(tiles_worker_bytes(p), size_mul(p->bins, 4 * (size_t)TILE_LINE_BYTES));
}

static struct filter_bytes tiles_filter_bytes(const struct partita_plan *plan)
{
    const struct tiles *p = plan->state;
    return (struct filter_bytes){
        .packed = size_mul(tiles_filter_scalars(p, p->bins), p->grid.scalar_bytes),
        .scratch = size_mul((size_t)plan->threads, taps_worker_bytes(p))};
}

static enum partita_status tiles_filter_pack(struct partita_filter *filter, const void *taps,
                                             const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct tiles *p = plan->state;
    const size_t worker = taps_worker_bytes(p);
    struct tiles_call call = {.plan = plan,
                              .p = p,
                              .kernels = plan->kernels,
                              .x = taps,
                              .to = filter->state,
                              .threads = plan_threads_in(plan, scratch, worker),
                              .workers = scratch->data,
                              .worker_bytes = worker};
    for (; call.group < p->grid.groups; call.group++) tiles_move(&call, TILES_TAPS);
    return PARTITA_OK;
}

static size_t batch_count(const struct tiles *p)
{
    return ceil_div(p->positions, p->batch);
}

static void set_positions(const struct tiles_call *call)
{
    const struct tile_grid *grid = &call->p->grid;
    for (size_t i = 0; i < call->p->batch; i++) {
        const size_t position = call->first + i, map = position / grid->tiles;
        struct tiles_position *at = &call->spectra.position[i];
        at->item = map / grid->images;
        tile_grid_image(grid, map % grid->images, at->image);
        tile_grid_tile(grid, position % grid->tiles, at->tile);
    }
}

static void run_chunks(struct tiles_call *call)
{
    const struct tiles *p = call->p;
    for (call->oc_first = 0; call->oc_first < p->out; call->oc_first += p->oc_chunk) {
        call->oc_n = size_min(p->oc_chunk, p->out - call->oc_first);
        tiles_multiply(call);
        tiles_move(call, TILES_Y);
    }
}

static void run_batch(struct tiles_call *call)
{
    const struct tiles *p = call->p;
    const size_t batch = call->group * batch_count(p) + call->first / p->batch;
    const struct saved_slot *x = call->saved[SAVED_X], *gy = call->saved[SAVED_GY];
    if (x) call->spectra.x = (char *)x->data + batch * tiles_spectra_bytes(p, p->x_bin);
    if (gy) call->spectra.gy = (char *)gy->data + batch * tiles_spectra_bytes(p, p->gy_bin);
    assert(!gy || p->weight || p->windows);
    set_positions(call);
    if (!p->windows && !(x && x->ready)) tiles_move(call, TILES_X);
    if ((p->weight || p->windows) && !(gy && gy->ready)) tiles_move(call, TILES_GY);
    if (p->weight && p->product == TILES_TRANSPOSED) tiles_gradient(call);
    else if (p->weight || p->windows) tiles_multiply(call);
    else run_chunks(call);
    if (p->windows) tiles_move(call, TILES_GX);
}

static enum partita_status tiles_run(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace)
{
    const struct tiles *p = plan->state;
    struct tiles_call call = {.plan = plan,
                              .p = p,
                              .kernels = plan->kernels,
                              .filter = filter,
                              .x = operands->from[0],
                              .gy = operands->from[p->weight],
                              .to = operands->to,
                              .threads = plan->threads,
                              .saved = {operands->saved[SAVED_X], operands->saved[SAVED_GY]},
                              .peak = operands->peak,
                              .workers = (char *)workspace + plan->choice.shared,
                              .worker_bytes = plan->choice.worker};
    struct arena arena = {.base = workspace};
    call.spectra = tiles_layout_shared(p, !operands->from[0], &arena);
    assert(arena.used <= plan->choice.shared);
    // Samples of gx that no tap reads, and those to which windows are added.
    const bool gaps = !p->grid.covers || p->positions == 0 || p->windows;
    if (plan->direction == PARTITA_BACKWARD_DATA && gaps)
        memset(call.to, 0, shape_samples(&plan->shape, false) * plan->shape.sample_bytes);
    for (; call.group < p->grid.groups; call.group++) {
        for (call.first = 0; call.first < p->positions; call.first += p->batch) run_batch(&call);
        if (p->weight && p->product != TILES_TRANSPOSED) tiles_move(&call, TILES_GW);
    }
    return PARTITA_OK;
}

static size_t tiles_cached_bytes(const struct partita_plan *plan)
{
    const struct tiles *p = plan->state;
    return size_mul(size_mul(p->grid.groups, batch_count(p)),
                    tiles_spectra_bytes(p, p->windows ? p->gy_bin : p->x_bin));
}

// Batches are those of forward, since they are as even as whole lines can be.
static enum partita_status tiles_cached_plan(const struct partita_plan *plan,
                                             const struct partita_plan *gradient,
                                             struct partita_plan *ret_plan)
{
    const struct request request = {.shape = &plan->shape, .direction = gradient->direction};
    const bool weight = gradient->direction == PARTITA_BACKWARD_WEIGHT;
    struct tiles_params params;
    struct tiles tiles;
    estimate_load(&plan->choice, &params, sizeof params);
    tiles_params_share(&params, gradient->direction);
    const bool made = tiles_layout(&request, &params, &tiles);
    assert(made && tiles.x_bin == ((const struct tiles *)plan->state)->x_bin);
    (void)made;
    *ret_plan = *gradient;
    ret_plan->state = NULL;
    ret_plan->choice = plan->choice;
    ret_plan->choice.peaks = !weight;
    ret_plan->choice.shared = tiles_shared_bytes(&tiles, weight && !plan->shares);
    ret_plan->choice.worker = tiles_worker_bytes(&tiles);
    estimate_store(&ret_plan->choice, &params, sizeof params);
    return plan_create_state(ret_plan, &request);
}

const struct engine engine_tiles = {
    .name = "cpu/tiles",
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .channels_last = true,
    .layers = true,
    .estimate = tiles_estimate,
    .build = build_state,
    .explain = tiles_plan_explain,
    .directions = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT,
    .filter = {.bytes = tiles_filter_bytes, .pack = tiles_filter_pack},
    .bounded = {.run = tiles_run,
                .cached_bytes = tiles_cached_bytes,
                .cached_plan = tiles_cached_plan},
};
