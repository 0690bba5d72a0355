// SPDX-License-Identifier: MIT
#include "pass.h"

#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/residues.h"
#include "geometry/samples.h"

enum { MIN_ROW = 64 }; // outputs of a row of a box, where there is a choice

static ptrdiff_t tap_low(const struct conv_axis *axis, size_t tap)
{
    return floor_div(axis->base + axis->slope * (ptrdiff_t)tap, axis->step);
}

static struct conv_axis forward_axis(const struct axis *axis)
{
    struct conv_axis ret = {.size = axis->size,
                            .out_size = axis->out,
                            .step = axis->stride,
                            .spread = 1,
                            .count = axis->out,
                            .kernel = axis->kernel,
                            .taps = axis->kernel,
                            .tap_spread = 1,
                            .base = axis->begin,
                            .slope = (ptrdiff_t)axis->dilation,
                            .residues = axis_residues(axis)};
    ret.low = tap_low(&ret, 0);
    ret.reach = (size_t)(tap_low(&ret, axis->kernel - 1) - ret.low);
    return ret;
}

// Taps r, r + period, ... of the kernel, r below the period, reach the samples of gx at
// stride*p + first.
static struct conv_axis backward_axis(const struct axis *axis, size_t r)
{
    const size_t period = axis_tap_period(axis), slope = axis->dilation * period / axis->stride;
    const size_t taps = ceil_div(axis->kernel - r, period), reach = (taps - 1) * slope;
    const ptrdiff_t reached = axis->begin + (ptrdiff_t)(axis->dilation * r); // by tap r
    const ptrdiff_t sample = floor_div(reached, axis->stride);
    const size_t first = (size_t)(reached - sample * (ptrdiff_t)axis->stride);
    return (struct conv_axis){
        .size = axis->out,
        .out_size = axis->size,
        .step = 1,
        .first = first,
        .spread = axis->stride,
        .count = first < axis->size ? ceil_div(axis->size - first, axis->stride) : 0,
        .kernel = axis->kernel,
        .taps = taps,
        .tap_first = r,
        .tap_spread = period,
        .base = -sample,
        .slope = -(ptrdiff_t)slope,
        .residues = 1,
        .low = -sample - (ptrdiff_t)reach,
        .reach = reach,
    };
}

// One tap that meets each output's own sample.
static bool is_identity(const struct conv_axis *axis)
{
    return axis->kernel == 1 && axis->step == 1 && axis->spread == 1 && axis->base == 0 &&
           axis->count == axis->size && axis->count == axis->out_size;
}

// Adjacent identity axes at the end become one.
static void merge_identities(struct conv_pass *pass)
{
    struct conv_axis *row = &pass->axis[2];
    for (int i = 1; i >= 0 && is_identity(row) && is_identity(&pass->axis[i]); i--) {
        row->size = row->out_size = row->count = row->count * pass->axis[i].count;
        pass->axis[i].size = pass->axis[i].out_size = pass->axis[i].count = 1;
    }
}

bool conv_pass_is_identity(const struct conv_pass *pass)
{
    return is_identity(&pass->axis[2]) && pass->axis[0].size * pass->axis[1].size == 1 &&
           is_identity(&pass->axis[0]) && is_identity(&pass->axis[1]);
}

bool conv_pass_make(const struct shape *shape, enum partita_direction direction, size_t i,
                    struct conv_pass *ret)
{
    const bool backward = direction == PARTITA_BACKWARD_DATA;
    *ret = (struct conv_pass){.terms = 1,
                              .batch = shape->batch,
                              .groups = shape->groups,
                              .in = backward ? shape->group_out : shape->group_in,
                              .out = backward ? shape->group_in : shape->group_out,
                              .flip = shape->flip,
                              .scalar_bytes = shape->scalar_bytes,
                              .sample_bytes = shape_alignment(shape),
                              .from = shape_strides(shape, backward),
                              .to = shape_strides(shape, !backward),
                              .channels_last = shape->channels_last};
    bool empty = false;
    for (int a = 2; a >= 0; a--) {
        const struct axis axis = shape_axis(shape, a);
        const size_t residues = backward ? axis_residues(&axis) : 1;
        ret->axis[a] = backward ? backward_axis(&axis, i % residues) : forward_axis(&axis);
        ret->terms *= ret->axis[a].taps;
        empty |= ret->axis[a].count == 0;
        i /= residues;
    }
    assert(i == 0);
    merge_identities(ret);
    return !empty;
}

