// SPDX-License-Identifier: MIT
#include "estimate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void refuse(struct estimate *estimate,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(estimate->reason, sizeof estimate->reason, format, arguments);
    va_end(arguments);
    estimate->applicable = false;
}

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

struct request estimate_request(const struct partita_plan *plan,
                                const struct partita_options *options,
                                const struct cost_model *model, const struct engine *engine,
                                size_t transform)
{
    const int variant = estimate_variant(options->engine, engine);
    return (struct request){.shape = &plan->shape,
                            .direction = plan->direction,
                            .model = model,
                            .device = plan->device,
                            .transform = transform,
                            .variant = variant == NOT_NAMED ? ANY_VARIANT : variant,
                            .workspace_limit =
                                options->workspace_limit ? options->workspace_limit : SIZE_MAX,
                            .parts = options->parts,
                            .error_budget = options->error_budget};
}

void estimate_engine(const struct partita_plan *plan, const struct partita_options *options,
                     const struct cost_model *model, size_t i, size_t transform,
                     struct estimate *ret)
{
    const struct engine *engine = plan->engines[i];
    const struct request request = estimate_request(plan, options, model, engine, transform);
    const size_t limit = request.workspace_limit;
    *ret = (struct estimate){0};
    const int max_rank = engine->max_rank ? engine->max_rank : 1;
    if (plan->shape.rank > max_rank) {
        refuse(ret, "works along %s, the problem has %d", max_rank == 1 ? "one axis" : "two axes",
               plan->shape.rank);
        return;
    }
    if (plan->shape.half && !engine->half) {
        refuse(ret, "has no storage in %s", partita_type_name(plan->shape.signal));
        return;
    }
    if (plan->direction != PARTITA_FORWARD && !(engine->directions & plan->direction)) {
        refuse(ret, "does not compute this gradient");
        return;
    }
    engine->estimate(&request, ret);
    if (!ret->applicable) return;
    if (size_add(ret->shared, ret->worker) > limit)
        refuse(ret, "needs %zu bytes of workspace", size_add(ret->shared, ret->worker));
    else if (options->error_budget > 0 && ret->error > options->error_budget)
        refuse(ret, "error %.1e is beyond the budget", ret->error);
}
