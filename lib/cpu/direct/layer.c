// SPDX-License-Identifier: MIT
// Layers by cpu/direct. Forward and backward data are passes that are computed box by box: pack the
// inputs of some channels, sum eight output channels at once over all taps (kernels->conv), store
// the sums in their rows. Boxes are chosen by shape alone and an output's sum has one order, so
// bits do not depend on the number of threads.
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/sizes.h"
#include "cpu/conv/weight.h"
#include "direct.h"

// Sums of some input channels are added up in y, or all sums of a split are in the workspace until
// they are complete. With channels last they also stay there whenever they fit the cache, so that
// whole lines of y are written.
static bool layer_keeps_sums(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t sums = size_mul(layout->oc_split * pass->scalar_bytes, pass->box.positions);
    return conv_pass_writes_complete(pass) &&
           (pass->chunk < pass->in || (pass->channels_last && sums <= DIRECT.max_packed));
}

static size_t layer_worker_bytes(const struct conv_layout *layout)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t channels = layer_keeps_sums(layout) ? layout->oc_split : CONV_CHANNELS;
    return size_add(conv_pass_packed_bytes(&layout->pass),
                    size_mul(channels * pass->scalar_bytes, pass->box.positions));
}

// With boxes of so many positions and packed bytes.
static void layer_choose_boxes(struct conv_layout *layout, size_t positions, size_t packed)
{
    struct conv_pass *pass = &layout->pass;
    const size_t max_splits = size_max(pass->out / DIRECT.min_channels, 1);
    conv_pass_choose_box(pass, &(struct conv_box_limits){.max_positions = positions,
                                                         .max_bytes = packed,
                                                         .tasks = pass->groups * max_splits});
    const size_t tasks = conv_pass_boxes(pass) * pass->groups;
    conv_layout_split_outputs(layout, size_min(size_max(DIRECT.min_tasks / tasks, 1), max_splits));
}

static void layer_layout(const struct request *request, struct conv_layout *layout)
{
    const size_t limit = request->workspace_limit;
    // The other half of a tight limit is for the sums; if they need more of it, boxes and splits
    // become smaller.
    size_t positions = DIRECT.max_positions;
    size_t packed = limit < 4 * DIRECT.max_packed ? limit / 2 : DIRECT.max_packed;
    layer_choose_boxes(layout, positions, packed);
    for (; layer_worker_bytes(layout) > limit && packed; packed /= 2) {
        positions = size_max(positions / 2, 1);
        layer_choose_boxes(layout, positions, packed);
        while (layer_keeps_sums(layout) && layer_worker_bytes(layout) > limit &&
               layout->oc_split > layout->oc_block)
            conv_layout_split_outputs(layout, 2 * layout->oc_splits);
    }
    const struct conv_pass *pass = &layout->pass;
    const size_t results = size_mul(pass->batch * pass->to.item, pass->scalar_bytes);
    layout->past_caches = results > request->model->shared_bytes;
}

// Whether sums are complete after one call of the kernel, which then writes them to their rows: no
// copy waits for memory, since the processor stores a rectangle while it sums the next. The last
// block of a row overlaps the one before, so rows that are little longer than a block would cost
// up to twice the products.
static bool layer_writes_rows(const struct conv_pass *pass, size_t row)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return !conv_pass_writes_complete(pass) && pass->axis[2].spread == 1 &&
           pass->chunk == pass->in && pass->in * pass->terms <= DIRECT.max_terms && row >= lanes &&
           4 * ceil_div(row, lanes) * lanes <= 5 * pass->box.extent[2];
}

static void layer_count_work(const struct conv_layout *layout, struct conv_work *work)
{
    const struct conv_pass *pass = &layout->pass;
    const size_t width = pass->out < CONV_CHANNELS ? DIRECT.width_of_few : DIRECT.width;
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups;
    const double positions = (double)pass->box.positions;
    const double terms = (double)pass->in * (double)pass->terms;
    const double out = (double)pass->out;
    const double chunks = ceil((double)pass->in / (double)pass->chunk);
    const bool rows = layer_writes_rows(pass, pass->box.count[2]);
    work->sums += boxes * positions * terms * conv_cost_channels(pass->out, width, DIRECT.loads);
    conv_cost_pack(work, pass, (double)pass->in, boxes * (double)layout->oc_splits);
    work->hop = pass->box.positions;
    work->waits = !rows;
    if (rows)
        work->moved += DIRECT.far_copies * boxes * (double)pass->in * (double)pass->box.channel;
    // The sums of a chunk are cleared, added to and stored; the taps come from afar for each box.
    work->moved += boxes * ((rows ? 1 : 3 * chunks) * out * positions + out * terms);
}

// Whether a row's results are written past the caches: whole lines that are not read again.
static bool layer_stores_past_caches(const struct conv_call *call, const char *y, size_t n)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes;
    const uintptr_t lines = (uintptr_t)y | n * bytes | pass->to.channel * bytes;
    if (!call->layout->past_caches || lines % CONV_BLOCK_BYTES) return false;
    const struct conv_finish finish =
        conv_call_finish(call, 0, &(struct conv_sums){.complete = true});
    return !finish.bias && !finish.relu;
}

