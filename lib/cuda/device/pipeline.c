// SPDX-License-Identifier: MIT
#include "pipeline.h"

#include "bias.h"
#include "cuda/kernels/sums.h"
#include "pieces.h"
#include "staging.h"

// One array of the caller's. Pieces take turns in the two slots, which are one for what all pieces
// have in common; without slots they are where the caller has them.
struct array {
    struct cuda_cut_lines cut;
    char *caller;
    enum cuda_place place;
    char *slot[2];
};

struct pipeline {
    const struct partita_plan *plan;  // of the whole
    const struct partita_plan *piece; // NULL: the gradient of the bias,
    const struct shape *of_bias;      // of such pieces of gy
    const struct partita_filter *filter;
    void *workspace;
    struct cuda_staging *staging;
    struct array to, from[2]; // `to` not where pieces are summed
    size_t of_set, pieces;    // of a set of lines; in all
    char *sums;               // where they are: of all pieces so far, and of one
    size_t sum_bytes;         // 0: they are not
};

// Of each line of the set from `set` on, what a piece holds: `held` bytes from `begin` on, behind
// `lead` bytes of zeros and before others.
struct part {
    char *set;
    ptrdiff_t begin;
    size_t lead, held;
};

static ptrdiff_t within(ptrdiff_t at, size_t end)
{
    return at < 0 ? 0 : at > (ptrdiff_t)end ? (ptrdiff_t)end : at;
}

static struct part part_of(const struct pipeline *p, const struct array *array, size_t i)
{
    const struct cuda_cut_lines *cut = &array->cut;
    const ptrdiff_t begin = cut->first + (ptrdiff_t)(i % p->of_set) * cut->hop;
    const ptrdiff_t from = within(begin, cut->end),
                    to = within(begin + (ptrdiff_t)cut->bytes, cut->end);
    char *set = array->caller + i / p->of_set * cut->lines * cut->pitch;
    return (struct part){set, from, to > from ? (size_t)(from - begin) : 0, (size_t)(to - from)};
}

// All pieces have the same of it: taps that are read in place.
static bool is_common(const struct array *array)
{
    return array->cut.pitch == 0 && array->cut.hop == 0;
}

static size_t slot_bytes(const struct array *array)
{
    return array->cut.lines * array->cut.bytes;
}

static char *place_of(const struct pipeline *p, const struct array *array, size_t i)
{
    const struct part part = part_of(p, array, i);
    return array->slot[0] ? array->slot[i % 2] : part.set + part.begin;
}

static enum partita_status record(const struct pipeline *p, enum cuda_staging_event event, size_t i,
                                  cudaStream_t stream)
{
    return CU(p->plan, cudaEventRecord(p->staging->event[event][i % 2], stream));
}

static enum partita_status wait_for(const struct pipeline *p, enum cuda_staging_event event,
                                    size_t i, cudaStream_t stream)
{
    return CU(p->plan, cudaStreamWaitEvent(stream, p->staging->event[event][i % 2], 0));
}

// Bytes of a line to the device.
static enum partita_status copy_in(const struct pipeline *p, const struct array *array, char *to,
                                   const char *from, size_t bytes)
{
    const cudaStream_t in = p->staging->in;
    return array->place == CUDA_PAGEABLE
               ? cuda_stage_in(p->plan, p->staging, in, to, from, bytes)
               : CU(p->plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, in));
}

// A piece's lines into their slot. Zeros are what lies outside of a signal; behind the last item or
// sample they add nothing to gradients.
static enum partita_status bring(const struct pipeline *p, const struct array *array, size_t i)
{
    const struct cuda_cut_lines *cut = &array->cut;
    const struct part part = part_of(p, array, i);
    char *slot = array->slot[i % 2];
    enum partita_status status = PARTITA_OK;
    if (part.held < cut->bytes)
        status = CU(p->plan, cudaMemsetAsync(slot, 0, slot_bytes(array), p->staging->in));
    for (size_t line = 0; line < cut->lines && part.held && status == PARTITA_OK; line++)
        status = copy_in(p, array, slot + line * cut->bytes + part.lead,
                         part.set + line * cut->pitch + part.begin, part.held);
    return status;
}

// To the device, when what its slots held has been read.
static enum partita_status arrive(const struct pipeline *p, size_t i)
{
    enum partita_status status = wait_for(p, CUDA_COMPUTED, i, p->staging->in);
    for (int a = 0; a < 2 && status == PARTITA_OK; a++)
        if (p->from[a].slot[0] && (i == 0 || !is_common(&p->from[a])))
            status = bring(p, &p->from[a], i);
    return status == PARTITA_OK ? record(p, CUDA_ARRIVED, i, p->staging->in) : status;
}

