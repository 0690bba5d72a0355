// SPDX-License-Identifier: MIT
// Asks every engine for its estimate, keeps the cheapest within the options; with PARTITA_MEASURE
// times the likely ones on this machine first and remembers the winner.
#include "planner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "wisdom.h"

static size_t engine_count(const struct partita_plan *plan)
{
    size_t n = 0;
    while (plan->engines[n]) n++;
    return n;
}

// The problem as one short line: the key of a remembered choice.
static void describe(const struct partita_plan *plan, const struct partita_options *options,
                     char *key, size_t size)
{
    const struct shape *shape = &plan->shape;
    struct text text = {key, size, 0};
    if (options->filter_uses) text_add(&text, "uses%u ", options->filter_uses);
    // The fastest within a reach is not the fastest without one.
    if (options->error_reach) text_add(&text, "reach%zu ", options->error_reach);
    if (plan->direction != PARTITA_FORWARD)
        text_add(&text, plan->direction == PARTITA_BACKWARD_DATA ? "data " : "weight ");
    text_add(&text, "%s*%s %s n%zu c%zu,%zu g%zu", partita_type_name(shape->signal),
             partita_type_name(shape->taps),
             plan->device->host ? cpu_isa_name(plan->isa) : plan->device->key, shape->batch,
             shape->in_channels, shape->out_channels, shape->groups);
    for (int i = 0; i < shape->rank; i++)
        text_add(&text, " k%zu d%zu s%zu x%zd y%zu", shape->axis[i].kernel, shape->axis[i].dilation,
                 shape->axis[i].stride, (ptrdiff_t)shape->axis[i].size, shape->axis[i].out);
    if (shape->separable) text_add(&text, " separable");
    if (shape->channels_last) text_add(&text, " last");
    if (shape->up.branches) text_add(&text, " up%zu,%zu", shape->up.branches, shape->up.stride);
    if (shape->stream)
        text_add(&text, " b%zu%s l%zd", shape->block, shape->whole_blocks ? "w" : "",
                 (ptrdiff_t)shape->latency);
}

// One line: the reasons of the engines that were asked. Neighbours with the same reason share it.
static enum partita_status refuse(const struct partita_plan *plan, const char *forced)
{
    char line[960] = "";
    struct text text = {line, sizeof line, 0};
    const char *reason = NULL;
    for (size_t i = 0; plan->engines[i]; i++) {
        if (estimate_variant(forced, plan->engines[i]) == NOT_NAMED) continue;
        const bool same = reason && !strcmp(reason, plan->estimates[i].reason);
        if (reason && !same) text_add(&text, ": %s; ", reason);
        text_add(&text, "%s%s", same ? ", " : "", plan->engines[i]->name);
        reason = plan->estimates[i].reason;
    }
    return log_error(&plan->log, PARTITA_ERR_UNSUPPORTED, "%s: %s", line, reason ? reason : "");
}

// Index of the cheapest applicable engine, or of the forced one; engine_count if there is none.
static size_t planner_cheapest(const struct partita_plan *plan,
                               const struct partita_options *options)
{
    size_t best = engine_count(plan);
    for (size_t i = 0; plan->engines[i]; i++) {
        const struct estimate *estimate = &plan->estimates[i];
        if (!estimate->applicable ||
            estimate_variant(options->engine, plan->engines[i]) == NOT_NAMED)
            continue;
        const double seconds = estimate_cost(estimate, options->filter_uses);
        if (!plan->engines[best] ||
            seconds < estimate_cost(&plan->estimates[best], options->filter_uses))
            best = i;
    }
    return best;
}

// A choice that was measured before, if it still fits the options.
static bool recall(struct partita_plan *plan, const struct partita_options *options,
                   const struct cost_model *model, const char *key, size_t *ret_index,
                   struct estimate *ret_choice)
{
    struct remembered remembered;
    if (!wisdom_recall(options->wisdom, key, &remembered)) return false;
    for (size_t i = 0; plan->engines[i]; i++) {
        const struct engine *engine = plan->engines[i];
        if (strcmp(engine->name, remembered.engine) != 0) continue;
        if (estimate_variant(options->engine, engine) == NOT_NAMED) return false;
        struct estimate estimate;
        estimate_engine(plan, options, model, i, remembered.transform, &estimate);
        if (!estimate.applicable) return false;
        *ret_index = i;
        *ret_choice = estimate;
        return true;
    }
    return false;
}

// As many threads as were asked for, or as fit the limit of the workspace; estimate_engine has
// checked that one does. It is called after plan_create_state, which settles what a thread needs.
static int affordable_threads(const struct partita_plan *plan,
                              const struct partita_options *options)
{
    const size_t given = options->workspace_limit, shared = plan->choice.shared;
    if (!given || !plan->choice.worker) return plan->threads;
    const size_t limit = plan->choice.resamples ? given : estimate_engine_limit(plan, given);
    const size_t max = limit > shared ? (limit - shared) / plan->choice.worker : 0;
    if (max < 1) return 1;
    return max < (size_t)plan->threads ? (int)max : plan->threads;
}

