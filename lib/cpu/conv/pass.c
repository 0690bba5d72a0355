// SPDX-License-Identifier: MIT
// Layers as passes, see conv_pass.h.
#include "pass.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"

enum {
    ENOUGH_TASKS = 16, // so many are worth smaller boxes
    LEAST_ROW = 64,    // outputs of a row, where there is a choice
};

// The shape's axis that stands at place i of three; NULL where it has none.
static const struct axis *axis_at(const struct shape *shape, int i)
{
    const int unused = PARTITA_MAX_RANK - shape->rank;
    return i < unused ? NULL : &shape->axis[i - unused];
}

static const struct axis no_axis = {
    .kernel = 1, .size = 1, .stride = 1, .dilation = 1, .span = 1, .out = 1};

static ptrdiff_t tap_low(const struct conv_axis *axis, size_t tap)
{
    return floor_div(axis->base + axis->slope * (ptrdiff_t)tap, axis->step);
}

static void complete(struct conv_axis *axis)
{
    const size_t slope = (size_t)(axis->slope < 0 ? -axis->slope : axis->slope);
    const size_t period = axis->step / size_gcd(axis->step, slope % axis->step);
    const ptrdiff_t first = tap_low(axis, 0), last = tap_low(axis, axis->taps - 1);
    axis->phases = size_min(period, axis->taps);
    axis->low = first < last ? first : last;
    axis->reach = (size_t)(first < last ? last - first : first - last);
}

static void begin(const struct shape *shape, struct conv_pass *pass)
{
    *pass = (struct conv_pass){.terms = 1,
                               .batch = shape->batch,
                               .groups = shape->groups,
                               .flip = shape->flip,
                               .scalar_bytes = shape->scalar_bytes,
                               .sample_bytes = shape_alignment(shape)};
}

// One tap that meets each output's own sample.
static bool is_idle(const struct conv_axis *axis)
{
    return axis->kernel == 1 && axis->step == 1 && axis->spread == 1 && axis->base == 0 &&
           axis->count == axis->size && axis->count == axis->out_size;
}

// Neighbouring idle axes at the end become one.
static void merge_idle(struct conv_pass *pass)
{
    struct conv_axis *row = &pass->axis[2];
    for (int i = 1; i >= 0 && is_idle(row) && is_idle(&pass->axis[i]); i--) {
        row->size = row->out_size = row->count = row->count * pass->axis[i].count;
        pass->axis[i].size = pass->axis[i].out_size = pass->axis[i].count = 1;
    }
}

void conv_pass_forward(const struct shape *shape, struct conv_pass *ret)
{
    begin(shape, ret);
    ret->in = shape->group_in;
    ret->out = shape->group_out;
    for (int i = 0; i < 3; i++) {
        const struct axis *axis = axis_at(shape, i);
        if (!axis) axis = &no_axis;
        ret->axis[i] = (struct conv_axis){.size = axis->size,
                                          .out_size = axis->out,
                                          .step = axis->stride,
                                          .spread = 1,
                                          .count = axis->out,
                                          .kernel = axis->kernel,
                                          .taps = axis->kernel,
                                          .tap_spread = 1,
                                          .base = axis->begin,
                                          .slope = (ptrdiff_t)axis->dilation};
        complete(&ret->axis[i]);
        ret->terms *= axis->kernel;
    }
    merge_idle(ret);
}

// Distance of the taps that reach one residue of gx.
static size_t tap_period(const struct axis *axis)
{
    return axis->stride / size_gcd(axis->stride, axis->dilation);
}

static size_t residues(const struct axis *axis)
{
    return size_min(axis->kernel, tap_period(axis));
}

size_t conv_pass_count(const struct shape *shape)
{
    size_t n = 1;
    for (int i = 0; i < shape->rank; i++) n = size_mul(n, residues(&shape->axis[i]));
    return n;
}

// What differs between residues: taps r, r + period, ... of the kernel, r below the period, reach
// the samples of gx at stride*p + first. `reached` is where tap r leads from input sample `base`,
// which then moves to where it leads to `first`.
static void set_residue(struct conv_axis *axis, size_t r, ptrdiff_t reached)
{
    const ptrdiff_t sample = floor_div(reached, axis->spread), slope = -axis->slope;
    axis->tap_first = r;
    axis->first = (size_t)(reached - sample * (ptrdiff_t)axis->spread);
    axis->base -= sample;
    axis->taps = ceil_div(axis->kernel - r, axis->tap_spread);
    axis->count =
        axis->first < axis->out_size ? ceil_div(axis->out_size - axis->first, axis->spread) : 0;
    axis->reach = (axis->taps - 1) * (size_t)slope;
    axis->low = axis->base - (ptrdiff_t)axis->reach;
}

