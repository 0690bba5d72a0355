// SPDX-License-Identifier: MIT
// Planes side by side for cpu/depthwise.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/finish.h"
#include "depthwise.h"
#include "geometry/samples.h"

size_t depthwise_groups(const struct shape *shape)
{
    return ceil_div(shape->in_channels, depthwise_width(shape));
}

struct depthwise_group depthwise_group(const struct shape *shape, size_t i)
{
    const size_t width = depthwise_width(shape), first = i * width;
    const size_t channels = size_min(width, shape->in_channels - first);
    assert(i < depthwise_groups(shape));
    return (struct depthwise_group){first, channels, size_min(width / channels, shape->batch)};
}

size_t depthwise_sets(const struct shape *shape, const struct depthwise_group *group)
{
    return ceil_div(shape->batch, group->images);
}

struct depthwise_lanes depthwise_lanes(const struct shape *shape,
                                       const struct depthwise_group *group, size_t set,
                                       bool outputs)
{
    const size_t first = set * group->images, planes = outputs ? depthwise_multiplier(shape) : 1;
    const size_t images = size_min(group->images, shape->batch - first);
    struct depthwise_lanes ret = {.used = images * group->channels,
                                  .strides = shape_strides(shape, outputs)};
    assert(ret.used <= depthwise_width(shape));
    for (size_t l = 0; l < ret.used; l++) {
        const size_t item = first + l / group->channels;
        const size_t channel = group->first + l % group->channels;
        ret.first[l] = item * ret.strides.item + channel * planes * ret.strides.channel;
    }
    return ret;
}

size_t depthwise_tasks(const struct shape *shape)
{
    // Groups but the last have all lanes full of channels, and one set an image.
    const size_t full = depthwise_groups(shape) - 1;
    const struct depthwise_group last = depthwise_group(shape, full);
    return full * shape->batch + depthwise_sets(shape, &last);
}

struct depthwise_task depthwise_task(const struct shape *shape, size_t i)
{
    const size_t group = size_min(i / shape->batch, depthwise_groups(shape) - 1);
    return (struct depthwise_task){group, i - group * shape->batch};
}

struct depthwise_lanes depthwise_task_lanes(const struct shape *shape, size_t i, bool outputs)
{
    if (i == depthwise_tasks(shape)) return (struct depthwise_lanes){.used = 0};
    const struct depthwise_task task = depthwise_task(shape, i);
    const struct depthwise_group group = depthwise_group(shape, task.group);
    return depthwise_lanes(shape, &group, task.set, outputs);
}

double depthwise_seconds(const struct request *request, double products, double moved)
{
    const struct shape *shape = request->shape;
    const double fma = request->model->costs[shape->f64].work.fma;
    const double filled = (double)(shape->batch * shape->in_channels) /
                          (double)(depthwise_tasks(shape) * depthwise_width(shape));
    return fmax((products + moved * DEPTHWISE.moved) * fma / filled,
                memory_seconds(request->model, shape));
}

// The index of a sample of the first lane's planes, counted from the lane's first sample.
static size_t depthwise_sample(const struct depthwise_lanes *lanes, size_t plane, size_t sample)
{
    return plane * lanes->strides.channel + sample * lanes->strides.position;
}

void depthwise_read(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *to,
                    const char *x, const struct depthwise_row *row)
{
    const size_t bytes = plan->shape.scalar_bytes;
    const struct inside in = samples_inside(row->size, row->first, row->step, row->n);
    const size_t end = in.begin + in.count;
    memset(to, 0, in.begin * CONV_BLOCK_BYTES);
    memset(to + end * CONV_BLOCK_BYTES, 0, (row->n - end) * CONV_BLOCK_BYTES);
    if (!in.count) return;
    const void *from[DEPTHWISE_LANES];
    const size_t sample = row->row + (size_t)(row->first + (ptrdiff_t)(in.begin * row->step));
    const size_t first = depthwise_sample(lanes, row->plane, sample);
    for (size_t l = 0; l < DEPTHWISE_LANES; l++)
        from[l] = l < lanes->used ? x + (lanes->first[l] + first) * bytes : NULL;
    plan->kernels->lanes_read(to + in.begin * CONV_BLOCK_BYTES, from,
                              row->step * lanes->strides.position, in.count);
}

