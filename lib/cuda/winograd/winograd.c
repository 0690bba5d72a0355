// SPDX-License-Identifier: MIT
// cuda/winograd: layers by minimal filtering, F(m x m, r x r), on a device. All tiles of a run are
// transformed into matrices, one for each frequency, products of these are summed over channels
// (over tiles, backward weight), and the sums are transformed back. This file chooses tiles and
// runs; winograd_run.c queues them. Stride is polyphase, dilation sub-images (tile_grid.h), so both
// are served with the taps that are left. Source: Lavin & Gray, Fast algorithms for convolutional
// neural networks (2015), algorithm 1.
#include "winograd.h"

#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "base/winograd_matrix.h"
#include "geometry/winograd_error.h"

_Static_assert((int)CUDA_PRODUCT_SEGMENT == (int)WINOGRAD_TERMS,
               "errors are predicted for chains as long as these");

enum {
    MOST_BYTES =
        256 << 20, // of matrices, where there is no limit: runs that take longer than to queue them
    TILES_AT_ONCE = 32,   // runs are of whole such, if there are several
    ENOUGH_BLOCKS = 1024, // of products: several for each processor of any device
    BLOCK_EDGE = 64,      // of C in one such block, about
    MOST_TILES = INT32_MAX,
};
static const double LAUNCH = 3e-6; // seconds to queue a kernel
// Times of a multiply-add for an element of a transformed tile, counted from the machine code
// (sm_90, F(4x4,3x3)).
static const double ELEMENT = 23;

static struct cuda_winograd_side side_of(const struct tile_axis *axis, bool outputs,
                                         bool has_phases)
{
    const struct tile_side *side = outputs ? &axis->out : &axis->in;
    const ptrdiff_t first = outputs ? tile_output(axis, 0) : tile_input(axis, 0);
    return (struct cuda_winograd_side){
        .size = (int64_t)side->size,
        .base = tile_sample(side, 0, 0, first),
        .image = (int64_t)side->image,
        .phase = (int64_t)side->phase,
        .step = (int64_t)side->step,
        .tile = (int64_t)axis->tile,
        .images = (int64_t)axis->images,
        .phases = has_phases ? (int64_t)axis->phases : 1,
        .tiles = (int64_t)axis->tiles,
        .extent = (int)axis->extent,
        .elements = (int)(outputs ? axis->tile : axis->extent),
    };
}

static struct cuda_winograd_tiles tiles_of(const struct cuda_winograd *winograd, bool outputs,
                                           size_t run)
{
    const struct tile_grid *grid = &winograd->grid;
    const enum cuda_element element = winograd->product.element;
    struct cuda_winograd_tiles tiles = {.groups = (int64_t)grid->groups,
                                        .channels = (int64_t)(outputs ? grid->out : grid->in),
                                        .pitch = cuda_product_pitch(element, (int64_t)run)};
    for (int a = 0; a < CUDA_WINOGRAD_AXES; a++)
        tiles.axis[a] =
            side_of(cuda_winograd_axis(winograd, a), outputs, outputs == grid->phases_out);
    const struct cuda_winograd_side *along = &tiles.axis[1];
    const int64_t vector = CUDA_PRODUCT_ALIGN / cuda_element_bytes(element);
    tiles.wide = along->step == 1 && along->base == 0 && along->tile % vector == 0 &&
                 along->tile * along->tiles == along->size;
    return tiles;
}

static struct cuda_winograd_taps taps_of(const struct cuda_winograd *winograd, size_t in,
                                         size_t out, bool weight)
{
    const struct tile_grid *grid = &winograd->grid;
    struct cuda_winograd_taps taps = {
        .groups = (int64_t)grid->groups,
        .in = (int64_t)in,
        .out = (int64_t)out,
        .pitch = cuda_product_pitch(winograd->product.element, (int64_t)(weight ? in : out)),
        .phases_out = grid->phases_out,
        .flip = grid->flip,
    };
    for (int a = 0; a < CUDA_WINOGRAD_AXES; a++) {
        const struct tile_axis *axis = cuda_winograd_axis(winograd, a);
        taps.axis[a].kernel = (int64_t)axis->kernel;
        taps.axis[a].period = (int64_t)axis->period;
        taps.axis[a].phases = (int64_t)axis->phases;
        taps.axis[a].extent = (int)axis->extent;
        taps.axis[a].taps = (int)axis->taps;
        taps.reversed = axis->reversed;
    }
    return taps;
}

// The products of a run: taps by tiles, or (backward weight) tiles of gy by tiles of x, along which
// the sums go.
static void set_product(struct cuda_winograd *winograd, size_t in, size_t out, size_t run,
                        bool weight)
{
    struct cuda_product *product = &winograd->product;
    const int64_t pitch = cuda_product_pitch(product->element, (int64_t)run);
    const int64_t taps_pitch = winograd->taps.pitch;
    product->batch = (int64_t)(winograd->frequencies * winograd->grid.groups);
    product->rows = (int64_t)out;
    product->columns = (int64_t)(weight ? in : run);
    product->terms = (int64_t)(weight ? run : in);
    product->b = (struct cuda_matrices){pitch, (int64_t)in * pitch, weight};
    if (weight) {
        product->a = (struct cuda_matrices){pitch, (int64_t)out * pitch, true};
        product->c = (struct cuda_matrices){taps_pitch, (int64_t)out * taps_pitch, false};
    } else {
        product->a = (struct cuda_matrices){taps_pitch, (int64_t)in * taps_pitch, false};
        product->c = (struct cuda_matrices){pitch, (int64_t)out * pitch, false};
    }
    product->part_plane = product->batch * product->c.plane;
}

