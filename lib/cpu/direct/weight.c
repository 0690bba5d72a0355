// SPDX-License-Identifier: MIT
// Backward weight of layers by cpu/direct: the packed inputs of a box against gy packed to the same
// positions, so that every tap's gradient is one long dot product (kernels->conv_weight). Where
// there are few inputs, gy is read where it is, and the inputs of every tap are packed without
// gaps.
#include "cpu/conv/weight.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "direct.h"

// Channels and taps, at most, that kernels->conv_weight sums at once.
enum { RECTANGLE = 4, COLUMNS = 6 };

// Scalars from the inputs of one tap to those of the next, without gaps between rows: an odd number
// of blocks, one of which conv_rows may write behind the last row.
static size_t direct_weight_tap_stride(const struct conv_pass *pass)
{
    const size_t lanes = CONV_BLOCK_BYTES / pass->scalar_bytes;
    return ((ceil_div(pass->box.count[1] * pass->box.count[2], lanes) + 1) | 1) * lanes;
}

static size_t direct_weight_taps_bytes(const struct conv_pass *pass)
{
    return size_mul(size_mul(pass->chunk, pass->terms),
                    direct_weight_tap_stride(pass) * pass->scalar_bytes);
}

// Whether gy is read where it is: a box is whole rows of a plane, the inputs of all taps stay in
// the L2 cache, and enough channels of gy share the copies of them.
static bool direct_weight_suits_rows(const struct conv_pass *pass)
{
    const struct conv_box *box = &pass->box;
    return !pass->channels_last && box->images == 1 && box->count[0] == 1 &&
           box->count[2] == pass->axis[2].out_size &&
           pass->chunk * pass->terms <= DIRECT.tap_copies * size_min(pass->out, DIRECT.max_gy) &&
           direct_weight_taps_bytes(pass) <= DIRECT.max_taps;
}

static size_t direct_weight_worker_bytes(const struct conv_weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t samples = size_mul(weight->oc_split, pass->box.positions);
    const size_t outputs =
        weight->in_place ? direct_weight_taps_bytes(pass) + weight->oc_split * CONV_BLOCK_BYTES
                         : size_mul(samples, pass->scalar_bytes);
    return size_add(conv_pass_packed_bytes(pass), mem_round(outputs));
}

static void direct_weight_layout(struct conv_weight *weight, size_t limit)
{
    struct conv_pass *pass = &weight->pass;
    const struct conv_box_limits limits = {
        .max_positions = DIRECT.max_positions,
        .max_bytes = limit < 4 * DIRECT.max_packed ? limit / 2 : DIRECT.max_packed,
        .tasks = DIRECT.weight_tasks,
        .box_vectors = DIRECT.lanes_vectors};
    conv_pass_choose_box(pass, &limits);
    weight->min_tasks = DIRECT.weight_tasks;
    weight->term_splits = 1;
    weight->term_split = pass->chunk * pass->terms;
    weight->oc_split = size_min(pass->out, DIRECT.max_gy);
    weight->in_place = direct_weight_suits_rows(pass);
    if (direct_weight_worker_bytes(weight) > limit) weight->in_place = false;
    while (weight->oc_split > 1 && direct_weight_worker_bytes(weight) > limit)
        weight->oc_split = (weight->oc_split + 1) / 2;
    weight->oc_splits = ceil_div(pass->out, weight->oc_split);
}

static void direct_weight_count_work(const struct conv_weight *weight, struct conv_work *work)
{
    const struct conv_pass *pass = &weight->pass;
    const double lanes = (double)CONV_BLOCK_BYTES / (double)pass->scalar_bytes;
    const double boxes = (double)conv_pass_boxes(pass) * (double)pass->groups;
    const double positions = (double)pass->box.positions;
    const double terms = (double)pass->in * (double)pass->terms;
    const double chunks = (double)ceil_div(pass->in, pass->chunk);
    const double planes = (double)pass->box.images * (double)pass->box.count[0];
    const double out = (double)pass->out;
    work->hop = pass->box.positions;
    // Rectangles of taps by at most four channels.
    const double channels =
        conv_cost_channels(size_min(pass->out, 4), DIRECT.width_of_gradient, DIRECT.loads);
    work->sums = boxes * (positions + (double)DIRECT.lanes_vectors * lanes) * terms * channels *
                 fmax(1, out / 4);
    conv_cost_pack(work, pass, (double)pass->in, boxes * (double)weight->oc_splits);
    if (weight->in_place) {
        work->moved += boxes * (double)weight->oc_splits * terms * positions;
        return;
    }
    work->moved += boxes * chunks * 2 * out * positions;
    work->rows += boxes * chunks * out * planes * (double)pass->box.count[1];
}

