// SPDX-License-Identifier: MIT
// What the search for samples that are not finite costs where there are none (decision 33): public
// calls beside runs of the same plan's engine, to which a call adds nothing but the check of its
// arguments and this search. Both use one plan, filter and workspace: where memory lies makes more
// difference than the search. White-box: it links the library's private symbols.
#include "core/filter.h"
#include "ours/ours.h"
#include "workloads/layer.h"

#include <math.h>
#include <stdlib.h>

struct searched {
    struct partita_plan *plan;
    const struct partita_plan *direction_plan; // of the direction
    struct partita_filter *filter;
    void *workspace;
    int users; // rows that are open
};
static struct searched *open_case;

static enum partita_direction direction_of(const struct workload *w)
{
    return w->layer ? w->layer->direction : PARTITA_FORWARD;
}

static void searched_close(void *state)
{
    struct searched *s = state;
    if (--s->users > 0) return;
    open_case = NULL;
    partita_filter_destroy(s->filter);
    partita_plan_destroy(s->plan);
    free(s->workspace);
    free(s);
}

static double call_pass(void *state, const struct workload *w, double *calls)
{
    const struct searched *s = state;
    const struct partita_call call = {.workspace = s->workspace};
    enum partita_status status;
    (void)calls;
    const double start = bench_now();
    if (direction_of(w) == PARTITA_FORWARD)
        status = partita_forward(s->plan, s->filter, w->y, w->x, &call);
    else if (direction_of(w) == PARTITA_BACKWARD_DATA)
        status = partita_backward_data(s->plan, s->filter, w->y, w->x, &call);
    else status = partita_backward_weight(s->plan, w->y, w->x, w->h, &call);
    return status == PARTITA_OK ? bench_now() - start : NAN;
}

static double run_pass(void *state, const struct workload *w, double *calls)
{
    const struct searched *s = state;
    const bool weight = direction_of(w) == PARTITA_BACKWARD_WEIGHT;
    const bool data = direction_of(w) == PARTITA_BACKWARD_DATA;
    const struct operands operands = {.to = w->y, .from = {w->x, weight ? w->h : NULL}};
    const struct partita_filter *filter = data ? s->filter->backward_data : s->filter;
    (void)calls;
    const double start = bench_now();
    const enum partita_status status =
        s->direction_plan->engine->bounded.run(s->direction_plan, filter, &operands, s->workspace);
    return status == PARTITA_OK ? bench_now() - start : NAN;
}

static bool searched_create(struct contender *contender, const struct workload *w)
{
    const enum partita_direction direction = direction_of(w);
    const struct partita_problem problem = w->layer ? layer_problem(w) : workload_problem(w);
    const struct partita_options options = {.threads = contender->threads,
                                            .directions = direction,
                                            .log = {ours_set_reason, contender}};
    struct searched *s = open_case = bench_allocate(sizeof *s);
    *s = (struct searched){.users = 1};
    enum partita_status status = partita_plan_create(&problem, &options, &s->plan);
    if (status == PARTITA_OK && direction != PARTITA_BACKWARD_WEIGHT)
        status = partita_filter_create(s->plan, w->h, &s->filter);
    if (status != PARTITA_OK) {
        searched_close(s);
        return false;
    }
    s->direction_plan = direction == PARTITA_BACKWARD_DATA     ? s->plan->backward_data
                        : direction == PARTITA_BACKWARD_WEIGHT ? s->plan->backward_weight
                                                               : s->plan;
    s->workspace = bench_allocate(partita_plan_workspace(s->plan, direction));
    return true;
}

static bool searched_open(struct contender *contender, const struct workload *w, pass_fn *pass)
{
    if (open_case) open_case->users++;
    else if (!searched_create(contender, w)) return false;
    contender->state = open_case;
    contender->pass = pass;
    contender->close = searched_close;
    contender->gate = w->layer ? fmax(gate_layer(w), 2e-6) : gate_transform(w);
    return true;
}

static bool call_open(struct contender *contender, const struct workload *w)
{
    return searched_open(contender, w, call_pass);
}

static bool run_open(struct contender *contender, const struct workload *w)
{
    return searched_open(contender, w, run_pass);
}

#define LAYER(batch_, channels_, groups_, size_, kernel_, pad_, direction_)                        \
    {                                                                                              \
        {.op = PARTITA_CORRELATE,                                                                  \
         .rank = 2,                                                                                \
         .batch = batch_,                                                                          \
         .in_channels = channels_,                                                                 \
         .out_channels = channels_,                                                                \
         .groups = groups_,                                                                        \
         .kernel = {kernel_, kernel_},                                                             \
         .size = {size_, size_},                                                                   \
         .pad_begin = {pad_, pad_},                                                                \
         .pad_end = {pad_, pad_}},                                                                 \
            direction_                                                                             \
    }

// Those with few sums for each sample that is read: the search is a part of all the work.
static const struct layer winograd = LAYER(4, 64, 1, 56, 3, 1, PARTITA_FORWARD);
static const struct layer winograd_data = LAYER(4, 64, 1, 56, 3, 1, PARTITA_BACKWARD_DATA);
static const struct layer winograd_weight = LAYER(4, 64, 1, 56, 3, 1, PARTITA_BACKWARD_WEIGHT);
static const struct layer tiles = LAYER(8, 16, 1, 64, 11, 5, PARTITA_FORWARD);
static const struct layer depthwise = LAYER(4, 96, 96, 56, 31, 15, PARTITA_FORWARD);

#define SIGNAL(name_, type_, n_, m_)                                                               \
    {                                                                                              \
        .name = name_, .signal = PARTITA_##type_, .taps = PARTITA_##type_, .n_frames = n_,         \
        .n_taps = m_                                                                               \
    }

static const struct workload cases[] = {
    SIGNAL("nonfinite-f32-1M-x-1024", F32, 1000000, 1024),
    SIGNAL("nonfinite-cf32-1M-x-1024", CF32, 1000000, 1024),
    SIGNAL("nonfinite-f32-500k-x-500k", F32, 500000, 500000),
    {.name = "nonfinite-3x3-64-forward", .layer = &winograd},
    {.name = "nonfinite-3x3-64-backward-data", .layer = &winograd_data},
    {.name = "nonfinite-3x3-64-backward-weight", .layer = &winograd_weight},
    {.name = "nonfinite-11x11-16-forward", .layer = &tiles},
    {.name = "nonfinite-depthwise-31x31-forward", .layer = &depthwise},
};

static const struct contender contenders[] = {
    {.name = "call", .threads = 1, .open = call_open},
    {.name = "run", .threads = 1, .open = run_open},
};

int main(int argc, char **argv)
{
    static const struct suite suite = {
        .program = "bench_nonfinite",
        .cases = cases,
        .n_cases = sizeof cases / sizeof *cases,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .repetitions = 51,
        .thread_counts = {1, 0},
    };
    return bench_main(argc, argv, &suite);
}
