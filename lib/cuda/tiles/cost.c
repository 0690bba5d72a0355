// SPDX-License-Identifier: MIT
// What cuda/tiles would cost, by counting operations, issue slots and bytes: a model, of which
// nothing was measured.
#include <math.h>
#include <stdio.h>

#include "base/sizes.h"
#include "geometry/tile_size.h"
#include "geometry/tile_tables.h"
#include "tiles.h"

// All times are in multiply-adds of one thread, counted from the machine code (sm_90, f32; decision
// 22), not measured. A butterfly with its factors, by radix: what is issued, or, for radix 8, what
// shared memory takes. A bin of a pair of tiles on its way between memory and shared memory, or to
// and from a product there. A sample on its way in or out.
static const double BUTTERFLY[TILE_MAX_RADIX + 1] = {
    [2] = 44, [3] = 62, [4] = 76, [6] = 116, [8] = 156};
static const double BIN = 50, SAMPLE = 20;
static const double LAUNCH = 3e-6;             // seconds to queue a kernel
static const double MOST_BLOCKS = 2147483647.; // of one launch
enum { FULL_THREADS = 512 };                   // of a processor, from which on it is busy

// One stage on the device.
struct stage {
    double slots, bytes, blocks, threads, flops;
};

static double seconds_of_stage(const struct request *request, const struct stage *stage)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const double rate = device->flops / (request->shape->f64 ? device->f64_share : 1) / 2;
    const double busy =
        fmin(1, stage->blocks * stage->threads / ((double)device->processors * FULL_THREADS));
    return fmax(stage->slots / (rate * busy), stage->bytes / device->bytes);
}

// Transforms of all tiles of so many channels; `box`: elements of a tile that are samples, `rows`
// rows of them.
static struct stage stage_of_transforms(const struct cuda_tiles_cut *cut, double channels,
                                        const int64_t box[3])
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const double blocks = ceil((double)tiles->positions / (2 * tiles->pairs)),
                 pairs = blocks * tiles->pairs;
    const double samples = 2 * (double)box[0] * (double)box[1] * (double)box[2];
    const double scalar = tiles->f64 ? 8 : 4, forms = tiles->gauss ? 3 : 2;
    const size_t rows = (size_t)(box[0] * box[1]);
    const double slots = tile_tables_cost(cut->n, rows, BUTTERFLY) + BIN * tiles->bins;
    return (struct stage){.slots = channels * pairs * (slots + SAMPLE * samples),
                          .flops = channels * pairs *
                                   (tile_tables_flops(cut->n, rows) + 4. * tiles->bins),
                          .bytes = channels * pairs * (samples + 2 * tiles->bins * forms) * scalar,
                          .blocks = channels * blocks,
                          .threads = tiles->threads};
}

static double seconds_of_products(const struct request *request, const struct cuda_tiles_cut *cut,
                                  double *ret_flops)
{
    const struct cuda_device *device = (const struct cuda_device *)request->device;
    const struct cuda_product product = cuda_tiles_product(cut, &cut->most);
    const double launches =
        (double)cuda_tiles_blocks(cut) * (double)cut->tiles.groups / (double)cut->most.groups;
    const double rate =
        device->flops / (cut->tiles.f64 ? device->f64_share : 1) / 2 / device->processors;
    const double bytes = (double)cuda_tiles_workspace(cut) + (double)cut->filter_bytes;
    *ret_flops = 2. * (cut->tiles.gauss ? 1 : 4) * (double)product.batch * (double)product.rows *
                 (double)product.columns * (double)product.terms * launches;
    return launches *
           fmax(cuda_product_slots(&product, device->processors) / rate, bytes / device->bytes);
}