// Estimates the engines that may be chosen.
static void estimate_all(const struct partita_plan *plan, const struct partita_options *options,
                         const struct cost_model *model)
{
    for (size_t i = 0; plan->engines[i]; i++) {
        struct estimate *estimate = &plan->estimates[i];
        if (estimate_variant(options->engine, plan->engines[i]) == NOT_NAMED)
            estimate_refuse(estimate, "options.engine names another");
        else estimate_engine(plan, options, model, i, 0, estimate);
    }
}

// Compares the choice with what it would be without options.error_reach.
static struct unbounded compare_unbounded(const struct partita_plan *plan,
                                          const struct partita_options *options,
                                          const struct cost_model *model)
{
    struct estimate any;
    if (!options->error_reach || options->engine) return (struct unbounded){0};
    const struct engine *engine = estimate_unbounded(plan, options, model, &any);
    if (!engine) return (struct unbounded){0};
    const unsigned uses = options->filter_uses;
    const double times = estimate_cost(&plan->choice, uses) / estimate_cost(&any, uses);
    return (struct unbounded){times > 1 ? engine : NULL, times, estimate_reach(&any)};
}

enum partita_status planner_choose(struct partita_plan *plan, const struct partita_options *options)
{
    struct cost_model model;
    char key[256] = "";
    bool known = !options->engine;
    for (size_t i = 0; plan->engines[i] && !known; i++)
        known = estimate_variant(options->engine, plan->engines[i]) != NOT_NAMED;
    if (!known)
        return log_error(&plan->log, PARTITA_ERR_ARG, "options.engine = \"%s\": no such engine",
                         options->engine);
    plan->estimates = mem_allocate(&plan->allocator, engine_count(plan) * sizeof *plan->estimates);
    if (!plan->estimates) return PARTITA_ERR_NOMEM;
    wisdom_cost_model(options->wisdom, plan->isa, &model);
    if (options->wisdom || plan->measure) describe(plan, options, key, sizeof key);
    estimate_all(plan, options, &model);
    size_t index = planner_cheapest(plan, options);
    if (!plan->engines[index]) return refuse(plan, options->engine);
    struct estimate choice = plan->estimates[index];
    plan->remembered = recall(plan, options, &model, key, &index, &choice);
    if (plan->measure && plan->device->host && !plan->remembered) {
        const enum partita_status status = measure_best(plan, options, &model, &index, &choice);
        if (status != PARTITA_OK) return status;
        struct remembered measured = {.transform = choice.transform};
        snprintf(measured.engine, sizeof measured.engine, "%s", plan->engines[index]->name);
        wisdom_remember(options->wisdom, key, &measured);
        plan->remembered = true;
    }
    plan->engine = plan->engines[index];
    plan->engine_asked = options->engine;
    plan->parts_asked = options->engine && options->parts.taps;
    plan->choice = choice;
    plan->unbounded = compare_unbounded(plan, options, &model);
    // Opening a parallel loop costs microseconds, and milliseconds while other work keeps the cores
    // busy: a thread for each 50 microseconds of a call.
    const double max = 1 + floor(choice.seconds / 50e-6);
    if (!options->threads && !plan->shape.stream && plan->device->host && max < plan->threads)
        plan->threads = (int)max;
    const struct request request =
        estimate_request(plan, options, &model, plan->engine, choice.transform);
    const enum partita_status status = plan_create_state(plan, &request);
    if (status == PARTITA_OK) plan->threads = affordable_threads(plan, options);
    if (status != PARTITA_OK || !plan->device->plan_begin) return status;
    return plan->device->plan_begin(plan, &request);
}

enum partita_status planner_share(struct partita_plan *plan, const struct partita_options *options)
{
    struct partita_plan *const plans[] = {plan, plan->backward_data, plan->backward_weight};
    struct cost_model model;
    struct estimate step;
    double cost = 0;
    size_t i = 0;
    while (plan->engines[i] && (!plan->engines[i]->bounded.cached_plan ||
                                estimate_variant(options->engine, plan->engines[i]) == NOT_NAMED))
        i++;
    if (!plan->engines[i]) return PARTITA_OK;
    for (int d = 0; d < 3; d++) cost += estimate_cost(&plans[d]->choice, options->filter_uses);
    wisdom_cost_model(options->wisdom, plan->isa, &model);
    plan->shares = true; // so that the engine estimates a step
    estimate_engine(plan, options, &model, i, 0, &step);
    // A twentieth of the time is the least that pays for the memory.
    plan->shares = step.applicable && estimate_cost(&step, options->filter_uses) < 0.95 * cost;
    if (!plan->shares) return PARTITA_OK;
    plan_destroy_state(plan);
    plan->choice = step;
    const struct request request =
        estimate_request(plan, options, &model, plan->engines[i], step.transform);
    enum partita_status status = PARTITA_OK;
    for (int d = 0; d < 3 && status == PARTITA_OK; d++) {
        if (d) plan_destroy_state(plans[d]);
        plans[d]->engine = plan->engines[i];
        plans[d]->state = NULL;
        status = d ? plan->engine->bounded.cached_plan(plan, plans[d], plans[d])
                   : plan_create_state(plan, &request);
    }
    return status;
}
