// SPDX-License-Identifier: MIT
#include "bounded_call.h"

#include <assert.h>

#include "base/ranges.h"
#include "cuda/kernels/sums.h"
#include "filter.h"
#include "staging.h"

struct cuda_sizes cuda_sizes_of(const struct partita_plan *plan)
{
    const struct shape *shape = &plan->shape;
    const size_t x = cuda_input_bytes(shape), y = cuda_output_bytes(shape);
    const size_t taps = cuda_taps_bytes(shape);
    struct cuda_sizes sizes = {.workspace = plan->choice.shared, .alignment = shape->sample_bytes};
    if (plan->direction == PARTITA_FORWARD) sizes.to = y, sizes.from[0] = x, sizes.from[1] = taps;
    else if (plan->direction == PARTITA_BACKWARD_DATA) sizes.to = x, sizes.from[0] = y;
    else sizes.to = taps, sizes.from[0] = x, sizes.from[1] = y;
    return sizes;
}

// One array of the caller's. Micro-batches alternate between two slots, which are the same memory
// if all use the same data. Without slots the caller's array is used in place.
struct array {
    struct cuda_row_ranges ranges;
    char *caller;
    enum cuda_memory memory;
    char *slot[2];
};

// A call on its way. Without micro-batches there is one, whose arrays are the whole, and all work
// is queued on the thread's own stream.
struct pipeline {
    const struct cuda_call *call;
    const struct partita_plan *plan;
    const struct operands *operands;
    char *workspace, *taken;      // taken: NULL or memory of the call's own
    struct cuda_staging *staging; // NULL: one micro-batch and no pageable array
    struct array array[4];        // to, which is not used where micro-batches are summed, from, and
                                  // `to` again as an operand if results are added to what it holds
    size_t of_set, count;         // micro-batches of a set of rows; in all
    char *sums;                   // in device memory: of all micro-batches so far, and of one
    size_t sum_bytes;             // 0: they are not summed
};

// The part that a micro-batch holds of each row of a set: `held` bytes from `begin` of the first
// row on, behind `lead` bytes of zeros and before others.
struct part {
    char *begin;
    size_t lead, held;
};

static struct part part_of(const struct pipeline *p, const struct array *array, size_t i)
{
    const struct cuda_row_ranges *ranges = &array->ranges;
    const ptrdiff_t first = ranges->first + (ptrdiff_t)(i % p->of_set) * ranges->hop;
    const struct range held =
        range_within((struct range){first, ranges->bytes}, 0, (ptrdiff_t)ranges->end);
    char *set = array->caller + i / p->of_set * ranges->rows * ranges->pitch;
    assert(held.size <= ranges->bytes);
    return (struct part){set + held.first, held.size ? (size_t)(held.first - first) : 0, held.size};
}

// The same for all micro-batches: taps that are read in place.
static bool is_common(const struct array *array)
{
    return array->ranges.pitch == 0 && array->ranges.hop == 0;
}

static size_t slot_bytes(const struct array *array)
{
    return array->ranges.rows * array->ranges.bytes;
}

static char *array_at(const struct pipeline *p, const struct array *array, size_t i)
{
    return array->slot[0] ? array->slot[i % 2] : part_of(p, array, i).begin;
}

static cudaStream_t stream_in(const struct pipeline *p)
{
    return p->count > 1 ? p->staging->in : cudaStreamPerThread;
}

static cudaStream_t stream_out(const struct pipeline *p)
{
    return p->count > 1 ? p->staging->out : cudaStreamPerThread;
}

static struct cuda_staging *staging_for(const struct pipeline *p, enum cuda_memory memory)
{
    return memory == CUDA_PAGEABLE ? p->staging : NULL;
}

static enum partita_status record_event(const struct pipeline *p, enum cuda_staging_event event,
                                        size_t i, cudaStream_t stream)
{
    if (p->count == 1) return PARTITA_OK;
    return CU(p->plan, cudaEventRecord(p->staging->event[event][i % 2], stream));
}

static enum partita_status wait_event(const struct pipeline *p, enum cuda_staging_event event,
                                      size_t i, cudaStream_t stream)
{
    if (p->count == 1) return PARTITA_OK;
    return CU(p->plan, cudaStreamWaitEvent(stream, p->staging->event[event][i % 2], 0));
}

