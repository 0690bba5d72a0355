// SPDX-License-Identifier: MIT
// cuda/tiles: layers by transforms of tiles, the algorithm of cpu/tiles (decision 15) as a device wants it (decision
// 22). Its kinds are engines too, so that each can be asked for, tested and timed by name.
#include "tiles.h"

#include <stdlib.h>

#include "../cpu/tile_transform.h"
#include "call.h"

struct tiles_plan {
    struct cuda_tiles_cut cut;
    void *tables; // in the device's memory
};

// Spectra and bias in the device's memory.
struct tiles_filter {
    void *spectra, *bias; // bias NULL: none
};

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
        cuda_tiles_estimate(request, (enum cuda_tiles_kind)kind, &estimate);
        if (kind == 0 || (estimate.applicable && (!best.applicable || estimate.seconds < best.seconds)))
            best = estimate;
    }
    *ret = best;
}

// The passes of one axis, its factors being at `first`.
static struct cuda_dft dft_of(const struct tile_dft *dft, size_t step, const char *first, size_t element)
{
    struct cuda_dft ret = {.n = (int)dft->n, .passes = dft->passes, .step = (int)step};
    for (int p = 0; p < dft->passes; p++) {
        ret.radix[p] = dft->radix[p];
        ret.twiddle[p] = (int)((size_t)((const char *)dft->twiddle[p] - first) / element);
    }
    return ret;
}

// Bins in the order of their elements, so that neighbouring threads read neighbours in shared memory.
static int by_element(const void *a, const void *b)
{
    const uint32_t at_a = *(const uint32_t *)a, at_b = *(const uint32_t *)b;
    return (at_a > at_b) - (at_a < at_b);
}

// The tables of the transform, made on the host and copied.
static enum partita_status make_tables(struct partita_plan *plan, struct tiles_plan *state)
{
    struct cuda_tiles *tiles = &state->cut.tiles;
    struct tile_transform transform;
    struct arena arena = {0};
    tile_transform_make(state->cut.n, tiles->f64, &arena, &transform);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    tile_transform_make(state->cut.n, tiles->f64, &arena, &transform);
    qsort(transform.pair, transform.bins, 2 * sizeof *transform.pair, by_element);
    const enum partita_status status = cuda_keep(plan, arena.base, arena.used, &state->tables);
    for (int a = 0; a < 3; a++)
        tiles->dft[a] = dft_of(&transform.dft[a], transform.step[a], arena.base, 2 * (tiles->f64 ? 8 : 4));
    tiles->tables.twiddle = state->tables;
    tiles->tables.pair = (uint32_t *)((char *)state->tables + ((char *)transform.pair - arena.base));
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
    const struct cuda_tiles_cut *cut = &((const struct tiles_plan *)plan->state)->cut;
    const struct cuda_tiles_axis *axis = cut->tiles.axis;
    text_add(text, "  tiles of %zux%zux%zu samples for %lldx%lldx%lld %s, %lld of them, %lld at once; %s\n", cut->n[0],
             cut->n[1], cut->n[2], (long long)axis[0].tile, (long long)axis[1].tile, (long long)axis[2].tile,
             cut->direction == PARTITA_BACKWARD_WEIGHT ? "of gy" : "outputs", (long long)cut->tiles.positions,
             (long long)cut->most.block, cut->tiles.gauss ? "products by Gauss, 3 real ones" : "complex products");
}

static enum partita_status make_spectra(const struct partita_plan *plan, const void *taps, void *spectra)
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
    const size_t bytes = shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
    void *copy = NULL;
    bool owns;
    struct tiles_filter *tiles = mem_allocate(&plan->allocator, sizeof *tiles);
    filter->state = tiles;
    if (!tiles) return PARTITA_ERR_NOMEM;
    enum partita_status status = cuda_enter(plan);
    if (status == PARTITA_OK) status = cuda_owns(plan, taps, &owns);
    if (status == PARTITA_OK && !owns) status = cuda_keep(plan, taps, bytes, &copy);
    if (status == PARTITA_OK) status = cuda_allocate(plan, state->cut.filter_bytes, &tiles->spectra);
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

