// SPDX-License-Identifier: MIT
// Layers of one tap on maps that are no whole vectors: the positions of all items of the batch are
// one axis. It is computed strip by strip: a strip is packed for all input channels, summed for
// eight output channels at a time, and these sums go to their rows at once. So the second cache
// holds one strip and what is fetched for the next one, and no vector is filled by half.
#include "gemm.h"

#include <string.h>

#include "base/sizes.h"

// Adjacent positions of an item.
struct flat_span {
    size_t item, at, n;
};

// Positions `at` .. `end`-1 item by item: moves `at` to the next item; false after the last.
static bool flat_next_span(const struct conv_pass *pass, size_t *at, size_t end,
                           struct flat_span *ret)
{
    const size_t plane = pass->axis[2].size;
    if (*at >= end) return false;
    ret->item = *at / plane;
    ret->at = *at % plane;
    ret->n = size_min(plane - ret->at, end - *at);
    *at += ret->n;
    return true;
}

static size_t flat_offset(const struct flat_span *span, const struct sample_strides *strides,
                          size_t channel)
{
    return span->item * strides->item + channel * strides->channel + span->at;
}

bool gemm_flat_begin(struct conv_pass *pass)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes, plane = pass->axis[2].size;
    if (!conv_pass_is_identity(pass) || pass->channels_last || plane < lanes ||
        pass->sample_bytes != pass->scalar_bytes || pass->in > GEMM_FLAT_MAX_CHANNELS ||
        size_min(pass->in, pass->out) < GEMM_FLAT_MIN_CHANNELS ||
        pass->batch * plane * pass->scalar_bytes < GEMM_FLAT_BOXES * GEMM_STRIP)
        return false;
    pass->flat = true;
    pass->chunk = pass->in;
    pass->axis[2].count *= pass->batch;
    pass->batch = 1;
    return true;
}

void gemm_flat_choose_box(struct conv_pass *pass)
{
    const size_t strip = GEMM_STRIP / pass->scalar_bytes;
    const size_t strips = ceil_div(pass->axis[2].count, strip);
    const size_t together = size_min(strips / GEMM_FLAT_BOXES, GEMM_FLAT_STRIPS);
    pass->box = (struct conv_box){.images = 1, .count = {1, 1, together * strip}};
    conv_pass_layout_box(pass);
    pass->box.channel = strip; // what is packed
}

// The strip from position `at` on, for all input channels of a group.
static void flat_pack(const struct conv_call *call, size_t group, size_t at, size_t end,
                      char *packed)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes, row = pass->box.channel * bytes;
    const size_t channel = group * pass->in, n = end - at;
    const size_t padding = (conv_pass_vectors(pass, n) - n) * bytes;
    struct flat_span span;
    for (size_t done = 0; flat_next_span(pass, &at, end, &span); done += span.n) {
        const char *from = call->from + flat_offset(&span, &pass->from, channel) * bytes;
        char *to = packed + done * bytes;
        if (span.n == pass->box.channel)
            call->plan->kernels->conv_rows(to, from, pass->from.channel, pass->in, span.n);
        else
            for (size_t c = 0; c < pass->in; c++, to += row, from += pass->from.channel * bytes)
                memcpy(to, from, span.n * bytes);
    }
    for (size_t c = 0; padding && c < pass->in; c++)
        memset(packed + c * row + n * bytes, 0, padding);
}

// Finishes and stores the sums of a task's output channels at positions begin .. end-1. NULL: they
// are where they belong.
static void flat_store(const struct conv_call *call, const struct conv_task *task, const char *sums,
                       size_t begin, size_t end)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_sums complete = {.complete = true};
    const size_t bytes = pass->scalar_bytes, row = pass->box.channel * bytes;
    for (size_t k = 0; k < task->end - task->begin; k++) {
        const size_t channel = task->group * pass->out + task->begin + k;
        const struct conv_finish finish = conv_call_finish(call, channel, &complete);
        struct flat_span span;
        size_t at = begin;
        if (!sums && !finish.bias && !finish.relu) return;
        for (size_t done = k * row; flat_next_span(pass, &at, end, &span); done += span.n * bytes) {
            char *to = call->to + flat_offset(&span, &pass->to, channel) * bytes;
            call->plan->kernels->conv_store(to, 1, sums ? sums + done : to, span.n, &finish);
        }
    }
}

