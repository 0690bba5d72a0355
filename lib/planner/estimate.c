// SPDX-License-Identifier: MIT
#include "planner.h"

#include "core/storage.h"
#include "geometry/upsampling.h"
#include "layer/bounded.h"

#include <string.h>

int estimate_variant(const char *name, const struct engine *engine)
{
    const size_t length = strlen(engine->name);
    if (!name) return ANY_VARIANT;
    if (strncmp(name, engine->name, length) != 0) return NOT_NAMED;
    if (!name[length]) return ANY_VARIANT;
    if (name[length] != ':' || !engine->variants) return NOT_NAMED;
    for (int i = 0; engine->variants[i]; i++)
        if (!strcmp(name + length + 1, engine->variants[i])) return i;
    return NOT_NAMED;
}

// Bytes of a call's workspace besides the engine's, unless that resamples.
static size_t other_bytes(const struct partita_plan *plan)
{
    const bool branches = plan->shape.up.branches && !plan->shape.stream;
    return branches ? upsampling_bytes(&plan->shape)
                    : size_add(plan_wide_taps(plan), boundary_bytes(&plan->shape));
}

size_t estimate_engine_limit(const struct partita_plan *plan, size_t limit)
{
    const size_t other = other_bytes(plan);
    const size_t bytes = other ? size_add(other, MEM_ALIGN) : 0;
    if (limit > bytes) return limit - bytes;
    return other <= limit; // for an engine that needs none
}

struct request estimate_request(const struct partita_plan *plan,
                                const struct partita_options *options,
                                const struct cost_model *model, const struct engine *engine,
                                size_t transform)
{
    const int variant = estimate_variant(options->engine, engine);
    const size_t limit = options->workspace_limit;
    return (struct request){.shape = &plan->shape,
                            .direction = plan->direction,
                            .model = model,
                            .device = plan->device,
                            .transform = transform,
                            .variant = variant == NOT_NAMED ? ANY_VARIANT : variant,
                            .workspace_limit =
                                limit ? estimate_engine_limit(plan, limit) : SIZE_MAX,
                            .call_limit = limit ? limit : SIZE_MAX,
                            .parts = options->parts,
                            .error_budget = options->error_budget,
                            .error_reach = options->error_reach,
                            .filter_uses = options->filter_uses,
                            .saved_limit = plan->shares ? options->saved_limit : 0};
}

// Whether it is forward on a lone signal with adjacent outputs and taps (engine.layers).
static bool is_signal(const struct partita_plan *plan)
{
    const struct axis *axis = &plan->shape.axis[0];
    return shape_lone(&plan->shape) && plan->direction == PARTITA_FORWARD && axis->stride == 1 &&
           axis->dilation == 1;
}

static void estimate_checked(const struct partita_plan *plan, const char *named,
                             const struct request *request, const struct engine *engine,
                             struct estimate *ret)
{
    const int max_rank = engine->max_rank ? engine->max_rank : 1;
    *ret = (struct estimate){0};
    if (plan->shape.rank > max_rank)
        estimate_refuse(ret, "works along %s, the problem has %d",
                        max_rank == 1 ? "one axis" : "two axes", plan->shape.rank);
    else if (plan->shape.stream && !engine->stream.layout)
        estimate_refuse(ret, "works on bounded signals, not on streams");
    else if (!plan->shape.stream && !engine->bounded.run)
        estimate_refuse(ret, "works on streams, not on bounded signals");
    else if (plan->shape.complex_signal && engine->real)
        estimate_refuse(ret, "computes problems of real types alone");
    else if (plan->shape.half && !engine->half)
        estimate_refuse(ret, "has no storage in %s", partita_type_name(plan->shape.signal));
    else if (plan->shape.channels_last && !engine->channels_last)
        estimate_refuse(ret, "needs channels first, not problem.channels_last");
    else if (engine->layers && !named && is_signal(plan))
        estimate_refuse(ret, "serves one signal only if options.engine names it");
    else if (plan->direction != PARTITA_FORWARD && !(engine->directions & plan->direction))
        estimate_refuse(ret, "does not compute this gradient");
    else engine->estimate(request, ret);
    if (!ret->applicable) return;
    const bool fits = estimate_fits(request, ret);
    const bool near = !request->error_reach || estimate_reach(ret) < request->error_reach;
    ret->applicable =
        fits && near && !(request->error_budget > 0 && ret->error > request->error_budget);
    if (!fits)
        estimate_refuse(
            ret, "needs %zu bytes of workspace",
            size_add(size_add(ret->shared, ret->worker), ret->resamples ? 0 : other_bytes(plan)));
    else if (!near && ret->reach == SIZE_MAX)
        estimate_refuse(ret, "rounding errors reach other tiles and items");
    else if (!near)
        estimate_refuse(ret, "rounding errors reach %zu positions", estimate_reach(ret));
    else if (!ret->applicable) estimate_refuse(ret, "error %.1e is beyond the budget", ret->error);
}

void estimate_engine(const struct partita_plan *plan, const struct partita_options *options,
                     const struct cost_model *model, size_t i, size_t transform,
                     struct estimate *ret)
{
    const struct engine *engine = plan->engines[i];
    const struct request request = estimate_request(plan, options, model, engine, transform);
    estimate_checked(plan, options->engine, &request, engine, ret);
}

const struct engine *estimate_unbounded(const struct partita_plan *plan,
                                        const struct partita_options *options,
                                        const struct cost_model *model, struct estimate *ret)
{
    struct partita_options any = *options;
    const unsigned uses = options->filter_uses;
    const struct engine *best = NULL;
    any.error_reach = 0;
    for (size_t i = 0; plan->engines[i]; i++) {
        struct estimate now;
        estimate_engine(plan, &any, model, i, 0, &now);
        const bool dearer = best && estimate_cost(&now, uses) >= estimate_cost(ret, uses);
        if (!now.applicable || dearer) continue;
        *ret = now;
        best = plan->engines[i];
    }
    return best;
}
