// SPDX-License-Identifier: MIT
// The structs of plan, filter and cached spectra. The planner allocates them, engines fill them.
#ifndef PARTITA_INTERNAL_PLAN_H
#define PARTITA_INTERNAL_PLAN_H

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "device.h"
#include "engine.h"
#include "ledger.h"

struct kernels;

// The price of options.error_reach: the engine that costs least without it.
struct unbounded {
    const struct engine *engine; // NULL: it costs no less, or the options set no reach
    double times;                // cost of the plan's choice over that engine's
    size_t reach;                // estimate_reach of that engine
};

// A plan computes one direction. The caller's plan is the plan of forward and owns the plans of the
// gradients.
struct partita_plan {
    const struct engine *engine;         // NULL: forward was not requested
    const struct engine *const *engines; // those of the device
    struct device *device;               // owned by the caller's plan
    struct partita_plan *micro_batch;    // device: plan of one micro-batch; NULL: never split
    enum partita_direction direction;
    struct partita_plan *backward_data, *backward_weight; // NULL: not planned
    const struct kernels *kernels;                        // loops of the CPU
    struct shape shape;
    struct estimate choice;
    enum cpu_isa isa;
    int threads;        // bounded problems: as requested, or fewer if the workspace limit requires
                        // it
    int stream_threads; // of each stream, including the calling thread
    struct partita_executor executor; // of streams, if it has a function
    double sample_rate;               // of streams; 0: calls are not timed
    bool measure;                     // transforms may be timed while planning
    bool remembered;                  // the choice was measured, now or in an earlier run
    bool engine_asked, parts_asked;   // the options name the engine; the sizes of its parts
    bool shares; // the gradients are plans of cached_plan, and filters are of forward alone
    bool alone;  // options.saved_limit is set: saved transforms only where `shares`
    struct partita_allocator allocator;
    struct partita_log log;
    struct estimate *estimates; // one per engine of the device, for explain
    struct unbounded unbounded;
    size_t error_reach; // of the options
    void *state;        // the engine's
};

struct partita_filter {
    const struct partita_plan *plan;
    void *state;                          // one arena
    void *bias;                           // [out_channels] reals; NULL: none
    bool biased;                          // was made with a bias, here or in the state
    bool nonfinite;                       // CPU, bounded: a tap is infinite or NaN
    struct partita_filter *backward_data; // of the plan's backward_data
    char *branches;                       // problem.up, bounded: memory of the branches' taps
};

struct partita_saved {
    const struct partita_plan *plan;
    struct partita_plan weight; // backward weight with the tiles of forward; not of plan->shares
    struct saved_slot slot[SAVED_SLOTS];
};

// Makes plan->state of the plan's engine. The caller calls plan_destroy_state on failure too.
static inline enum partita_status plan_create_state(struct partita_plan *plan,
                                                    const struct request *request)
{
    const struct engine *engine = plan->engine;
    struct arena arena = {.used = engine->state_bytes};
    if (engine->build) engine->build(plan, request, &arena);
    if (arena.used && !arena_allocate(&arena, &plan->allocator)) return PARTITA_ERR_NOMEM;
    plan->state = engine->build && arena.base ? engine->build(plan, request, &arena) : arena.base;
    return engine->plan_create ? engine->plan_create(plan, request) : PARTITA_OK;
}

static inline void plan_destroy_state(struct partita_plan *plan)
{
    if (plan->state && plan->engine->plan_destroy) plan->engine->plan_destroy(plan);
    mem_release(&plan->allocator, plan->state);
}

// Bytes of workspace of one call.
static inline size_t plan_workspace(const struct partita_plan *plan)
{
    return size_add(plan->choice.shared, size_mul((size_t)plan->threads, plan->choice.worker));
}

// Threads of the plan for which scratch memory suffices that has `bytes` a thread.
static inline int plan_threads_in(const struct partita_plan *plan, const struct region *scratch,
                                  size_t bytes)
{
    assert(bytes <= scratch->bytes);
    return scratch->bytes / bytes < (size_t)plan->threads ? (int)(scratch->bytes / bytes)
                                                          : plan->threads;
}

// Copies an engine's decision to and from an estimate.
static inline void estimate_store(struct estimate *estimate, const void *decision, size_t bytes)
{
    assert(bytes <= DECISION_BYTES);
    memcpy(estimate->decision, decision, bytes);
}

static inline void estimate_load(const struct estimate *estimate, void *decision, size_t bytes)
{
    assert(bytes <= DECISION_BYTES);
    memcpy(decision, estimate->decision, bytes);
}

// Whether an estimate is applicable within the request's workspace limit.
static inline bool estimate_fits(const struct request *request, const struct estimate *estimate)
{
    const size_t limit = estimate->resamples ? request->call_limit : request->workspace_limit;
    return estimate->applicable && limit && size_add(estimate->shared, estimate->worker) <= limit;
}

// The figure by which estimates are compared: the seconds of a call with its share of preparing a
// filter that is used so often; 0: it lives for ever.
static inline double estimate_cost(const struct estimate *estimate, double filter_uses)
{
    const double share = filter_uses > 0 ? estimate->filter_seconds / filter_uses : 0;
    return estimate->seconds + share;
}

static inline double request_cost(const struct request *request, const struct estimate *estimate)
{
    return estimate_cost(estimate, request->filter_uses);
}

// Whether a request allows this variant of an engine.
static inline bool request_allows(const struct request *request, int variant)
{
    const struct estimate *other = request->compatible_with;
    return (request->variant == ANY_VARIANT || request->variant == variant) &&
           (!other || other->variant == variant);
}

#endif
