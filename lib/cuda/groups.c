// SPDX-License-Identifier: MIT
#include "groups.h"

#include "../sizes.h"
#include "bias.h"
#include "jobs.h"
#include "staging.h"

// Bytes of a group's arrays where nothing is limited: copying them takes a hundred times as long as launching what
// computes them.
static const size_t GROUP_BYTES = 16 << 20;

static size_t item_of_x(const struct shape *shape)
{
    return shape->in_channels * shape_inputs(shape) * shape->sample_bytes;
}

static size_t item_of_y(const struct shape *shape)
{
    return shape->out_channels * shape_outputs(shape) * shape->sample_bytes;
}

// Items of a group: as many groups as it takes, all about as large. Two groups are in the device's memory.
static size_t group_of(const struct shape *shape, size_t limit)
{
    const size_t most = lesser(GROUP_BYTES, limit / 4), item = size_add(item_of_x(shape), item_of_y(shape));
    const size_t items = most / item > 1 ? most / item : 1;
    return ceil_div(shape->batch, ceil_div(shape->batch, items));
}

// Whether the engine of the plan serves a group with filters of the plan's, within a limit.
static bool serves(const struct partita_plan *plan, const struct request *request, struct estimate *ret)
{
    const struct estimate *whole = &plan->choice;
    *ret = (struct estimate){0};
    plan->engine->estimate(request, ret);
    return ret->applicable && size_add(ret->shared, ret->worker) <= request->workspace_limit &&
           (!request->like || (ret->variant == whole->variant && ret->transform == whole->transform));
}

enum partita_status cuda_groups_plan(struct partita_plan *plan, const struct request *request)
{
    const size_t limit = request->workspace_limit, items = group_of(&plan->shape, limit);
    if (items >= plan->shape.batch) return PARTITA_OK;
    struct partita_plan *group = mem_allocate(&plan->allocator, sizeof *group);
    if (!group) return PARTITA_ERR_NOMEM;
    *group = *plan;
    group->shape.batch = items;
    group->state = NULL;
    struct request of_group = *request;
    of_group.shape = &group->shape;
    if (plan->direction == PARTITA_BACKWARD_WEIGHT) of_group.transform = 0; // there is no filter
    else of_group.like = &plan->choice;
    // The arrays have one half of the limit, the workspace the other, or all of it where the engine needs more.
    if (limit != SIZE_MAX) of_group.workspace_limit = limit / 2;
    bool served = serves(plan, &of_group, &group->choice);
    if (!served) {
        of_group.workspace_limit = limit;
        served = serves(plan, &of_group, &group->choice);
    }
    of_group.transform = group->choice.transform;
    plan->group = group;
    const enum partita_status status = served ? plan->engine->plan_create(group, &of_group) : PARTITA_ERR_UNSUPPORTED;
    if (status == PARTITA_OK) return status;
    cuda_groups_forget(plan);
    return status == PARTITA_ERR_UNSUPPORTED ? PARTITA_OK : status;
}

void cuda_groups_forget(struct partita_plan *plan)
{
    if (!plan->group) return;
    plan->engine->plan_destroy(plan->group);
    mem_release(&plan->allocator, plan->group);
    plan->group = NULL;
}

// One array of the caller's. Groups take turns in the two slots; without slots they are where the caller has them.
struct array {
    char *caller;
    size_t item; // bytes
    enum cuda_place place;
    char *slot[2];
};

struct pipeline {
    const struct partita_plan *plan;  // of the whole batch
    const struct partita_plan *group; // NULL: the gradient of the bias
    const struct partita_filter *filter;
    void *workspace;
    struct cuda_staging *staging;
    struct array to, from[2]; // `to` not where groups are summed
    size_t items, groups;     // of a group; the last one may have fewer
    char *sums;               // where they are: of all groups so far, and of one
    size_t sum_bytes;         // 0: they are not
};

static size_t items_of(const struct pipeline *p, size_t g)
{
    return lesser(p->items, p->plan->shape.batch - g * p->items);
}

static char *caller_of(const struct pipeline *p, const struct array *array, size_t g)
{
    return array->caller + g * p->items * array->item;
}

static char *place_of(const struct pipeline *p, const struct array *array, size_t g)
{
    return array->slot[0] ? array->slot[g % 2] : caller_of(p, array, g);
}

static enum partita_status record(const struct pipeline *p, enum cuda_staging_event event, size_t g,
                                  cudaStream_t stream)
{
    return CU(p->plan, cudaEventRecord(p->staging->event[event][g % 2], stream));
}

static enum partita_status wait_for(const struct pipeline *p, enum cuda_staging_event event, size_t g,
                                    cudaStream_t stream)
{
    return CU(p->plan, cudaStreamWaitEvent(stream, p->staging->event[event][g % 2], 0));
}

