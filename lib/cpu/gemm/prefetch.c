// SPDX-License-Identifier: MIT
#include "gemm.h"

#include "base/sizes.h"

void gemm_prefetch(struct product_prefetch *prefetch, const struct conv_pass *pass,
                   const struct gemm_planes *planes, bool outputs)
{
    const struct sample_strides *strides = outputs ? &pass->to : &pass->from;
    const size_t items = planes->index->items, bytes = pass->sample_bytes;
    const size_t position = strides->position;
    struct conv_span span;
    if (!(outputs ? conv_pass_output_span : conv_pass_input_span)(pass, planes->index, &span))
        return;
    size_t row = pass->channels_last ? planes->n : span.n;
    size_t rows = pass->channels_last ? span.n : planes->n;
    size_t step = pass->channels_last ? position : strides->channel;
    if (row == step) { // they follow one another
        row *= rows;
        rows = items;
        step = strides->item;
    } else if (rows * step == strides->item) rows *= items;
    else if (items > 1) return;
    const size_t first = planes->index->item * strides->item + planes->channel * strides->channel +
                         span.first * position;
    product_prefetch_rows(prefetch, (const char *)planes->array + first * bytes, row * bytes, rows,
                          step * bytes);
}