// Adds what a piece makes to those before it, in their order.
static enum partita_status add(const struct pipeline *p)
{
    const struct shape *shape = &p->plan->shape;
    const int64_t n = (int64_t)(p->sum_bytes / shape->scalar_bytes);
    return CU(p->plan, cuda_launch_add_sums(shape->f64, p->sums, n, 2, cudaStreamPerThread));
}

static enum partita_status compute(const struct pipeline *p, size_t i)
{
    struct operands operands = {.queued = true};
    operands.to = !p->sums ? place_of(p, &p->to, i) : i ? p->sums + p->sum_bytes : p->sums;
    for (int a = 0; a < 2; a++)
        operands.from[a] = p->from[a].caller ? place_of(p, &p->from[a], i) : NULL;
    enum partita_status status = wait_for(p, CUDA_ARRIVED, i, cudaStreamPerThread);
    // Of the first two pieces the event is a past call's, or was never recorded: nobody waits.
    if (status == PARTITA_OK) status = wait_for(p, CUDA_LEFT, i, cudaStreamPerThread);
    if (status == PARTITA_OK)
        status = p->piece ? p->piece->engine->run(p->piece, p->filter, &operands, p->workspace)
                          : cuda_queue_bias(p->plan, p->of_bias, operands.to, operands.from[0]);
    if (status == PARTITA_OK && p->sums && i) status = add(p);
    return status == PARTITA_OK ? record(p, CUDA_COMPUTED, i, cudaStreamPerThread) : status;
}

// Bytes of a line to the caller.
static enum partita_status copy_out(const struct pipeline *p, char *to, const char *from,
                                    size_t bytes)
{
    const cudaStream_t out = p->staging->out;
    return p->to.place == CUDA_PAGEABLE
               ? cuda_stage_out(p->plan, p->staging, out, to, from, bytes)
               : CU(p->plan, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, out));
}

// Back to the caller.
static enum partita_status leave(const struct pipeline *p, size_t i)
{
    const struct array *to = &p->to;
    const struct part part = part_of(p, to, i);
    if (!to->slot[0]) return PARTITA_OK;
    enum partita_status status = wait_for(p, CUDA_COMPUTED, i, p->staging->out);
    for (size_t line = 0; line < to->cut.lines && status == PARTITA_OK; line++)
        status = copy_out(p, part.set + line * to->cut.pitch + part.begin,
                          to->slot[i % 2] + line * to->cut.bytes + part.lead, part.held);
    return status == PARTITA_OK ? record(p, CUDA_LEFT, i, p->staging->out) : status;
}

// A sum, when all pieces are in it.
static enum partita_status leave_sums(const struct pipeline *p, void *to)
{
    enum cuda_place place;
    const enum partita_status status = cuda_place_of(p->plan, to, p->sum_bytes, &place);
    if (status != PARTITA_OK) return status;
    return place == CUDA_PAGEABLE
               ? cuda_stage_out(p->plan, p->staging, cudaStreamPerThread, to, p->sums, p->sum_bytes)
               : cuda_copy(p->plan, to, p->sums, p->sum_bytes);
}

static enum partita_status run_pieces(const struct pipeline *p, void *to)
{
    enum partita_status status = PARTITA_OK;
    // Slots are there when the thread's stream has come here, and free.
    for (size_t i = 0; i < 2 && status == PARTITA_OK; i++)
        status = record(p, CUDA_COMPUTED, i, cudaStreamPerThread);
    if (status == PARTITA_OK) status = arrive(p, 0);
    for (size_t i = 0; i < p->pieces && status == PARTITA_OK; i++) {
        status = compute(p, i);
        if (status == PARTITA_OK && i) status = leave(p, i - 1);
        if (status == PARTITA_OK && i + 1 < p->pieces) status = arrive(p, i + 1);
    }
    if (status != PARTITA_OK) return status;
    return p->sums ? leave_sums(p, to) : leave(p, p->pieces - 1);
}

