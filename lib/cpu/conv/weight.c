// SPDX-License-Identifier: MIT
#include "weight.h"

#include <assert.h>

#include "base/sizes.h"

// Tasks of one split of the boxes.
static size_t conv_weight_tasks(const struct conv_weight *weight)
{
    const struct conv_pass *pass = &weight->pass;
    const size_t chunks = ceil_div(pass->in, pass->chunk);
    return pass->groups * chunks * weight->term_splits * weight->oc_splits;
}

static void conv_weight_layout(const struct request *request,
                               const struct conv_weight_method *method, struct conv_weight *ret)
{
    const size_t limit = request->workspace_limit;
    *ret = (struct conv_weight){.method = method};
    conv_pass_make(request->shape, PARTITA_BACKWARD_WEIGHT, 0, &ret->pass);
    method->layout(ret, limit);
    const size_t bytes = size_add(method->worker_bytes(ret), ret->prepared_bytes);
    const size_t capacity = limit - size_min(limit, bytes);
    ret->k_splits = split_k_count(request->shape, ret->min_tasks, conv_weight_tasks(ret),
                                  conv_pass_boxes(&ret->pass), capacity);
    assert(ret->term_splits * ret->term_split >= ret->pass.chunk * ret->pass.terms);
    assert(ret->oc_splits * ret->oc_split >= ret->pass.out);
}

static void conv_weight_estimate(const struct request *request,
                                 const struct conv_weight_method *method, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct conv_weight weight;
    struct conv_work work = {0};
    conv_weight_layout(request, method, &weight);
    method->count_work(&weight, &work);
    conv_cost_estimate(request, (double)shape->batch * (double)shape_outputs(shape), &work, ret);
    ret->hop = work.hop;
    ret->spread = 1; // zeros beyond rows of gy or of x are multiplied by the other's samples
    ret->worker = method->worker_bytes(&weight);
    ret->shared = (weight.k_splits - 1) * split_k_bytes(shape) + weight.prepared_bytes;
    ret->bytes = size_add(ret->worker, ret->shared);
}

static void *conv_weight_build(const struct partita_plan *plan, const struct request *request,
                               const struct conv_weight_method *method, struct arena *arena)
{
    struct conv_weight made, *weight = arena_take(arena, sizeof *weight);
    conv_weight_layout(request, method, &made);
    made.offset =
        arena_take(arena, size_mul(made.pass.chunk * made.pass.terms, sizeof *made.offset));
    if (!arena->base) return NULL;
    conv_pass_offsets_by_tap(&made.pass, made.offset, made.pass.chunk);
    if (plan->shape.channels_last) made.pass.transpose = plan->kernels->transpose;
    *weight = made;
    return weight;
}

struct conv_weight_task conv_weight_task(const struct conv_weight_call *call, size_t index)
{
    const struct conv_weight *weight = call->weight;
    const struct conv_pass *pass = &weight->pass;
    const size_t chunks = ceil_div(pass->in, pass->chunk), boxes = conv_pass_boxes(pass);
    struct conv_weight_task task = {.term = index % weight->term_splits * weight->term_split,
                                    .path = pass->in * pass->terms * pass->scalar_bytes};
    index /= weight->term_splits;
    task.in = index % chunks * pass->chunk;
    task.first = index / chunks % weight->oc_splits * weight->oc_split;
    index /= chunks * weight->oc_splits;
    task.group = index % pass->groups;
    const size_t split = index / pass->groups;
    assert(split < weight->k_splits);
    task.n_in = size_min(pass->chunk, pass->in - task.in);
    const size_t terms = task.n_in * pass->terms;
    task.n_terms = task.term < terms ? size_min(weight->term_split, terms - task.term) : 0;
    task.n_out = size_min(weight->oc_split, pass->out - task.first);
    task.box = split * boxes / weight->k_splits;
    task.box_end = (split + 1) * boxes / weight->k_splits;
    task.gw = split_k_sums(&call->split_k, split) +
              (task.group * pass->out + task.first) * task.path +
              (task.in * pass->terms + task.term) * pass->scalar_bytes;
    return task;
}

static void conv_weight_run(const struct partita_plan *plan, const struct operands *operands,
                            void *workspace)
{
    const struct conv_weight *weight = plan->state;
    const struct conv_weight_method *method = weight->method;
    struct conv_weight_call call = {
        .plan = plan,
        .weight = weight,
        .workers = (char *)workspace + plan->choice.shared,
        .prepared = (char *)workspace + plan->choice.shared - weight->prepared_bytes,
        .split_k = {plan, operands->to, workspace, weight->k_splits, split_k_bytes(&plan->shape)},
        .x = operands->from[0],
        .gy = operands->from[1]};
    assert(method->worker_bytes(weight) <= plan->choice.worker);
    if (weight->prepared) thread_loop(plan->threads, weight->prepared, method->prepare, &call);
    thread_loop(plan->threads, weight->k_splits * conv_weight_tasks(weight), method->run_task,
                &call);
    split_k_reduce(&call.split_k);
}

void conv_estimate(const struct request *request, const struct conv_methods *methods,
                   struct estimate *ret)
{
    if (conv_passes_refuse(request, ret)) return;
    if (request->direction == PARTITA_BACKWARD_WEIGHT)
        conv_weight_estimate(request, methods->weight, ret);
    else conv_passes_estimate(request, methods->passes, ret);
}

void *conv_build(const struct partita_plan *plan, const struct request *request,
                 const struct conv_methods *methods, struct arena *arena)
{
    return plan->direction == PARTITA_BACKWARD_WEIGHT
               ? conv_weight_build(plan, request, methods->weight, arena)
               : conv_passes_build(plan, request, methods->passes, arena);
}

enum partita_status conv_run(const struct partita_plan *plan, const struct partita_filter *filter,
                             const struct operands *operands, void *workspace)
{
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) conv_weight_run(plan, operands, workspace);
    else conv_passes_run(plan, filter, operands, workspace);
    return PARTITA_OK;
}