// Rows into their slot. Samples outside of a signal are zeros; behind the last item or sample
// they add nothing to gradients.
static enum partita_status copy_in(const struct pipeline *p, const struct array *array, size_t i)
{
    const struct cuda_row_ranges *ranges = &array->ranges;
    const struct part part = part_of(p, array, i);
    const cudaStream_t in = stream_in(p);
    char *slot = array->slot[i % 2];
    enum partita_status status = PARTITA_OK;
    if (part.held < ranges->bytes)
        status = CU(p->plan, cudaMemsetAsync(slot, 0, slot_bytes(array), in));
    for (size_t row = 0; row < ranges->rows && part.held && status == PARTITA_OK; row++) {
        char *to = slot + row * ranges->bytes + part.lead;
        const char *from = part.begin + row * ranges->pitch;
        status = cuda_stage_in(p->plan, staging_for(p, array->memory), in, to, from, part.held);
    }
    return status;
}

// Arrays to the device, when the contents of their slots have been read.
static enum partita_status arrive(const struct pipeline *p, size_t i)
{
    enum partita_status status = wait_event(p, CUDA_COMPUTED, i, stream_in(p));
    for (int a = 1; a < 4 && status == PARTITA_OK; a++)
        if (p->array[a].slot[0] && (i == 0 || !is_common(&p->array[a])))
            status = copy_in(p, &p->array[a], i);
    return status == PARTITA_OK ? record_event(p, CUDA_ARRIVED, i, stream_in(p)) : status;
}

// Whether results are added to the caller's array where it is.
static bool adds_in_place(const struct pipeline *p)
{
    return p->array[3].caller && !p->array[3].slot[0];
}

static enum partita_status compute(const struct pipeline *p, size_t i)
{
    struct operands operands = *p->operands;
    operands.accumulate = 0;
    if (p->sums) operands.to = i ? p->sums + p->sum_bytes : p->sums;
    else operands.to = array_at(p, &p->array[0], i);
    for (int a = 0; a < 2; a++)
        operands.from[a] = p->array[1 + a].caller ? array_at(p, &p->array[1 + a], i) : NULL;
    enum partita_status status = wait_event(p, CUDA_ARRIVED, i, cudaStreamPerThread);
    // Of the first two the event is a past call's, or was never recorded: nobody waits.
    if (status == PARTITA_OK) status = wait_event(p, CUDA_LEFT, i, cudaStreamPerThread);
    if (status == PARTITA_OK) status = p->call->queue(p->call->context, &operands, p->workspace);
    if (status == PARTITA_OK && p->sums && i) // in order
        status = cuda_add(p->plan, p->sums, p->sums, operands.to, p->sum_bytes);
    if (status == PARTITA_OK && p->array[3].caller && !p->sums)
        status = cuda_add(p->plan, array_at(p, &p->array[adds_in_place(p) ? 3 : 0], i),
                          array_at(p, &p->array[3], i), operands.to, slot_bytes(&p->array[3]));
    return status == PARTITA_OK ? record_event(p, CUDA_COMPUTED, i, cudaStreamPerThread) : status;
}

// Results back to the caller.
static enum partita_status leave(const struct pipeline *p, size_t i)
{
    const struct array *to = &p->array[0];
    const struct part part = part_of(p, to, i);
    const cudaStream_t out = stream_out(p);
    if (!to->slot[0] || adds_in_place(p)) return PARTITA_OK;
    enum partita_status status = wait_event(p, CUDA_COMPUTED, i, out);
    for (size_t row = 0; row < to->ranges.rows && status == PARTITA_OK; row++)
        status = cuda_stage_out(p->plan, staging_for(p, to->memory), out,
                                part.begin + row * to->ranges.pitch,
                                to->slot[i % 2] + row * to->ranges.bytes + part.lead, part.held);
    return status == PARTITA_OK ? record_event(p, CUDA_LEFT, i, out) : status;
}

static enum partita_status run_micro_batches(const struct pipeline *p)
{
    enum partita_status status = PARTITA_OK;
    // When the thread's stream reaches this event, the slots are allocated and free.
    for (size_t i = 0; i < 2 && status == PARTITA_OK; i++)
        status = record_event(p, CUDA_COMPUTED, i, cudaStreamPerThread);
    if (status == PARTITA_OK) status = arrive(p, 0);
    for (size_t i = 0; i < p->count && status == PARTITA_OK; i++) {
        status = compute(p, i);
        if (status == PARTITA_OK && i) status = leave(p, i - 1);
        if (status == PARTITA_OK && i + 1 < p->count) status = arrive(p, i + 1);
    }
    if (status == PARTITA_OK && p->sums && p->array[3].caller)
        status = cuda_add(p->plan, p->sums, array_at(p, &p->array[3], 0), p->sums, p->sum_bytes);
    if (status != PARTITA_OK) return status;
    if (!p->sums) return leave(p, p->count - 1);
    return cuda_stage_out(p->plan, staging_for(p, p->array[0].memory), cudaStreamPerThread,
                          p->operands->to, p->sums, p->sum_bytes);
}

