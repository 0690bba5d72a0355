// SPDX-License-Identifier: MIT
// A plan of cpu/blocks in words: what is cut into what, how often each of it is transformed.
#include "blocks.h"

static void explain_pairs(const struct partita_plan *plan, const struct blocks_layout *layout,
                          struct text *text)
{
    const size_t inputs =
        segments_inside(layout->first, layout->part, blocks_shape(plan)->axis[0].size).count;
    text_add(text,
             "  parts of %zu samples by transforms of %zu: %zu of the taps, %zu of the signal -> "
             "%zu of the result\n",
             layout->part, layout->n, layout->parts, inputs, layout->blocks);
    if (layout->run < layout->blocks)
        text_add(text, "  %zu parts of the result at a time, %zu of the signal held\n", layout->run,
                 layout->run + layout->parts);
    text_add(text,
             "  products of all pairs summed in the spectrum, one inverse a part of the result\n");
}

static void explain_lags(const struct blocks_layout *layout, struct text *text)
{
    text_add(text,
             "  %zu window%s of %zu outputs, each the sum of %zu parts of %zu taps by transforms "
             "of %zu samples\n",
             layout->blocks, layout->blocks == 1 ? "" : "s", layout->hop, layout->parts,
             layout->part, layout->n);
    text_add(text, "  one spectrum sums all parts, one inverse a window\n");
}

void blocks_explain(const struct partita_plan *plan, struct text *text)
{
    const struct blocks_layout *layout = &((const struct blocks *)plan->state)->layout;
    if (layout->first_tap || layout->taps < blocks_shape(plan)->axis[0].span)
        text_add(text, "  taps %zu to %zu are all that these outputs see\n", layout->first_tap,
                 layout->first_tap + layout->taps - (layout->taps > 0));
    if (layout->way == BLOCKS_PAIRS) explain_pairs(plan, layout, text);
    else if (layout->way == BLOCKS_LAGS) explain_lags(layout, text);
    else {
        const struct part_schedule divisions = blocks_divisions(plan);
        part_schedule_explain(&divisions, text);
    }
}
