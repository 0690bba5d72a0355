// SPDX-License-Identifier: MIT
// Samples of the caller's arrays into the packed rows of a pass and back. With channels last, rows
// of adjacent channels are transposed on the way (decision 42).
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "pass.h"

enum { LINE = 64 }; // bytes of a cache line

// Packed sample i of residue j of a box along an axis, as a sample of x; may lie outside.
static ptrdiff_t input_sample(const struct conv_axis *axis, size_t at, size_t j, size_t i)
{
    const ptrdiff_t step = (ptrdiff_t)axis->step;
    const ptrdiff_t meets = axis->base + axis->slope * (ptrdiff_t)j;
    const ptrdiff_t residue = meets - floor_div(meets, axis->step) * step;
    return step * ((ptrdiff_t)(at + i) + axis->low) + residue;
}

static bool is_inside(const struct conv_axis *axis, ptrdiff_t sample)
{
    return sample >= 0 && sample < (ptrdiff_t)axis->size;
}

// n samples of a row of the input, a step apart, of a channel or of adjacent channels.
static void pack_row(const struct conv_pass *pass, char *packed, const char *row, size_t n,
                     size_t channels)
{
    const size_t step = pass->axis[2].step * pass->from.position;
    const struct sample_rows to = {packed, channels, pass->box.channel, step, n};
    if (pass->pairs && pass->channels_last && !pass->odd)
        pass->plan->kernels->transpose(packed, pass->box.channel, row, step / 2, n, channels);
    else if (pass->pairs)
        pass->plan->kernels->pair(packed, row, row + pass->from.channel / 2 * pass->sample_bytes,
                                  step, n);
    else if (!pass->channels_last && pass->sample_bytes == pass->scalar_bytes)
        samples_copy(packed, 1, row, step, n, pass->scalar_bytes);
    else samples_move(pass->plan, &to, row, false);
}

// Fetches the same samples of the next channel, since the processor's own prefetch ends with a row.
// A number, for they may lie beyond the array.
static void prefetch_row(const struct conv_pass *pass, const char *row, size_t n)
{
    const size_t step = pass->axis[2].step * pass->sample_bytes, bytes = n * step;
    const uintptr_t next = (uintptr_t)row + pass->from.channel * pass->sample_bytes;
    for (size_t i = 0; i < bytes; i += size_max(step, LINE))
        __builtin_prefetch((const void *)(next + i));
}

static void clear_packed(const struct conv_pass *pass, char *packed, size_t bytes, size_t channels)
{
    for (size_t c = 0; c < channels; c++)
        memset(packed + c * conv_pass_channel_bytes(pass), 0, bytes);
}

// Residue j of a channel, or of adjacent channels: `plane` is the channel of the first item.
static void pack_residue(const struct conv_pass *pass, const struct conv_index *index, char *packed,
                         const char *plane, size_t channels, const size_t j[3])
{
    const size_t item = pass->from.item * pass->sample_bytes;
    const size_t position = pass->from.position * pass->sample_bytes;
    const struct conv_box *box = &pass->box;
    const struct conv_axis *axis = pass->axis;
    const size_t row = box->extent[2] * pass->scalar_bytes;
    const ptrdiff_t first_d = input_sample(&axis[0], index->at[0], j[0], 0);
    const ptrdiff_t first_h = input_sample(&axis[1], index->at[1], j[1], 0);
    const ptrdiff_t first = input_sample(&axis[2], index->at[2], j[2], 0);
    const struct inside in = samples_inside(axis[2].size, first, axis[2].step, box->extent[2]);
    const size_t from = (size_t)(first + (ptrdiff_t)(in.begin * axis[2].step)) * position;
    // All zeros of short rows at once.
    const bool cleared = in.count < box->extent[2];
    if (cleared) clear_packed(pass, packed, box->volume * pass->scalar_bytes, channels);
    for (size_t n = 0; n < box->images; n++)
        for (size_t d = 0; d < box->extent[0]; d++) {
            const ptrdiff_t from_d = first_d + (ptrdiff_t)(d * axis[0].step);
            const bool outside = n >= index->items || !is_inside(&axis[0], from_d) || !in.count;
            for (size_t h = 0; h < box->extent[1]; h++, packed += row) {
                const ptrdiff_t from_h = first_h + (ptrdiff_t)(h * axis[1].step);
                if (outside || !is_inside(&axis[1], from_h)) {
                    if (!cleared) clear_packed(pass, packed, row, channels);
                    continue;
                }
                const size_t line = (size_t)from_d * axis[1].size + (size_t)from_h;
                const char *samples = plane + n * item + line * axis[2].size * position + from;
                if (!pass->channels_last) prefetch_row(pass, samples, in.count);
                pack_row(pass, packed + in.begin * pass->scalar_bytes, samples, in.count, channels);
            }
        }
}