// Backward weight: parts of the tiles that are summed by blocks of their own, where blocks are few
// without, as far as a quarter of the workspace has room for their sums.
static size_t parts_of(const struct cuda_winograd *winograd, size_t in, size_t out, size_t limit)
{
    const size_t pairs = winograd->frequencies * winograd->grid.groups;
    const size_t blocks = size_mul(pairs, ceil_div(in, BLOCK_EDGE) * ceil_div(out, BLOCK_EDGE));
    const size_t bytes =
        size_mul(size_mul(pairs, out), (size_t)winograd->taps.pitch * winograd->grid.scalar_bytes);
    const size_t parts =
        size_min(size_min(ceil_div(ENOUGH_BLOCKS, blocks), winograd->tiles / CUDA_PRODUCT_SEGMENT),
                 limit / 4 / bytes);
    return parts > 1 ? parts : 1;
}

// Tiles of a run, by what the workspace holds besides `taken` bytes.
static size_t cut_run(const struct cuda_winograd *winograd, size_t lines, size_t limit,
                      size_t taken)
{
    const size_t bytes = size_mul(winograd->frequencies * winograd->grid.scalar_bytes, lines);
    const size_t most = (limit > taken ? limit - taken : 0) / bytes, vector = TILES_AT_ONCE / 8;
    if (winograd->tiles <= most) return winograd->tiles;
    size_t run = most / TILES_AT_ONCE * TILES_AT_ONCE;
    if (run == 0) return size_min(winograd->tiles, most < vector ? vector : most / vector * vector);
    run = ceil_div(winograd->tiles, ceil_div(winograd->tiles, run));
    return ceil_div(run, TILES_AT_ONCE) * TILES_AT_ONCE;
}

static void set_bytes(struct cuda_winograd *winograd, size_t in, size_t out, bool weight)
{
    const struct cuda_product *product = &winograd->product;
    const size_t batch = (size_t)product->batch, scalar = winograd->grid.scalar_bytes;
    const size_t pitch = (size_t)winograd->from.pitch;
    winograd->from_bytes = mem_round(size_mul(size_mul(batch, in), pitch * scalar));
    winograd->other_bytes = weight ? mem_round(size_mul(size_mul(batch, out), pitch * scalar)) : 0;
    winograd->sum_bytes =
        mem_round(size_mul((size_t)(product->parts * product->part_plane), scalar));
}

// Seconds and error of what was decided.
static void account(const struct cuda_winograd *winograd, const struct request *request,
                    struct estimate *ret)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double scalar = (double)shape->scalar_bytes, tiles = (double)winograd->tiles;
    const double runs = ceil(tiles / (double)winograd->run), groups = (double)shape->groups;
    const double in = (double)winograd->taps.in, out = (double)winograd->taps.out;
    const double matrices = groups * (double)winograd->frequencies *
                            scalar; // bytes of a tile, or of a pair of channels
    const double rate =
        device->flops / 2 / (shape->f64 ? device->f64_share : 1) / device->processors;
    const double samples =
        (double)shape->batch * ((double)shape->in_channels * (double)shape_inputs(shape) +
                                (double)shape->out_channels * (double)shape_outputs(shape));
    // Tiles are written by one kernel and read by the next, and so are sums.
    const double between = matrices * tiles * (in + out);
    const double taps =
        matrices * in * out * (weight ? (double)winograd->product.parts * (runs + 1) : runs);
    const double transforms = fmax(ELEMENT * between / scalar / (rate * device->processors),
                                   (samples * scalar + between) / device->bytes);
    const double products =
        runs * cuda_product_slots(&winograd->product, device->processors) / rate;
    ret->seconds =
        runs * 3 * LAUNCH + transforms + fmax(products, (between + taps) / device->bytes);
    ret->flops = 2 * groups * in * out * (double)winograd->frequencies * tiles;
    ret->error = winograd_error(&winograd->grid, shape->f64, weight ? tiles : in);
    ret->shared = winograd->from_bytes + winograd->other_bytes + winograd->sum_bytes;
    ret->hop = winograd->run;
    ret->bytes = size_add(ret->shared, (size_t)(matrices * in * (double)winograd->taps.pitch));
    ret->applicable = true;
}

// Extents by number: 0 leaves an axis alone.
static const size_t extents[] = {1, 4, 6, 8};
enum { EXTENTS = sizeof extents / sizeof *extents, VARIANTS = EXTENTS * EXTENTS };

