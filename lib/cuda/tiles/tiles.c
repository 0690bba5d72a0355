// SPDX-License-Identifier: MIT
// cuda/tiles: layers by transforms of tiles, the algorithm of cpu/tiles (decision 15) as a device
// wants it (decision 22). Its kinds are engines too, so that each can be asked for, tested and
// timed by name.
#include "tiles.h"

#include <stdlib.h>

#include "cuda/device/call.h"
#include "geometry/tile_tables.h"

static void estimate_complex(const struct request *request, struct estimate *ret)
{
    cuda_tiles_estimate(request, CUDA_TILES_COMPLEX, ret);
}

static void estimate_gauss(const struct request *request, struct estimate *ret)
{
    cuda_tiles_estimate(request, CUDA_TILES_GAUSS, ret);
}

static void estimate_fused(const struct request *request, struct estimate *ret)
{
    cuda_tiles_estimate(request, CUDA_TILES_FUSED, ret);
}

static void estimate_auto(const struct request *request, struct estimate *ret)
{
    struct estimate best = {0};
    for (int kind = 0; kind < CUDA_TILES_KINDS; kind++) {
        struct estimate estimate = {0};
        if (request->compatible_with && request->compatible_with->variant != kind) continue;
        cuda_tiles_estimate(request, (enum cuda_tiles_kind)kind, &estimate);
        if (kind == 0 ||
            (estimate.applicable && (!best.applicable || estimate.seconds < best.seconds)))
            best = estimate;
    }
    *ret = best;
}

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
static enum partita_status make_tables(struct partita_plan *plan, struct tiles_plan *state)
{
    struct cuda_tiles *tiles = &state->cut.tiles;
    struct tile_tables transform;
    struct arena arena = {0};
    tile_tables_make(state->cut.n, tiles->f64, &arena, &transform);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    tile_tables_make(state->cut.n, tiles->f64, &arena, &transform);
    qsort(transform.pair, transform.bins, 2 * sizeof *transform.pair, by_element);
    const enum partita_status status = cuda_keep(plan, arena.base, arena.used, &state->tables);
    for (int a = 0; a < 3; a++)
        tiles->dft[a] =
            dft_of(&transform.dft[a], transform.step[a], arena.base, 2 * (tiles->f64 ? 8 : 4));
    tiles->tables.twiddle = state->tables;
    tiles->tables.pair =
        (uint32_t *)((char *)state->tables + ((char *)transform.pair - arena.base));
    mem_release(&plan->allocator, arena.base);
    return status;
}

static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    struct tiles_plan *state = mem_allocate(&plan->allocator, sizeof *state);
    plan->state = state;
    if (!state) return PARTITA_ERR_NOMEM;
    cuda_tiles_cut(request, plan->choice.transform, (enum cuda_tiles_kind)plan->choice.variant,
                   request->workspace_limit, &state->cut); // as estimate saw, it can be cut
    return make_tables(plan, state);
}

static void plan_destroy(struct partita_plan *plan)
{
    struct tiles_plan *state = plan->state;
    if (!state) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, state->tables);
    mem_release(&plan->allocator, state);
}

static void plan_explain(const struct partita_plan *plan, struct text *text)
{
    static const char *const how[] = {"complex products", "products by Gauss, 3 real ones",
                                      "in one kernel"};
    const struct cuda_tiles_cut *cut = &((const struct tiles_plan *)plan->state)->cut;
    const struct cuda_tiles_axis *axis = cut->tiles.axis;
    text_add(
        text,
        "  tiles of %zux%zux%zu samples for %lldx%lldx%lld %s, %lld of them, %lld at once; %s\n",
        cut->n[0], cut->n[1], cut->n[2], (long long)axis[0].tile, (long long)axis[1].tile,
        (long long)axis[2].tile, cut->direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs",
        (long long)cut->tiles.positions, (long long)cut->most.block, how[cut->kind]);
}

