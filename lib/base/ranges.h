// SPDX-License-Identifier: MIT
// Ranges of indices along an axis: which inputs a range of outputs reads, and which outputs read a
// range of inputs. Code that splits a signal into parts takes their halos and padding from here.
#ifndef PARTITA_RANGES_H
#define PARTITA_RANGES_H

#include "sizes.h"

struct range {
    ptrdiff_t first;
    size_t size;
};

static inline ptrdiff_t range_end(struct range range)
{
    return range.first + (ptrdiff_t)range.size;
}

// The indices of a range that are in [begin, end), begin <= end. If there are none, `first` is
// between both.
static inline struct range range_within(struct range range, ptrdiff_t begin, ptrdiff_t end)
{
    const ptrdiff_t low = range.first > begin ? range.first : begin, first = low < end ? low : end;
    const ptrdiff_t behind = range_end(range) < end ? range_end(range) : end;
    return (struct range){first, behind > first ? (size_t)(behind - first) : 0};
}

// Output i of an axis reads within the `span` inputs from first + step*i on; dilation skips some.
struct windows {
    ptrdiff_t first;
    size_t step, span;
};

// From the first to the last input that a range of outputs reads; at least one output.
static inline struct range windows_inputs(const struct windows *windows, struct range outputs)
{
    assert(outputs.size > 0);
    return (struct range){windows->first + (ptrdiff_t)windows->step * outputs.first,
                          windows->step * (outputs.size - 1) + windows->span};
}

// The outputs whose windows hold any input of a range; at least one input, unless span is 1.
static inline struct range windows_outputs(const struct windows *windows, struct range inputs)
{
    const ptrdiff_t first = inputs.first - windows->first, end = first + (ptrdiff_t)inputs.size;
    const ptrdiff_t before = floor_div(first - (ptrdiff_t)windows->span, windows->step);
    assert(inputs.size > 0 || windows->span == 1);
    return (struct range){before + 1, (size_t)(floor_div(end - 1, windows->step) - before)};
}

#endif
