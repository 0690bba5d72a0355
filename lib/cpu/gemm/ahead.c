// SPDX-License-Identifier: MIT
// What a task of cpu/gemm needs from memory next, fetched line by line while it sums, so that
// packing and storing find it in a cache.
#include "gemm.h"

#include "base/sizes.h"

void gemm_ahead_rows(struct gemm_ahead *ahead, const char *first, size_t row, size_t rows,
                     size_t step)
{
    const size_t lines = row / CONV_BLOCK_BYTES + 1;
    if (ahead->n == GEMM_MAX_WALKS) return;
    ahead->lines[ahead->n] = lines * rows;
    ahead->all += lines * rows;
    ahead->walk[ahead->n++] = (struct conv_walk){.at = (uintptr_t)first,
                                                 .left = lines,
                                                 .lines = lines,
                                                 .skip = step - lines * CONV_BLOCK_BYTES};
}

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
    const size_t first = planes->index->item * strides->item + planes->channel * strides->channel +
                         span->first * position;
    gemm_ahead_rows(ahead, (const char *)planes->array + first * bytes, row * bytes, rows,
                    step * bytes);
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
    if (!ahead->share) ahead->share = ahead->all / size_max(ahead->calls, 1) + 1;
    if (!ahead->lines[ahead->at] && ahead->at + 1 < ahead->n) ahead->at++;
    struct conv_walk *walk = &ahead->walk[ahead->at];
    walk->count = size_min(size_min(ahead->share, terms), ahead->lines[ahead->at]);
    ahead->lines[ahead->at] -= walk->count;
    return walk;
}
