// SPDX-License-Identifier: MIT
// cuda/tiles: layers by transforms of tiles, the algorithm of cpu/tiles (decision 15) in a form for
// devices (decision 22).
#include <assert.h>
#include <stdlib.h>

#include "core/plan.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/queued_call.h"
#include "cuda/kernels/sums.h"
#include "geometry/tile_tables.h"
#include "tiles.h"

struct tiles_plan { // plan->state
    struct cuda_tiles_layout layout;
    void *tables; // in the device's memory
};

static const struct cuda_tiles_layout *layout_of(const struct partita_plan *plan)
{
    return &((const struct tiles_plan *)plan->state)->layout;
}

// The passes of one axis, its factors being at `first`.
static struct cuda_dft dft_of(const struct lanes_dft *dft, size_t step, const char *first,
                              size_t element)
{
    struct cuda_dft ret = {.n = (int)dft->n, .passes = dft->passes, .step = (int)step};
    uint32_t length = (uint32_t)dft->n;
    ret.inverse_n = UINT32_MAX / length;
    for (int p = 0; p < dft->passes; p++) {
        ret.radix[p] = dft->radix[p];
        length /= dft->radix[p];
        ret.inverse[p] = UINT32_MAX / length;
        if (dft->factors[p])
            ret.factors[p] = (int)((size_t)((const char *)dft->factors[p] - first) / element);
    }
    return ret;
}

// Bins in the order of their elements, so that neighbouring threads read neighbours in shared
// memory.
static int by_element(const void *a, const void *b)
{
    const uint32_t at_a = *(const uint32_t *)a, at_b = *(const uint32_t *)b;
    return (at_a > at_b) - (at_a < at_b);
}

// The tables of the transform, made on the host and copied.
static enum partita_status cuda_tiles_make_tables(struct partita_plan *plan,
                                                  struct tiles_plan *state)
{
    struct cuda_tiles *tiles = &state->layout.tiles;
    struct tile_tables tables;
    struct arena arena = {0};
    tile_tables_make(state->layout.n, tiles->f64, &arena, &tables);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    tile_tables_make(state->layout.n, tiles->f64, &arena, &tables);
    qsort(tables.pair, tables.bins, 2 * sizeof *tables.pair, by_element);
    struct cuda_scope scope;
    enum partita_status status = cuda_enter(plan, &scope);
    if (status == PARTITA_OK) status = cuda_upload(plan, arena.base, arena.used, &state->tables);
    cuda_leave(&scope);
    for (int a = 0; a < 3; a++)
        tiles->dft[a] =
            dft_of(&tables.dft[a], tables.step[a], arena.base, 2 * (tiles->f64 ? 8 : 4));
    tiles->tables.factors = state->tables;
    tiles->tables.pair = (uint32_t *)((char *)state->tables + ((char *)tables.pair - arena.base));
    mem_release(&plan->allocator, arena.base);
    return status;
}

static enum partita_status cuda_tiles_plan_create(struct partita_plan *plan,
                                                  const struct request *request)
{
    struct cuda_tiles_choice choice;
    struct tiles_plan *state = plan->state;
    estimate_load(&plan->choice, &choice, sizeof choice);
    cuda_tiles_lay_out(request, &choice, &state->layout);
    return cuda_tiles_make_tables(plan, state);
}

static void cuda_tiles_plan_destroy(struct partita_plan *plan)
{
    plan->device->release(plan, ((struct tiles_plan *)plan->state)->tables);
}

static void cuda_tiles_plan_explain(const struct partita_plan *plan, struct text *text)
{
    static const char *const how[] = {"complex products", "products by Gauss, 3 real ones",
                                      "in one kernel"};
    const struct cuda_tiles_layout *layout = layout_of(plan);
    const struct cuda_tiles_axis *axis = layout->tiles.axis;
    text_add(
        text,
        "  tiles of %zux%zux%zu samples for %lldx%lldx%lld %s, %lld of them, %lld at once; %s\n",
        layout->n[0], layout->n[1], layout->n[2], (long long)axis[0].tile, (long long)axis[1].tile,
        (long long)axis[2].tile,
        layout->layer.direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs",
        (long long)layout->tiles.positions, (long long)layout->layer.choice.batch,
        how[layout->choice.variant]);
}

