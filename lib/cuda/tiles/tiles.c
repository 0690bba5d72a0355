// SPDX-License-Identifier: MIT
// cuda/tiles: layers by transforms of tiles, the algorithm of cpu/tiles (decision 15) in a form for
// devices (decision 22).
#include <assert.h>
#include <stdlib.h>

#include "core/plan.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/kernels/sums.h"
#include "geometry/tile_tables.h"
#include "tiles.h"

struct tiles_plan { // plan->state
    struct cuda_tiles_layout layout;
    void *tables; // in the device's memory
};

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
    cuda_tiles_lay_out(request, &choice, &state->layout);
    assert(cuda_tiles_workspace(&state->layout) == plan->choice.shared);
    return cuda_tiles_make_tables(plan, state);
}

static void cuda_tiles_plan_destroy(struct partita_plan *plan)
{
    struct tiles_plan *state = plan->state;
    if (!state) return;
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

static struct filter_bytes cuda_tiles_filter_bytes(const struct partita_plan *plan)
{
    const struct tiles_plan *state = plan->state;
    return (struct filter_bytes){.packed = state->layout.filter_bytes};
}

static enum partita_status cuda_tiles_filter_pack(struct partita_filter *filter, const void *taps,
                                                  const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_tiles *tiles = &((const struct tiles_plan *)plan->state)->layout.tiles;
    const struct cuda_tiles_batch all = {.groups = tiles->groups};
    const struct cuda_filter *state = filter->state;
    (void)scratch;
    return CU(plan, cuda_tiles_load_taps(tiles, &all, state->taps, taps));
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

// One call: its arrays, and where its spectra are in the workspace.
struct tiles_call {
    const struct partita_plan *plan;
    const struct operands *operands;
    const struct cuda_tiles_layout *layout;
    const struct cuda_filter *filter; // NULL: backward weight
    const void *bias;
    char *x, *d, *y, *sums;
};

// The spectra of x, or gy of backward data, of one batch.
static char *spectra_of(const struct tiles_call *of, const struct cuda_tiles_batch *batch)
{
    const struct cuda_tiles_layout *layout = of->layout;
    const struct cuda_tiles_batch *most = &layout->batch;
    char *const cached = of->operands->cached_spectra;
    if (!cached) return of->x;
    const int64_t blocks = (layout->tiles.positions + most->block - 1) / most->block;
    const int64_t before = batch->first_group / most->groups * blocks + batch->first / most->block;
    assert(before < cuda_tiles_batches(layout));
    return cached + (size_t)before * layout->x_bytes;
}

static enum partita_status load_spectra(const struct tiles_call *of,
                                        const struct cuda_tiles_batch *batch, bool outputs,
                                        void *spectra)
{
    const void *samples = of->operands->from[outputs]; // gy of backward weight is the second
    return CU(of->plan, cuda_tiles_load(&of->layout->tiles, batch, outputs, spectra, samples));
}

static enum partita_status multiply_spectra(const struct tiles_call *of,
                                            const struct cuda_tiles_batch *batch, void *to,
                                            const void *a, const void *b)
{
    const int processors = cuda_device_of(of->plan)->processors;
    const struct cuda_product product = cuda_tiles_product(of->layout, batch);
    return CU(of->plan, cuda_launch_product(&product, processors, to, a, b));
}

// Reals n of each chunk.
static enum partita_status add_sums(const struct tiles_call *of, int64_t n, bool onto)
{
    const struct cuda_chunks chunks = {n, of->layout->choice.chunks, onto};
    return CU(of->plan, cuda_add_chunks(&chunks, of->layout->tiles.f64, of->y, of->sums));
}

static enum partita_status store_gradient(const struct tiles_call *of,
                                          const struct cuda_tiles_batch *batch)
{
    return CU(of->plan, cuda_tiles_store_taps(&of->layout->tiles, batch, of->operands->to, of->y));
}

// One batch of forward or backward data.
static enum partita_status cuda_tiles_run_batch(const struct tiles_call *of,
                                                const struct cuda_tiles_batch *batch)
{
    const char *const taps =
        (char *)of->filter->taps + (size_t)batch->first_group * of->layout->filter_group;
    char *const x = spectra_of(of, batch);
    enum partita_status status = load_spectra(of, batch, false, x);
    if (status == PARTITA_OK) status = multiply_spectra(of, batch, of->y, taps, x);
    if (status != PARTITA_OK) return status;
    return CU(of->plan,
              cuda_tiles_store(&of->layout->tiles, batch, of->operands->to, of->y, of->bias));
}

// Sums of products over one batch of positions, added to those of the batches before it.
static enum partita_status run_weight_batch(const struct tiles_call *of,
                                            const struct cuda_tiles_batch *batch)
{
    const struct cuda_tiles_layout *layout = of->layout;
    const struct cuda_tiles *tiles = &layout->tiles;
    const int64_t n =
        batch->groups * tiles->bins * tiles->in * tiles->out_pitch * (tiles->gauss ? 3 : 2);
    char *const x = spectra_of(of, batch), *const to = layout->sum_bytes ? of->sums : of->y;
    enum partita_status status = PARTITA_OK;
    if (!layout->cached) status = load_spectra(of, batch, false, x);
    if (status == PARTITA_OK) status = load_spectra(of, batch, true, of->d);
    if (status == PARTITA_OK) status = multiply_spectra(of, batch, to, x, of->d);
    if (status == PARTITA_OK && layout->sum_bytes) status = add_sums(of, n, batch->first > 0);
    return status;
}

static enum partita_status run_group(const struct tiles_call *of, struct cuda_tiles_batch batch)
{
    const bool weight = of->layout->direction == PARTITA_BACKWARD_WEIGHT;
    enum partita_status status = PARTITA_OK;
    for (batch.first = 0; batch.first < of->layout->tiles.positions && status == PARTITA_OK;
         batch.first += batch.block)
        status = weight ? run_weight_batch(of, &batch) : cuda_tiles_run_batch(of, &batch);
    if (status == PARTITA_OK && weight) status = store_gradient(of, &batch);
    return status;
}

// The same without spectra of samples in memory.
static enum partita_status run_fused(const struct tiles_call *of)
{
    const struct cuda_tiles_layout *layout = of->layout;
    const struct cuda_tiles *tiles = &layout->tiles;
    const struct operands *operands = of->operands;
    if (of->filter)
        return CU(of->plan, cuda_tiles_fused(tiles, operands->to, operands->from[0],
                                             of->filter->taps, of->bias));
    const int64_t n = tiles->groups * tiles->in * tiles->out * tiles->bins * 2;
    assert(layout->y_bytes >= (size_t)n * (tiles->f64 ? 8 : 4));
    const int64_t chunks = layout->choice.chunks;
    void *const to = chunks > 1 ? of->sums : of->y;
    const struct cuda_tiles_batch all = {.groups = tiles->groups};
    enum partita_status status = CU(
        of->plan, cuda_tiles_fused_weight(tiles, to, operands->from[0], operands->from[1], chunks));
    if (status == PARTITA_OK && chunks > 1) status = add_sums(of, n, false);
    return status == PARTITA_OK ? store_gradient(of, &all) : status;
}

static enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                          const struct partita_filter *filter,
                                          const struct operands *operands, void *workspace)
{
    const struct cuda_tiles_layout *layout = &((const struct tiles_plan *)plan->state)->layout;
    struct tiles_call of = {.plan = plan, .operands = operands, .layout = layout, .x = workspace};
    of.d = of.x + (layout->cached ? 0 : layout->x_bytes);
    of.y = of.d + layout->d_bytes;
    of.sums = of.y + layout->y_bytes;
    assert(of.sums + layout->sum_bytes - of.x <= (ptrdiff_t)plan->choice.shared);
    assert(!operands->cached_spectra || !layout->tiles.fused);
    if (filter) of.filter = filter->state, of.bias = cuda_filter_added(filter);
    struct cuda_tiles_batch batch = layout->batch;
    assert(batch.groups > 0 && batch.block > 0);
    const int64_t groups = layout->tiles.groups, most = batch.groups;
    const bool none = layout->tiles.positions == 0;
    enum partita_status status = PARTITA_OK;
    if (plan->direction != PARTITA_FORWARD && (none || !layout->covers))
        status = cuda_clear_result(plan, operands->to);
    if (none || status != PARTITA_OK) return status;
    if (layout->tiles.fused) return run_fused(&of);
    for (; batch.first_group < groups && status == PARTITA_OK; batch.first_group += most) {
        batch.groups = groups - batch.first_group < most ? groups - batch.first_group : most;
        status = run_group(&of, batch);
    }
    return status;
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
    .filter_bytes = cuda_tiles_filter_bytes,
    .filter_pack = cuda_tiles_filter_pack,
    .filter_create = cuda_filter_create,
    .filter_bias = cuda_filter_bias,
    .filter_destroy = cuda_filter_destroy,
    .run = cuda_tiles_run,
    .cached_spectra_bytes = cached_spectra_bytes,
    .cached_spectra_plan = cached_spectra_plan,
};