// One call: where its spectra are.
struct run {
    const struct cuda_call *call;
    const struct cuda_tiles_cut *cut;
    char *x, *d, *y, *sets;
};

static struct run lay_out(const struct cuda_call *call)
{
    const struct cuda_tiles_cut *cut = &((const struct tiles_plan *)call->plan->state)->cut;
    struct run run = {.call = call, .cut = cut, .x = call->workspace};
    run.d = run.x + cut->x_bytes;
    run.y = run.d + cut->d_bytes;
    run.sets = run.y + cut->y_bytes;
    return run;
}

static enum partita_status multiply(const struct run *run, const struct cuda_tiles_part *part, void *to, const void *a,
                                    const void *b)
{
    const struct partita_plan *plan = run->call->plan;
    const struct cuda_product product = cuda_tiles_product(run->cut, part);
    return CU(plan, cuda_launch_product(&product, cuda_device_of(plan)->processors, to, a, b, cudaStreamPerThread));
}

// One run of groups and positions of forward or backward data.
static enum partita_status run_part(const struct run *run, const struct cuda_tiles_part *part,
                                    const struct tiles_filter *filter)
{
    const struct cuda_tiles *tiles = &run->cut->tiles;
    const struct cuda_call *call = run->call;
    const struct partita_plan *plan = call->plan;
    const bool forward = plan->direction == PARTITA_FORWARD;
    const size_t of_group = run->cut->filter_bytes / (size_t)tiles->groups;
    enum partita_status status =
        CU(plan, cuda_tiles_load(tiles, part, false, run->x, call->from[0], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = multiply(run, part, run->y, (char *)filter->spectra + (size_t)part->first_group * of_group, run->x);
    if (status == PARTITA_OK)
        status = CU(plan, cuda_tiles_store(tiles, part, call->to, run->y, forward ? filter->bias : NULL,
                                           forward && plan->shape.relu, cudaStreamPerThread));
    return status;
}

// Sums of products over one run of positions, added to those of the runs before it.
static enum partita_status run_weight_part(const struct run *run, const struct cuda_tiles_part *part)
{
    const struct cuda_tiles_cut *cut = run->cut;
    const struct cuda_tiles *tiles = &cut->tiles;
    const struct cuda_call *call = run->call;
    const struct partita_plan *plan = call->plan;
    const int64_t n = part->groups * tiles->bins * tiles->in * tiles->out_pitch * 2;
    enum partita_status status =
        CU(plan, cuda_tiles_load(tiles, part, false, run->x, call->from[0], cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = CU(plan, cuda_tiles_load(tiles, part, true, run->d, call->from[1], cudaStreamPerThread));
    if (status == PARTITA_OK) status = multiply(run, part, cut->sets_bytes ? run->sets : run->y, run->x, run->d);
    if (status == PARTITA_OK && cut->sets_bytes)
        status = CU(plan, cuda_tiles_gather(tiles->f64, run->y, run->sets, n, cut->parts, part->first > 0,
                                            cudaStreamPerThread));
    return status;
}

static enum partita_status run_group(const struct run *run, struct cuda_tiles_part part,
                                     const struct tiles_filter *filter)
{
    const struct cuda_tiles *tiles = &run->cut->tiles;
    const struct cuda_call *call = run->call;
    const bool weight = call->plan->direction == PARTITA_BACKWARD_WEIGHT;
    enum partita_status status = PARTITA_OK;
    for (part.first = 0; part.first < tiles->positions && status == PARTITA_OK; part.first += part.block)
        status = weight ? run_weight_part(run, &part) : run_part(run, &part, filter);
    if (status == PARTITA_OK && weight)
        status = CU(call->plan, cuda_tiles_store_taps(tiles, &part, call->to, run->y, cudaStreamPerThread));
    return status;
}

// The same without spectra of samples in memory.
static enum partita_status run_fused(const struct run *run, const struct tiles_filter *filter)
{
    const struct cuda_tiles_cut *cut = run->cut;
    const struct cuda_tiles *tiles = &cut->tiles;
    const struct cuda_call *call = run->call;
    const struct partita_plan *plan = call->plan;
    const bool forward = plan->direction == PARTITA_FORWARD;
    if (plan->direction != PARTITA_BACKWARD_WEIGHT)
        return CU(plan, cuda_tiles_fused(tiles, call->to, call->from[0], filter->spectra, forward ? filter->bias : NULL,
                                         forward && plan->shape.relu, cudaStreamPerThread));
    const int64_t n = tiles->groups * tiles->in * tiles->out * tiles->bins * 2;
    const struct cuda_tiles_part all = {.groups = tiles->groups};
    enum partita_status status =
        CU(plan, cuda_tiles_fused_weight(tiles, cut->parts > 1 ? run->sets : run->y, call->from[0], call->from[1],
                                         cut->parts, cudaStreamPerThread));
    if (status == PARTITA_OK && cut->parts > 1)
        status = CU(plan, cuda_tiles_gather(tiles->f64, run->y, run->sets, n, cut->parts, false, cudaStreamPerThread));
    if (status == PARTITA_OK)
        status = CU(plan, cuda_tiles_store_taps(tiles, &all, call->to, run->y, cudaStreamPerThread));
    return status;
}

static enum partita_status run_call(const struct cuda_call *call, const struct tiles_filter *filter)
{
    const struct run run = lay_out(call);
    const struct partita_plan *plan = call->plan;
    const int64_t groups = run.cut->tiles.groups;
    const bool none = run.cut->tiles.positions == 0;
    enum partita_status status = PARTITA_OK;
    if (plan->direction != PARTITA_FORWARD && (none || !run.cut->covers))
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    if (run.cut->kind == CUDA_TILES_FUSED) return none || status != PARTITA_OK ? status : run_fused(&run, filter);
    struct cuda_tiles_part part = run.cut->most;
    for (int64_t g = 0; g < groups && !none && status == PARTITA_OK; g += run.cut->most.groups) {
        part.first_group = g;
        part.groups = groups - g < run.cut->most.groups ? groups - g : run.cut->most.groups;
        status = run_group(&run, part, filter);
    }
    return status;
}

static struct cuda_sizes sizes_of(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const size_t scalar = shape->scalar_bytes, x = shape->batch * shape->in_channels * shape_inputs(shape) * scalar;
    const size_t y = shape->batch * shape->out_channels * shape_outputs(shape) * scalar;
    struct cuda_sizes sizes = {.workspace = plan->choice.shared, .from = {x}, .to = y};
    if (plan->direction == PARTITA_BACKWARD_DATA) sizes.to = x, sizes.from[0] = y;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) {
        sizes.to = shape->out_channels * shape->group_in * shape_taps(shape) * scalar;
        sizes.from[1] = y;
    }
    return sizes;
}

static enum partita_status run(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace)
{
    const struct cuda_sizes sizes = sizes_of(plan);
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status == PARTITA_OK) status = run_call(&call, filter ? filter->state : NULL);
    return cuda_call_end(&call, status);
}

#define TILES(kind_name, kind_estimate)                                                                                \
    {                                                                                                                  \
        .name = kind_name, .max_rank = PARTITA_MAX_RANK, .estimate = kind_estimate, .plan_create = plan_create,        \
        .plan_destroy = plan_destroy, .plan_explain = plan_explain, .filter_create = filter_create,                    \
        .filter_bias = filter_bias, .filter_destroy = filter_destroy, .run = run                                       \
    }

const struct engine cuda_tiles = TILES("cuda/tiles", estimate_auto);
const struct engine cuda_tiles_complex = TILES("cuda/tiles-complex", estimate_complex);
const struct engine cuda_tiles_gauss = TILES("cuda/tiles-gauss", estimate_gauss);
const struct engine cuda_tiles_fused_kind = TILES("cuda/tiles-fused", estimate_fused);