void conv_pass_pack(const struct conv_pass *pass, const struct conv_index *index, void *packed,
                    const void *x, size_t channel, size_t n)
{
    const struct conv_axis *axis = pass->axis;
    const size_t channel_bytes = conv_pass_channel_bytes(pass);
    const size_t volume = pass->box.volume * pass->scalar_bytes;
    const size_t adjacent = pass->channels_last && !pass->odd ? n : 1;
    struct conv_pass one = *pass;
    assert(channel + n <= pass->groups * pass->in);
    for (size_t c = 0; c < n; c += adjacent) {
        // A channel without a second one becomes f32, which is pairs whose lower halves are zeros.
        one.pairs = pass->pairs && !(pass->odd && channel + c + 1 == pass->in);
        const size_t first = index->item * pass->from.item + (channel + c) * pass->from.channel;
        const char *from = (const char *)x + first * pass->sample_bytes;
        char *to = (char *)packed + c * channel_bytes, *end = to + channel_bytes;
        size_t j[3];
        for (j[0] = 0; j[0] < axis[0].residues; j[0]++)
            for (j[1] = 0; j[1] < axis[1].residues; j[1]++)
                for (j[2] = 0; j[2] < axis[2].residues; j[2]++, to += volume)
                    pack_residue(&one, index, to, from, adjacent, j);
        assert(to <= end);
        clear_packed(pass, to, (size_t)(end - to), adjacent);
    }
}

size_t conv_pass_rows(const struct conv_pass *pass)
{
    const struct conv_axis *axis = pass->axis;
    return axis[0].residues * axis[1].residues * axis[2].residues * pass->box.extent[0] *
           pass->box.extent[1];
}

void conv_pass_each_row(const struct conv_pass *pass, const struct conv_index *index,
                        void (*each)(void *context, const struct conv_row *row), void *context)
{
    const struct conv_axis *axis = pass->axis;
    const size_t *extent = pass->box.extent;
    const size_t residues = axis[0].residues * axis[1].residues * axis[2].residues;
    size_t to = 0, j[3];
    assert(pass->box.images == 1);
    for (size_t i = 0; i < residues; i++) {
        ptrdiff_t first[3];
        size_unravel(i, (const size_t[]){axis[0].residues, axis[1].residues, axis[2].residues}, j);
        for (int a = 0; a < 3; a++) first[a] = input_sample(&axis[a], index->at[a], j[a], 0);
        for (size_t d = 0; d < extent[0]; d++)
            for (size_t h = 0; h < extent[1]; h++, to += extent[2]) {
                const ptrdiff_t at_d = first[0] + (ptrdiff_t)(d * axis[0].step);
                const ptrdiff_t at_h = first[1] + (ptrdiff_t)(h * axis[1].step);
                struct conv_row row = {.to = to, .first = first[2]};
                row.zero = !is_inside(&axis[0], at_d) || !is_inside(&axis[1], at_h);
                if (!row.zero)
                    row.row = ((size_t)at_d * axis[1].size + (size_t)at_h) * axis[2].size;
                each(context, &row);
            }
    }
}
