// SPDX-License-Identifier: MIT
// Planes side by side for cpu/depthwise, see depthwise.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "depthwise.h"

size_t depthwise_blocks(const struct shape *shape)
{
    return ceil_div(shape->in_channels, depthwise_width(shape));
}

struct depthwise_block depthwise_block(const struct shape *shape, size_t i)
{
    const size_t width = depthwise_width(shape), first = i * width;
    const size_t channels = size_min(width, shape->in_channels - first);
    return (struct depthwise_block){first, channels, size_min(width / channels, shape->batch)};
}

size_t depthwise_turns(const struct shape *shape, const struct depthwise_block *block)
{
    return ceil_div(shape->batch, block->images);
}

struct depthwise_lanes depthwise_lanes(const struct shape *shape,
                                       const struct depthwise_block *block, size_t turn,
                                       size_t planes)
{
    const size_t item = turn * block->images;
    struct depthwise_lanes ret = {.used = size_min(block->images, shape->batch - item) *
                                          block->channels};
    for (size_t l = 0; l < ret.used; l++)
        ret.plane[l] = ((item + l / block->channels) * shape->in_channels + block->first +
                        l % block->channels) *
                       planes;
    return ret;
}

size_t depthwise_tasks(const struct shape *shape)
{
    const struct depthwise_block last = depthwise_block(shape, depthwise_blocks(shape) - 1);
    return (depthwise_blocks(shape) - 1) * shape->batch + depthwise_turns(shape, &last);
}

struct depthwise_task depthwise_task(const struct shape *shape, size_t i)
{
    const size_t block = size_min(i / shape->batch, depthwise_blocks(shape) - 1);
    return (struct depthwise_task){block, i - block * shape->batch};
}

struct depthwise_lanes depthwise_task_lanes(const struct shape *shape, size_t i, size_t planes)
{
    if (i == depthwise_tasks(shape)) return (struct depthwise_lanes){.used = 0};
    const struct depthwise_task task = depthwise_task(shape, i);
    const struct depthwise_block block = depthwise_block(shape, task.block);
    return depthwise_lanes(shape, &block, task.turn, planes);
}

double depthwise_filled(const struct shape *shape)
{
    return (double)(shape->batch * shape->in_channels) /
           (double)(depthwise_tasks(shape) * depthwise_width(shape));
}

double depthwise_seconds(const struct request *request, double products, double moved)
{
    // A sample through a transposition takes as long as so many products: measured on AVX-512 and
    // AVX2, either way.
    enum { PRODUCTS = 9 };
    const struct shape *shape = request->shape;
    const double fma = request->model->costs[shape->f64].fma;
    return fmax((products + moved * PRODUCTS) * fma / depthwise_filled(shape),
                memory_seconds(request->model, shape));
}

void depthwise_read(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *to,
                    const char *x, const struct depthwise_row *row)
{
    const size_t bytes = plan->shape.scalar_bytes, step = row->step;
    size_t begin = 0, end = 0; // what lies inside
    if (row->first < (ptrdiff_t)row->size) {
        if (row->first < 0) begin = size_min(row->n, ((size_t)-row->first + step - 1) / step);
        end = size_min(row->n, ((size_t)((ptrdiff_t)row->size - row->first) + step - 1) / step);
    }
    if (end < begin) end = begin;
    memset(to, 0, begin * CONV_BLOCK_BYTES);
    memset(to + end * CONV_BLOCK_BYTES, 0, (row->n - end) * CONV_BLOCK_BYTES);
    if (begin == end) return;
    const void *from[DEPTHWISE_LANES];
    const size_t first = row->row + (size_t)(row->first + (ptrdiff_t)(begin * step));
    for (size_t l = 0; l < DEPTHWISE_LANES; l++)
        from[l] = l < lanes->used ? x + (lanes->plane[l] * row->plane_size + first) * bytes : NULL;
    plan->kernels->lanes_read(to + begin * CONV_BLOCK_BYTES, from, step, end - begin);
}

void depthwise_write(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *y,
                     const char *from, const struct depthwise_row *row, const void *bias, bool relu)
{
    void *to[DEPTHWISE_LANES];
    const size_t first = row->row + (size_t)row->first;
    for (size_t l = 0; l < DEPTHWISE_LANES; l++)
        to[l] = l < lanes->used
                    ? y + (lanes->plane[l] * row->plane_size + first) * plan->shape.scalar_bytes
                    : NULL;
    plan->kernels->lanes_write(to, row->step, from, row->n, bias, relu);
}