// Arrays of the device's are used where they are, if they are aligned and all micro-batches follow
// each other there and hold no zeros.
static bool is_usable(const struct pipeline *p, const struct array *array)
{
    const struct cuda_row_ranges *ranges = &array->ranges;
    const ptrdiff_t last = ranges->first + (ptrdiff_t)(p->of_set - 1) * ranges->hop;
    const ptrdiff_t end = (ptrdiff_t)(ranges->end - ranges->bytes);
    const size_t alignment = size_max(p->call->sizes.alignment, 1);
    if ((uintptr_t)array->caller % alignment) return false;
    return array->memory == CUDA_ON_DEVICE && ranges->rows == 1 && ranges->end >= ranges->bytes &&
           ranges->first >= 0 && last >= 0 && ranges->first <= end && last <= end;
}

static enum partita_status allocate_bytes(const struct pipeline *p, size_t bytes, char **ret)
{
    void *memory = NULL;
    const enum partita_status status = cuda_allocate(p->plan, bytes, &memory);
    *ret = memory;
    return status;
}

static enum partita_status reserve_slots(const struct pipeline *p, struct array *array)
{
    enum partita_status status = PARTITA_OK;
    const bool apart = p->operands->accumulate && array == &p->array[0];
    if (!array->caller || (is_usable(p, array) && !apart)) return status;
    for (int i = 0; i < (is_common(array) ? 1 : 2) && status == PARTITA_OK; i++)
        status = allocate_bytes(p, slot_bytes(array), &array->slot[i]);
    if (is_common(array)) array->slot[1] = array->slot[0];
    return status;
}

static enum partita_status reserve_workspace(struct pipeline *p, void *workspace)
{
    enum cuda_memory memory;
    if (!p->call->sizes.workspace) return PARTITA_OK;
    enum partita_status status = cuda_memory_of(p->plan, workspace, 1, &memory);
    if (status == PARTITA_OK && memory != CUDA_ON_DEVICE)
        status = allocate_bytes(p, p->call->sizes.workspace, &p->taken);
    p->workspace = p->taken ? p->taken : workspace;
    return status;
}

static enum partita_status reserve(struct pipeline *p, void *workspace)
{
    bool staged = p->count > 1;
    for (int a = 0; a < 3; a++) staged = staged || p->array[a].memory == CUDA_PAGEABLE;
    enum partita_status status = staged ? cuda_staging_borrow(p->plan, &p->staging) : PARTITA_OK;
    for (int a = 0; a < 4 && status == PARTITA_OK; a++) status = reserve_slots(p, &p->array[a]);
    if (status == PARTITA_OK && p->sum_bytes)
        status = allocate_bytes(p, 2 * p->sum_bytes, &p->sums);
    return status == PARTITA_OK ? reserve_workspace(p, workspace) : status;
}

// Waits for all queues, also after a failure, and only then releases their memory; returns the
// first failure.
static enum partita_status release(const struct pipeline *p, enum partita_status status)
{
    const struct partita_plan *plan = p->plan;
    if (p->staging && p->count > 1) {
        const cudaStream_t streams[] = {p->staging->in, p->staging->out};
        for (int i = 0; i < 2; i++) {
            const enum partita_status waited = CU(plan, cudaStreamSynchronize(streams[i]));
            if (status == PARTITA_OK) status = waited;
        }
    }
    for (int a = 0; a < 4; a++)
        for (int i = 0; i < (is_common(&p->array[a]) ? 1 : 2); i++)
            cuda_release(plan, p->array[a].slot[i]);
    cuda_release(plan, p->sums);
    cuda_release(plan, p->taken);
    const enum partita_status waited = cuda_wait(plan);
    cuda_staging_give_back(plan, p->staging);
    return status == PARTITA_OK ? waited : status;
}