static enum partita_status cached_spectra_plan(const struct partita_plan *plan,
                                               const struct partita_plan *weight,
                                               struct partita_plan *ret_plan)
{
    const struct request request = {
        .shape = &plan->shape, .direction = PARTITA_BACKWARD_WEIGHT, .device = plan->device};
    struct tiles_plan *state = mem_allocate(&plan->allocator, sizeof *state);
    if (!state) return PARTITA_ERR_NOMEM;
    cuda_tiles_choose_cached(&request, &layout_of(plan)->choice, &state->layout);
    *ret_plan = *weight;
    ret_plan->state = state;
    ret_plan->choice.transform = plan->choice.transform;
    ret_plan->choice.variant = plan->choice.variant;
    ret_plan->choice.hop = (size_t)state->layout.layer.choice.batch;
    ret_plan->choice.shared = cuda_layer_workspace(&state->layout.layer);
    const enum partita_status status = cuda_tiles_make_tables(ret_plan, state);
    return status == PARTITA_OK ? cuda_load(ret_plan, true) : status;
}

static struct cuda_layer_part tiles_part(const struct partita_plan *plan, size_t number)
{
    const struct cuda_tiles_layout *layout = layout_of(plan);
    const int64_t max = layout->choice.groups, left = layout->tiles.groups - (int64_t)number * max;
    return cuda_tiles_groups(layout, left < max ? left : max);
}

static cudaError_t tiles_queue(const struct cuda_layer_batch *batch, enum cuda_layer_move move,
                               void *to, const void *from, const void *bias)
{
    const struct cuda_tiles_layout *layout = layout_of(batch->plan);
    const struct cuda_tiles *tiles = &layout->tiles;
    const struct cuda_product *product = &batch->product;
    const struct cuda_tiles_batch range = {
        .first_group = (int64_t)batch->number * layout->choice.groups,
        .groups = batch->part.matrices / (tiles->bins * (tiles->gauss ? 3 : 1)),
        .first = batch->first,
        .block = batch->n,
        .pitch = layout->layer.pitch};
    if (move != CUDA_PACK && move != CUDA_UNPACK)
        return cuda_tiles_queue_samples(tiles, &range, move, to, from, bias);
    if (move == CUDA_UNPACK) {
        const int64_t reals = product->chunk_plane * (tiles->gauss ? 1 : 2);
        void *const sums = (void *)(uintptr_t)from;
        const cudaError_t error =
            cuda_launch_add_sums(tiles->f64, sums, sums, reals, product->chunks);
        if (error != cudaSuccess) return error;
    }
    return cuda_tiles_queue_taps(tiles, &range, move, to, from);
}

const struct cuda_transform cuda_tiles_transform = {tiles_part, tiles_queue};

// Without spectra of samples in memory.
static enum partita_status run_fused(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *sums)
{
    const struct cuda_tiles *tiles = &layout_of(plan)->tiles;
    const struct cuda_layer_batch whole = cuda_layer_whole(plan, 0);
    if (filter)
        return CU(plan, cuda_tiles_fused(tiles, operands->to, operands->from[0],
                                         cuda_filter_taps(filter), cuda_filter_added(filter)));
    const enum partita_status status =
        CU(plan, cuda_tiles_fused_weight(tiles, sums, operands->from[0], operands->from[1],
                                         whole.product.chunks));
    return status == PARTITA_OK
               ? CU(plan, tiles_queue(&whole, CUDA_UNPACK, operands->to, sums, NULL))
               : status;
}

static enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                          const struct partita_filter *filter,
                                          const struct operands *operands, void *workspace)
{
    const struct cuda_tiles_layout *layout = layout_of(plan);
    if (!layout->tiles.fused || layout->tiles.positions == 0)
        return cuda_layer_run(plan, filter, operands, workspace);
    assert(!operands->saved[SAVED_X]);
    const enum partita_status status =
        layout->layer.covers ? PARTITA_OK : cuda_clear_result(plan, operands->to);
    return status == PARTITA_OK ? run_fused(plan, filter, operands, workspace) : status;
}

const struct engine cuda_tiles = {
    .name = "cuda/tiles",
    .variants = (const char *const[]){"complex", "gauss", "fused", NULL},
    .directions = CUDA_ALL_DIRECTIONS,
    .max_rank = PARTITA_MAX_RANK,
    .half = true,
    .estimate = cuda_tiles_estimate,
    .state_bytes = sizeof(struct tiles_plan),
    .plan_create = cuda_tiles_plan_create,
    .plan_destroy = cuda_tiles_plan_destroy,
    .explain = cuda_tiles_plan_explain,
    .filter = {CUDA_FILTER_OPS(cuda_layer_filter_bytes, cuda_layer_filter_pack)},
    .bounded = {.run = cuda_tiles_run,
                .cached_bytes = cuda_layer_cached_bytes,
                .cached_plan = cached_spectra_plan},
};
