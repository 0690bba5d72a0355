// SPDX-License-Identifier: MIT
#include "engines.h"

#include <stdio.h>

#include "core/plan.h"

size_t list_device_engines(struct engine_name ret[MAX_DEVICE_ENGINES])
{
    const struct partita_problem problem = {.kernel = {3}, .size = {50}};
    struct partita_plan *plan;
    size_t n = 0;
    if (partita_plan_create(&problem, &(struct partita_options){.device = "cuda:0"}, &plan) !=
        PARTITA_OK)
        return 0;
    for (size_t e = 0; plan->engines[e] && n < MAX_DEVICE_ENGINES; e++) {
        const struct engine *engine = plan->engines[e];
        snprintf(ret[n++].text, sizeof ret->text, "%s", engine->name);
        if (!engine->variants) continue;
        for (int v = 0; engine->variants[v] && n < MAX_DEVICE_ENGINES; v++)
            snprintf(ret[n++].text, sizeof ret->text, "%s:%s", engine->name, engine->variants[v]);
    }
    partita_plan_destroy(plan);
    return n;
}