static enum partita_status make_spectra(const struct partita_plan *plan, const void *taps,
                                        void *spectra)
{
    const struct tiles_plan *state = plan->state;
    const struct cuda_tiles_part all = {.groups = state->cut.tiles.groups};
    const enum partita_status status =
        CU(plan, cuda_tiles_load_taps(&state->cut.tiles, &all, spectra, taps, cudaStreamPerThread));
    const enum partita_status waited = cuda_wait(plan);
    return status == PARTITA_OK ? waited : status;
}

static enum partita_status filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct tiles_plan *state = plan->state;
    const struct shape *shape = &plan->shape;
    const size_t bytes =
        shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
    void *copy = NULL;
    bool owns;
    struct tiles_filter *tiles = mem_allocate(&plan->allocator, sizeof *tiles);
    filter->state = tiles;
    if (!tiles) return PARTITA_ERR_NOMEM;
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_owns(plan, taps, &owns);
    if ((uintptr_t)taps % shape->tap_bytes) owns = false; // kernels read whole samples
    if (status == PARTITA_OK && !owns) status = cuda_keep(plan, taps, bytes, &copy);
    if (status == PARTITA_OK)
        status = cuda_allocate(plan, state->cut.filter_bytes, &tiles->spectra);
    if (status == PARTITA_OK) status = make_spectra(plan, owns ? taps : copy, tiles->spectra);
    cuda_release(plan, copy);
    return status;
}

static enum partita_status filter_bias(struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    struct tiles_filter *tiles = filter->state;
    return cuda_keep(filter->plan, bias, shape->out_channels * shape->scalar_bytes, &tiles->bias);
}

static void filter_destroy(struct partita_filter *filter)
{
    const struct partita_plan *plan = filter->plan;
    struct tiles_filter *tiles = filter->state;
    if (!tiles) return;
    CU(plan, cudaSetDevice(cuda_device_of(plan)->index));
    cuda_release(plan, tiles->spectra);
    cuda_release(plan, tiles->bias);
    mem_release(&plan->allocator, tiles);
}

static size_t saved_bytes(const struct partita_plan *plan)
{
    const struct cuda_tiles_cut *cut = &((const struct tiles_plan *)plan->state)->cut;
    return cut->kind == CUDA_TILES_FUSED ? 0 : size_mul((size_t)cuda_tiles_runs(cut), cut->x_bytes);
}

// Backward weight cut as forward was.
static enum partita_status saved_plan(const struct partita_plan *plan,
                                      const struct partita_plan *weight,
                                      struct partita_plan *ret_plan)
{
    const struct request request = {
        .shape = &plan->shape, .direction = PARTITA_BACKWARD_WEIGHT, .device = plan->device};
    struct tiles_plan *state = mem_allocate(&plan->allocator, sizeof *state);
    if (!state) return PARTITA_ERR_NOMEM;
    cuda_tiles_cut_saved(&request, &((const struct tiles_plan *)plan->state)->cut, &state->cut);
    *ret_plan = *weight;
    ret_plan->state = state;
    ret_plan->choice.transform = plan->choice.transform;
    ret_plan->choice.variant = plan->choice.variant;
    ret_plan->choice.hop = (size_t)state->cut.most.block;
    ret_plan->choice.shared = cuda_tiles_workspace(&state->cut);
    return make_tables(ret_plan, state);
}

#define TILES(kind_name, kind_estimate)                                                            \
    {                                                                                              \
        .name = kind_name, .max_rank = PARTITA_MAX_RANK, .estimate = kind_estimate,                \
        .plan_create = plan_create, .plan_destroy = plan_destroy, .plan_explain = plan_explain,    \
        .filter_create = filter_create, .filter_bias = filter_bias,                                \
        .filter_destroy = filter_destroy, .directions = CUDA_ALL_DIRECTIONS,                       \
        .run = cuda_tiles_run, .cached_spectra_bytes = saved_bytes,                                \
        .cached_spectra_plan = saved_plan                                                          \
    }

const struct engine cuda_tiles = TILES("cuda/tiles", estimate_auto);
const struct engine cuda_tiles_complex = TILES("cuda/tiles-complex", estimate_complex);
const struct engine cuda_tiles_gauss = TILES("cuda/tiles-gauss", estimate_gauss);
const struct engine cuda_tiles_fused_kind = TILES("cuda/tiles-fused", estimate_fused);