// Arrays of the device's are used where they are, if all pieces are one after the other there and
// hold no zeros.
static bool lies_ready(const struct pipeline *p, const struct array *array)
{
    const struct cuda_cut_lines *cut = &array->cut;
    const ptrdiff_t last = cut->first + (ptrdiff_t)(p->of_set - 1) * cut->hop,
                    most = (ptrdiff_t)(cut->end - cut->bytes);
    return array->place == CUDA_HERE && cut->lines == 1 && cut->end >= cut->bytes &&
           cut->first >= 0 && last >= 0 && cut->first <= most && last <= most;
}

static enum partita_status reserve_slots(const struct pipeline *p, struct array *array)
{
    enum partita_status status = PARTITA_OK;
    if (!array->caller || lies_ready(p, array)) return status;
    for (int i = 0; i < (is_common(array) ? 1 : 2) && status == PARTITA_OK; i++) {
        void *memory = NULL;
        status = cuda_allocate(p->plan, slot_bytes(array), &memory);
        array->slot[i] = memory;
    }
    if (is_common(array)) array->slot[1] = array->slot[0];
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
    for (int i = 0; i < (is_common(array) ? 1 : 2); i++) cuda_release(p->plan, array->slot[i]);
}

// Waits for all queues, also after a failure, and only then releases what they use; the first
// failure.
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

// Where they are; whether any of them is not the device's. What is summed does not count.
static enum partita_status look_at(struct pipeline *p, bool *ret_away)
{
    struct array *const arrays[] = {&p->from[0], &p->from[1], &p->to};
    const size_t sets = p->pieces / p->of_set;
    enum partita_status status = cuda_enter(p->plan);
    *ret_away = false;
    for (int i = 0; i < 3 && status == PARTITA_OK; i++) {
        if (!arrays[i]->caller) continue;
        const struct cuda_cut_lines *cut = &arrays[i]->cut;
        const size_t bytes = cut->pitch ? sets * cut->lines * cut->pitch : cut->end;
        status = cuda_place_of(p->plan, arrays[i]->caller, bytes, &arrays[i]->place);
        *ret_away = *ret_away || arrays[i]->place != CUDA_HERE;
    }
    return status;
}

// The arrays of a call, those that are cut.
static void take_arrays(struct pipeline *p, const struct cuda_pieces *pieces,
                        const struct operands *operands)
{
    p->of_set = pieces->of_set;
    p->pieces = pieces->sets * pieces->of_set;
    p->sum_bytes = pieces->sum_bytes;
    p->to = (struct array){.cut = pieces->to, .caller = pieces->to.lines ? operands->to : NULL};
    for (int i = 0; i < 2; i++)
        p->from[i] =
            (struct array){.cut = pieces->from[i],
                           .caller = pieces->from[i].lines ? (char *)operands->from[i] : NULL};
}

static enum partita_status run_pipeline(struct pipeline *p, void *to)
{
    enum partita_status status = reserve(p);
    if (status == PARTITA_OK) status = run_pieces(p, to);
    return finish(p, status);
}

enum partita_status cuda_pipeline_run(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    struct operands of_pieces = *operands;
    const bool taps = cuda_pieces_are_taps(plan), from_taps = operands->from_taps;
    if (taps && !from_taps) of_pieces.from[1] = plan->engine->filter_taps(filter);
    if (!plan->piece || operands->cached_spectra || (taps && !of_pieces.from[1]))
        return plan->engine->run(plan, filter, operands, workspace);
    const struct cuda_pieces pieces = cuda_pieces_of(plan, from_taps);
    struct pipeline p = {.plan = plan, .piece = plan->piece, .filter = taps ? NULL : filter};
    if (plan->piece->choice.shared <= plan->choice.shared) p.workspace = workspace;
    bool away;
    take_arrays(&p, &pieces, &of_pieces);
    const enum partita_status status = look_at(&p, &away);
    if (status != PARTITA_OK) return status;
    return away ? run_pipeline(&p, operands->to)
                : plan->engine->run(plan, filter, operands, workspace);
}

enum partita_status cuda_pipeline_bias(const struct partita_plan *plan, void *gb, const void *gy)
{
    struct cuda_pieces pieces;
    struct shape piece;
    if (!cuda_pieces_of_bias(plan, &pieces, &piece)) return cuda_backward_bias(plan, gb, gy);
    struct pipeline p = {.plan = plan, .of_bias = &piece};
    bool away;
    take_arrays(&p, &pieces, &(struct operands){.to = gb, .from = {gy}});
    const enum partita_status status = look_at(&p, &away);
    if (status != PARTITA_OK) return status;
    return away ? run_pipeline(&p, gb) : cuda_backward_bias(plan, gb, gy);
}
