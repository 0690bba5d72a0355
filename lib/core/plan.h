// SPDX-License-Identifier: MIT
// The structs of plan, filter and cached spectra, which the planner makes and engines fill.
#ifndef PARTITA_INTERNAL_PLAN_H
#define PARTITA_INTERNAL_PLAN_H

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "device.h"
#include "engine.h"

struct kernels;

// A plan runs one direction. The caller's plan is that of forward and owns those of the gradients.
struct partita_plan {
    const struct engine *engine;         // NULL: forward was not asked for
    const struct engine *const *engines; // those of the device
    struct device *device;               // NULL: the CPU; owned by the caller's plan
    struct partita_plan *micro_batch;    // device: of arrays of the host; NULL: never split
    enum partita_direction direction;
    struct partita_plan *backward_data, *backward_weight; // NULL: not planned
    const struct kernels *kernels;                        // loops of the CPU
    struct shape shape;
    struct estimate choice;
    enum cpu_isa isa;
    int threads;        // bounded problems: as asked for, or as many as the workspace limit allows
    int stream_threads; // of each stream, the calling one included
    struct partita_executor executor; // of streams, if it has a function
    double sample_rate;               // of streams; 0: calls are not timed
    bool measure;                     // let transforms be timed while planning
    bool remembered;                  // the choice was measured, now or earlier
    bool engine_asked, parts_asked;   // the options named the engine; and the sizes of its parts
    struct partita_allocator allocator;
    struct partita_log log;
    struct estimate *estimates; // one per engine of the device, for explain
    void *state;                // the engine's
};

struct partita_filter {
    const struct partita_plan *plan;
    void *state;                          // one arena
    void *bias;                           // [out_channels] reals; NULL: none
    struct partita_filter *backward_data; // of the plan's backward_data
};

struct partita_saved {
    const struct partita_plan *plan;
    struct partita_plan weight; // backward weight, by the tiles of forward
    void *data;                 // in the device's memory
    bool filled;                // by a forward
};

// Releases what plan_create made.
static inline void plan_destroy_state(struct partita_plan *plan)
{
    if (plan->engine->plan_destroy) plan->engine->plan_destroy(plan);
    else mem_release(&plan->allocator, plan->state);
}

// Bytes of workspace of one call.
static inline size_t plan_workspace(const struct partita_plan *plan)
{
    return size_add(plan->choice.shared, size_mul((size_t)plan->threads, plan->choice.worker));
}

// An engine's decision to and from an estimate.
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

// Whether a request leaves an engine free to take this one of its variants.
static inline bool request_allows(const struct request *request, int variant)
{
    const struct estimate *other = request->compatible_with;
    return (request->variant == ANY_VARIANT || request->variant == variant) &&
           (!other || other->variant == variant);
}

// Seconds of moving a bounded signal and its result through memory, where they exceed the cache.
static inline double memory_seconds(const struct cost_model *model, const struct shape *shape)
{
    const size_t inputs = shape->in_channels * shape_inputs(shape);
    const size_t outputs = shape->out_channels * shape_outputs(shape);
    const size_t scalars = shape->batch * (inputs + outputs) * (shape->complex_signal ? 2 : 1);
    if (scalars * shape->scalar_bytes <= model->cache_bytes) return 0;
    return (double)scalars / 2 * model->costs[shape->f64].copy_far;
}

// A lone signal is convolved once: new memory then costs what clearing and fetching it takes.
static inline double fresh_seconds(const struct cost_model *model, const struct shape *shape,
                                   size_t bytes)
{
    if (!shape_lone(shape) || bytes <= model->cache_bytes) return 0;
    return (double)bytes / (double)shape->scalar_bytes * model->costs[shape->f64].copy_far;
}

#endif