static struct conv_axis backward_axis(const struct axis *axis, size_t r)
{
    const size_t period = tap_period(axis);
    struct conv_axis ret = {.size = axis->out,
                            .out_size = axis->size,
                            .step = 1,
                            .spread = axis->stride,
                            .kernel = axis->kernel,
                            .tap_spread = period,
                            .slope = -(ptrdiff_t)(axis->dilation * period / axis->stride),
                            .phases = 1};
    set_residue(&ret, r, axis->begin + (ptrdiff_t)(axis->dilation * r));
    return ret;
}

// The next residue that any tap reaches; false, and the first one again, behind the last.
static bool next_residue(const struct axis *axis, struct conv_axis *ret)
{
    const size_t r = ret->tap_first + 1;
    if (r < size_min(ret->kernel, ret->tap_spread)) {
        set_residue(ret, r, (ptrdiff_t)(ret->first + axis->dilation));
        return true;
    }
    if (r > 1) *ret = backward_axis(axis, 0);
    return false;
}

void conv_pass_backward(const struct shape *shape, size_t i, struct conv_pass *ret)
{
    begin(shape, ret);
    ret->in = shape->group_out;
    ret->out = shape->group_in;
    for (int k = 2; k >= 0; k--) {
        const struct axis *axis = axis_at(shape, k);
        if (!axis) axis = &no_axis;
        ret->axis[k] = backward_axis(axis, i % residues(axis));
        ret->terms *= ret->axis[k].taps;
        i /= residues(axis);
    }
    merge_idle(ret);
}

bool conv_pass_next(const struct shape *shape, struct conv_pass *pass)
{
    // Axes that were merged have one residue each.
    bool more = false;
    for (int k = 2; k >= 0 && !more; k--)
        if (axis_at(shape, k)) more = next_residue(axis_at(shape, k), &pass->axis[k]);
    pass->terms = pass->axis[0].taps * pass->axis[1].taps * pass->axis[2].taps;
    return more;
}

static bool alike(const struct conv_axis *a, const struct conv_axis *b)
{
    return a->count == b->count && a->taps == b->taps && a->reach == b->reach;
}

bool conv_pass_alike(const struct conv_pass *a, const struct conv_pass *b)
{
    return alike(&a->axis[0], &b->axis[0]) && alike(&a->axis[1], &b->axis[1]) &&
           alike(&a->axis[2], &b->axis[2]);
}

// Kinds of residues of one axis, multiplied with those of the axes before.
static size_t multiply_kinds(const struct axis *axis, struct conv_kind *ret, size_t n)
{
    enum { AXIS_KINDS = 4 };
    struct conv_axis each[AXIS_KINDS];
    struct conv_kind kind[AXIS_KINDS];
    size_t kinds = 0;
    struct conv_axis now = backward_axis(axis, 0);
    do {
        size_t k = 0;
        while (k < kinds && !alike(&each[k], &now)) k++;
        if (k == kinds) {
            each[kinds] = now;
            kind[kinds++] = (struct conv_kind){now.tap_first, 0};
        }
        kind[k].n++;
    } while (next_residue(axis, &now));
    for (size_t i = n; i-- > 0;)
        for (size_t k = kinds; k-- > 0;)
            ret[i * kinds + k] = (struct conv_kind){ret[i].first * residues(axis) + kind[k].first,
                                                    ret[i].n * kind[k].n};
    return n * kinds;
}

size_t conv_pass_kinds(const struct shape *shape, struct conv_kind ret[CONV_KINDS])
{
    size_t n = 1;
    ret[0] = (struct conv_kind){0, 1};
    for (int i = 0; i < shape->rank; i++) n = multiply_kinds(&shape->axis[i], ret, n);
    return n;
}

