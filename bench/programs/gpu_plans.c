// SPDX-License-Identifier: MIT
// What the planner chooses for the cases of bench_gpu on the device, and the time of a call that it
// predicts, as CSV; no case is run. White-box: an estimate's digits and sizes are not public. On
// the stand-in with another device's figures (tests/hostdev/hostdev.h) these are the predictions
// for that device, from which tools/gpu_predict.py makes docs/bench/gpu-predictions.csv.
#include <stdio.h>
#include <string.h>

#include "core/plan.h"
#include "gpu/cases.h"

// As bench_gpu plans it.
static struct partita_problem planned_problem(const struct workload *w)
{
    struct partita_problem problem = workload_planned(w);
    problem.whole_blocks = w->block > 0;
    return problem;
}

static const struct partita_plan *plan_of(const struct partita_plan *plan,
                                          enum partita_direction direction)
{
    if (direction == PARTITA_BACKWARD_DATA) return plan->backward_data;
    return direction == PARTITA_BACKWARD_WEIGHT ? plan->backward_weight : plan;
}

static void print_reason(void *user, const char *text)
{
    fprintf(stderr, "%s: %s\n", (const char *)user, text);
}

// Bytes of the caller's samples and taps, which are in the device's memory but for those of
// streams.
static double array_bytes(const struct shape *shape)
{
    const double x = (double)shape->in_channels * (double)shape_inputs(shape);
    const double y = (double)shape->out_channels * (double)shape_outputs(shape);
    const double taps = (double)shape_path_count(shape) * (double)shape_taps(shape);
    if (shape->stream) return 0;
    return (double)shape->batch * (x + y) * (double)shape->sample_bytes +
           taps * (double)shape->tap_bytes;
}

static void print_choice(const struct workload *w, const struct partita_plan *plan)
{
    const struct estimate *choice = &plan->choice;
    const char *const *variants = plan->engine->variants;
    const bool varies = variants && choice->variant >= 0;
    const double frames = w->block > 0 ? (double)w->block : 1;
    printf("%s,%s%s%s,\"%s\",%zu,%zu,%zu,%.0f,%.17g\n", w->name, plan->engine->name,
           varies ? ":" : "", varies ? variants[choice->variant] : "", choice->summary,
           choice->transform, choice->hop, choice->shared, array_bytes(&plan->shape),
           choice->seconds * frames);
}

int main(void)
{
    size_t n;
    const struct workload *cases = gpu_cases(false, &n);
    int status = 0;
    printf("case,engine,summary,transform,hop,workspace,arrays,seconds\n");
    for (size_t i = 0; i < n; i++) {
        const struct workload *w = &cases[i];
        const enum partita_direction direction = w->layer ? w->layer->direction : PARTITA_FORWARD;
        const struct partita_problem problem = planned_problem(w);
        const struct partita_options options = {
            .device = "cuda:0", .directions = direction, .log = {print_reason, (void *)w->name}};
        struct partita_plan *plan = NULL;
        if (w->extra) continue;
        if (partita_plan_create(&problem, &options, &plan) == PARTITA_OK)
            print_choice(w, plan_of(plan, direction));
        else status = 1;
        partita_plan_destroy(plan);
    }
    return status;
}