// A group's items into their slot, zeros behind the last ones: they add nothing to gradients.
static enum partita_status bring(const struct pipeline *p, const struct array *array, size_t g)
{
    const size_t bytes = items_of(p, g) * array->item, rest = p->items * array->item - bytes;
    const char *from = caller_of(p, array, g);
    char *slot = array->slot[g % 2];
    const cudaStream_t in = p->staging->in;
    enum partita_status status = array->place == CUDA_PAGEABLE
                                     ? cuda_stage_in(p->plan, p->staging, in, slot, from, bytes)
                                     : CU(p->plan, cudaMemcpyAsync(slot, from, bytes, cudaMemcpyDefault, in));
    if (status == PARTITA_OK && rest) status = CU(p->plan, cudaMemsetAsync(slot + bytes, 0, rest, in));
    return status;
}

// To the device, when what its slots held has been read.
static enum partita_status arrive(const struct pipeline *p, size_t g)
{
    enum partita_status status = wait_for(p, CUDA_COMPUTED, g, p->staging->in);
    for (int i = 0; i < 2 && status == PARTITA_OK; i++)
        if (p->from[i].slot[0]) status = bring(p, &p->from[i], g);
    return status == PARTITA_OK ? record(p, CUDA_ARRIVED, g, p->staging->in) : status;
}

// Adds a group's gradient to those before it, in their order.
static enum partita_status add(const struct pipeline *p)
{
    const struct shape *shape = &p->plan->shape;
    const int64_t n = (int64_t)(p->sum_bytes / shape->scalar_bytes);
    return CU(p->plan, cuda_launch_add_runs(shape->f64, p->sums, n, 2, cudaStreamPerThread));
}

static enum partita_status compute(const struct pipeline *p, size_t g)
{
    struct operands operands = {.queued = true};
    operands.to = !p->sums ? place_of(p, &p->to, g) : g ? p->sums + p->sum_bytes : p->sums;
    for (int i = 0; i < 2; i++) operands.from[i] = p->from[i].caller ? place_of(p, &p->from[i], g) : NULL;
    enum partita_status status = wait_for(p, CUDA_ARRIVED, g, cudaStreamPerThread);
    if (status == PARTITA_OK) status = wait_for(p, CUDA_LEFT, g, cudaStreamPerThread);
    if (status == PARTITA_OK)
        status = p->group ? p->group->engine->run(p->group, p->filter, &operands, p->workspace)
                          : cuda_queue_bias(p->plan, operands.to, operands.from[0], items_of(p, g));
    if (status == PARTITA_OK && p->sums && g) status = add(p);
    return status == PARTITA_OK ? record(p, CUDA_COMPUTED, g, cudaStreamPerThread) : status;
}

// Back to the caller.
static enum partita_status leave(const struct pipeline *p, size_t g)
{
    const struct array *to = &p->to;
    if (!to->slot[0]) return PARTITA_OK;
    const size_t bytes = items_of(p, g) * to->item;
    const cudaStream_t out = p->staging->out;
    char *caller = caller_of(p, to, g);
    enum partita_status status = wait_for(p, CUDA_COMPUTED, g, out);
    if (status != PARTITA_OK) return status;
    status = to->place == CUDA_PAGEABLE
                 ? cuda_stage_out(p->plan, p->staging, out, caller, to->slot[g % 2], bytes)
                 : CU(p->plan, cudaMemcpyAsync(caller, to->slot[g % 2], bytes, cudaMemcpyDefault, out));
    return status == PARTITA_OK ? record(p, CUDA_LEFT, g, out) : status;
}

// A gradient, when all groups are in it.
static enum partita_status leave_sums(const struct pipeline *p, void *to)
{
    enum cuda_place place;
    const enum partita_status status = cuda_place_of(p->plan, to, p->sum_bytes, &place);
    if (status != PARTITA_OK) return status;
    return place == CUDA_PAGEABLE ? cuda_stage_out(p->plan, p->staging, cudaStreamPerThread, to, p->sums, p->sum_bytes)
                                  : cuda_copy(p->plan, to, p->sums, p->sum_bytes);
}

static enum partita_status run_groups(const struct pipeline *p, void *to)
{
    enum partita_status status = PARTITA_OK;
    // Slots are there when the thread's stream has come here, and free.
    for (size_t g = 0; g < 2 && status == PARTITA_OK; g++) status = record(p, CUDA_COMPUTED, g, cudaStreamPerThread);
    if (status == PARTITA_OK) status = arrive(p, 0);
    for (size_t g = 0; g < p->groups && status == PARTITA_OK; g++) {
        status = compute(p, g);
        if (status == PARTITA_OK && g) status = leave(p, g - 1);
        if (status == PARTITA_OK && g + 1 < p->groups) status = arrive(p, g + 1);
    }
    if (status != PARTITA_OK) return status;
    return p->sums ? leave_sums(p, to) : leave(p, p->groups - 1);
}

// Arrays of the device's are used where they are, unless the last group needs zeros behind its items.
static enum partita_status reserve_slots(const struct pipeline *p, struct array *array)
{
    if (!array->caller || (array->place == CUDA_HERE && p->plan->shape.batch % p->items == 0)) return PARTITA_OK;
    enum partita_status status = PARTITA_OK;
    for (int i = 0; i < 2 && status == PARTITA_OK; i++) {
        void *memory = NULL;
        status = cuda_allocate(p->plan, p->items * array->item, &memory);
        array->slot[i] = memory;
    }
    return status;
}