void conv_pass_measure(struct conv_pass *pass)
{
    struct conv_box *box = &pass->box;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    size_t phases = 1, last = box->images - 1;
    box->volume = box->images;
    for (int i = 0; i < 3; i++) {
        box->extent[i] = size_add(box->count[i], pass->axis[i].reach);
        box->volume = size_mul(box->volume, box->extent[i]);
        phases = size_mul(phases, pass->axis[i].phases);
        last = size_add(size_mul(last, box->extent[i]), box->count[i] - 1);
        box->boxes[i] = ceil_div(pass->axis[i].count, box->count[i]);
    }
    box->image_boxes = ceil_div(pass->batch, box->images);
    box->positions = size_mul(last / lanes + 1, lanes);
    // Channels an odd number of lines apart, so that they do not meet in the same sets of the
    // cache.
    const size_t lines = size_add(size_mul(phases, box->volume), lanes) / lanes + 1;
    box->channel = size_mul(lines | 1, lanes);
}

static bool fits(const struct conv_pass *pass, size_t most_positions, size_t most_bytes)
{
    return pass->box.positions <= most_positions &&
           size_mul(pass->chunk, conv_channel_bytes(pass)) <= most_bytes;
}

// Makes the box larger along one extent as long as it fits; from the whole down by halves.
static void widen(struct conv_pass *pass, size_t *extent, size_t whole, size_t floor,
                  size_t most_positions, size_t most_bytes)
{
    for (size_t n = whole;; n = (n + 1) / 2) {
        *extent = size_split_even(whole, n);
        conv_pass_measure(pass);
        if (n <= floor || fits(pass, most_positions, most_bytes)) return;
    }
}

void conv_pass_cut(struct conv_pass *pass, size_t most_positions, size_t most_bytes, size_t tasks)
{
    enum {
        ENOUGH_TERMS = 512
    }; // in one call of the kernel: weights of eight channels take half of the L1 cache
    const struct conv_axis *axis = pass->axis;
    size_t chunk = ENOUGH_TERMS / pass->terms;
    chunk = chunk < 1 ? 1 : size_min(chunk, pass->in);
    for (;; chunk = (chunk + 1) / 2) {
        pass->chunk = size_split_even(pass->in, chunk);
        pass->box = (struct conv_box){.images = 1, .count = {1, 1, 1}};
        widen(pass, &pass->box.count[2], axis[2].count, LEAST_ROW, most_positions, most_bytes);
        if (chunk == 1 || fits(pass, most_positions, most_bytes)) break;
    }
    if (!fits(pass, most_positions, most_bytes))
        widen(pass, &pass->box.count[2], pass->box.count[2], 1, most_positions, most_bytes);
    widen(pass, &pass->box.count[1], axis[1].count, 1, most_positions, most_bytes);
    if (pass->box.count[1] < axis[1].count) return;
    widen(pass, &pass->box.count[0], axis[0].count, 1, most_positions, most_bytes);
    if (pass->box.count[0] < axis[0].count || pass->box.count[2] < axis[2].count) return;
    const size_t pieces = tasks < ENOUGH_TASKS ? ENOUGH_TASKS / tasks : 1;
    const size_t most_images = pass->batch / pieces ? pass->batch / pieces : 1;
    size_t best = 1;
    double fewest = INFINITY;
    for (size_t n = most_images; n; n /= 2) {
        pass->box.images = size_split_even(pass->batch, n);
        conv_pass_measure(pass);
        // Rows between images are wasted, and so is what an image leaves of its last vector.
        const double extra =
                         (double)pass->box_vectors * CONV_BLOCK_BYTES / (double)pass->scalar_bytes,
                     positions = ((double)pass->box.positions + extra) / (double)pass->box.images;
        if ((n > 1 && !fits(pass, most_positions, most_bytes)) || positions >= fewest) continue;
        fewest = positions;
        best = pass->box.images;
    }
    pass->box.images = best;
    conv_pass_measure(pass);
}

size_t conv_pass_boxes(const struct conv_pass *pass)
{
    const struct conv_box *box = &pass->box;
    return box->image_boxes * box->boxes[0] * box->boxes[1] * box->boxes[2];
}

struct conv_place conv_pass_place(const struct conv_pass *pass, size_t index)
{
    const struct conv_box *box = &pass->box;
    struct conv_place place;
    for (int i = 2; i >= 0; i--) {
        place.at[i] = index % box->boxes[i] * box->count[i];
        index /= box->boxes[i];
    }
    place.item = index * box->images;
    return place;
}

size_t conv_place_count(const struct conv_pass *pass, const struct conv_place *place, int axis)
{
    return size_min(pass->box.count[axis], pass->axis[axis].count - place->at[axis]);
}

