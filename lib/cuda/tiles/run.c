// SPDX-License-Identifier: MIT
// The calls of cuda/tiles: runs of groups and positions, each taken through spectra, products and
// back.
#include "cuda/device/call.h"
#include "tiles.h"

// One call: where its spectra are.
struct run {
    const struct cuda_call *call;
    const struct cuda_tiles_cut *cut;
    char *x, *d, *y, *sets;
    char *saved; // x of all runs: made by forward, read by backward weight; NULL: not kept
};

static struct run lay_out(const struct cuda_call *call, void *saved)
{
    const struct cuda_tiles_cut *cut = &((const struct tiles_plan *)call->plan->state)->cut;
    struct run run = {.call = call, .cut = cut, .x = call->workspace, .saved = saved};
    run.d = run.x + (cut->saved ? 0 : cut->x_bytes);
    run.y = run.d + cut->d_bytes;
    run.sets = run.y + cut->y_bytes;
    return run;
}

// The spectra of x, or gy of backward data, of one run.
static char *spectra_of(const struct run *run, const struct cuda_tiles_part *part)
{
    const struct cuda_tiles_part *most = &run->cut->most;
    if (!run->saved) return run->x;
    const int64_t before =
        part->first_group / most->groups * cuda_tiles_blocks(run->cut) + part->first / most->block;
    return run->saved + (size_t)before * run->cut->x_bytes;
}

// Samples to spectra and back.
static enum partita_status load(const struct run *run, const struct cuda_tiles_part *part,
                                bool outputs, void *spectra, const void *samples)
{
    return CU(run->call->plan, cuda_tiles_load(&run->cut->tiles, part, outputs, spectra, samples,
                                               cudaStreamPerThread));
}

static enum partita_status store(const struct run *run, const struct cuda_tiles_part *part,
                                 const void *bias)
{
    const struct cuda_call *call = run->call;
    const bool relu = call->plan->direction == PARTITA_FORWARD && call->plan->shape.relu;
    return CU(call->plan, cuda_tiles_store(&run->cut->tiles, part, call->to, run->y, bias, relu,
                                           cudaStreamPerThread));
}

static enum partita_status store_taps(const struct run *run, const struct cuda_tiles_part *part)
{
    const struct cuda_call *call = run->call;
    return CU(call->plan,
              cuda_tiles_store_taps(&run->cut->tiles, part, call->to, run->y, cudaStreamPerThread));
}

static enum partita_status multiply(const struct run *run, const struct cuda_tiles_part *part,
                                    void *to, const void *a, const void *b)
{
    const struct partita_plan *plan = run->call->plan;
    const struct cuda_product product = cuda_tiles_product(run->cut, part);
    return CU(plan, cuda_launch_product(&product, cuda_device_of(plan)->processors, to, a, b,
                                        cudaStreamPerThread));
}

// One run of groups and positions of forward or backward data.
static enum partita_status run_part(const struct run *run, const struct cuda_tiles_part *part,
                                    const struct tiles_filter *filter)
{
    const struct cuda_call *call = run->call;
    const char *const taps =
        (char *)filter->spectra + (size_t)part->first_group * run->cut->filter_group;
    char *const x = spectra_of(run, part);
    enum partita_status status = load(run, part, false, x, call->from[0]);
    if (status == PARTITA_OK) status = multiply(run, part, run->y, taps, x);
    if (status == PARTITA_OK)
        status = store(run, part, call->plan->direction == PARTITA_FORWARD ? filter->bias : NULL);
    return status;
}

