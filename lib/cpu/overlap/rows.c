// SPDX-License-Identifier: MIT
// Arrays with channels last: a transform reads one channel, of which a cache line has one sample.
// So the window of a block is transposed for 16 channels at a time, and so are results.
#include <string.h>

#include "overlap.h"

enum { POSITIONS = 64 }; // that are transposed at a time

size_t overlap_groups(const struct shape *shape)
{
    if (!shape->channels_last) return 1;
    // As many as share rows of x or y, unless the other array has many channels in each group.
    enum { MAX_CHANNELS = 64 };
    const size_t least = size_min(shape->group_in, shape->group_out);
    const size_t max = size_max(shape->group_in, shape->group_out);
    const size_t groups = size_min(OVERLAP_ROWS / least, MAX_CHANNELS / max);
    return size_min(size_max(groups, 1), shape->groups);
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

struct overlap_rows overlap_input_rows(const struct overlap *overlap, size_t groups,
                                       ptrdiff_t first)
{
    const struct shape *shape = &overlap->shape;
    const bool half = overlap->half.used;
    return (struct overlap_rows){.channels = shape->in_channels,
                                 .size = shape->axis[0].size,
                                 .count = groups * shape->group_in,
                                 .first = half ? overlap->half.at : first,
                                 .n = half ? overlap->n / 2 : overlap->n,
                                 .pitch = row_pitch(shape, overlap->n)};
}

struct overlap_rows overlap_output_rows(const struct overlap *overlap, size_t groups,
                                        const struct block_outputs *outputs)
{
    const struct shape *shape = &overlap->shape;
    return (struct overlap_rows){.channels = shape->out_channels,
                                 .size = shape->axis[0].out,
                                 .count = groups * shape->group_out,
                                 .first = (ptrdiff_t)outputs->first,
                                 .n = outputs->count,
                                 .pitch = row_pitch(shape, overlap->n)};
}

// The samples of `count` channels from `channel` on to rows, zero outside the array.
static void read_rows(const struct partita_plan *plan, const struct overlap_rows *layout,
                      char *rows, const char *x, size_t channel, size_t count)
{
    const struct inside inside = samples_inside(layout->size, layout->first, 1, layout->n);
    const size_t bytes = plan->shape.sample_bytes, step = layout->channels * bytes;
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
    const size_t bytes = plan->shape.sample_bytes, row = channel % OVERLAP_ROWS;
    if (layout->channels == 1)
        samples_window(rows, x, layout->size, layout->first, 1, layout->n, bytes);
    else if (row == 0)
        read_rows(plan, layout, rows, x, channel, size_min(layout->count - channel, OVERLAP_ROWS));
    return rows + row * layout->pitch * bytes;
}

void overlap_write_row(const struct partita_plan *plan, const struct overlap_rows *layout, char *y,
                       const char *rows, size_t channel)
{
    const size_t row = channel % OVERLAP_ROWS, first = channel - row;
    if (row + 1 < OVERLAP_ROWS && channel + 1 < layout->count) return;
    const size_t bytes = plan->shape.sample_bytes, step = layout->channels * bytes;
    char *to = y + (size_t)layout->first * step + first * bytes;
    if (layout->channels == 1) {
        memcpy(to, rows, layout->n * bytes);
        return;
    }
    for (size_t at = 0; at < layout->n; at += POSITIONS) {
        const size_t n = size_min(layout->n - at, POSITIONS), next = at + n;
        samples_prefetch(to + next * step, step, size_min(layout->n - next, POSITIONS), true);
        plan->kernels->transpose(to + at * step, layout->channels, rows + at * bytes, layout->pitch,
                                 row + 1, n);
    }
}
