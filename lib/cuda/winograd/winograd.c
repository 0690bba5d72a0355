// SPDX-License-Identifier: MIT
// cuda/winograd: layers by minimal filtering, F(m x m, r x r), on a device. All tiles of a batch
// are transformed into matrices, one for each frequency, products of these are summed over channels
// (over tiles, backward weight), and the sums are transformed back. Stride is polyphase, dilation
// sub-images (tile_grid.h), so both are served with the taps that are left. Source: Lavin & Gray,
// Fast algorithms for convolutional neural networks (2015), algorithm 1.
#include <assert.h>

#include "base/sizes.h"
#include "core/plan.h"
#include "cuda/device/bounded_call.h"
#include "cuda/device/filter.h"
#include "cuda/device/grid.h"
#include "cuda/device/rates.h"
#include "cuda/kernels/product.h"
#include "geometry/winograd_search.h"
#include "kernels.h"

_Static_assert((int)CUDA_PRODUCT_SEGMENT == (int)WINOGRAD_TERMS,
               "errors are predicted for chains as long as these");
_Static_assert((int)CUDA_WINOGRAD_AXES == (int)WINOGRAD_AXES, "the same axes");

enum {
    MAX_WORKSPACE = 256 << 20, // without a limit: batches that take longer than to queue them
    BATCH_TILES = 32,          // several batches are multiples of so many
    MAX_TILES = INT32_MAX,
};
// Times of a multiply-add for an element of a transformed tile, counted from the machine code
// (sm_90, F(4x4,3x3)).
static const double ELEMENT_SLOTS = 23;

// What an estimate decides.
struct cuda_winograd_choice {
    int split;      // the `number` of winograd_split
    size_t batch;   // tiles at once
    int64_t chunks; // backward weight: chunks of a batch's tiles, each with its own sums
    enum cuda_arithmetic arithmetic;
};

// The layout of one direction: the parameters of the kernels that are queued for a batch of tiles,
// without `first` and `n`. Forward and backward data: tiles of `from` are transformed and
// multiplied by the filter, and the sums are transformed to `to`. Backward weight: tiles of x
// (`from`) are multiplied by tiles of gy (`to`), and the sums are transformed to `taps`.
struct cuda_winograd {
    struct cuda_winograd_choice choice;
    struct cuda_winograd_tiles from, to;
    struct cuda_winograd_taps taps;
    struct cuda_product product;
    size_t tiles, frequencies;
    bool covers; // backward data: gx has no other samples
    // Bytes of matrices in the workspace, in this order: a batch's tiles; the other operand
    // (backward weight: tiles of gy; else 0, because it is the filter); sums.
    size_t from_bytes, other_bytes, sum_bytes;
};

static struct cuda_winograd_side winograd_side(const struct tile_axis *axis, bool outputs,
                                               bool branched)
{
    const struct tile_side *side = outputs ? &axis->out : &axis->in;
    const ptrdiff_t first = outputs ? tile_output(axis, 0) : tile_input(axis, 0);
    return (struct cuda_winograd_side){
        .size = (int64_t)side->size,
        .base = tile_sample(side, 0, 0, first),
        .image = (int64_t)side->image,
        .branch = (int64_t)side->branch,
        .step = (int64_t)side->step,
        .tile = (int64_t)axis->tile,
        .images = (int64_t)axis->images,
        .branches = branched ? (int64_t)axis->branches : 1,
        .tiles = (int64_t)axis->tiles,
        .extent = (int)axis->extent,
        .elements = (int)(outputs ? axis->tile : axis->extent),
    };
}

static struct cuda_winograd_tiles winograd_tiles_of(const struct tile_grid *grid, bool outputs,
                                                    enum cuda_element element, int64_t pitch)
{
    struct cuda_winograd_tiles tiles = {.groups = (int64_t)grid->groups,
                                        .channels = (int64_t)(outputs ? grid->out : grid->in),
                                        .pitch = pitch};
    for (int a = 0; a < CUDA_WINOGRAD_AXES; a++)
        tiles.axis[a] = winograd_side(&grid->axis[1 + a], outputs, outputs == grid->branches_out);
    const struct cuda_winograd_side *along = &tiles.axis[1];
    const int64_t vector = CUDA_PRODUCT_ALIGN / cuda_element_bytes(element);
    tiles.wide = along->step == 1 && along->base == 0 && along->tile % vector == 0 &&
                 along->tile * along->tiles == along->size;
    return tiles;
}