// Sums of products over one run of positions, added to those of the runs before it.
static enum partita_status run_weight_part(const struct run *run,
                                           const struct cuda_tiles_part *part)
{
    const struct cuda_tiles_cut *cut = run->cut;
    const struct cuda_tiles *tiles = &cut->tiles;
    const struct cuda_call *call = run->call;
    const struct partita_plan *plan = call->plan;
    const int64_t n =
        part->groups * tiles->bins * tiles->in * tiles->out_pitch * (tiles->gauss ? 3 : 2);
    char *const x = spectra_of(run, part);
    enum partita_status status = PARTITA_OK;
    if (!cut->saved) status = load(run, part, false, x, call->from[0]);
    if (status == PARTITA_OK) status = load(run, part, true, run->d, call->from[1]);
    if (status == PARTITA_OK)
        status = multiply(run, part, cut->sets_bytes ? run->sets : run->y, x, run->d);
    if (status == PARTITA_OK && cut->sets_bytes)
        status = CU(plan, cuda_tiles_gather(tiles->f64, run->y, run->sets, n, cut->parts,
                                            part->first > 0, cudaStreamPerThread));
    return status;
}

static enum partita_status run_group(const struct run *run, struct cuda_tiles_part part,
                                     const struct tiles_filter *filter)
{
    const struct cuda_tiles *tiles = &run->cut->tiles;
    const struct cuda_call *call = run->call;
    const bool weight = call->plan->direction == PARTITA_BACKWARD_WEIGHT;
    enum partita_status status = PARTITA_OK;
    for (part.first = 0; part.first < tiles->positions && status == PARTITA_OK;
         part.first += part.block)
        status = weight ? run_weight_part(run, &part) : run_part(run, &part, filter);
    if (status == PARTITA_OK && weight) status = store_taps(run, &part);
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
        return CU(plan, cuda_tiles_fused(tiles, call->to, call->from[0], filter->spectra,
                                         forward ? filter->bias : NULL, forward && plan->shape.relu,
                                         cudaStreamPerThread));
    const int64_t n = tiles->groups * tiles->in * tiles->out * tiles->bins * 2;
    const struct cuda_tiles_part all = {.groups = tiles->groups};
    enum partita_status status =
        CU(plan, cuda_tiles_fused_weight(tiles, cut->parts > 1 ? run->sets : run->y, call->from[0],
                                         call->from[1], cut->parts, cudaStreamPerThread));
    if (status == PARTITA_OK && cut->parts > 1)
        status = CU(plan, cuda_tiles_gather(tiles->f64, run->y, run->sets, n, cut->parts, false,
                                            cudaStreamPerThread));
    if (status == PARTITA_OK)
        status =
            CU(plan, cuda_tiles_store_taps(tiles, &all, call->to, run->y, cudaStreamPerThread));
    return status;
}

static enum partita_status run_call(const struct run *run, const struct tiles_filter *filter)
{
    const struct cuda_call *call = run->call;
    const struct partita_plan *plan = call->plan;
    struct cuda_tiles_part part = run->cut->most;
    const int64_t groups = run->cut->tiles.groups, most = part.groups;
    const bool none = run->cut->tiles.positions == 0;
    enum partita_status status = PARTITA_OK;
    if (plan->direction != PARTITA_FORWARD && (none || !run->cut->covers))
        status = CU(plan, cudaMemsetAsync(call->to, 0, call->to_bytes, cudaStreamPerThread));
    if (run->cut->kind == CUDA_TILES_FUSED)
        return none || status != PARTITA_OK ? status : run_fused(run, filter);
    for (; part.first_group < groups && !none && status == PARTITA_OK; part.first_group += most) {
        part.groups = groups - part.first_group < most ? groups - part.first_group : most;
        status = run_group(run, part, filter);
    }
    return status;
}

enum partita_status cuda_tiles_run(const struct partita_plan *plan,
                                   const struct partita_filter *filter,
                                   const struct operands *operands, void *workspace)
{
    const struct cuda_sizes sizes = cuda_sizes_of(plan);
    struct cuda_call call;
    enum partita_status status = cuda_call_begin(plan, operands, &sizes, workspace, &call);
    if (status != PARTITA_OK) return cuda_call_end(&call, status);
    const struct run run = lay_out(&call, operands->cached_spectra);
    return cuda_call_end(&call, run_call(&run, filter ? filter->state : NULL));
}