static double seconds_of(const struct request *request, const struct cuda_tiles_cut *cut,
                         double *ret_flops)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const struct cuda_tiles_axis *axis = tiles->axis;
    const bool weight = cut->direction == PARTITA_BACKWARD_WEIGHT;
    const double groups = (double)tiles->groups;
    const double runs = (double)cuda_tiles_blocks(cut) * ceil(groups / (double)cut->most.groups);
    int64_t inputs[3], outputs[3];
    for (int a = 0; a < 3; a++) {
        inputs[a] = axis[a].extent < (int64_t)cut->n[a] ? axis[a].extent : (int64_t)cut->n[a];
        outputs[a] = axis[a].tile;
    }
    const struct stage load = stage_of_transforms(cut, groups * (double)tiles->in, inputs);
    const struct stage store = stage_of_transforms(cut, groups * (double)tiles->out, outputs);
    double seconds = seconds_of_stage(request, &load) + seconds_of_stage(request, &store);
    seconds += seconds_of_products(request, cut, ret_flops) + runs * (weight ? 4 : 3) * LAUNCH;
    if (weight) {
        const double cells = groups * (double)tiles->in * (double)tiles->out_pitch / 2;
        const struct stage taps = {
            .slots = cells * (tile_tables_cost(cut->n, cut->n[0] * cut->n[1], BUTTERFLY) +
                              BIN * tiles->bins),
            .bytes = (double)(cut->y_bytes + 2 * cut->sets_bytes),
            .blocks = cells / tiles->pairs,
            .threads = tiles->threads};
        seconds += seconds_of_stage(request, &taps);
    }
    *ret_flops += load.flops + store.flops;
    return seconds;
}

// Every output channel of a group transforms its inputs again; each transform is a stage of its own
// but for memory.
static double seconds_of_fused(const struct request *request, const struct cuda_tiles_cut *cut,
                               double *ret_flops)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const struct cuda_tiles_axis *axis = tiles->axis;
    const bool weight = cut->direction == PARTITA_BACKWARD_WEIGHT;
    const double scalar = tiles->f64 ? 8 : 4,
                 cells = (double)(tiles->groups * tiles->in * tiles->out);
    const double tile[2] = {fmin((double)axis[0].extent, (double)cut->n[0]) *
                                fmin((double)axis[1].extent, (double)cut->n[1]) *
                                fmin((double)axis[2].extent, (double)cut->n[2]),
                            (double)axis[0].tile * (double)axis[1].tile * (double)axis[2].tile};
    const double per_block = (weight ? 1 : 2) * tiles->pairs;
    const double blocks = ceil((double)tiles->positions / per_block), pairs = blocks * tiles->pairs;
    const size_t in_rows = cut->n[0] * (size_t)fmin((double)axis[1].extent, (double)cut->n[1]);
    const size_t out_rows = (size_t)(axis[0].tile * axis[1].tile);
    const double units = cells * pairs,
                 results = weight ? 0 : (double)(tiles->groups * tiles->out) * pairs;
    const double transforms = units * tile_tables_cost(cut->n, in_rows, BUTTERFLY) +
                              results * tile_tables_cost(cut->n, out_rows, BUTTERFLY);
    const double samples = cells * pairs * (tile[0] + tile[1]) * (weight ? 1 : 2);
    const struct stage stage = {
        .slots = transforms + units * BIN * tiles->bins + SAMPLE * samples,
        .bytes = (samples + cells * (weight ? (double)cut->parts : 1) * 2 * tiles->bins) * scalar,
        .blocks = (double)(tiles->groups * tiles->out) *
                  (weight ? (double)tiles->in * (double)cut->parts : blocks),
        .threads = tiles->threads,
    };
    *ret_flops = units * (tile_tables_flops(cut->n, in_rows) + 12. * tiles->bins) +
                 results * tile_tables_flops(cut->n, out_rows);
    return seconds_of_stage(request, &stage) + (weight ? 3 : 1) * LAUNCH;
}