// The products of a batch: taps by tiles, or (backward weight) tiles of gy by tiles of x, along
// which the sums go.
static struct cuda_product product_of(const struct cuda_winograd *winograd, bool weight)
{
    const struct cuda_winograd_taps *taps = &winograd->taps;
    const int64_t pitch = winograd->from.pitch, batch = (int64_t)winograd->choice.batch;
    struct cuda_product product = {
        .element = winograd->product.element,
        .arithmetic = winograd->choice.arithmetic,
        .tf32_rate = winograd->product.tf32_rate,
        .batch = (int64_t)winograd->frequencies * taps->groups,
        .rows = taps->out,
        .columns = weight ? taps->in : batch,
        .terms = weight ? batch : taps->in,
        .a = {taps->pitch, taps->in * taps->pitch, false},
        .b = {pitch, taps->in * pitch, weight},
        .c = {pitch, taps->out * pitch, false},
        .chunks = winograd->choice.chunks,
    };
    if (weight) {
        product.a = (struct cuda_matrices){pitch, taps->out * pitch, true};
        product.c = (struct cuda_matrices){taps->pitch, taps->out * taps->pitch, false};
    }
    product.chunk_plane = product.batch * product.c.plane;
    return product;
}

static size_t workspace_of(const struct cuda_winograd *winograd)
{
    return winograd->from_bytes + winograd->other_bytes + winograd->sum_bytes;
}

// What a choice makes of a split.
static void lay_out_winograd(const struct request *request, const struct winograd_split *split,
                             const struct cuda_winograd_choice *choice, struct cuda_winograd *ret)
{
    const struct tile_grid *grid = &split->grid;
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const enum cuda_element element = shape->f64 ? CUDA_F64 : CUDA_F32;
    const int64_t pitch = cuda_product_pitch(element, (int64_t)choice->batch);
    assert(choice->batch > 0 && choice->chunks > 0);
    *ret = (struct cuda_winograd){
        .choice = *choice,
        .from = winograd_tiles_of(grid, false, element, pitch),
        .to = winograd_tiles_of(grid, true, element, pitch),
        .taps = {.map = cuda_tap_map_of(grid),
                 .extent = {(int)grid->axis[1].extent, (int)grid->axis[2].extent},
                 .groups = (int64_t)grid->groups,
                 .in = (int64_t)split->in,
                 .out = (int64_t)split->out,
                 .pitch = cuda_product_pitch(element, (int64_t)(weight ? split->in : split->out))},
        .product = {.element = element,
                    .tf32_rate = ((const struct cuda_device *)request->device)->rates.tf32},
        .tiles = size_mul(size_mul(grid->images, grid->batch), grid->tiles),
        .frequencies = split->frequencies,
        .covers = grid->covers,
    };
    ret->to.relu = shape->relu && request->direction == PARTITA_FORWARD;
    ret->product = product_of(ret, weight);
    const size_t scalar = shape->scalar_bytes, line = (size_t)pitch * scalar;
    assert(line % CUDA_PRODUCT_ALIGN == 0);
    const size_t lines = (size_t)ret->product.batch;
    ret->from_bytes = mem_round(size_mul(size_mul(lines, split->in), line));
    ret->other_bytes = weight ? mem_round(size_mul(size_mul(lines, split->out), line)) : 0;
    ret->sum_bytes =
        mem_round(size_mul((size_t)(ret->product.chunks * ret->product.chunk_plane), scalar));
}

// Tiles of a batch, each of so many bytes, that the workspace holds besides `taken` bytes.
static size_t tiles_at_once(size_t tiles, size_t bytes, size_t limit, size_t taken)
{
    const size_t most = (limit > taken ? limit - taken : 0) / bytes, vector = BATCH_TILES / 8;
    if (tiles <= most) return tiles;
    const size_t whole = most / BATCH_TILES * BATCH_TILES;
    if (whole == 0) return size_min(tiles, most < vector ? vector : most / vector * vector);
    return size_round_up(size_split_even(tiles, whole), BATCH_TILES);
}

// As few batches as the workspace allows; chunks as far as a quarter of it has room for their sums.
static void choose_winograd_batch(const struct request *request, const struct winograd_split *split,
                                  enum cuda_arithmetic arithmetic, struct cuda_winograd *ret)
{
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const size_t limit = size_min(request->workspace_limit, MAX_WORKSPACE);
    struct cuda_winograd_choice choice = {
        .split = split->number, .batch = 1, .chunks = 1, .arithmetic = arithmetic};
    lay_out_winograd(request, split, &choice, ret);
    if (weight) {
        const int64_t max = (int64_t)(limit / 4 / ret->sum_bytes);
        choice.chunks = cuda_product_chunks(&ret->product, (int64_t)ret->tiles, max);
        lay_out_winograd(request, split, &choice, ret);
    }
    const size_t lines = size_mul(split->grid.groups, split->in + split->out);
    const size_t tile = size_mul(split->frequencies * request->shape->scalar_bytes, lines);
    choice.batch = tiles_at_once(ret->tiles, tile, limit, weight ? ret->sum_bytes : 0);
    lay_out_winograd(request, split, &choice, ret);
}