// What is fetched during the sums of a strip: the inputs and the outputs of a strip.
static void flat_look_ahead(const struct conv_call *call, const struct conv_task *task, size_t at,
                            size_t end, struct gemm_ahead *ahead)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes;
    struct flat_span span;
    while (flat_next_span(pass, &at, end, &span)) {
        const size_t from = flat_offset(&span, &pass->from, task->group * pass->in);
        const size_t to = flat_offset(&span, &pass->to, task->group * pass->out + task->begin);
        gemm_ahead_rows(ahead, call->from + from * bytes, span.n * bytes, pass->in,
                        pass->from.channel * bytes);
        gemm_ahead_rows(ahead, call->to + to * bytes, span.n * bytes, task->end - task->begin,
                        pass->to.channel * bytes);
    }
}

void gemm_flat_run(const struct conv_call *call, size_t index, char *packed)
{
    const struct conv_layout *layout = call->layout;
    const struct conv_pass *pass = &layout->pass;
    const struct conv_task task = conv_call_task(call, index);
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t strip = pass->box.channel, step = size_split_even(pass->in, GEMM_LONG_TERMS);
    const size_t box_end = task.index.at[2] + task.index.count[2];
    const size_t blocks = ceil_div(task.end - task.begin, CONV_CHANNELS);
    _Alignas(CONV_BLOCK_BYTES) char sums[CONV_CHANNELS * GEMM_STRIP];
    for (size_t at = task.index.at[2], end; at < box_end; at = end) {
        const size_t left = conv_pass_vectors(pass, box_end - at);
        end = size_min(at + (left == 4 * lanes ? 2 * lanes : strip), box_end);
        struct gemm_ahead ahead = {.calls = blocks * ceil_div(pass->in, step)};
        if (end < box_end)
            flat_look_ahead(call, &task, end, size_min(end + strip, box_end), &ahead);
        else if (index + 1 < conv_pass_boxes(pass) * layout->tasks) {
            const struct conv_task next = conv_call_task(call, index + 1);
            const size_t begin = next.index.at[2], n = size_min(strip, next.index.count[2]);
            flat_look_ahead(call, &next, begin, begin + n, &ahead);
        }
        flat_pack(call, task.group, at, end, packed);
        // Whole vectors of one item are summed where they belong.
        size_t next = at;
        struct flat_span span = {0};
        const bool in_place = flat_next_span(pass, &next, end, &span) && span.n == strip;
        char *y = call->to + flat_offset(&span, &pass->to, task.group * pass->out) * bytes;
        for (size_t first = task.begin; first < task.end; first += CONV_CHANNELS) {
            const size_t channels = conv_layout_block_width(layout, first);
            struct conv_task block = task;
            block.begin = first;
            block.end = first + channels;
            for (size_t in = 0; in < pass->in; in += step) {
                const struct conv_operands operands = {
                    .y = in_place ? y + first * pass->to.channel * bytes : sums,
                    .x = packed,
                    .w = conv_call_taps(call, task.group, first, in),
                    .offset = layout->offset + in,
                    .y_stride = in_place ? pass->to.channel : strip,
                    .w_term = channels,
                    .w_channel = 1,
                    .terms = size_min(step, pass->in - in),
                    .channels = channels,
                    .n = conv_pass_vectors(pass, end - at),
                    .fresh = in == 0};
                call->plan->kernels->conv(&operands, gemm_ahead_next(&ahead, operands.terms));
            }
            flat_store(call, &block, in_place ? NULL : sums, at, end);
        }
    }
}
