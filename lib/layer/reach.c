// SPDX-License-Identifier: MIT
#include "reach.h"

#include <string.h>

#include "base/mem.h"
#include "base/ranges.h"

// One axis: samples are read as elements `apart` elements apart, and sample i that is written
// depends on elements first + advance*i + step*j for j < count, those of them that exist.
struct line {
    size_t read, apart, written;
    ptrdiff_t first;
    size_t advance, step, count;
};

static struct line line_of(const struct axis *axis, enum reach_kind kind)
{
    const ptrdiff_t reach = (ptrdiff_t)(axis->dilation * (axis->kernel - 1));
    if (kind == REACH_X_TO_Y)
        return (struct line){axis->size,     1,           axis->out, axis->begin, axis->stride,
                             axis->dilation, axis->kernel};
    if (kind == REACH_GY_TO_X)
        return (struct line){axis->out, axis->stride,   axis->size,  -axis->begin - reach,
                             1,         axis->dilation, axis->kernel};
    if (kind == REACH_X_TO_TAPS)
        return (struct line){axis->size,   1,        axis->kernel, axis->begin, axis->dilation,
                             axis->stride, axis->out};
    return (struct line){.read = axis->out, .apart = 1, .written = axis->kernel, .step = 1};
}

static size_t line_elements(const struct line *line)
{
    return (line->read - 1) * line->apart + 1;
}

// Memory of a reach: counts of the longest line, and marks of two planes between axes.
struct reach_memory {
    size_t counts, marks;
};

static struct reach_memory memory_of(const struct shape *shape)
{
    size_t elements = 1, marks = 1;
    for (int a = 0; a < PARTITA_MAX_RANK; a++) {
        const struct axis *axis = &shape->axis[a];
        const size_t longest = size_max(size_max(axis->size, axis->out), axis->kernel);
        elements = size_max(elements, size_max(size_mul(axis->out, axis->stride), longest));
        marks = size_mul(marks, longest);
    }
    return (struct reach_memory){mem_round(size_mul(elements, sizeof(uint32_t))), mem_round(marks)};
}

size_t reach_bytes(const struct shape *shape)
{
    const struct reach_memory memory = memory_of(shape);
    return size_add(memory.counts, size_mul(2, memory.marks));
}

// counts[i]: marked elements at i, i - step, i - 2 step ... of a line, whose samples are `pitch`
// bytes apart. Fewer than 2^32 are ever marked between two counts.
static void count_marks(const struct line *line, const unsigned char *from, size_t pitch,
                        size_t step, uint32_t *counts)
{
    const size_t elements = line_elements(line);
    memset(counts, 0, elements * sizeof *counts);
    for (size_t i = 0; i < line->read; i++) counts[i * line->apart] = from[i * pitch] != 0;
    for (size_t i = step; i < elements; i++) counts[i] += counts[i - step];
}

// Of the elements first + step*i, i < count.
static bool any_marked(const struct line *line, ptrdiff_t first, size_t count,
                       const uint32_t *counts)
{
    const struct windows steps = {first, line->step, 1};
    const struct range all = windows_outputs(&steps, (struct range){0, line_elements(line)});
    const struct range found = range_within(all, 0, (ptrdiff_t)count);
    if (!found.size) return false;
    const struct range read = windows_inputs(&steps, found);
    const ptrdiff_t before = read.first - (ptrdiff_t)line->step;
    return counts[range_end(read) - 1] != (before >= 0 ? counts[before] : 0);
}

// One axis: `outer` times lines of samples that are `inner` apart.
static void spread_axis(const struct reach *reach, int a, size_t outer, size_t inner,
                        unsigned char *to, const unsigned char *from)
{
    const struct axis *axis = &reach->shape->axis[a];
    const struct line line = line_of(axis, reach->kind);
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < inner; i++) {
            count_marks(&line, from + o * line.read * inner + i, inner, line.step, reach->memory);
            for (size_t k = 0; k < line.written; k++) {
                struct range read = {line.first + (ptrdiff_t)(line.advance * k), line.count};
                const struct windows tap = {axis->begin + (ptrdiff_t)(axis->dilation * k),
                                            axis->stride, 1};
                if (reach->kind == REACH_GY_TO_TAPS) // outputs whose window has tap k inside x
                    read = windows_outputs(&tap, (struct range){0, axis->size});
                to[(o * line.written + k) * inner + i] =
                    any_marked(&line, read.first, read.size, reach->memory);
            }
        }
}

void reach_spread(const struct reach *reach, unsigned char *to, const unsigned char *from)
{
    const struct axis *axis = reach->shape->axis;
    const struct reach_memory memory = memory_of(reach->shape);
    unsigned char *first = (unsigned char *)reach->memory + memory.counts;
    unsigned char *second = first + memory.marks;
    size_t read[PARTITA_MAX_RANK], written[PARTITA_MAX_RANK];
    for (int a = 0; a < PARTITA_MAX_RANK; a++) {
        const struct line line = line_of(&axis[a], reach->kind);
        read[a] = line.read;
        written[a] = line.written;
    }
    spread_axis(reach, 0, 1, read[1] * read[2], first, from);
    spread_axis(reach, 1, written[0], read[2], second, first);
    spread_axis(reach, 2, written[0] * written[1], 1, to, second);
}