static double most_blocks(const struct cuda_tiles_cut *cut)
{
    const struct cuda_tiles *tiles = &cut->tiles;
    const double lines = fmax((double)cut->most.block / (2 * tiles->pairs), (double)tiles->out);
    const double channels = fmax((double)tiles->in, (double)tiles->out);
    return fmax((double)tiles->groups * lines * channels,
                (double)cut->most.groups * tiles->bins * 3 * channels * lines);
}

static void consider(const struct request *request, size_t transform, enum cuda_tiles_kind kind,
                     struct estimate *ret)
{
    struct cuda_tiles_cut cut;
    double flops;
    if (!cuda_tiles_cut(request, transform, kind, request->workspace_limit, &cut)) return;
    if (most_blocks(&cut) > MOST_BLOCKS) return;
    const double seconds = kind == CUDA_TILES_FUSED ? seconds_of_fused(request, &cut, &flops)
                                                    : seconds_of(request, &cut, &flops);
    if (ret->applicable && ret->seconds <= seconds) return;
    const size_t workspace = cuda_tiles_workspace(&cut);
    *ret = (struct estimate){.applicable = true,
                             .transform = transform,
                             .variant = (int)kind,
                             .hop = (size_t)cut.most.block,
                             .seconds = seconds,
                             .flops = flops,
                             .shared = workspace,
                             .bytes = size_add(workspace, cut.filter_bytes)};
    snprintf(ret->summary, sizeof ret->summary, "%zux%zux%zu", cut.n[0], cut.n[1], cut.n[2]);
    // Schatzman (1996): a transform's rms error is 0.6 u sqrt(log2 N); three of them, more with
    // Gauss's sums.
    ret->error = shape_roundoff(request->shape) * (cut.tiles.gauss ? 1.5 : 1.1) *
                 sqrt(log2((double)(cut.n[0] * cut.n[1] * cut.n[2]) + 1));
}

// The longest transform worth a thought along any axis; 0 and a reason if there is none.
static size_t longest(const struct request *request, char *reason, size_t size)
{
    const struct shape *shape = request->shape;
    struct tile_grid grid;
    size_t most = 1;
    if (shape->stream || shape->complex_signal) {
        snprintf(reason, size, "for bounded problems of real types");
        return 0;
    }
    if (!tile_grid_make(shape, request->direction, &grid)) {
        snprintf(reason, size, "stride and dilation beyond what positions can count");
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        const struct tile_axis *axis = &grid.axis[i];
        if (axis->taps > TILE_SIZE_MAX_TAPS) {
            snprintf(reason, size, "tiles hold %d taps along an axis at most, not %zu",
                     TILE_SIZE_MAX_TAPS, axis->taps);
            return 0;
        }
        const size_t n = axis->count > TILE_MAX_SIZE / 2 ? TILE_MAX_SIZE : tile_size_whole(axis);
        if (n > most) most = n;
    }
    return size_min(most, TILE_MAX_SIZE);
}

void cuda_tiles_estimate(const struct request *request, enum cuda_tiles_kind kind,
                         struct estimate *ret)
{
    enum {
        MANY = 128
    }; // samples of a tile up to which every size is considered; longer ones a quarter apart
    const size_t most = longest(request, ret->reason, sizeof ret->reason);
    if (most && kind == CUDA_TILES_FUSED && request->shape->group_in > 1) {
        snprintf(ret->reason, sizeof ret->reason,
                 "one kernel takes one input channel a group, not %zu", request->shape->group_in);
        return;
    }
    if (request->transform && most) consider(request, request->transform, kind, ret);
    else
        for (size_t n = 1; n <= most; n = tile_tables_next_size(n < MANY ? n + 1 : n + n / 4))
            consider(request, n, kind, ret);
    if (!ret->applicable && !ret->reason[0])
        snprintf(ret->reason, sizeof ret->reason,
                 "no tile with these taps fits %zu bytes of shared memory, or workspace",
                 ((const struct cuda_device *)request->device)->shared_bytes);
}