size_t conv_pass_count(const struct shape *shape, enum partita_direction direction)
{
    size_t n = 1;
    for (int i = 0; i < shape->rank && direction == PARTITA_BACKWARD_DATA; i++)
        n = size_mul(n, axis_residues(&shape->axis[i]));
    return n;
}

bool conv_pass_covers(const struct shape *shape, enum partita_direction direction, size_t n)
{
    size_t all = 1;
    for (int i = 0; i < shape->rank && direction == PARTITA_BACKWARD_DATA; i++)
        all = size_mul(all, size_min(shape->axis[i].stride, shape->axis[i].size));
    return n == all;
}

static bool axis_same_class(const struct conv_axis *a, const struct conv_axis *b)
{
    return a->count == b->count && a->taps == b->taps && a->reach == b->reach;
}

bool conv_pass_same_class(const struct conv_pass *a, const struct conv_pass *b)
{
    return axis_same_class(&a->axis[0], &b->axis[0]) && axis_same_class(&a->axis[1], &b->axis[1]) &&
           axis_same_class(&a->axis[2], &b->axis[2]);
}

// Classes of residues of one axis, multiplied with the n classes of the axes before. Passes of an
// axis differ by one tap and by one output at most.
static size_t multiply_classes(const struct axis *axis, struct conv_class *ret, size_t n)
{
    enum { AXIS_CLASSES = 4 };
    struct conv_class of_axis[AXIS_CLASSES];
    size_t known[AXIS_CLASSES] = {0}, classes = 0; // numbers of classes, from 1 on
    const size_t more_taps = (axis->kernel - 1) % axis_tap_period(axis) + 1;
    const size_t more_outputs = (axis->size - 1) % axis->stride + 1;
    const ptrdiff_t start = floor_div(axis->begin, axis->stride) * (ptrdiff_t)axis->stride;
    size_t first = (size_t)(axis->begin - start);
    for (size_t r = 0; r < axis_residues(axis); r++) {
        const int kind = 2 * (r < more_taps) + (first < more_outputs);
        if (!known[kind]) {
            of_axis[classes] = (struct conv_class){r, 0};
            known[kind] = ++classes;
        }
        of_axis[known[kind] - 1].n++;
        first = (first + axis->dilation) % axis->stride;
    }
    for (size_t i = n; i-- > 0;)
        for (size_t k = classes; k-- > 0;)
            ret[i * classes + k] = (struct conv_class){
                ret[i].first * axis_residues(axis) + of_axis[k].first, ret[i].n * of_axis[k].n};
    return n * classes;
}

size_t conv_pass_classes(const struct shape *shape, enum partita_direction direction,
                         struct conv_class ret[CONV_MAX_CLASSES])
{
    size_t n = 1;
    ret[0] = (struct conv_class){0, 1};
    for (int i = 0; i < shape->rank && direction == PARTITA_BACKWARD_DATA; i++)
        n = multiply_classes(&shape->axis[i], ret, n);
    return n;
}

void conv_pass_layout_box(struct conv_pass *pass)
{
    struct conv_box *box = &pass->box;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    size_t residues = 1, last = box->images - 1;
    box->volume = box->images;
    for (int i = 0; i < 3; i++) {
        box->extent[i] = size_add(box->count[i], pass->axis[i].reach);
        box->volume = size_mul(box->volume, box->extent[i]);
        residues = size_mul(residues, pass->axis[i].residues);
        last = size_add(size_mul(last, box->extent[i]), box->count[i] - 1);
        box->boxes[i] = ceil_div(pass->axis[i].count, box->count[i]);
    }
    box->image_boxes = ceil_div(pass->batch, box->images);
    box->positions = size_mul(last / lanes + 1, lanes);
    // Channels are an odd number of blocks apart, so that they do not fall into the same sets of
    // the cache.
    const size_t blocks = size_add(size_mul(residues, box->volume), lanes) / lanes + 1;
    box->channel = size_mul(blocks | 1, lanes);
}

// The largest extent, from the whole down by halves to `least`, with which a packed channel fits.
// Returns whether it does.
static bool widen_box(struct conv_pass *pass, int axis, size_t whole, size_t least,
                      size_t max_bytes)
{
    for (size_t n = whole;; n = (n + 1) / 2) {
        pass->box.count[axis] = size_split_even(whole, n);
        conv_pass_layout_box(pass);
        const bool fits = conv_pass_channel_bytes(pass) <= max_bytes;
        if (n <= least || fits) return fits;
    }
}

