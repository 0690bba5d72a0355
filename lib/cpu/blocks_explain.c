// SPDX-License-Identifier: MIT
// A plan of cpu/blocks in words: what is cut into what, how often each of it is transformed.
#include "blocks.h"

static void explain_pairs(const struct partita_plan *plan, const struct blocks_layout *layout, struct text *text)
{
    const size_t inputs = blocks_inside(layout->first, layout->part, blocks_shape(plan)->axis[0].size).count;
    text_add(text,
             "  parts of %zu samples by transforms of %zu: %zu of the taps, %zu of the signal -> %zu of the result\n",
             layout->part, layout->n, layout->parts, inputs, layout->blocks);
    if (layout->run < layout->blocks)
        text_add(text, "  %zu parts of the result at a time, %zu of the signal held\n", layout->run,
                 layout->run + layout->parts);
    text_add(text, "  products of all pairs summed in the spectrum, one inverse a part of the result\n");
}

static void explain_lags(const struct blocks_layout *layout, struct text *text)
{
    text_add(text,
             "  %zu window%s of %zu outputs, each the sum of %zu parts of %zu taps by transforms of %zu samples\n",
             layout->blocks, layout->blocks == 1 ? "" : "s", layout->hop, layout->parts, layout->part, layout->n);
    text_add(text, "  one spectrum sums all parts, one inverse a window\n");
}

static void explain_interval(const struct divisions *divisions, size_t begin, struct text *text)
{
    enum { MOST_PAIRS = 8 };
    const struct divisions_pairs pairs = divisions_pairs(divisions, begin);
    if (!pairs.count) return;
    text_add(text, "    %8zu:", begin);
    for (size_t i = 0; i < pairs.count && i < MOST_PAIRS; i++)
        text_add(text, " (%zu, %zu)", pairs.taps + i * pairs.taps_step, pairs.signal - i * pairs.signal_step);
    text_add(text, pairs.count > MOST_PAIRS ? " and %zu more\n" : "\n", pairs.count - MOST_PAIRS);
}

// The schedule: division by division the output that each interval begins at and its pairs (taps' part, signal's part).
static void explain_divisions(const struct partita_plan *plan, const struct blocks_layout *layout, struct text *text)
{
    enum { MOST_INTERVALS = 6, MOST_DIVISIONS = 4 };
    const struct divisions divisions = divisions_of(blocks_shape(plan), layout);
    text_add(text, "  %zu parts of %zu taps, %zu parts of %zu samples: %zu divisions of intervals %zu outputs long\n",
             divisions.taps, divisions.taps_part, divisions.signals, divisions.signal_part, divisions.count,
             layout->hop);
    for (size_t k = 0; k < divisions.count && k < MOST_DIVISIONS; k++) {
        const size_t n = divisions_intervals(&divisions, k);
        text_add(text, "  division %zu, %zu intervals\n", k, n);
        for (size_t i = 0; i < n && i < MOST_INTERVALS; i++)
            explain_interval(&divisions, divisions_begin(&divisions, k, i), text);
        if (n > MOST_INTERVALS) text_add(text, "    and %zu more\n", n - MOST_INTERVALS);
    }
    if (divisions.count > MOST_DIVISIONS)
        text_add(text, "  and %zu more divisions\n", divisions.count - MOST_DIVISIONS);
}

void blocks_explain(const struct partita_plan *plan, struct text *text)
{
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    if (layout->first_tap || layout->taps < blocks_shape(plan)->axis[0].span)
        text_add(text, "  taps %zu to %zu are all that these outputs see\n", layout->first_tap,
                 layout->first_tap + layout->taps - (layout->taps > 0));
    if (layout->way == BLOCKS_PAIRS) explain_pairs(plan, layout, text);
    else if (layout->way == BLOCKS_DIVISIONS) explain_divisions(plan, layout, text);
    else explain_lags(layout, text);
}