// Samples of gy, where they are, against the packed inputs of all taps. A few taps of inputs stay
// in the L1 cache for all channels. Meanwhile the samples that are `ahead` bytes further are
// fetched, one row of a rectangle with each block of taps; 0: none.
static void direct_weight_sum(const struct conv_weight_call *call,
                              const struct conv_weight_task *task, const struct conv_planes *gy,
                              const char *taps, size_t ahead)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t bytes = pass->scalar_bytes, step = direct_weight_tap_stride(pass);
    size_t offset[COLUMNS];
    struct conv_weight_operands operands = {.offset = offset,
                                            .w_stride = task->path / bytes,
                                            .y_stride = gy->stride,
                                            .n = gy->extent[2]};
    for (size_t c = 0; c < COLUMNS; c++) offset[c] = c * step;
    for (size_t t = 0; t < task->n_terms; t += COLUMNS)
        for (size_t k = 0; k < task->n_out; k += RECTANGLE) {
            const size_t fetched = t / COLUMNS;
            operands.w = task->gw + k * task->path + t * bytes;
            operands.x = taps + t * step * bytes;
            operands.y = (const char *)gy->rows + k * gy->stride * bytes;
            operands.channels = size_min(RECTANGLE, task->n_out - k);
            operands.terms = size_min(COLUMNS, task->n_terms - t);
            operands.ahead = NULL; // else a number, as it may lie beyond the array
            if (ahead && fetched < operands.channels)
                operands.ahead =
                    (const void *)((uintptr_t)operands.y + fetched * gy->stride * bytes + ahead);
            call->plan->kernels->conv_weight(&operands);
        }
}

// A box whose inputs are packed, with gy where it is. `taps`: memory for the inputs of all taps.
static void direct_weight_sum_box(const struct conv_weight_call *call,
                                  const struct conv_weight_task *task, const struct conv_index *at,
                                  const char *inputs, char *taps)
{
    const struct conv_pass *pass = &call->weight->pass;
    const size_t bytes = pass->scalar_bytes, lanes = CONV_BLOCK_BYTES / bytes;
    const size_t step = direct_weight_tap_stride(pass), n = at->count[1] * at->count[2];
    const size_t whole = n / lanes * lanes, plane = pass->to.channel;
    const size_t first = task->group * pass->out + task->first;
    char *gy = (char *)call->gy + conv_pass_output_row(pass, at, first, 0, 0, 0) * bytes;
    for (size_t t = 0; t < task->n_terms; t++) {
        char *row = taps + t * step * bytes;
        call->plan->kernels->conv_rows(row, inputs + call->weight->offset[t] * bytes,
                                       pass->box.extent[2], at->count[1], at->count[2]);
        memset(row + n * bytes, 0, lanes * bytes);
    }
    const struct conv_planes planes = {gy, (const size_t[]){1, 1, whole}, task->n_out, plane};
    direct_weight_sum(call, task, &planes, taps, n * bytes);
    if (n == whole) return;
    char *rest = taps + direct_weight_taps_bytes(pass);
    memset(rest, 0, task->n_out * CONV_BLOCK_BYTES);
    for (size_t k = 0; k < task->n_out; k++)
        memcpy(rest + k * CONV_BLOCK_BYTES, gy + (k * plane + whole) * bytes, (n - whole) * bytes);
    const struct conv_planes last = {rest, (const size_t[]){1, 1, lanes}, task->n_out, lanes};
    direct_weight_sum(call, task, &last, taps + whole * bytes, 0);
}

static void direct_weight_run_task(void *context, size_t index, int worker)
{
    const struct conv_weight_call *call = context;
    const struct conv_weight *weight = call->weight;
    const struct conv_pass *pass = &weight->pass;
    const struct conv_weight_task task = conv_weight_task(call, index);
    const size_t bytes = pass->scalar_bytes, positions = pass->box.positions;
    char *inputs = call->workers + (size_t)worker * call->plan->choice.worker;
    char *outputs = inputs + conv_pass_packed_bytes(pass);
    for (size_t k = 0; k < task.n_out; k++)
        memset(task.gw + k * task.path, 0, task.n_terms * bytes);
    for (size_t box = task.box; box < task.box_end; box++) {
        const struct conv_index at = conv_pass_index(pass, box);
        conv_pass_pack(pass, &at, inputs, call->x, task.group * pass->in + task.in, task.n_in);
        if (weight->in_place) {
            direct_weight_sum_box(call, &task, &at, inputs, outputs);
            continue;
        }
        // gy at the positions of the box's outputs, zeros between.
        memset(outputs, 0, task.n_out * positions * bytes);
        const struct conv_planes to = {outputs, pass->box.extent, task.n_out, positions};
        conv_pass_read_outputs(pass, &at, &to, call->gy, task.group * pass->out + task.first);
        call->plan->kernels->conv_weight(
            &(struct conv_weight_operands){.w = task.gw,
                                           .y = outputs,
                                           .x = inputs,
                                           .offset = weight->offset,
                                           .w_stride = task.path / bytes,
                                           .y_stride = positions,
                                           .channels = task.n_out,
                                           .terms = task.n_terms,
                                           .n = positions});
    }
}

const struct conv_weight_method direct_weight_method = {.layout = direct_weight_layout,
                                                        .count_work = direct_weight_count_work,
                                                        .worker_bytes = direct_weight_worker_bytes,
                                                        .run_task = direct_weight_run_task};