static enum partita_status reserve(struct pipeline *p)
{
    enum partita_status status = cuda_staging_borrow(p->plan, &p->staging);
    if (status == PARTITA_OK) status = reserve_slots(p, &p->to);
    for (int i = 0; i < 2 && status == PARTITA_OK; i++) status = reserve_slots(p, &p->from[i]);
    if (status != PARTITA_OK || !p->sum_bytes) return status;
    void *memory = NULL;
    status = cuda_allocate(p->plan, 2 * p->sum_bytes, &memory);
    p->sums = memory;
    return status;
}

static void release_slots(const struct pipeline *p, const struct array *array)
{
    for (int i = 0; i < 2; i++) cuda_release(p->plan, array->slot[i]);
}

// Waits for all queues, also after a failure, and only then releases what they use; the first failure.
static enum partita_status finish(const struct pipeline *p, enum partita_status status)
{
    const struct partita_plan *plan = p->plan;
    if (p->staging) {
        const cudaStream_t streams[] = {p->staging->in, p->staging->out};
        for (int i = 0; i < 2; i++) {
            const enum partita_status waited = CU(plan, cudaStreamSynchronize(streams[i]));
            if (status == PARTITA_OK) status = waited;
        }
    }
    release_slots(p, &p->to);
    for (int i = 0; i < 2; i++) release_slots(p, &p->from[i]);
    cuda_release(plan, p->sums);
    const enum partita_status waited = cuda_wait(plan);
    cuda_staging_give_back(plan, p->staging);
    return status == PARTITA_OK ? waited : status;
}

// The arrays of a call of a plan's direction.
static void take_arrays(struct pipeline *p, const struct operands *operands)
{
    const struct shape *shape = &p->plan->shape;
    const enum partita_direction direction = p->plan->direction;
    const bool weight = direction == PARTITA_BACKWARD_WEIGHT, forward = direction == PARTITA_FORWARD;
    const size_t x = item_of_x(shape), y = item_of_y(shape);
    p->from[0] = (struct array){.caller = (char *)operands->from[0], .item = forward || weight ? x : y};
    p->from[1] = (struct array){.caller = weight ? (char *)operands->from[1] : NULL, .item = y};
    p->to = (struct array){.caller = weight ? NULL : operands->to, .item = forward ? y : x};
    if (weight) p->sum_bytes = shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes;
}

// Where they are; whether any of them is not the device's. What is summed does not count.
static enum partita_status look_at(struct pipeline *p, bool *ret_away)
{
    struct array *const arrays[] = {&p->from[0], &p->from[1], &p->to};
    enum partita_status status = cuda_enter(p->plan);
    *ret_away = false;
    for (int i = 0; i < 3 && status == PARTITA_OK; i++) {
        if (!arrays[i]->caller) continue;
        status = cuda_place_of(p->plan, arrays[i]->caller, p->plan->shape.batch * arrays[i]->item, &arrays[i]->place);
        *ret_away = *ret_away || arrays[i]->place != CUDA_HERE;
    }
    return status;
}

static enum partita_status run_pipeline(struct pipeline *p, void *to)
{
    enum partita_status status = reserve(p);
    p->groups = ceil_div(p->plan->shape.batch, p->items);
    if (status == PARTITA_OK) status = run_groups(p, to);
    return finish(p, status);
}

enum partita_status cuda_groups_run(const struct partita_plan *plan, const struct partita_filter *filter,
                                    const struct operands *operands, void *workspace)
{
    const bool from_taps = !filter && plan->direction == PARTITA_FORWARD;
    if (!plan->group || from_taps) return plan->engine->run(plan, filter, operands, workspace);
    struct pipeline p = {.plan = plan, .group = plan->group, .filter = filter, .items = plan->group->shape.batch};
    if (plan->group->choice.shared <= plan->choice.shared) p.workspace = workspace;
    bool away;
    take_arrays(&p, operands);
    const enum partita_status status = look_at(&p, &away);
    if (status != PARTITA_OK) return status;
    return away ? run_pipeline(&p, operands->to) : plan->engine->run(plan, filter, operands, workspace);
}

// As the plan's directions are cut; which are all cut alike.
static size_t items_for_bias(const struct partita_plan *plan)
{
    const struct partita_plan *const plans[] = {plan, plan->backward_data, plan->backward_weight};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        if (plans[i] && plans[i]->group) return plans[i]->group->shape.batch;
    return plan->shape.batch;
}

enum partita_status cuda_groups_bias(const struct partita_plan *plan, void *gb, const void *gy)
{
    const struct shape *shape = &plan->shape;
    struct pipeline p = {.plan = plan, .items = items_for_bias(plan)};
    if (p.items == shape->batch) return cuda_backward_bias(plan, gb, gy);
    bool away;
    p.from[0] = (struct array){.caller = (char *)gy, .item = item_of_y(shape)};
    p.sum_bytes = shape->out_channels * shape->scalar_bytes;
    const enum partita_status status = look_at(&p, &away);
    if (status != PARTITA_OK) return status;
    return away ? run_pipeline(&p, gb) : cuda_backward_bias(plan, gb, gy);
}
