// SPDX-License-Identifier: MIT
// Panels, see conv_panel.h.
#include "panel.h"
#include "base/sizes.h"

#include <string.h>

// How many of `count` steps of `unit` outputs each a box holds, so that all boxes have the fewest
// vectors.
static size_t steps_of_box(size_t count, size_t unit, size_t most, size_t lanes)
{
    enum { BOX_VECTORS = 1 }; // what a box costs besides
    size_t best = 1, fewest = SIZE_MAX;
    for (size_t n = 1; n <= count && (n == 1 || n * unit <= most); n++) {
        const size_t vectors = count / n * (ceil_div(n * unit, lanes) + BOX_VECTORS) +
                               (count % n ? ceil_div(count % n * unit, lanes) + BOX_VECTORS : 0);
        if (vectors > fewest) continue;
        best = n;
        fewest = vectors;
    }
    return best;
}

void conv_panel_cut(struct conv_pass *pass, size_t most)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    size_t unit = 1;
    pass->box = (struct conv_box){.images = 1, .count = {1, 1, 1}};
    int a = 2;
    for (; a >= 0; a--) {
        pass->box.count[a] = steps_of_box(pass->axis[a].count, unit, most, lanes);
        unit *= pass->box.count[a];
        if (pass->box.count[a] < pass->axis[a].count) break;
    }
    if (a < 0) pass->box.images = steps_of_box(pass->batch, unit, most, lanes);
    conv_pass_measure(pass);
}

size_t conv_panel_stride(const struct conv_pass *pass)
{
    const struct conv_box *box = &pass->box;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes,
                 outputs = box->images * box->count[0] * box->count[1] * box->count[2];
    return (ceil_div(outputs, lanes) | 1) * lanes;
}

bool conv_panel_is_packed(const struct conv_pass *pass)
{
    return pass->terms == 1 && pass->axis[0].reach + pass->axis[1].reach + pass->axis[2].reach == 0;
}

size_t conv_panel_bytes(const struct conv_pass *pass, size_t rows)
{
    // The block that the last row of a box may write beyond its end.
    return size_add(mem_round(size_mul(rows * pass->scalar_bytes, conv_panel_stride(pass))),
                    CONV_BLOCK_BYTES);
}

size_t conv_panel_extent(const struct conv_pass *pass, const struct conv_place *place,
                         size_t extent[3])
{
    size_t n = conv_place_items(pass, place);
    for (int a = 0; a < 3; a++) {
        extent[a] = conv_place_count(pass, place, a);
        n *= extent[a];
    }
    return n;
}

void conv_panel_gather(const struct kernels *kernels, const struct conv_pass *pass,
                       const struct conv_place *place, void *panel, const void *packed,
                       const size_t *offset, size_t n)
{
    const struct conv_box *box = &pass->box;
    const size_t bytes = pass->scalar_bytes, items = conv_place_items(pass, place);
    const size_t plane = box->extent[1] * box->extent[2] * bytes;
    size_t extent[3];
    const size_t positions = conv_panel_extent(pass, place, extent);
    const size_t last = conv_panel_vectors(pass, positions) * bytes - CONV_BLOCK_BYTES;
    for (size_t i = 0; i < n; i++) {
        const char *from = (const char *)packed + offset[i] * bytes;
        char *to = (char *)panel + i * conv_panel_stride(pass) * bytes;
        memset(to + last, 0, CONV_BLOCK_BYTES); // what is beyond the outputs is summed as well
        for (size_t item = 0; item < items; item++)
            for (size_t d = 0; d < extent[0]; d++, to += extent[1] * extent[2] * bytes)
                kernels->conv_rows(to, from + (item * box->extent[0] + d) * plane, box->extent[2],
                                   extent[1], extent[2]);
    }
}
