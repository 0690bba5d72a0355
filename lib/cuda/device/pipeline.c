// SPDX-License-Identifier: MIT
#include "pipeline.h"

#include <assert.h>

#include "base/ranges.h"
#include "bounded_call.h"
#include "cuda/kernels/sums.h"
#include "filter.h"
#include "micro_batch.h"
#include "staging.h"

// One array of the caller's. Micro-batches alternate between two slots, which are the same memory
// if all use the same data. Without slots the caller's array is used in place.
struct array {
    struct cuda_row_ranges ranges;
    char *caller;
    enum cuda_memory memory;
    char *slot[2];
};

struct pipeline {
    const struct partita_plan *plan; // of the whole
    const struct partita_filter *filter;
    void *workspace;
    struct cuda_staging *staging;
    struct array to, from[2]; // `to` not where micro-batches are summed
    size_t of_set, count;     // micro-batches of a set of rows; in all
    char *sums;               // in device memory: of all micro-batches so far, and of one
    size_t sum_bytes;         // 0: they are not summed
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

static enum partita_status record_event(const struct pipeline *p, enum cuda_staging_event event,
                                        size_t i, cudaStream_t stream)
{
    return CU(p->plan, cudaEventRecord(p->staging->event[event][i % 2], stream));
}

static enum partita_status wait_event(const struct pipeline *p, enum cuda_staging_event event,
                                      size_t i, cudaStream_t stream)
{
    return CU(p->plan, cudaStreamWaitEvent(stream, p->staging->event[event][i % 2], 0));
}

// Rows into their slot. Samples outside of a signal are zeros; behind the last item or sample
// they add nothing to gradients.
static enum partita_status copy_in(const struct pipeline *p, const struct array *array, size_t i)
{
    const struct cuda_row_ranges *ranges = &array->ranges;
    const struct part part = part_of(p, array, i);
    const cudaStream_t in = p->staging->in;
    char *slot = array->slot[i % 2];
    enum partita_status status = PARTITA_OK;
    if (part.held < ranges->bytes)
        status = CU(p->plan, cudaMemsetAsync(slot, 0, slot_bytes(array), in));
    for (size_t row = 0; row < ranges->rows && part.held && status == PARTITA_OK; row++) {
        char *to = slot + row * ranges->bytes + part.lead;
        const char *from = part.begin + row * ranges->pitch;
        status = cuda_stage_in(p->plan, array->memory == CUDA_PAGEABLE ? p->staging : NULL, in, to,
                               from, part.held);
    }
    return status;
}

// Arrays to the device, when the contents of their slots have been read.
static enum partita_status arrive(const struct pipeline *p, size_t i)
{
    enum partita_status status = wait_event(p, CUDA_COMPUTED, i, p->staging->in);
    for (int a = 0; a < 2 && status == PARTITA_OK; a++)
        if (p->from[a].slot[0] && (i == 0 || !is_common(&p->from[a])))
            status = copy_in(p, &p->from[a], i);
    return status == PARTITA_OK ? record_event(p, CUDA_ARRIVED, i, p->staging->in) : status;
}

static enum partita_status compute(const struct pipeline *p, size_t i)
{
    const struct partita_plan *part = p->plan->micro_batch;
    const bool f64 = p->plan->shape.f64;
    const int64_t sums = (int64_t)(p->sum_bytes / p->plan->shape.scalar_bytes);
    const bool from_taps = !p->filter && p->plan->direction == PARTITA_FORWARD;
    struct operands operands = {.to = p->sums, .from_taps = from_taps, .queued = true};
    if (p->sums && i) operands.to = p->sums + p->sum_bytes;
    if (!p->sums) operands.to = array_at(p, &p->to, i);
    for (int a = 0; a < 2; a++)
        operands.from[a] = p->from[a].caller ? array_at(p, &p->from[a], i) : NULL;
    enum partita_status status = wait_event(p, CUDA_ARRIVED, i, cudaStreamPerThread);
    // Of the first two the event is a past call's, or was never recorded: nobody waits.
    if (status == PARTITA_OK) status = wait_event(p, CUDA_LEFT, i, cudaStreamPerThread);
    if (status == PARTITA_OK) status = cuda_bounded_run(part, p->filter, &operands, p->workspace);
    if (status == PARTITA_OK && p->sums && i) // in order
        status = CU(p->plan, cuda_launch_add_sums(f64, p->sums, p->sums, sums, 2));
    return status == PARTITA_OK ? record_event(p, CUDA_COMPUTED, i, cudaStreamPerThread) : status;
}

// Results back to the caller.
static enum partita_status leave(const struct pipeline *p, size_t i)
{
    const struct array *to = &p->to;
    const struct part part = part_of(p, to, i);
    const cudaStream_t out = p->staging->out;
    if (!to->slot[0]) return PARTITA_OK;
    enum partita_status status = wait_event(p, CUDA_COMPUTED, i, out);
    for (size_t row = 0; row < to->ranges.rows && status == PARTITA_OK; row++)
        status = cuda_stage_out(p->plan, to->memory == CUDA_PAGEABLE ? p->staging : NULL, out,
                                part.begin + row * to->ranges.pitch,
                                to->slot[i % 2] + row * to->ranges.bytes + part.lead, part.held);
    return status == PARTITA_OK ? record_event(p, CUDA_LEFT, i, out) : status;
}

// A sum, when all micro-batches are in it.
static enum partita_status leave_sums(const struct pipeline *p, void *to)
{
    enum cuda_memory memory;
    const enum partita_status status = cuda_memory_of(p->plan, to, p->sum_bytes, &memory);
    if (status != PARTITA_OK) return status;
    return cuda_stage_out(p->plan, memory == CUDA_PAGEABLE ? p->staging : NULL, cudaStreamPerThread,
                          to, p->sums, p->sum_bytes);
}

static enum partita_status run_micro_batches(const struct pipeline *p, void *to)
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
    if (status != PARTITA_OK) return status;
    return p->sums ? leave_sums(p, to) : leave(p, p->count - 1);
}