// The arrays of the call that `split` splits, or the whole ones; where they are stays known.
static void set_arrays(struct pipeline *p, const struct cuda_micro_batches *split)
{
    const struct cuda_sizes *sizes = &p->call->sizes;
    const size_t bytes[] = {sizes->to, sizes->from[0], sizes->from[1], sizes->to};
    void *const callers[] = {p->operands->to, (void *)(uintptr_t)p->operands->from[0],
                             (void *)(uintptr_t)p->operands->from[1],
                             p->operands->accumulate ? p->operands->to : NULL};
    p->of_set = split ? split->of_set : 1;
    p->count = split ? split->sets * split->of_set : 1;
    p->sum_bytes = split ? split->sum_bytes : 0;
    for (int a = 0; a < 4; a++) {
        const struct cuda_row_ranges whole = {.rows = 1, .end = bytes[a], .bytes = bytes[a]};
        p->array[a].ranges = whole;
        if (split && !(a == 3 && p->sum_bytes))
            p->array[a].ranges = a % 3 ? split->from[a - 1] : split->to;
        p->array[a].caller = p->array[a].ranges.rows ? callers[a] : NULL;
    }
}

// Finds where the whole arrays are.
static enum partita_status locate_arrays(struct pipeline *p)
{
    enum partita_status status = PARTITA_OK;
    for (int a = 0; a < 4 && status == PARTITA_OK; a++)
        if (p->array[a].caller)
            status = cuda_memory_of(p->plan, p->array[a].caller, p->array[a].ranges.end,
                                    &p->array[a].memory);
    return status;
}

// Whether any array that a split splits is not in the device's memory; those that are summed do not
// count.
static bool is_away(const struct pipeline *p, const struct cuda_micro_batches *split)
{
    bool away = split->to.rows && p->array[0].memory != CUDA_ON_DEVICE;
    for (int i = 0; i < 2; i++)
        away = away || (split->from[i].rows && p->array[1 + i].memory != CUDA_ON_DEVICE);
    return away;
}

enum partita_status cuda_call_run(const struct cuda_call *call, const struct cuda_call *parts,
                                  const struct operands *operands, void *workspace)
{
    struct pipeline p = {.call = call, .plan = call->plan, .operands = operands};
    set_arrays(&p, NULL);
    enum partita_status status = locate_arrays(&p);
    if (status == PARTITA_OK && parts && is_away(&p, parts->split)) {
        if (parts->sizes.workspace > call->sizes.workspace) workspace = NULL;
        p.call = parts;
        set_arrays(&p, parts->split);
    }
    if (status == PARTITA_OK) status = reserve(&p, workspace);
    if (status == PARTITA_OK) status = run_micro_batches(&p);
    return release(&p, status);
}

// A call of an engine.
struct engine_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
};

static enum partita_status queue_engine(void *context, const struct operands *operands,
                                        void *workspace)
{
    const struct engine_call *call = context;
    return call->plan->engine->bounded.run(call->plan, call->filter, operands, workspace);
}

enum partita_status cuda_bounded_run(const struct partita_plan *plan,
                                     const struct partita_filter *filter,
                                     const struct operands *operands, void *workspace)
{
    struct engine_call of_whole = {plan, filter}, of_part = {plan->micro_batch, filter};
    const struct cuda_call call = {
        .plan = plan, .sizes = cuda_sizes_of(plan), .queue = queue_engine, .context = &of_whole};
    struct cuda_micro_batches split;
    struct cuda_call parts = call;
    if (!plan->micro_batch || operands->saved[SAVED_X])
        return cuda_call_run(&call, NULL, operands, workspace);
    split = cuda_micro_batches_of(plan, operands->from_taps);
    parts.split = &split;
    parts.sizes.workspace = plan->micro_batch->choice.shared;
    parts.context = &of_part;
    return cuda_call_run(&call, &parts, operands, workspace);
}

enum partita_status cuda_add(const struct partita_plan *plan, void *to, const void *x,
                             const void *y, size_t bytes)
{
    const struct shape *shape = &plan->shape;
    return CU(plan, cuda_launch_add(cuda_storage_of(shape), to, x, y,
                                    (int64_t)(bytes / shape_alignment(shape))));
}

enum partita_status cuda_clear_result(const struct partita_plan *plan, void *to)
{
    if (cuda_thread()->loads) return PARTITA_OK;
    return CU(plan, cudaMemsetAsync(to, 0, cuda_sizes_of(plan).to, cuda_thread()->stream));
}

enum partita_status cuda_finish_result(const struct partita_plan *plan, void *y, const void *bias)
{
    const struct shape *shape = &plan->shape;
    const struct cuda_finish finish = {.y = y,
                                       .bias = bias,
                                       .rows = (int64_t)(shape->batch * shape->out_channels),
                                       .length = (int64_t)shape_outputs(shape),
                                       .channels = (int64_t)shape->out_channels,
                                       .relu = shape->relu};
    if (plan->direction != PARTITA_FORWARD || !(bias || shape->relu)) return PARTITA_OK;
    return CU(plan, cuda_launch_finish(&finish, shape->f64));
}
