// SPDX-License-Identifier: MIT
// Layers of one tap with channels last: both arrays are matrices whose rows are positions, so that
// nothing is packed and nothing transposed. Eight positions are what eight output channels are
// elsewhere (gemm.c), output channels lie along the vectors, and sums are added up in y.
#include "gemm.h"

#include <assert.h>

#include "base/sizes.h"

bool gemm_is_rows(const struct conv_pass *pass)
{
    // Whole vectors of outputs, for another task may be writing the next position.
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return pass->channels_last && conv_pass_is_identity(pass) && pass->out % lanes == 0 &&
           pass->sample_bytes == pass->scalar_bytes;
}

void gemm_rows_sum_chunk(const struct conv_call *call, const struct conv_task *task, size_t in,
                         size_t n, struct gemm_ahead *ahead)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const size_t bytes = pass->scalar_bytes, positions = conv_index_outputs(&task->index);
    const size_t x_row = pass->from.position, y_row = pass->to.position;
    const size_t first_x = task->index.item * pass->from.item + task->index.at[2] * x_row +
                           task->group * pass->in + in;
    const char *x = call->from + first_x * bytes;
    char *y = gemm_results(call, task);
    size_t offset[GEMM_LONG_TERMS];
    assert(n <= GEMM_LONG_TERMS);
    for (size_t first = task->begin; first < task->end; first += layout->oc_block) {
        const size_t width = conv_layout_block_width(layout, first);
        for (size_t t = 0; t < n; t++) offset[t] = t * width;
        for (size_t p = 0; p < positions; p += CONV_CHANNELS) {
            const struct conv_operands operands = {
                .y = y + (p * y_row + first - task->begin) * bytes,
                .x = conv_call_taps(call, task->group, first, in),
                .w = x + p * x_row * bytes,
                .offset = offset,
                .y_stride = y_row,
                .w_term = 1,
                .w_channel = x_row,
                .terms = n,
                .channels = size_min(CONV_CHANNELS, positions - p),
                .n = width,
                .fresh = in == 0};
            call->plan->kernels->conv(&operands, gemm_ahead_next(ahead, n));
        }
    }
}

void gemm_rows_finish(const struct conv_call *call, const struct conv_task *task)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_sums complete = {.complete = true};
    struct conv_finish finish =
        conv_call_finish(call, task->group * pass->out + task->begin, &complete);
    const size_t bytes = pass->scalar_bytes, n = task->end - task->begin;
    char *y = gemm_results(call, task);
    if (!finish.bias && !finish.relu) return;
    finish.each = finish.bias != NULL;
    for (size_t p = 0; p < conv_index_outputs(&task->index); p++, y += pass->to.position * bytes)
        call->plan->kernels->conv_store(y, 1, y, n, &finish);
}