void depthwise_fetch_ahead(const struct partita_plan *plan, const struct depthwise_lanes *lanes,
                           const char *x, size_t i, size_t rows, size_t width)
{
    const size_t bytes = plan->shape.scalar_bytes;
    for (size_t l = 0; l < lanes->used && i < rows; l++) {
        const char *from = x + (lanes->plane[l] * rows + i) * width * bytes;
        for (size_t at = 0; at < width * bytes; at += MEM_ALIGN)
            __builtin_prefetch(from + at, 0, 2);
    }
}

void depthwise_bias(const struct partita_filter *filter, const struct depthwise_block *block,
                    size_t j, void *lanes)
{
    const struct shape *shape = &filter->plan->shape;
    const size_t bytes = shape->scalar_bytes, used = block->channels * block->images;
    memset(lanes, 0, CONV_BLOCK_BYTES);
    for (size_t l = 0; l < used; l++) {
        const size_t channel = (block->first + l % block->channels) * depthwise_multiple(shape) + j;
        memcpy((char *)lanes + l * bytes, (const char *)filter->bias + channel * bytes, bytes);
    }
}

struct packing {
    const struct partita_plan *plan;
    const struct depthwise_lanes *lanes;
    char *packed;
    const char *x;
    struct depthwise_row row;
};

static void pack_line(void *context, const struct conv_row *line)
{
    const struct packing *call = context;
    char *to = call->packed + line->to * CONV_BLOCK_BYTES;
    struct depthwise_row row = call->row;
    row.row = line->row;
    row.first = line->first;
    if (line->zero) memset(to, 0, row.n * CONV_BLOCK_BYTES);
    else depthwise_read(call->plan, call->lanes, to, call->x, &row);
}

void depthwise_pack(const struct partita_plan *plan, const struct conv_pass *pass,
                    const struct conv_index *place, const struct depthwise_lanes *lanes,
                    char *packed, const char *x)
{
    const struct conv_axis *axis = pass->axis;
    struct packing call = {plan,
                           lanes,
                           packed,
                           x,
                           {.plane_size = axis[0].size * axis[1].size * axis[2].size,
                            .size = axis[2].size,
                            .step = axis[2].step,
                            .n = pass->box.extent[2]}};
    conv_pass_each_row(pass, place, pack_line, &call);
}

struct placed {
    size_t offset, term;
};

static int by_offset(const void *a, const void *b)
{
    const struct placed *one = a, *other = b;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

// Even runs of what is contiguous.
static size_t cut_runs(const struct placed *placed, size_t n, struct tap_span *run)
{
    size_t runs = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && placed[end].offset == placed[end - 1].offset + 1;) end++;
        const size_t pieces = ceil_div(end - i, MAX_SPAN_TAPS);
        for (size_t p = 0; p < pieces; p++, runs++) {
            const size_t first = (end - i) * p / pieces;
            run[runs] =
                (struct tap_span){placed[i].offset + first, (end - i) * (p + 1) / pieces - first};
        }
    }
    return runs;
}

void depthwise_taps_cut(const struct conv_pass *pass, struct depthwise_taps *taps,
                        struct arena *arena)
{
    const size_t n = pass->terms;
    taps->n = n;
    taps->order = arena_take(arena, size_mul(n, sizeof *taps->order));
    taps->run = arena_take(arena, size_mul(n, sizeof *taps->run));
    struct placed *placed = arena_take(arena, size_mul(n, sizeof *placed));
    if (!arena->base) return;
    conv_pass_offsets(pass, taps->order, 1);
    bool ordered = true; // as they often are
    for (size_t t = 0; t < n; t++) {
        placed[t] = (struct placed){taps->order[t], t};
        ordered = ordered && (t == 0 || taps->order[t - 1] < taps->order[t]);
    }
    if (!ordered) qsort(placed, n, sizeof *placed, by_offset);
    for (size_t t = 0; t < n; t++) taps->order[t] = placed[t].term;
    taps->n_runs = cut_runs(placed, n, taps->run);
}
