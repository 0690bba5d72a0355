// SPDX-License-Identifier: MIT
// Backward weight of layers by cpu/direct: the packed inputs of a box against gy packed to the same
// positions, so that every tap's gradient is one long dot product (kernels->conv_weight).
#include "cpu/conv/weight.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "direct.h"

static size_t direct_weight_inputs_bytes(const struct conv_weight *weight)
{
    return mem_round(size_mul(weight->pass.chunk, conv_pass_channel_bytes(&weight->pass)));
}

static size_t direct_weight_worker_bytes(const struct conv_weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t samples = size_mul(weight->oc_split, pass->box.positions);
    return size_add(direct_weight_inputs_bytes(weight),
                    mem_round(size_mul(samples, pass->scalar_bytes)));
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
    work->moved += boxes * chunks * 2 * out * positions;
    work->rows += boxes * chunks * out * planes * (double)pass->box.count[1];
}

static void direct_weight_run_task(void *context, size_t index, int worker)
{
    const struct conv_weight_call *call = context;
    const struct conv_weight *weight = call->weight;
    const struct conv_pass *pass = &weight->pass;
    const struct conv_weight_task task = conv_weight_task(call, index);
    const size_t bytes = pass->scalar_bytes, positions = pass->box.positions;
    char *inputs = call->workers + (size_t)worker * call->plan->choice.worker;
    char *outputs = inputs + direct_weight_inputs_bytes(weight);
    for (size_t k = 0; k < task.n_out; k++)
        memset(task.gw + k * task.path, 0, task.n_terms * bytes);
    for (size_t box = task.box; box < task.box_end; box++) {
        const struct conv_index at = conv_pass_index(pass, box);
        conv_pass_pack(pass, &at, inputs, call->x, task.group * pass->in + task.in, task.n_in);
        // gy at the positions of the box's outputs, zeros between.
        memset(outputs, 0, task.n_out * positions * bytes);
        const struct conv_planes to = {outputs, pass->box.extent, task.n_out, positions};
        conv_pass_read_outputs(pass, &at, &to, call->gy, task.group * pass->out + task.first);
        call->plan->kernels->conv_weight(task.gw, task.path / bytes, outputs, positions, task.n_out,
                                         inputs, weight->offset, task.n_terms, positions);
    }
}

const struct conv_weight_method direct_weight_method = {.layout = direct_weight_layout,
                                                        .count_work = direct_weight_count_work,
                                                        .worker_bytes = direct_weight_worker_bytes,
                                                        .run_task = direct_weight_run_task};
