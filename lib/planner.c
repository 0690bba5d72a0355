// SPDX-License-Identifier: MIT
// Asks every engine for its estimate, keeps the cheapest within the options; with PARTITA_MEASURE times the likely ones
// on this machine first and remembers the winner.
#include "planner.h"

#include <stdio.h>
#include <string.h>

#include "measure.h"
#include "wisdom.h"

static size_t engine_count(void)
{
    size_t n = 0;
    while (engines[n]) n++;
    return n;
}

// The problem in words, without spaces to spare: the key of a remembered choice.
static void describe(const struct partita_plan *plan, char *key, size_t size)
{
    const struct shape *shape = &plan->shape;
    struct text text = {key, size, 0};
    text_add(&text, "%s*%s %s t%d n%zu c%zu,%zu g%zu", partita_type_name(shape->signal), partita_type_name(shape->taps),
             cpu_level_name(plan->level), plan->threads, shape->batch, shape->in_channels, shape->out_channels,
             shape->groups);
    for (int i = 0; i < shape->rank; i++)
        text_add(&text, " k%zu d%zu s%zu x%zd y%zu", shape->axis[i].kernel, shape->axis[i].dilation,
                 shape->axis[i].stride, (ptrdiff_t)shape->axis[i].size, shape->axis[i].out);
    if (shape->stream) text_add(&text, " b%zu l%zd", shape->block, (ptrdiff_t)shape->latency);
}

static void ask(struct partita_plan *plan, const struct partita_options *options, const struct host *host)
{
    const struct request request = {.shape = &plan->shape,
                                    .host = host,
                                    .threads = plan->threads,
                                    .workspace_limit = options->workspace_limit ? options->workspace_limit : SIZE_MAX};
    for (size_t i = 0; engines[i]; i++) {
        struct estimate *estimate = &plan->considered[i];
        if (plan->shape.rank > 1) {
            snprintf(estimate->reason, sizeof estimate->reason, "works along one axis, the problem has %d",
                     plan->shape.rank);
            continue;
        }
        engines[i]->estimate(&request, estimate);
        if (estimate->applicable && estimate->workspace > request.workspace_limit) {
            estimate->applicable = false;
            snprintf(estimate->reason, sizeof estimate->reason, "needs %zu bytes of workspace", estimate->workspace);
        }
        if (estimate->applicable && options->error_budget > 0 && estimate->error > options->error_budget) {
            estimate->applicable = false;
            snprintf(estimate->reason, sizeof estimate->reason, "error %.1e is beyond the budget", estimate->error);
        }
    }
}

static bool known_engine(const char *name)
{
    for (size_t i = 0; engines[i]; i++)
        if (!strcmp(engines[i]->name, name)) return true;
    return false;
}

static void log_refusals(const struct partita_plan *plan, const char *forced)
{
    for (size_t i = 0; engines[i]; i++)
        if (!plan->considered[i].applicable && (!forced || !strcmp(forced, engines[i]->name)))
            log_line(&plan->log, "%s: %s", engines[i]->name, plan->considered[i].reason);
}

// Index of the cheapest applicable engine, or of the forced one; engine_count() if there is none.
static size_t cheapest(const struct partita_plan *plan, const char *forced)
{
    size_t best = engine_count();
    for (size_t i = 0; engines[i]; i++) {
        const struct estimate *estimate = &plan->considered[i];
        if (!estimate->applicable || (forced && strcmp(forced, engines[i]->name) != 0)) continue;
        if (!engines[best] || estimate->seconds < plan->considered[best].seconds) best = i;
    }
    return best;
}

static enum partita_status build(struct partita_plan *plan, size_t index, const struct estimate *choice)
{
    plan->engine = engines[index];
    plan->choice = *choice;
    return plan->engine->plan_create(plan);
}

// A choice that was measured before, if it still applies.
static bool recall(struct partita_plan *plan, const struct partita_options *options, const struct host *host,
                   const char *key, size_t *ret_index, struct estimate *ret_choice)
{
    struct remembered remembered;
    if (!wisdom_recall(options->wisdom, key, &remembered)) return false;
    if (options->engine && strcmp(options->engine, remembered.engine) != 0) return false;
    for (size_t i = 0; engines[i]; i++) {
        if (strcmp(engines[i]->name, remembered.engine) != 0 || !plan->considered[i].applicable) continue;
        const struct request request = {.shape = &plan->shape,
                                        .host = host,
                                        .threads = plan->threads,
                                        .transform = remembered.transform,
                                        .workspace_limit =
                                            options->workspace_limit ? options->workspace_limit : SIZE_MAX};
        *ret_choice = (struct estimate){0};
        engines[i]->estimate(&request, ret_choice);
        *ret_index = i;
        plan->remembered = ret_choice->applicable;
        return ret_choice->applicable;
    }
    return false;
}

enum partita_status planner_choose(struct partita_plan *plan, const struct partita_options *options)
{
    struct host host;
    char key[256];
    if (options->engine && !known_engine(options->engine)) {
        log_line(&plan->log, "options.engine = \"%s\": no such engine", options->engine);
        return PARTITA_ERR_ARG;
    }
    plan->considered = mem_allocate(&plan->allocator, engine_count() * sizeof *plan->considered);
    if (!plan->considered) return PARTITA_ERR_NOMEM;
    wisdom_host(options->wisdom, plan->level, &host);
    describe(plan, key, sizeof key);
    ask(plan, options, &host);
    size_t index = cheapest(plan, options->engine);
    if (!engines[index]) {
        log_refusals(plan, options->engine);
        return PARTITA_ERR_UNSUPPORTED;
    }
    struct estimate choice = plan->considered[index];
    if (!recall(plan, options, &host, key, &index, &choice) && plan->measure) {
        const enum partita_status status = measure_best(plan, options, &host, &index, &choice);
        if (status != PARTITA_OK) return status;
        struct remembered fresh = {.transform = choice.transform};
        snprintf(fresh.engine, sizeof fresh.engine, "%s", engines[index]->name);
        wisdom_remember(options->wisdom, key, &fresh);
        plan->remembered = true;
    }
    return build(plan, index, &choice);
}
