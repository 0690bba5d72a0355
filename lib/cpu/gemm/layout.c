// SPDX-License-Identifier: MIT
// How cpu/gemm splits a layer into boxes, chunks and splits of output channels, the memory of
// a worker and the counted work.
#include "gemm.h"

#include <math.h>

// Multiply-adds of a box and term either way.
static double gemm_box_products(const struct conv_pass *pass, bool transposed)
{
    const size_t outputs = conv_pass_box_outputs(pass);
    const size_t along = transposed ? pass->out : outputs, rows = transposed ? outputs : pass->out;
    return (double)conv_pass_vectors(pass, along) *
           conv_cost_channels(rows, PRODUCT_STRIP_VECTORS, 1);
}

bool gemm_is_rows(const struct conv_pass *pass)
{
    // Whole vectors of outputs, for another task may be writing the next position.
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return pass->channels_last && conv_pass_is_identity(pass) && pass->out % lanes == 0 &&
           pass->sample_bytes == pass->scalar_bytes;
}

size_t gemm_sums_stride(const struct conv_layout *layout)
{
    const size_t lanes = CONV_BLOCK_BYTES / layout->pass.scalar_bytes;
    return (ceil_div(size_min(layout->oc_split, layout->out_padded), lanes) | 1) * lanes;
}

bool gemm_layout_is_in_place(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->from.channel * pass->scalar_bytes, spread = bytes & -bytes;
    return MODE_IS_ON("gemm:in-place") && conv_pass_is_identity(pass) && pass->box.images == 1 &&
           !pass->channels_last && pass->sample_bytes == pass->scalar_bytes &&
           pass->chunk * spread <= GEMM.max_spread;
}

bool gemm_layout_sums_in_place(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    const size_t bytes = pass->to.channel * pass->scalar_bytes, spread = bytes & -bytes;
    return MODE_IS_ON("gemm:sums-in-place") && gemm_layout_is_in_place(layout) &&
           !gemm_is_transposed(layout) && pass->axis[2].count % lanes == 0 &&
           pass->box.count[2] % lanes == 0 && layout->oc_split * spread <= GEMM.max_spread;
}

struct gemm_scratch gemm_layout_scratch(const struct conv_layout *layout, struct arena *arena)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->scalar_bytes;
    const size_t row = size_mul(gemm_panel_stride(pass), bytes);
    const bool panel = !gemm_panel_is_packed(pass);
    const size_t terms = size_min(pass->chunk * pass->terms, panel ? GEMM_MAX_TERMS : SIZE_MAX);
    if (gemm_is_rows(pass)) return (struct gemm_scratch){0};
    struct gemm_scratch scratch = {.packed = arena_take(arena, conv_pass_packed_bytes(pass))};
    if (panel) scratch.panel = arena_take(arena, gemm_panel_bytes(pass, terms));
    if (gemm_is_transposed(layout)) {
        scratch.sums = arena_take(arena, size_mul(gemm_sums_stride(layout), row));
        scratch.groups = arena_take(arena, size_add(size_mul(terms, row), CONV_BLOCK_BYTES));
        scratch.columns = arena_take(arena, size_mul(layout->oc_block, row));
    } else if (!gemm_layout_sums_in_place(layout))
        scratch.sums = arena_take(arena, size_mul(size_min(layout->oc_split, pass->out), row));
    return scratch;
}

size_t gemm_worker_bytes(const struct conv_layout *layout)
{
    struct arena arena = {0};
    gemm_layout_scratch(layout, &arena);
    return arena.used;
}

static void gemm_choose_operand(struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const double positions = gemm_box_products(pass, false),
                 channels = gemm_box_products(pass, true);
    const bool transposed = gemm_is_rows(pass) || (MODE_IS_ON("gemm:transposed") &&
                                                   channels < GEMM.transposed_gain * positions);
    layout->oc_block = transposed ? PRODUCT_STRIP_BYTES / pass->scalar_bytes : CONV_CHANNELS;
    layout->out_padded = transposed ? conv_pass_vectors(pass, pass->out) : pass->out;
}

// Splits that make enough tasks of the boxes.
static void gemm_split_outputs(struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t wanted = ceil_div(GEMM.min_tasks, conv_pass_boxes(pass) * pass->groups);
    const size_t splits = size_min(wanted, size_max(pass->out / GEMM.min_channels, 1));
    conv_layout_split_outputs(layout, size_max(splits, ceil_div(pass->out, GEMM.max_channels)));
}

void gemm_layout(const struct request *request, struct conv_layout *layout)
{
    const size_t limit = request->workspace_limit;
    struct conv_pass *pass = &layout->pass;
    const size_t terms = gemm_is_rows(pass) ? GEMM_LONG_TERMS : GEMM_MAX_TERMS;
    const size_t chunk = size_min(size_max(terms / pass->terms, 1), pass->in);
    pass->chunk = size_split_even(pass->in, chunk);
    for (size_t outputs = GEMM_MAX_OUTPUTS;; outputs /= 2) {
        gemm_panel_choose_box(pass, outputs);
        gemm_choose_operand(layout);
        gemm_split_outputs(layout);
        if (gemm_worker_bytes(layout) <= limit || outputs <= GEMM.min_outputs) break;
    }
    while (gemm_worker_bytes(layout) > limit &&
           (layout->oc_split > layout->oc_block || pass->chunk > 1)) {
        if (layout->oc_split > layout->oc_block)
            conv_layout_split_outputs(layout, 2 * layout->oc_splits);
        else pass->chunk = (pass->chunk + 1) / 2;
    }
}

void gemm_count_work(const struct conv_layout *layout, struct conv_work *work)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t row = pass->box.count[2], outputs = conv_pass_box_outputs(pass);
    const bool transposed = gemm_is_transposed(layout);
    work->hop = gemm_panel_stride(pass);
    // Boxes at the end of an axis are smaller: as many as their outputs make up.
    const double boxes = (double)pass->batch * (double)pass->axis[0].count *
                         (double)pass->axis[1].count * (double)pass->axis[2].count /
                         (double)outputs * (double)pass->groups;
    const double positions = (double)conv_pass_vectors(pass, outputs);
    const double terms = (double)pass->in * (double)pass->terms;
    const double splits = (double)layout->oc_splits;
    const double out = (double)layout->out_padded;
    const double panels = ceil(terms / GEMM_MAX_TERMS);
    work->sums += boxes * terms * gemm_box_products(pass, transposed);
    // Sums are written, then read and written once for each further panel, and stored; taps are
    // read for each box. One clearing and reading of the sums more is counted than happens.
    work->moved += boxes * (out * positions * (2 + 2 * panels) + out * terms);
    if (gemm_is_rows(pass)) return;
    if (!gemm_layout_is_in_place(layout))
        conv_cost_pack(work, pass, (double)pass->in, boxes * splits);
    // Rows are closed up in whole vectors.
    const double rows = (double)(outputs / row);
    if (!gemm_panel_is_packed(pass))
        work->moved += boxes * splits * terms * rows * (double)conv_pass_vectors(pass, row);
    if (transposed) work->moved += boxes * (splits * terms + 2 * out) * positions;
}