// The plan of one variant, a pair of extents; false if it has none.
static bool decide(const struct request *request, int variant, struct cuda_winograd *ret,
                   struct estimate *estimate)
{
    const size_t edge[CUDA_WINOGRAD_AXES] = {extents[variant / EXTENTS],
                                             extents[variant % EXTENTS]};
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    size_t tile[3] = {1, 1, 1};
    *ret = (struct cuda_winograd){.frequencies = edge[0] * edge[1]};
    if (!cuda_winograd_extents((int)edge[0], (int)edge[1])) return false;
    if (!tile_grid_make(request->shape, request->direction, &ret->grid)) return false;
    for (int a = 0; a < CUDA_WINOGRAD_AXES; a++) {
        const size_t taps = cuda_winograd_axis(ret, a)->taps;
        if (taps == 1 ? edge[a] > 1 : taps >= edge[a]) return false;
        tile[1 + a] = edge[a] + 1 - taps;
    }
    tile_grid_split(&ret->grid, tile);
    const struct tile_grid *grid = &ret->grid;
    ret->tiles = size_mul(size_mul(grid->images, grid->batch), grid->tiles);
    if (ret->tiles == 0 || ret->tiles > MOST_TILES) return false;
    const size_t in = grid->in * (grid->phases_out ? 1 : grid->phases);
    const size_t out = grid->out * (grid->phases_out ? grid->phases : 1);
    const size_t limit = size_min(request->workspace_limit, MOST_BYTES);
    ret->product.element = request->shape->f64 ? CUDA_F64 : CUDA_F32;
    ret->taps = taps_of(ret, in, out, weight);
    const size_t parts = weight ? parts_of(ret, in, out, limit) : 1;
    ret->product.parts = (int64_t)parts;
    set_product(ret, in, out, 1, weight);
    set_bytes(ret, in, out, weight);
    ret->run = cut_run(ret, size_mul(grid->groups, in + out), limit, weight ? ret->sum_bytes : 0);
    ret->from = tiles_of(ret, false, ret->run);
    ret->to = tiles_of(ret, true, ret->run);
    ret->to.relu = request->shape->relu && request->direction == PARTITA_FORWARD;
    set_product(ret, in, out, ret->run, weight);
    set_bytes(ret, in, out, weight);
    *estimate =
        (struct estimate){.variant = variant, .transform = edge[0] > edge[1] ? edge[0] : edge[1]};
    account(ret, request, estimate);
    snprintf(estimate->summary, sizeof estimate->summary, "F(%zux%zu,%zux%zu)", tile[1], tile[2],
             cuda_winograd_axis(ret, 0)->taps, cuda_winograd_axis(ret, 1)->taps);
    return true;
}

static void estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    double least_error = INFINITY;
    if (shape->stream || shape->complex_signal || shape->half) {
        snprintf(ret->reason, sizeof ret->reason, "runs layers of f32 and f64 alone");
        return;
    }
    for (int variant = 0; variant < VARIANTS; variant++) {
        struct cuda_winograd winograd;
        struct estimate now;
        if (!decide(request, variant, &winograd, &now)) continue;
        if (request->transform && now.transform != request->transform) continue;
        if (request->compatible_with && request->compatible_with->variant != variant) continue;
        least_error = fmin(least_error, now.error);
        if (now.error > winograd_budget(request)) continue;
        const bool fits = now.shared <= request->workspace_limit,
                   fitted = ret->shared <= request->workspace_limit;
        if (!ret->applicable || (fits && !fitted) || (fits == fitted && now.seconds < ret->seconds))
            *ret = now;
    }
    if (ret->applicable) return;
    if (least_error < INFINITY)
        snprintf(ret->reason, sizeof ret->reason, "error %.1e is beyond the budget of %.1e",
                 least_error, winograd_budget(request));
    else if (request->transform)
        snprintf(ret->reason, sizeof ret->reason, "has no tiles of %zu for these taps",
                 request->transform);
    else
        snprintf(ret->reason, sizeof ret->reason, "serves 2 to %d taps of a phase along an axis",
                 WINOGRAD_EXTENT - 1);
}

static enum partita_status plan_create(struct partita_plan *plan, const struct request *request)
{
    struct estimate again;
    const enum partita_status status = cuda_enter(plan);
    if (status != PARTITA_OK) return status;
    plan->state = mem_allocate(&plan->allocator, sizeof(struct cuda_winograd));
    if (!plan->state) return PARTITA_ERR_NOMEM;
    decide(request, plan->choice.variant, plan->state, &again);
    return PARTITA_OK;
}

static void plan_destroy(struct partita_plan *plan)
{
    mem_release(&plan->allocator, plan->state);
}

const struct engine cuda_winograd = {
    .name = "cuda/winograd",
    .max_rank = CUDA_WINOGRAD_AXES,
    .estimate = estimate,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .filter_create = cuda_winograd_filter_create,
    .filter_bias = cuda_winograd_filter_bias,
    .filter_destroy = cuda_winograd_filter_destroy,
    .directions = CUDA_ALL_DIRECTIONS,
    .run = cuda_winograd_run,
};