void depthwise_write(const struct partita_plan *plan, const struct depthwise_lanes *lanes, char *y,
                     const char *from, const struct depthwise_row *row,
                     const struct conv_finish *finish)
{
    const size_t bytes = plan->shape.scalar_bytes;
    const size_t first = depthwise_sample(lanes, row->plane, row->row + (size_t)row->first);
    void *to[DEPTHWISE_LANES];
    for (size_t l = 0; l < DEPTHWISE_LANES; l++)
        to[l] = l < lanes->used ? y + (lanes->first[l] + first) * bytes : NULL;
    plan->kernels->lanes_write(to, row->step * lanes->strides.position, from, row->n, finish->bias,
                               finish->relu);
}

struct conv_finish depthwise_finish(const struct partita_filter *filter, size_t group, size_t j,
                                    char bias[CONV_BLOCK_BYTES])
{
    const struct shape *shape = &filter->plan->shape;
    const size_t bytes = shape->scalar_bytes;
    struct conv_finish finish = filter_finish(filter, 0);
    if (!finish.bias) return finish;
    const struct depthwise_group set = depthwise_group(shape, group);
    memset(bias, 0, CONV_BLOCK_BYTES);
    for (size_t l = 0; l < set.channels * set.images; l++) {
        const size_t channel = (set.first + l % set.channels) * depthwise_multiplier(shape) + j;
        memcpy(bias + l * bytes, (const char *)filter->bias + channel * bytes, bytes);
    }
    finish.bias = bias;
    return finish;
}

void depthwise_prefetch(const struct depthwise_lanes *lanes, const char *planes, size_t bytes,
                        size_t begin, size_t end, bool write)
{
    // Of channels that come last a line has one position of several lanes.
    const size_t pitch = lanes->strides.position * bytes, step = size_max(pitch, MEM_ALIGN);
    for (size_t l = 0; l < lanes->used; l++) {
        const bool seen = pitch > bytes && l > 0 && lanes->first[l] == lanes->first[l - 1] + 1;
        const char *from = planes + lanes->first[l] * bytes;
        if (seen) continue;
        for (size_t at = begin * pitch; at < end * pitch && write; at += step)
            __builtin_prefetch(from + at, 1, 2);
        for (size_t at = begin * pitch; at < end * pitch && !write; at += step)
            __builtin_prefetch(from + at, 0, 2);
    }
}

void depthwise_prefetch_row(const struct depthwise_box *box, const struct depthwise_lanes *lanes,
                            const char *array, size_t i, bool write)
{
    const struct conv_index *index = &box->index;
    const size_t n_h = index->count[1], bytes = box->pass->scalar_bytes;
    if (i >= index->count[0] * n_h) return;
    const size_t row = conv_pass_output_sample(box->pass, index, i / n_h, i % n_h);
    depthwise_prefetch(lanes, array + box->plane * lanes->strides.channel * bytes, bytes, row,
                       row + (index->count[2] - 1) * box->pass->axis[2].spread + 1, write);
}

void depthwise_copy_tap(const struct shape *shape, const struct depthwise_group *group, size_t j,
                        size_t tap, const void *taps, char *to)
{
    const size_t bytes = shape->scalar_bytes;
    for (size_t l = 0; l < group->channels * group->images; l++) {
        const size_t channel = group->first + l % group->channels;
        const size_t path = channel * depthwise_multiplier(shape) + j;
        memcpy(to + l * bytes, (const char *)taps + (path * shape_taps(shape) + tap) * bytes,
               bytes);
    }
    const size_t used = group->channels * group->images * bytes;
    memset(to + used, 0, CONV_BLOCK_BYTES - used);
}

