// SPDX-License-Identifier: MIT
// problem.up: each output is a sum over the taps of its branch, so no outputs of branches are
// computed that the stride drops. Faster than filtering with every branch unless the stride is
// small. Source: Crochiere & Rabiner, Multirate Digital Signal Processing (1983), 3.3.4.
#include "resample.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/cost.h"
#include "direct.h"
#include "geometry/samples.h"
#include "kernels/kernels.h"

// A branch's taps: each as often as a sample has scalars; of complex taps the real parts, then the
// imaginary ones.
static size_t part_bytes(const struct shape *shape)
{
    return size_round_up(shape->axis[0].kernel * shape->sample_bytes, MEM_ALIGN);
}

static size_t row_bytes(const struct shape *shape)
{
    return part_bytes(shape) * (shape->complex_taps ? 2 : 1);
}

// Samples that n outputs read, at most.
static size_t window_samples(const struct shape *shape, size_t n)
{
    return ceil_div((n - 1) * shape->up.stride, shape->up.branches) + shape->axis[0].kernel;
}

void resample_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const double rate = (double)shape->up.branches / (double)shape->up.stride;
    const double outputs =
        (double)shape->up.out_channels *
        (shape->stream ? rate : (double)shape->up.axis.out * (double)shape->batch);
    const double sums = outputs * (double)shape->group_in; // of short rows: half as many lanes
    const double factor = (shape->complex_signal ? 2 : 1) * (shape->complex_taps ? 2 : 1);
    const double taps = (double)shape->axis[0].kernel;
    ret->flops = 2 * sums * factor * taps;
    struct shape whole = *shape; // outputs of branches are not in memory
    struct request outputs_alone = *request;
    const struct ledger ledger = {.work = {.two_loads = ret->flops / 2, .reduction = sums / 2}};
    whole.out_channels = shape->up.out_channels;
    whole.axis[0].out = shape->up.axis.out;
    outputs_alone.shape = &whole;
    ledger_price(&outputs_alone, &ledger, ret);
    // Outputs of a signal computed together: x, y and some rows of taps stay near.
    const size_t near = DIRECT.max_resampled * shape->up.branches / shape->up.stride;
    ret->hop = size_max(size_min(near, DIRECT.tile), 1);
    if (!shape->stream)
        ret->worker = mem_round(size_mul(window_samples(shape, ret->hop), shape->sample_bytes));
    ret->bytes = size_add(ret->worker, size_mul(shape_path_count(shape), row_bytes(shape)));
    ret->error = conv_cost_error(shape, taps, fmin(taps, RESAMPLE_SEGMENT));
    ret->resamples = true;
    ret->applicable = true;
}

size_t resample_filter_bytes(const struct shape *shape)
{
    return size_mul(shape_path_count(shape), row_bytes(shape));
}

static char *row_at(const struct partita_filter *filter, size_t channel, size_t in, size_t branch)
{
    const struct shape *shape = &filter->plan->shape;
    const size_t row = (channel * shape->group_in + in) * shape->up.branches + branch;
    return (char *)filter->state + row * row_bytes(shape);
}

// A row from the causal taps of its branch: the oldest sample's first.
static void pack_row(const struct shape *shape, char *row, const char *taps)
{
    const size_t bytes = shape->scalar_bytes, times = shape->complex_signal ? 2 : 1;
    const size_t parts = shape->complex_taps ? 2 : 1;
    memset(row, 0, row_bytes(shape));
    for (size_t part = 0; part < parts; part++)
        for (size_t i = 0; i < times; i++)
            samples_reverse(row + part * part_bytes(shape) + i * bytes, times, taps + part * bytes,
                            parts, shape->axis[0].kernel, bytes);
}

enum partita_status resample_filter_pack(struct partita_filter *filter, const void *taps)
{
    const struct shape *shape = &filter->plan->shape;
    const size_t branches = shape->up.branches;
    const char *from = taps;
    for (size_t output = 0; output < shape->out_channels; output++)
        for (size_t in = 0; in < shape->group_in; in++) {
            pack_row(shape, row_at(filter, output / branches, in, output % branches), from);
            from += shape->axis[0].kernel * shape->tap_bytes;
        }
    return PARTITA_OK;
}

void resample_add(const struct partita_filter *filter, const struct resampled *from, void *y,
                  size_t n)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const struct upsampling *up = &shape->up;
    const struct resample_position at = {.branches = up->branches,
                                         .pitch = row_bytes(shape) / shape->scalar_bytes,
                                         .taps = shape->axis[0].kernel,
                                         .branch = from->position % up->branches,
                                         .next_branch = up->stride % up->branches,
                                         .next_sample = up->stride / up->branches};
    const char *x = (const char *)from->x + from->position / up->branches * shape->sample_bytes;
    const void *rows = row_at(filter, from->channel, from->in, 0);
    plan->kernels->resample(y, x, rows, &at, n, shape_fir_type(shape));
}

// The sample at position 0 of a tile, for outputs whose first has the position `at`, counted from
// the start of the signal's branches: in place where all samples that they read are in the signal.
static const char *tile_window(const struct direct_tile *tile, size_t at)
{
    const struct shape *shape = &tile->filter->plan->shape;
    const struct axis *axis = &shape->axis[0];
    const size_t bytes = shape->sample_bytes, history = axis->kernel - 1;
    const size_t samples = window_samples(shape, tile->n);
    const ptrdiff_t first = axis->begin + (ptrdiff_t)(at / shape->up.branches);
    assert(samples * bytes <= tile->filter->plan->choice.worker);
    if (first >= 0 && (size_t)first + samples <= axis->size)
        return tile->x + ((size_t)first + history) * bytes;
    samples_window(tile->scratch, tile->x, axis->size, first, 1, samples, bytes);
    return tile->scratch + history * bytes;
}

void resample_add_tile(const struct direct_tile *tile)
{
    const struct upsampling *up = &tile->filter->plan->shape.up;
    const size_t at = up->first + tile->first * up->stride;
    const struct resampled from = {tile_window(tile, at), at % up->branches, tile->channel,
                                   tile->in};
    resample_add(tile->filter, &from, tile->y, tile->n);
}