void conv_pass_choose_box(struct conv_pass *pass, size_t max_bytes)
{
    const struct conv_axis *axis = pass->axis;
    pass->chunk = 1;
    pass->box = (struct conv_box){.images = 1, .count = {1, 1, 1}};
    if (!widen_box(pass, 2, axis[2].count, MIN_ROW, max_bytes))
        widen_box(pass, 2, pass->box.count[2], 1, max_bytes);
    widen_box(pass, 1, axis[1].count, 1, max_bytes);
    if (pass->box.count[1] == axis[1].count) widen_box(pass, 0, axis[0].count, 1, max_bytes);
}

size_t conv_pass_boxes(const struct conv_pass *pass)
{
    const struct conv_box *box = &pass->box;
    return box->image_boxes * box->boxes[0] * box->boxes[1] * box->boxes[2];
}

size_t conv_pass_box_outputs(const struct conv_pass *pass)
{
    const struct conv_box *box = &pass->box;
    return box->images * box->count[0] * box->count[1] * box->count[2];
}

struct conv_index conv_pass_index(const struct conv_pass *pass, size_t i)
{
    const struct conv_box *box = &pass->box;
    struct conv_index index;
    assert(i < conv_pass_boxes(pass));
    for (int a = 2; a >= 0; a--) {
        index.at[a] = i % box->boxes[a] * box->count[a];
        index.count[a] = size_min(box->count[a], pass->axis[a].count - index.at[a]);
        i /= box->boxes[a];
    }
    index.item = i * box->images;
    index.items = size_min(box->images, pass->batch - index.item);
    return index;
}

size_t conv_pass_output_sample(const struct conv_pass *pass, const struct conv_index *index,
                               size_t d, size_t h)
{
    const struct conv_axis *axis = pass->axis;
    const size_t at_d = axis[0].first + axis[0].spread * (index->at[0] + d);
    const size_t at_h = axis[1].first + axis[1].spread * (index->at[1] + h);
    const size_t at_w = axis[2].first + axis[2].spread * index->at[2];
    return (at_d * axis[1].out_size + at_h) * axis[2].out_size + at_w;
}

size_t conv_pass_output_row(const struct conv_pass *pass, const struct conv_index *index,
                            size_t channel, size_t item, size_t d, size_t h)
{
    return (index->item + item) * pass->to.item + channel * pass->to.channel +
           conv_pass_output_sample(pass, index, d, h) * pass->to.position;
}

void conv_pass_offsets(const struct conv_pass *pass, size_t *offset, size_t n)
{
    size_t filled = 1, residue = pass->box.volume, line = 1;
    offset[0] = 0;
    // Axis by axis, from the fastest on: the offsets of the axes before are repeated for each tap,
    // the first tap last, in place.
    for (int a = 2; a >= 0; a--) {
        const struct conv_axis *axis = &pass->axis[a];
        for (size_t tap = axis->taps; tap-- > 0;) {
            const size_t at =
                tap % axis->residues * residue + (size_t)(tap_low(axis, tap) - axis->low) * line;
            for (size_t i = 0; i < filled; i++) offset[tap * filled + i] = offset[i] + at;
        }
        filled *= axis->taps;
        residue *= axis->residues;
        line *= pass->box.extent[a];
    }
    assert(filled == pass->terms);
    for (size_t c = 1; c < n; c++)
        for (size_t i = 0; i < filled; i++)
            offset[c * filled + i] = offset[i] + c * pass->box.channel;
}

void conv_pass_offsets_by_tap(const struct conv_pass *pass, size_t *offset, size_t n)
{
    conv_pass_offsets(pass, offset, n);
    for (size_t c = 0; pass->flip && c < n; c++)
        for (size_t t = 0; t < pass->terms / 2; t++) {
            size_t *first = &offset[c * pass->terms + t];
            size_t *last = &offset[(c + 1) * pass->terms - 1 - t];
            const size_t copy = *first;
            *first = *last;
            *last = copy;
        }
}

size_t conv_pass_tap(const struct conv_pass *pass, size_t term)
{
    const struct conv_axis *axis = pass->axis;
    size_t tap[3], index = 0, taps = 1;
    assert(term < pass->terms);
    size_unravel(term, (const size_t[]){axis[0].taps, axis[1].taps, axis[2].taps}, tap);
    for (int i = 0; i < 3; i++) {
        index = index * axis[i].kernel + axis[i].tap_first + tap[i] * axis[i].tap_spread;
        taps *= axis[i].kernel;
    }
    return pass->flip ? taps - 1 - index : index;
}
