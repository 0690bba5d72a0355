// SPDX-License-Identifier: MIT
// Arrays with channels last: a transform reads one channel, of which a cache line has one sample.
// So the window of a block is transposed for 16 channels at a time, and so are results.
#include <assert.h>
#include <string.h>

#include "overlap.h"

enum { POSITIONS = 64 }; // that are transposed at a time

size_t overlap_max_groups(const struct shape *shape)
{
    if (!shape->channels_last) return 1;
    // As many as share rows of x or y, unless the other array has many channels in each group.
    enum { MAX_CHANNELS = 64 };
    const size_t least = size_min(shape->group_in, shape->group_out);
    const size_t max = size_max(shape->group_in, shape->group_out);
    const size_t groups = size_min(OVERLAP_ROWS / least, MAX_CHANNELS / max);
    return size_min(size_max(groups, 1), shape->groups);
}

struct overlap_groups overlap_groups_at(const struct shape *shape, size_t item, size_t index)
{
    const size_t max = overlap_max_groups(shape), first = index * max;
    return (struct overlap_groups){item, first, size_min(max, shape->groups - first)};
}

// Rows that are a power of two apart would meet in one set of a cache.
static size_t row_pitch(const struct shape *shape, size_t n)
{
    return n + MEM_ALIGN / shape->scalar_bytes;
}

size_t overlap_rows_bytes(const struct shape *shape, size_t n)
{
    if (!shape->channels_last) return 0;
    return OVERLAP_ROWS * row_pitch(shape, n) * shape->sample_bytes;
}

static struct overlap_rows rows_of(const struct overlap *overlap,
                                   const struct overlap_groups *groups, bool outputs,
                                   struct range positions)
{
    const struct shape *shape = &overlap->shape;
    const struct sample_strides strides = shape_strides(shape, outputs);
    const size_t channels = outputs ? shape->out_channels : shape->in_channels;
    const size_t group = outputs ? shape->group_out : shape->group_in;
    const size_t sample = groups->item * strides.item + groups->first * group * strides.channel;
    return (struct overlap_rows){.transposed = shape->channels_last && channels > 1,
                                 .offset = sample * shape->sample_bytes,
                                 .bytes = shape->sample_bytes,
                                 .channels = channels,
                                 .size = outputs ? shape->axis[0].out : shape->axis[0].size,
                                 .count = groups->count * group,
                                 .first = positions.first,
                                 .n = positions.size,
                                 .pitch = row_pitch(shape, overlap->n)};
}

struct overlap_rows overlap_input_rows(const struct overlap *overlap,
                                       const struct overlap_groups *groups, ptrdiff_t first)
{
    const bool half = overlap->half.used;
    const struct range window = {half ? overlap->half.at : first,
                                 half ? overlap->n / 2 : overlap->n};
    return rows_of(overlap, groups, false, window);
}

struct overlap_rows overlap_output_rows(const struct overlap *overlap,
                                        const struct overlap_groups *groups,
                                        const struct block_outputs *outputs)
{
    return rows_of(overlap, groups, true,
                   (struct range){(ptrdiff_t)outputs->first, outputs->count});
}

// The samples of `count` channels from `channel` on to rows, zero outside the array.
static void read_rows(const struct partita_plan *plan, const struct overlap_rows *layout,
                      char *rows, const char *x, size_t channel, size_t count)
{
    const struct inside inside = samples_inside(layout->size, layout->first, 1, layout->n);
    const size_t bytes = layout->bytes, step = layout->channels * bytes;
    const size_t end = inside.begin + inside.count;
    for (size_t i = 0; i < count && inside.count < layout->n; i++) {
        char *row_begin = rows + i * layout->pitch * bytes;
        memset(row_begin, 0, inside.begin * bytes);
        memset(row_begin + end * bytes, 0, (layout->n - end) * bytes);
    }
    const ptrdiff_t first = layout->first + (ptrdiff_t)inside.begin;
    for (size_t at = 0; at < inside.count; at += POSITIONS) {
        const size_t n = size_min(inside.count - at, POSITIONS), next = at + n;
        const char *from = x + ((size_t)first + at) * step + channel * bytes;
        samples_prefetch(from + n * step, step, size_min(inside.count - next, POSITIONS), false);
        plan->kernels->transpose(rows + (inside.begin + at) * bytes, layout->pitch, from,
                                 layout->channels, n, count);
    }
}

const char *overlap_read_row(const struct partita_plan *plan, const struct overlap_rows *layout,
                             char *rows, const char *x, size_t channel)
{
    const size_t bytes = layout->bytes, row = channel % OVERLAP_ROWS;
    assert(channel < layout->count);
    x += layout->offset;
    if (!layout->transposed)
        return samples_at(rows, x + channel * layout->size * bytes, layout->size, layout->first,
                          layout->n, bytes);
    if (row == 0)
        read_rows(plan, layout, rows, x, channel, size_min(layout->count - channel, OVERLAP_ROWS));
    return rows + row * layout->pitch * bytes;
}

char *overlap_row_to(const struct overlap_rows *layout, char *rows, char *y, size_t channel)
{
    assert(channel < layout->count && layout->first >= 0);
    if (layout->transposed) return rows + channel % OVERLAP_ROWS * layout->pitch * layout->bytes;
    return y + layout->offset + (channel * layout->size + (size_t)layout->first) * layout->bytes;
}

void overlap_write_row(const struct partita_plan *plan, const struct overlap_rows *layout, char *y,
                       const char *rows, size_t channel)
{
    const size_t row = channel % OVERLAP_ROWS, first = channel - row;
    if (!layout->transposed) return;
    if (row + 1 < OVERLAP_ROWS && channel + 1 < layout->count) return;
    const size_t bytes = layout->bytes, step = layout->channels * bytes;
    char *to = y + layout->offset + (size_t)layout->first * step + first * bytes;
    for (size_t at = 0; at < layout->n; at += POSITIONS) {
        const size_t n = size_min(layout->n - at, POSITIONS), next = at + n;
        samples_prefetch(to + next * step, step, size_min(layout->n - next, POSITIONS), true);
        plan->kernels->transpose(to + at * step, layout->channels, rows + at * bytes, layout->pitch,
                                 row + 1, n);
    }
}