// Arrays of the device's are used where they are, if all micro-batches follow each other there and
// hold no zeros.
static bool is_usable(const struct pipeline *p, const struct array *array)
{
    const struct cuda_row_ranges *ranges = &array->ranges;
    const ptrdiff_t last = ranges->first + (ptrdiff_t)(p->of_set - 1) * ranges->hop;
    const ptrdiff_t end = (ptrdiff_t)(ranges->end - ranges->bytes);
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
    if (!array->caller || is_usable(p, array)) return status;
    for (int i = 0; i < (is_common(array) ? 1 : 2) && status == PARTITA_OK; i++)
        status = allocate_bytes(p, slot_bytes(array), &array->slot[i]);
    if (is_common(array)) array->slot[1] = array->slot[0];
    return status;
}

static enum partita_status reserve(struct pipeline *p)
{
    enum partita_status status = cuda_staging_borrow(p->plan, &p->staging);
    if (status == PARTITA_OK) status = reserve_slots(p, &p->to);
    for (int i = 0; i < 2 && status == PARTITA_OK; i++) status = reserve_slots(p, &p->from[i]);
    return status == PARTITA_OK && p->sum_bytes ? allocate_bytes(p, 2 * p->sum_bytes, &p->sums)
                                                : status;
}

// Waits for all queues, also after a failure, and only then releases their memory; returns the
// first failure.
static enum partita_status release(const struct pipeline *p, enum partita_status status)
{
    const struct partita_plan *plan = p->plan;
    const struct array *const arrays[] = {&p->to, &p->from[0], &p->from[1]};
    if (p->staging) {
        const cudaStream_t streams[] = {p->staging->in, p->staging->out};
        for (int i = 0; i < 2; i++) {
            const enum partita_status waited = CU(plan, cudaStreamSynchronize(streams[i]));
            if (status == PARTITA_OK) status = waited;
        }
    }
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < (is_common(arrays[a]) ? 1 : 2); i++)
            cuda_release(plan, arrays[a]->slot[i]);
    cuda_release(plan, p->sums);
    const enum partita_status waited = cuda_wait(plan);
    cuda_staging_give_back(plan, p->staging);
    return status == PARTITA_OK ? waited : status;
}

// Finds where the arrays are; whether any of them is not the device's. Arrays that are summed do
// not count.
static enum partita_status locate_arrays(struct pipeline *p, bool *ret_away)
{
    struct array *const arrays[] = {&p->from[0], &p->from[1], &p->to};
    const size_t sets = p->count / p->of_set;
    enum partita_status status = PARTITA_OK;
    *ret_away = false;
    for (int i = 0; i < 3 && status == PARTITA_OK; i++) {
        if (!arrays[i]->caller) continue;
        const struct cuda_row_ranges *ranges = &arrays[i]->ranges;
        const size_t bytes = ranges->pitch ? sets * ranges->rows * ranges->pitch : ranges->end;
        status = cuda_memory_of(p->plan, arrays[i]->caller, bytes, &arrays[i]->memory);
        *ret_away = *ret_away || arrays[i]->memory != CUDA_ON_DEVICE;
    }
    return status;
}

// The arrays of a call that are split.
static void set_arrays(struct pipeline *p, const struct cuda_micro_batches *split,
                       const struct operands *operands)
{
    p->of_set = split->of_set;
    p->count = split->sets * split->of_set;
    p->sum_bytes = split->sum_bytes;
    p->to = (struct array){.ranges = split->to, .caller = split->to.rows ? operands->to : NULL};
    for (int i = 0; i < 2; i++)
        p->from[i] =
            (struct array){.ranges = split->from[i],
                           .caller = split->from[i].rows ? (char *)operands->from[i] : NULL};
}

enum partita_status cuda_pipeline_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    struct pipeline p = {.plan = plan, .filter = filter};
    bool away = false;
    enum partita_status status = PARTITA_OK;
    if (plan->micro_batch && !operands->cached_spectra) {
        const struct cuda_micro_batches split = cuda_micro_batches_of(plan, operands->from_taps);
        if (plan->micro_batch->choice.shared <= plan->choice.shared) p.workspace = workspace;
        set_arrays(&p, &split, operands);
        status = locate_arrays(&p, &away);
    }
    if (status != PARTITA_OK) return status;
    if (!away) return cuda_bounded_run(plan, filter, operands, workspace);
    status = reserve(&p);
    if (status == PARTITA_OK) status = run_micro_batches(&p, operands->to);
    return release(&p, status);
}