static double cuda_winograd_seconds(const struct request *request,
                                    const struct cuda_winograd *winograd)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const struct cuda_rates rates = cuda_rates_of(request);
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double tiles = (double)winograd->tiles;
    const double batches = ceil(tiles / (double)winograd->choice.batch);
    const double in = (double)winograd->taps.in, out = (double)winograd->taps.out;
    // Scalars of a tile, or of a pair of channels.
    const double matrices = (double)shape->groups * (double)winograd->frequencies;
    // Tiles are written by one kernel and read by the next, and so are sums.
    const double between = matrices * tiles * (in + out);
    const double scalar = (double)shape->scalar_bytes;
    const double sums = weight ? (double)winograd->choice.chunks * (batches + 1) : batches;
    const double slots = cuda_product_slots(&winograd->product, device->processors);
    const struct cuda_stage transforms = {.launches = 2 * batches,
                                          .blocks = rates.threads,
                                          .threads = 1,
                                          .slots = ELEMENT_SLOTS * between,
                                          .bytes = cuda_sample_bytes(shape) + between * scalar};
    const struct cuda_stage products = {.launches = batches,
                                        .blocks = rates.threads,
                                        .threads = 1,
                                        .slots = batches * slots * device->processors,
                                        .bytes = (between + matrices * in * out * sums) * scalar};
    return cuda_stage_seconds(&rates, &transforms) + cuda_stage_seconds(&rates, &products);
}

static double split_growth(const struct tile_grid *grid)
{
    const struct tile_axis *down = &grid->axis[1], *along = &grid->axis[2];
    return winograd_error_growth(down->extent, down->taps) *
           winograd_error_growth(along->extent, along->taps);
}

static void try_cuda_split(const struct request *request, const struct winograd_split *split,
                           struct estimate *ret)
{
    const double in = (double)split->in, out = (double)split->out;
    struct cuda_winograd_choice other;
    struct cuda_winograd winograd;
    if (request->compatible_with) {
        estimate_load(request->compatible_with, &other, sizeof other);
        if (split->number != other.split) return;
    }
    const enum cuda_arithmetic arithmetic = cuda_arithmetic_within(
        request, winograd_budget(request), request->shape->f64 ? CUDA_F64 : CUDA_F32,
        split_growth(&split->grid), &ret->error);
    choose_winograd_batch(request, split, arithmetic, &winograd);
    if (winograd.tiles > MAX_TILES) return;
    const double matrices = (double)request->shape->groups * (double)split->frequencies;
    const double taps = matrices * in * (double)winograd.taps.pitch;
    ret->seconds = cuda_winograd_seconds(request, &winograd);
    ret->flops = 2 * matrices * in * out * (double)winograd.tiles;
    ret->shared = workspace_of(&winograd);
    ret->hop = winograd.choice.batch;
    ret->bytes = size_add(ret->shared, (size_t)taps * request->shape->scalar_bytes);
    estimate_store(ret, &winograd.choice, sizeof winograd.choice);
    ret->applicable = true;
}

static void cuda_winograd_estimate(const struct request *request, struct estimate *ret)
{
    if (request->shape->half) estimate_refuse(ret, "computes layers of f32 and f64 alone");
    else winograd_search(request, try_cuda_split, NULL, ret);
}

static enum partita_status cuda_winograd_plan_create(struct partita_plan *plan,
                                                     const struct request *request)
{
    struct cuda_winograd_choice choice;
    struct winograd_split split;
    plan->state = mem_allocate(&plan->allocator, sizeof(struct cuda_winograd));
    if (!plan->state) return PARTITA_ERR_NOMEM;
    estimate_load(&plan->choice, &choice, sizeof choice);
    const bool splits = winograd_split(request, choice.split, &split);
    assert(splits);
    (void)splits;
    lay_out_winograd(request, &split, &choice, plan->state);
    assert(workspace_of(plan->state) == plan->choice.shared);
    return PARTITA_OK;
}

// The matrices of a call in its workspace.
struct matrices {
    char *from, *other, *sums;
};

static struct matrices matrices_of(const struct partita_plan *plan, void *workspace)
{
    const struct cuda_winograd *winograd = plan->state;
    struct matrices at = {.from = workspace};
    at.other = at.from + winograd->from_bytes;
    at.sums = at.other + winograd->other_bytes;
    assert(at.sums + winograd->sum_bytes - at.from == (ptrdiff_t)plan->choice.shared);
    return at;
}

// The batch that begins at `first`.
static struct cuda_winograd_tiles tiles_from(const struct cuda_winograd *winograd,
                                             const struct cuda_winograd_tiles *of, size_t first)
{
    struct cuda_winograd_tiles tiles = *of;
    assert(first < winograd->tiles);
    tiles.first = (uint32_t)first;
    tiles.n = (uint32_t)size_min(winograd->tiles - first, winograd->choice.batch);
    return tiles;
}