size_t conv_place_items(const struct conv_pass *pass, const struct conv_place *place)
{
    return size_min(pass->box.images, pass->batch - place->item);
}

// Packed sample i of a residue of a box along an axis, as a sample of x; may lie outside.
static ptrdiff_t source(const struct conv_axis *axis, size_t at, size_t phase, size_t i)
{
    const ptrdiff_t step = (ptrdiff_t)axis->step,
                    meets = axis->base + axis->slope * (ptrdiff_t)phase;
    const ptrdiff_t residue = meets - floor_div(meets, axis->step) * step;
    return step * ((ptrdiff_t)(at + i) + axis->low) + residue;
}

static bool inside(const struct conv_axis *axis, ptrdiff_t i)
{
    return i >= 0 && i < (ptrdiff_t)axis->size;
}

// n samples of a line of the input, a step apart.
static void pack_row(const struct conv_pass *pass, char *packed, const char *line, size_t n)
{
    enum { PIECE = 256 };
    const size_t step = pass->axis[2].step;
    if (!pass->widen) {
        samples_copy(packed, 1, line, step, n, pass->scalar_bytes);
        return;
    }
    uint16_t row[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t piece = size_min(PIECE, n - i);
        const char *from = line + i * step * sizeof *row;
        if (step > 1) samples_copy(row, 1, from, step, piece, sizeof *row);
        pass->widen(packed + i * pass->scalar_bytes, step > 1 ? (const void *)row : from, piece);
    }
}

// One residue of one channel: `plane` is the channel of the first item, items are `item_stride`
// bytes apart.
static void pack_phase(const struct conv_pass *pass, const struct conv_place *place, char *packed,
                       const char *plane, size_t item_stride, const size_t phase[3])
{
    const struct conv_box *box = &pass->box;
    const struct conv_axis *axis = pass->axis;
    const size_t row = box->extent[2] * pass->scalar_bytes, items = conv_place_items(pass, place);
    const ptrdiff_t first = source(&axis[2], place->at[2], phase[2], 0);
    const struct inside in = samples_inside(axis[2].size, first, axis[2].step, box->extent[2]);
    const size_t from = (size_t)(first + (ptrdiff_t)(in.begin * axis[2].step)) * pass->sample_bytes;
    // All zeros of short rows at once.
    const bool cleared = in.count < box->extent[2];
    if (cleared) memset(packed, 0, box->volume * pass->scalar_bytes);
    for (size_t n = 0; n < box->images; n++)
        for (size_t d = 0; d < box->extent[0]; d++) {
            const ptrdiff_t from_d = source(&axis[0], place->at[0], phase[0], d);
            const ptrdiff_t first_h = source(&axis[1], place->at[1], phase[1], 0);
            const bool outside = n >= items || !inside(&axis[0], from_d) || !in.count;
            for (size_t h = 0; h < box->extent[1]; h++, packed += row) {
                const ptrdiff_t from_h = first_h + (ptrdiff_t)(h * axis[1].step);
                if (outside || !inside(&axis[1], from_h)) {
                    if (!cleared) memset(packed, 0, row);
                    continue;
                }
                const size_t line = (size_t)from_d * axis[1].size + (size_t)from_h;
                pack_row(pass, packed + in.begin * pass->scalar_bytes,
                         plane + n * item_stride + line * axis[2].size * pass->sample_bytes + from,
                         in.count);
            }
        }
}

void conv_pass_pack(const struct conv_pass *pass, const struct conv_place *place, void *packed,
                    const void *x, size_t channel, size_t n)
{
    const struct conv_axis *axis = pass->axis;
    const size_t bytes = pass->scalar_bytes,
                 plane = axis[0].size * axis[1].size * axis[2].size * pass->sample_bytes;
    const size_t item = pass->groups * pass->in * plane, volume = pass->box.volume * bytes;
    for (size_t c = 0; c < n; c++) {
        const char *from = (const char *)x + place->item * item + (channel + c) * plane;
        char *to = (char *)packed + c * conv_channel_bytes(pass),
             *end = to + conv_channel_bytes(pass);
        size_t phase[3];
        for (phase[0] = 0; phase[0] < axis[0].phases; phase[0]++)
            for (phase[1] = 0; phase[1] < axis[1].phases; phase[1]++)
                for (phase[2] = 0; phase[2] < axis[2].phases; phase[2]++, to += volume)
                    pack_phase(pass, place, to, from, item, phase);
        memset(to, 0, (size_t)(end - to));
    }
}

