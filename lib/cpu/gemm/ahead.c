// SPDX-License-Identifier: MIT
// What a task of cpu/gemm needs from memory next, fetched line by line while it sums, so that
// packing and storing find it in a cache.
#include "gemm.h"

#include "base/sizes.h"

// n channels of an array at the samples of a span, of all items of a box.
static void ahead_add(struct gemm_ahead *ahead, const struct conv_pass *pass,
                      const struct gemm_planes *planes, const struct sample_strides *strides,
                      const struct conv_span *span)
{
    const size_t items = planes->index->items, bytes = pass->sample_bytes;
    const size_t position = strides->position;
    size_t row = pass->channels_last ? planes->n : span->n;
    size_t rows = pass->channels_last ? span->n : planes->n;
    size_t step = pass->channels_last ? position : strides->channel;
    if (row == step) { // they follow one another
        row *= rows;
        rows = items;
        step = strides->item;
    } else if (rows * step == strides->item) rows *= items;
    else if (items > 1) return;
    const size_t lines = row * bytes / CONV_BLOCK_BYTES + 1;
    const size_t first = planes->index->item * strides->item + planes->channel * strides->channel +
                         span->first * position;
    ahead->lines[ahead->n] = lines * rows;
    ahead->walk[ahead->n++] = (struct conv_walk){.at = (uintptr_t)planes->array + first * bytes,
                                                 .left = lines,
                                                 .lines = lines,
                                                 .skip = step * bytes - lines * CONV_BLOCK_BYTES};
}

void gemm_ahead_inputs(struct gemm_ahead *ahead, const struct conv_pass *pass,
                       const struct gemm_planes *planes)
{
    struct conv_span span;
    if (conv_pass_input_span(pass, planes->index, &span))
        ahead_add(ahead, pass, planes, &pass->from, &span);
}

void gemm_ahead_outputs(struct gemm_ahead *ahead, const struct conv_pass *pass,
                        const struct gemm_planes *planes)
{
    struct conv_span span;
    if (conv_pass_output_span(pass, planes->index, &span))
        ahead_add(ahead, pass, planes, &pass->to, &span);
}

struct conv_walk *gemm_ahead_next(struct gemm_ahead *ahead, size_t terms)
{
    const size_t i = ahead->lines[0] ? 0 : 1;
    const size_t share = ceil_div(ahead->lines[0] + ahead->lines[1], size_max(ahead->calls, 1));
    ahead->walk[i].count = size_min(size_min(share, terms), ahead->lines[i]);
    ahead->lines[i] -= ahead->walk[i].count;
    ahead->calls -= ahead->calls > 0;
    return &ahead->walk[i];
}
