// SPDX-License-Identifier: MIT
#include "panel.h"

#include <assert.h>
#include <string.h>

#include "cost.h"

enum { BOX_VECTORS = 1 }; // cost of a box besides its own vectors; decision 17

// How many of `count` steps of `unit` outputs each a box holds, so that all boxes together have the
// fewest vectors.
static size_t panel_steps(size_t count, size_t unit, size_t max_outputs, size_t lanes)
{
    const size_t max = size_min(count, size_max(max_outputs / unit, 1));
    size_t best = max, fewest = SIZE_MAX;
    // Twice as many outputs have no more vectors.
    for (size_t n = max / 2 + 1; n <= max; n++) {
        size_t vectors = count / n * (ceil_div(n * unit, lanes) + BOX_VECTORS);
        if (count % n) vectors += ceil_div(count % n * unit, lanes) + BOX_VECTORS;
        if (vectors > fewest) continue;
        best = n;
        fewest = vectors;
    }
    return best;
}

void panel_choose_box(struct conv_pass *pass, size_t max_outputs)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    size_t unit = 1;
    pass->box = (struct conv_box){.images = 1, .count = {1, 1, 1}};
    int a = 2;
    for (; a >= 0; a--) {
        pass->box.count[a] = panel_steps(pass->axis[a].count, unit, max_outputs, lanes);
        unit *= pass->box.count[a];
        if (pass->box.count[a] < pass->axis[a].count) break;
    }
    if (a < 0) pass->box.images = panel_steps(pass->batch, unit, max_outputs, lanes);
    conv_pass_layout_box(pass);
}

bool panel_is_packed(const struct conv_pass *pass)
{
    return pass->terms == 1 && pass->axis[0].reach + pass->axis[1].reach + pass->axis[2].reach == 0;
}

size_t panel_bytes(const struct conv_pass *pass, size_t rows)
{
    return size_add(mem_round(size_mul(rows * pass->scalar_bytes, panel_stride(pass))),
                    CONV_BLOCK_BYTES);
}

void panel_gather(const struct panel_source *from, char *panel, const size_t *offset, size_t n)
{
    const struct conv_pass *pass = from->pass;
    const size_t *extent = pass->box.extent, *count = from->index->count;
    const size_t bytes = pass->scalar_bytes, stride = panel_stride(pass);
    const size_t samples = conv_pass_vectors(pass, conv_index_outputs(from->index));
    assert(samples <= stride);
    for (size_t i = 0; i < n; i++) {
        const char *packed = from->packed + offset[i] * bytes;
        char *to = panel + i * stride * bytes;
        // Samples beyond the outputs are summed as well.
        memset(to + samples * bytes - CONV_BLOCK_BYTES, 0, CONV_BLOCK_BYTES);
        for (size_t item = 0; item < from->index->items; item++)
            for (size_t d = 0; d < count[0]; d++, to += count[1] * count[2] * bytes) {
                const size_t plane = (item * extent[0] + d) * extent[1] * extent[2];
                from->kernels->conv_rows(to, packed + plane * bytes, extent[2], count[1], count[2]);
            }
    }
}

void panel_prefetch(struct product_prefetch *prefetch, const struct conv_pass *pass,
                    const struct conv_index *index, const char *from,
                    const struct sample_strides *strides, const size_t channels[2])
{
    const size_t bytes = pass->sample_bytes, n = channels[1], count = index->count[2];
    const size_t first = index->item * strides->item + channels[0] * strides->channel +
                         index->at[2] * strides->position;
    const bool last = pass->channels_last;
    product_prefetch_rows(prefetch, from + first * bytes,
                          (last ? n * strides->channel : count) * bytes, last ? count : n,
                          (last ? strides->position : strides->channel) * bytes);
}

double panel_products(const struct conv_pass *pass, size_t n, size_t rows)
{
    return (double)conv_pass_vectors(pass, n) * conv_cost_channels(rows, PRODUCT_STRIP_VECTORS, 1);
}