static enum partita_status winograd_multiply(const struct partita_plan *plan,
                                             const struct cuda_product *product, void *c,
                                             const void *a, const void *b)
{
    return CU(plan, cuda_launch_product(product, cuda_device_of(plan)->processors, c, a, b));
}

static enum partita_status queue_outputs(const struct partita_plan *plan,
                                         const struct partita_filter *filter,
                                         const struct operands *operands, const struct matrices *at,
                                         size_t first)
{
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_filter *state = filter->state;
    const struct cuda_winograd_tiles from = tiles_from(winograd, &winograd->from, first);
    struct cuda_winograd_tiles to = tiles_from(winograd, &winograd->to, first);
    struct cuda_product product = winograd->product;
    const bool f64 = plan->shape.f64;
    assert(from.n <= (size_t)product.columns && from.n == to.n);
    product.columns = from.n;
    to.wide = to.wide && (uintptr_t)operands->to % CUDA_PRODUCT_ALIGN == 0;
    enum partita_status status =
        CU(plan, cuda_winograd_input(&from, f64, at->from, operands->from[0]));
    if (status == PARTITA_OK)
        status = winograd_multiply(plan, &product, at->sums, state->taps, at->from);
    if (status != PARTITA_OK) return status;
    return CU(plan,
              cuda_winograd_output(&to, f64, operands->to, at->sums, cuda_filter_added(filter)));
}

static enum partita_status queue_sums(const struct partita_plan *plan,
                                      const struct operands *operands, const struct matrices *at,
                                      size_t first)
{
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_winograd_tiles x = tiles_from(winograd, &winograd->from, first);
    const struct cuda_winograd_tiles gy = tiles_from(winograd, &winograd->to, first);
    struct cuda_product product = winograd->product;
    const bool f64 = plan->shape.f64;
    assert(x.n <= (size_t)product.terms && x.n == gy.n);
    product.terms = x.n;
    product.onto = first > 0;
    enum partita_status status =
        CU(plan, cuda_winograd_input(&x, f64, at->from, operands->from[0]));
    if (status == PARTITA_OK)
        status = CU(plan, cuda_winograd_gradient(&gy, f64, at->other, operands->from[1]));
    if (status != PARTITA_OK) return status;
    return winograd_multiply(plan, &product, at->sums, at->other, at->from);
}

static enum partita_status cuda_winograd_run(const struct partita_plan *plan,
                                             const struct partita_filter *filter,
                                             const struct operands *operands, void *workspace)
{
    const struct cuda_winograd *winograd = plan->state;
    const bool weight = plan->direction == PARTITA_BACKWARD_WEIGHT;
    const struct matrices at = matrices_of(plan, workspace);
    const size_t batch = winograd->choice.batch;
    enum partita_status status = PARTITA_OK;
    if (!winograd->covers) status = cuda_clear_result(plan, operands->to);
    for (size_t first = 0; first < winograd->tiles && status == PARTITA_OK; first += batch)
        status = weight ? queue_sums(plan, operands, &at, first)
                        : queue_outputs(plan, filter, operands, &at, first);
    if (!weight || status != PARTITA_OK) return status;
    return CU(plan, cuda_winograd_weight(&winograd->taps, plan->shape.f64, operands->to, at.sums,
                                         winograd->choice.chunks));
}

static struct filter_bytes cuda_winograd_filter_bytes(const struct partita_plan *plan)
{
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_winograd_taps *of = &winograd->taps;
    const size_t lines = size_mul(winograd->frequencies, (size_t)(of->groups * of->in));
    return (struct filter_bytes){.packed =
                                     size_mul(lines, (size_t)of->pitch * plan->shape.scalar_bytes)};
}

static enum partita_status cuda_winograd_filter_pack(struct partita_filter *filter,
                                                     const void *taps, const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct cuda_winograd *winograd = plan->state;
    const struct cuda_filter *state = filter->state;
    (void)scratch;
    return CU(plan, cuda_winograd_filter(&winograd->taps, plan->shape.f64, state->taps, taps));
}

const struct engine cuda_winograd = {
    .name = "cuda/winograd",
    .max_rank = CUDA_WINOGRAD_AXES,
    .real = true,
    .estimate = cuda_winograd_estimate,
    .plan_create = cuda_winograd_plan_create,
    .filter_bytes = cuda_winograd_filter_bytes,
    .filter_pack = cuda_winograd_filter_pack,
    .filter_create = cuda_filter_create,
    .filter_bias = cuda_filter_bias,
    .filter_destroy = cuda_filter_destroy,
    .directions = CUDA_ALL_DIRECTIONS,
    .run = cuda_winograd_run,
};