struct packing {
    const struct partita_plan *plan;
    const struct depthwise_lanes *lanes;
    char *packed;
    const char *x;
    struct depthwise_row row;
    size_t prefetched; // samples of a plane of which rows are prefetched; 0: none
};

static void prefetch_planes_row(const struct packing *call, size_t row)
{
    const size_t bytes = call->plan->shape.scalar_bytes, end = row + call->row.size;
    const char *planes = call->x + call->row.plane * call->lanes->strides.channel * bytes;
    if (end <= call->prefetched) depthwise_prefetch(call->lanes, planes, bytes, row, end, false);
}

static void pack_planes_row(void *context, const struct conv_row *row)
{
    const struct packing *call = context;
    char *to = call->packed + row->to * CONV_BLOCK_BYTES;
    struct depthwise_row from = call->row;
    from.row = row->row;
    from.first = row->first;
    if (call->prefetched) prefetch_planes_row(call, row->row + DEPTHWISE.ahead * from.size);
    if (row->zero) memset(to, 0, from.n * CONV_BLOCK_BYTES);
    else depthwise_read(call->plan, call->lanes, to, call->x, &from);
}

void depthwise_pack(const struct partita_plan *plan, const struct depthwise_box *box,
                    const struct depthwise_lanes *lanes, char *packed, const char *x)
{
    const struct conv_pass *pass = box->pass;
    const struct conv_axis *axis = pass->axis;
    struct packing call = {.plan = plan,
                           .lanes = lanes,
                           .packed = packed,
                           .x = x,
                           .row = {.plane = box->plane,
                                   .size = axis[2].size,
                                   .step = axis[2].step,
                                   .n = pass->box.extent[2]}};
    if (depthwise_apart(&plan->shape)) call.prefetched = axis[0].size * axis[1].size * axis[2].size;
    conv_pass_each_row(pass, &box->index, pack_planes_row, &call);
}

static int compare_offsets(const void *a, const void *b)
{
    const struct tap_span *one = a, *other = b;
    return one->offset < other->offset ? -1 : one->offset > other->offset;
}

// Replaces n single taps, ordered by offset, by even spans of contiguous taps; returns the
// number of spans, which are never ahead of the taps that are still to be read.
static size_t make_spans(struct tap_span *span, size_t n)
{
    size_t spans = 0;
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && span[end].offset == span[end - 1].offset + 1;) end++;
        const size_t stretches = ceil_div(end - i, MAX_SPAN_TAPS), offset = span[i].offset;
        for (size_t s = 0; s < stretches; s++, spans++) {
            const size_t first = (end - i) * s / stretches, last = (end - i) * (s + 1) / stretches;
            span[spans] = (struct tap_span){offset + first, last - first};
        }
    }
    return spans;
}

void depthwise_make_taps(const struct conv_pass *pass, struct depthwise_taps *taps,
                         struct arena *arena)
{
    const size_t n = pass->terms;
    taps->n = n;
    taps->order = arena_take(arena, size_mul(n, sizeof *taps->order));
    taps->span = arena_take(arena, size_mul(n, sizeof *taps->span));
    if (!arena->base) return;
    conv_pass_offsets(pass, taps->order, 1);
    bool ordered = true; // as they often are
    for (size_t t = 0; t < n; t++) {
        taps->span[t] = (struct tap_span){taps->order[t], t};
        ordered = ordered && (t == 0 || taps->order[t - 1] < taps->order[t]);
    }
    if (!ordered) qsort(taps->span, n, sizeof *taps->span, compare_offsets);
    for (size_t t = 0; t < n; t++) taps->order[t] = taps->span[t].taps;
    taps->spans = make_spans(taps->span, n);
    assert(taps->spans > 0 && taps->spans <= n);
}
