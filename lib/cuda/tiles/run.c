// SPDX-License-Identifier: MIT
// The calls of cuda/tiles: batches of groups and positions, each taken through spectra, products
// and back.
#include <assert.h>

#include "cuda/device/call.h"
#include "cuda/device/filter.h"
#include "cuda/kernels/sums.h"
#include "tiles.h"

// One call: where its spectra are.
struct tiles_call {
    const struct cuda_call *call;
    const struct cuda_tiles_layout *layout;
    const struct cuda_filter *filter; // NULL: backward weight
    const void *bias;
    char *x, *d, *y, *sums;
    char *cached; // x of all batches: written by forward, read by backward weight; NULL: none
};

static struct tiles_call tiles_call_of(const struct cuda_call *call,
                                       const struct partita_filter *filter, void *cached)
{
    const struct cuda_tiles_layout *layout =
        &((const struct tiles_plan *)call->plan->state)->layout;
    struct tiles_call of = {.call = call, .layout = layout, .x = call->workspace, .cached = cached};
    of.d = of.x + (layout->cached ? 0 : layout->x_bytes);
    of.y = of.d + layout->d_bytes;
    of.sums = of.y + layout->y_bytes;
    assert(of.sums + layout->sum_bytes - of.x <= (ptrdiff_t)call->plan->choice.shared);
    assert(!cached || !layout->tiles.fused);
    if (filter) {
        of.filter = filter->state;
        of.bias = cuda_filter_added(filter);
    }
    return of;
}

// The spectra of x, or gy of backward data, of one batch.
static char *spectra_of(const struct tiles_call *of, const struct cuda_tiles_batch *batch)
{
    const struct cuda_tiles_layout *layout = of->layout;
    const struct cuda_tiles_batch *most = &layout->batch;
    if (!of->cached) return of->x;
    const int64_t blocks = (layout->tiles.positions + most->block - 1) / most->block;
    const int64_t before = batch->first_group / most->groups * blocks + batch->first / most->block;
    assert(before < cuda_tiles_batches(layout));
    return of->cached + (size_t)before * layout->x_bytes;
}

static enum partita_status load_spectra(const struct tiles_call *of,
                                        const struct cuda_tiles_batch *batch, bool outputs,
                                        void *spectra)
{
    const void *samples = of->call->from[outputs]; // gy of backward weight is the second
    return CU(of->call->plan, cuda_tiles_load(&of->layout->tiles, batch, outputs, spectra, samples,
                                              cudaStreamPerThread));
}

static enum partita_status multiply_spectra(const struct tiles_call *of,
                                            const struct cuda_tiles_batch *batch, void *to,
                                            const void *a, const void *b)
{
    const struct partita_plan *plan = of->call->plan;
    const struct cuda_product product = cuda_tiles_product(of->layout, batch);
    return CU(plan, cuda_launch_product(&product, cuda_device_of(plan)->processors, to, a, b,
                                        cudaStreamPerThread));
}

static enum partita_status add_sums(const struct tiles_call *of, int64_t n, bool onto)
{
    const struct cuda_chunks chunks = {n, of->layout->choice.chunks, onto};
    return CU(of->call->plan, cuda_add_chunks(&chunks, of->layout->tiles.f64, of->y, of->sums,
                                              cudaStreamPerThread));
}

static enum partita_status store_gradient(const struct tiles_call *of,
                                          const struct cuda_tiles_batch *batch)
{
    const struct cuda_call *call = of->call;
    return CU(call->plan, cuda_tiles_store_taps(&of->layout->tiles, batch, call->to, of->y,
                                                cudaStreamPerThread));
}

// One batch of forward or backward data.
static enum partita_status cuda_tiles_run_batch(const struct tiles_call *of,
                                                const struct cuda_tiles_batch *batch)
{
    const struct cuda_call *call = of->call;
    const char *const taps =
        (char *)of->filter->taps + (size_t)batch->first_group * of->layout->filter_group;
    char *const x = spectra_of(of, batch);
    enum partita_status status = load_spectra(of, batch, false, x);
    if (status == PARTITA_OK) status = multiply_spectra(of, batch, of->y, taps, x);
    if (status == PARTITA_OK)
        status = CU(call->plan, cuda_tiles_store(&of->layout->tiles, batch, call->to, of->y,
                                                 of->bias, cudaStreamPerThread));
    return status;
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
    const struct cuda_call *call = of->call;
    const struct partita_plan *plan = call->plan;
    if (layout->direction != PARTITA_BACKWARD_WEIGHT)
        return CU(plan, cuda_tiles_fused(tiles, call->to, call->from[0], of->filter->taps, of->bias,
                                         cudaStreamPerThread));
    const int64_t n = tiles->groups * tiles->in * tiles->out * tiles->bins * 2;
    assert(layout->y_bytes >= (size_t)n * (tiles->f64 ? 8 : 4));
    const int64_t chunks = layout->choice.chunks;
    const struct cuda_tiles_batch all = {.groups = tiles->groups};
    enum partita_status status =
        CU(plan, cuda_tiles_fused_weight(tiles, chunks > 1 ? of->sums : of->y, call->from[0],
                                         call->from[1], chunks, cudaStreamPerThread));
    if (status == PARTITA_OK && chunks > 1) status = add_sums(of, n, false);
    if (status == PARTITA_OK) status = store_gradient(of, &all);
    return status;
}

static enum partita_status run_all(const struct tiles_call *of)
{
    const struct cuda_call *call = of->call;
    const struct partita_plan *plan = call->plan;
    struct cuda_tiles_batch batch = of->layout->batch;
    assert(batch.groups > 0 && batch.block > 0);
    const int64_t groups = of->layout->tiles.groups, most = batch.groups;
    const bool none = of->layout->tiles.positions == 0;
    enum partita_status status = PARTITA_OK;
    if (plan->direction != PARTITA_FORWARD && (none || !of->layout->covers))
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    if (none || status != PARTITA_OK) return status;
    if (of->layout->tiles.fused) return run_fused(of);
    for (; batch.first_group < groups && status == PARTITA_OK; batch.first_group += most) {
        batch.groups = groups - batch.first_group < most ? groups - batch.first_group : most;
        status = run_group(of, batch);
    }
    return status;
}

enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace)
{
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, NULL, workspace, &call);
    if (status != PARTITA_OK) return cuda_call_end(&call, status);
    const struct tiles_call of = tiles_call_of(&call, filter, operands->cached_spectra);
    return cuda_call_end(&call, run_all(&of));
}