// A row of outputs of one block of output channels, from the samples that its first one reads.
static void layer_sum_row(const struct conv_call *call, const struct conv_task *task, size_t first,
                          const char *x, char *y, size_t n)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t channel = task->group * pass->out + first, step = pass->to.channel;
    struct conv_operands operands = {.y = y,
                                     .x = x,
                                     .w = conv_call_taps(call, task->group, first, 0),
                                     .offset = call->layout->offset,
                                     .y_stride = step,
                                     .w_channel = 1,
                                     .terms = pass->in * pass->terms,
                                     .channels = conv_layout_block_width(call->layout, first),
                                     .n = n / lanes * lanes,
                                     .overwrite = true};
    operands.w_term = operands.channels;
    operands.past_caches = layer_stores_past_caches(call, y, n);
    call->plan->kernels->conv(&operands, NULL);
    // The last vector ends with the row: it computes some outputs once more.
    operands.x = x + (n - lanes) * bytes;
    operands.y = y + (n - lanes) * bytes;
    operands.n = lanes;
    if (n % lanes) call->plan->kernels->conv(&operands, NULL);
    for (size_t k = 0; k < operands.channels; k++, y += step * bytes) {
        const struct conv_finish finish =
            conv_call_finish(call, channel + k, &(struct conv_sums){.complete = true});
        if (finish.bias || finish.relu) call->plan->kernels->conv_store(y, 1, y, n, &finish);
    }
}

// All rows of one block of output channels of a box.
static void layer_sum_rows(const struct conv_call *call, const struct conv_task *task, size_t first,
                           const char *packed)
{
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_index *index = &task->index;
    const size_t *extent = pass->box.extent, bytes = pass->scalar_bytes;
    const size_t channel = task->group * pass->out + first;
    for (size_t item = 0; item < index->items; item++)
        for (size_t d = 0; d < index->count[0]; d++)
            for (size_t h = 0; h < index->count[1]; h++) {
                const size_t row = ((item * extent[0] + d) * extent[1] + h) * extent[2];
                const size_t to = conv_pass_output_row(pass, index, channel, item, d, h);
                layer_sum_row(call, task, first, packed + row * bytes, call->to + to * bytes,
                              index->count[2]);
            }
}

// Adds the share of n packed input channels from `in` on to one block of output channels.
static void layer_sum_block(const struct conv_call *call, const struct conv_task *task,
                            size_t first, size_t in, const char *packed, char *sums)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t n = size_min(pass->chunk, pass->in - in) * pass->terms;
    const size_t bytes = pass->scalar_bytes, positions = pass->box.positions;
    const size_t channels = conv_layout_block_width(call->layout, first);
    const bool kept = layer_keeps_sums(call->layout), last = in + pass->chunk >= pass->in;
    const char *w = conv_call_taps(call, task->group, first, in);
    if (kept) sums += (first - task->begin) * positions * bytes;
    // Without terms, where no tap reaches, the sums become 0.
    for (size_t t = 0; t == 0 || t < n; t += DIRECT.max_terms) {
        const struct conv_operands operands = {.y = sums,
                                               .x = packed,
                                               .w = w + t * channels * bytes,
                                               .offset = call->layout->offset + t,
                                               .y_stride = positions,
                                               .w_term = channels,
                                               .w_channel = 1,
                                               .terms = size_min(n - t, DIRECT.max_terms),
                                               .channels = channels,
                                               .n = positions,
                                               .overwrite = (!kept || in == 0) && t == 0};
        call->plan->kernels->conv(&operands, NULL);
    }
    const struct conv_sums from = {.planes = {sums, pass->box.extent, channels, positions},
                                   .add = !kept && in > 0,
                                   .complete = last};
    if (!kept) conv_call_store(call, task, first, &from);
}

// One task: one box of one group, or of a split of its output channels.
static void layer_run_task(void *context, size_t index, int worker)
{
    const struct conv_call *call = context;
    const struct conv_pass *pass = &call->layout->pass;
    const struct conv_task task = conv_call_task(call, index);
    char *packed = call->workspace + (size_t)worker * call->plan->choice.worker;
    char *sums = packed + conv_pass_packed_bytes(pass);
    for (size_t in = 0; in < pass->in; in += pass->chunk) {
        conv_pass_pack(pass, &task.index, packed, call->from, task.group * pass->in + in,
                       size_min(pass->chunk, pass->in - in));
        for (size_t first = task.begin; first < task.end; first += CONV_CHANNELS)
            if (layer_writes_rows(pass, task.index.count[2]))
                layer_sum_rows(call, &task, first, packed);
            else layer_sum_block(call, &task, first, in, packed, sums);
    }
    const struct conv_sums all = {
        .planes = {sums, pass->box.extent, task.end - task.begin, pass->box.positions},
        .complete = true};
    if (layer_keeps_sums(call->layout)) conv_call_store(call, &task, task.begin, &all);
    if (call->layout->past_caches) atomic_thread_fence(memory_order_seq_cst);
}

static const struct conv_method layer_method = {.layout = layer_layout,
                                                .count_work = layer_count_work,
                                                .worker_bytes = layer_worker_bytes,
                                                .run_task = layer_run_task};

const struct conv_methods direct_layer_methods = {&layer_method, &direct_weight_method};
