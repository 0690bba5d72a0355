// SPDX-License-Identifier: MIT
// cuda/tiles: layers by transforms of tiles, the algorithm of cpu/tiles (decision 15) as a device
// wants it (decision 22).
#include "tiles.h"

#include <assert.h>
#include <stdlib.h>

#include "core/plan.h"
#include "cuda/device/filter.h"
#include "geometry/tile_tables.h"

// The passes of one axis, its factors being at `first`.
static struct cuda_dft dft_of(const struct tile_dft *dft, size_t step, const char *first,
                              size_t element)
{
    struct cuda_dft ret = {.n = (int)dft->n, .passes = dft->passes, .step = (int)step};
    uint32_t length = (uint32_t)dft->n;
    ret.inverse_n = UINT32_MAX / length;
    for (int p = 0; p < dft->passes; p++) {
        ret.radix[p] = dft->radix[p];
        length /= dft->radix[p];
        ret.inverse[p] = UINT32_MAX / length;
        ret.twiddle[p] = (int)((size_t)((const char *)dft->twiddle[p] - first) / element);
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
    const enum partita_status status = cuda_upload(plan, arena.base, arena.used, &state->tables);
    for (int a = 0; a < 3; a++)
        tiles->dft[a] =
            dft_of(&tables.dft[a], tables.step[a], arena.base, 2 * (tiles->f64 ? 8 : 4));
    tiles->tables.twiddle = state->tables;
    tiles->tables.pair = (uint32_t *)((char *)state->tables + ((char *)tables.pair - arena.base));
    mem_release(&plan->allocator, arena.base);
    return status;
}

static enum partita_status cuda_tiles_plan_create(struct partita_plan *plan,
                                                  const struct request *request)
{
    struct cuda_tiles_choice choice;
    struct tiles_plan *state = mem_allocate(&plan->allocator, sizeof *state);
    plan->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    estimate_load(&plan->choice, &choice, sizeof choice);
    const bool splits = cuda_tiles_split(request, &choice, &state->layout);
    assert(splits);
    (void)splits;
    cuda_tiles_set_pairs(&state->layout, choice.pairs);
    cuda_tiles_set_batch(&state->layout, choice.groups, choice.blocks, choice.chunks);
    assert(cuda_tiles_workspace(&state->layout) == plan->choice.shared);
    return cuda_tiles_make_tables(plan, state);
}

static void cuda_tiles_plan_destroy(struct partita_plan *plan)
{
    struct tiles_plan *state = plan->state;
    if (!state) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, state->tables);
    mem_release(&plan->allocator, state);
}

static void cuda_tiles_plan_explain(const struct partita_plan *plan, struct text *text)
{
    static const char *const how[] = {"complex products", "products by Gauss, 3 real ones",
                                      "in one kernel"};
    const struct cuda_tiles_layout *layout = &((const struct tiles_plan *)plan->state)->layout;
    const struct cuda_tiles_axis *axis = layout->tiles.axis;
    text_add(
        text,
        "  tiles of %zux%zux%zu samples for %lldx%lldx%lld %s, %lld of them, %lld at once; %s\n",
        layout->n[0], layout->n[1], layout->n[2], (long long)axis[0].tile, (long long)axis[1].tile,
        (long long)axis[2].tile, layout->direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs",
        (long long)layout->tiles.positions, (long long)layout->batch.block,
        how[layout->choice.variant]);
}

static cudaError_t queue_tile_taps(const struct partita_plan *plan, void *spectra, const void *taps)
{
    const struct cuda_tiles *tiles = &((const struct tiles_plan *)plan->state)->layout.tiles;
    const struct cuda_tiles_batch all = {.groups = tiles->groups};
    return cuda_tiles_load_taps(tiles, &all, spectra, taps, cudaStreamPerThread);
}

static enum partita_status cuda_tiles_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct tiles_plan *state = filter->plan->state;
    return cuda_filter_transform(filter, taps, state->layout.filter_bytes, queue_tile_taps);
}

static size_t cached_spectra_bytes(const struct partita_plan *plan)
{
    const struct cuda_tiles_layout *layout = &((const struct tiles_plan *)plan->state)->layout;
    return size_mul((size_t)cuda_tiles_batches(layout), layout->x_bytes);
}

static enum partita_status cached_spectra_plan(const struct partita_plan *plan,
                                               const struct partita_plan *weight,
                                               struct partita_plan *ret_plan)
{
    const struct request request = {
        .shape = &plan->shape, .direction = PARTITA_BACKWARD_WEIGHT, .device = plan->device};
    const struct cuda_tiles_layout *forward = &((const struct tiles_plan *)plan->state)->layout;
    struct tiles_plan *state = mem_allocate(&plan->allocator, sizeof *state);
    if (!state) return PARTITA_ERR_NOMEM;
    cuda_tiles_choose_cached(&request, &forward->choice, &state->layout);
    *ret_plan = *weight;
    ret_plan->state = state;
    ret_plan->choice.transform = plan->choice.transform;
    ret_plan->choice.variant = plan->choice.variant;
    ret_plan->choice.hop = (size_t)state->layout.batch.block;
    ret_plan->choice.shared = cuda_tiles_workspace(&state->layout);
    return cuda_tiles_make_tables(ret_plan, state);
}

const struct engine cuda_tiles = {
    .name = "cuda/tiles",
    .variants = (const char *const[]){"complex", "gauss", "fused", NULL},
    .directions = CUDA_ALL_DIRECTIONS,
    .max_rank = PARTITA_MAX_RANK,
    .estimate = cuda_tiles_estimate,
    .plan_create = cuda_tiles_plan_create,
    .plan_destroy = cuda_tiles_plan_destroy,
    .plan_explain = cuda_tiles_plan_explain,
    .filter_create = cuda_tiles_filter_create,
    .filter_bias = cuda_filter_bias,
    .filter_destroy = cuda_filter_destroy,
    .run = cuda_tiles_run,
    .cached_spectra_bytes = cached_spectra_bytes,
    .cached_spectra_plan = cached_spectra_plan,
};