size_t conv_pass_lines(const struct conv_pass *pass)
{
    const struct conv_axis *axis = pass->axis;
    return axis[0].phases * axis[1].phases * axis[2].phases * pass->box.extent[0] *
           pass->box.extent[1];
}

// Those of one residue, from position `to` on.
static void each_of_phase(const struct conv_pass *pass, const struct conv_place *place,
                          const size_t phase[3], size_t to,
                          void (*each)(void *context, const struct conv_line *line), void *context)
{
    const struct conv_axis *axis = pass->axis;
    const size_t *extent = pass->box.extent;
    ptrdiff_t from[3];
    for (int i = 0; i < 3; i++) from[i] = source(&axis[i], place->at[i], phase[i], 0);
    for (size_t d = 0; d < extent[0]; d++)
        for (size_t h = 0; h < extent[1]; h++, to += extent[2]) {
            const ptrdiff_t at_d = from[0] + (ptrdiff_t)(d * axis[0].step),
                            at_h = from[1] + (ptrdiff_t)(h * axis[1].step);
            struct conv_line line = {.to = to,
                                     .first = from[2],
                                     .zero = !inside(&axis[0], at_d) || !inside(&axis[1], at_h)};
            if (!line.zero) line.row = ((size_t)at_d * axis[1].size + (size_t)at_h) * axis[2].size;
            each(context, &line);
        }
}

void conv_pass_each_line(const struct conv_pass *pass, const struct conv_place *place,
                         void (*each)(void *context, const struct conv_line *line), void *context)
{
    const struct conv_axis *axis = pass->axis;
    size_t phase[3], to = 0;
    for (phase[0] = 0; phase[0] < axis[0].phases; phase[0]++)
        for (phase[1] = 0; phase[1] < axis[1].phases; phase[1]++)
            for (phase[2] = 0; phase[2] < axis[2].phases; phase[2]++, to += pass->box.volume)
                each_of_phase(pass, place, phase, to, each, context);
}

// Taps of a term along each axis.
static void taps_of(const struct conv_pass *pass, size_t term, size_t tap[3])
{
    for (int i = 2; i >= 0; i--) {
        tap[i] = term % pass->axis[i].taps;
        term /= pass->axis[i].taps;
    }
}

void conv_pass_offsets(const struct conv_pass *pass, size_t *offset, size_t n)
{
    size_t filled = 1, residue = pass->box.volume, line = 1;
    offset[0] = 0;
    // Axis by axis, from the fastest on: those of the axes before once for each tap, the first one
    // last, in place.
    for (int a = 2; a >= 0; a--) {
        const struct conv_axis *axis = &pass->axis[a];
        for (size_t tap = axis->taps; tap-- > 0;) {
            const size_t at =
                tap % axis->phases * residue + (size_t)(tap_low(axis, tap) - axis->low) * line;
            for (size_t i = 0; i < filled; i++) offset[tap * filled + i] = offset[i] + at;
        }
        filled *= axis->taps;
        residue *= axis->phases;
        line *= pass->box.extent[a];
    }
    for (size_t c = 1; c < n; c++)
        for (size_t i = 0; i < filled; i++)
            offset[c * filled + i] = offset[i] + c * pass->box.channel;
}

void conv_pass_taps_offsets(const struct conv_pass *pass, size_t *offset, size_t n)
{
    conv_pass_offsets(pass, offset, n);
    for (size_t c = 0; pass->flip && c < n; c++)
        for (size_t t = 0; t < pass->terms / 2; t++) {
            size_t *first = &offset[c * pass->terms + t],
                   *last = &offset[(c + 1) * pass->terms - 1 - t];
            const size_t kept = *first;
            *first = *last;
            *last = kept;
        }
}

size_t conv_pass_tap(const struct conv_pass *pass, size_t term)
{
    size_t tap[3], index = 0, taps = 1;
    taps_of(pass, term, tap);
    for (int i = 0; i < 3; i++) {
        const struct conv_axis *axis = &pass->axis[i];
        index = index * axis->kernel + axis->tap_first + tap[i] * axis->tap_spread;
        taps *= axis->kernel;
    }
    return pass->flip ? taps - 1 - index : index;
}
