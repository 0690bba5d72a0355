// SPDX-License-Identifier: MIT
#include "support/rig.h"

#include "support/layer_rig.h"

static size_t axes(const struct partita_problem *problem)
{
    return (size_t)reference_rank(problem);
}

size_t problem_inputs(const struct partita_problem *problem)
{
    size_t n = or_one(problem->batch) * or_one(problem->in_channels);
    for (size_t a = 0; a < axes(problem); a++) n *= problem->size[a];
    return n;
}

size_t problem_taps(const struct partita_problem *problem)
{
    size_t n =
        or_one(problem->out_channels) * (or_one(problem->in_channels) / or_one(problem->groups));
    for (size_t a = 0; a < axes(problem); a++) n *= or_one(problem->kernel[a]);
    return n;
}

size_t problem_outputs(const struct partita_problem *problem)
{
    size_t n = or_one(problem->batch) * or_one(problem->out_channels);
    for (size_t a = 0; a < axes(problem); a++) n *= reference_outputs(problem, a);
    return n;
}

size_t problem_span(const struct partita_problem *problem)
{
    return or_one(problem->dilation[0]) * (or_one(problem->kernel[0]) - 1) + 1;
}

static void rig_allocate(struct rig *rig)
{
    const struct partita_problem *p = &rig->problem;
    size_t scalar = type_is_f64(p->signal) ? 8 : 4;
    rig->sample_bytes = partita_type_size(p->signal);
    rig->n_x = problem_inputs(p);
    rig->n_w = problem_taps(p);
    rig->n_y = problem_outputs(p);
    rig->x = guarded_alloc(rig->n_x * rig->sample_bytes, scalar);
    rig->w = guarded_alloc(rig->n_w * partita_type_size(p->taps), scalar);
    rig->y = guarded_alloc(rig->n_y * rig->sample_bytes, scalar);
}

static void rig_create(struct rig *rig, const struct partita_options *options)
{
    const struct partita_options all = layer_options(options); // on the device under test
    assert_ok(partita_plan_create(&rig->problem, &all, &rig->plan));
    assert_ok(partita_filter_create(rig->plan, rig->w, &rig->filter));
}

void rig_open(struct rig *rig, const struct partita_problem *problem,
              const struct partita_options *options, struct random *random)
{
    *rig = (struct rig){.problem = *problem};
    rig_allocate(rig);
    random_samples(random, problem->signal, rig->x, rig->n_x);
    random_samples(random, problem->taps, rig->w, rig->n_w);
    rig_create(rig, options);
}

void rig_open_with(struct rig *rig, const struct partita_problem *problem,
                   const struct partita_options *options, const void *x, const void *w)
{
    *rig = (struct rig){.problem = *problem};
    rig_allocate(rig);
    memcpy(rig->x, x, rig->n_x * rig->sample_bytes);
    memcpy(rig->w, w, rig->n_w * partita_type_size(problem->taps));
    rig_create(rig, options);
}

void rig_forward(struct rig *rig)
{
    assert_ok(partita_forward(rig->plan, rig->filter, rig->y, rig->x, NULL));
}

void rig_close(struct rig *rig)
{
    partita_filter_destroy(rig->filter);
    partita_plan_destroy(rig->plan);
    guarded_free(rig->x);
    guarded_free(rig->w);
    guarded_free(rig->y);
    free(rig->reference);
}

void rig_check_copy(const struct rig *rig, const struct partita_options *options)
{
    struct rig other;
    rig_open_with(&other, &rig->problem, options, rig->x, rig->w);
    rig_forward(&other);
    assert_memory_equal(rig->y, other.y, rig->n_y * rig->sample_bytes);
    rig_close(&other);
}

double plan_gate(const struct partita_plan *plan, const struct partita_problem *problem, size_t n)
{
    const size_t up = or_one(problem->up);
    size_t products = (problem_taps(problem) / or_one(problem->out_channels) + up - 1) / up;
    double gate = plan->choice.transform ? gate_transform(problem->signal, plan->choice.transform)
                                         : gate_direct(problem->signal, products);
    return gate_for_outputs(gate, n);
}

void rig_check(struct rig *rig)
{
    if (!rig->reference) {
        rig->reference = malloc(rig->n_y * sizeof *rig->reference);
        assert_non_null(rig->reference);
        reference_forward(&rig->problem, rig->reference, rig->x, rig->w);
    }
    const struct partita_problem *p = &rig->problem;
    double error = error_against(p->signal, rig->y, rig->reference, rig->n_y, typical_output(p));
    double gate = plan_gate(rig->plan, p, rig->n_y);
    if (!(error <= gate)) {
        fail_msg("%s, transform %zu: error %.3g above %.3g",
                 partita_plan_engine(rig->plan, PARTITA_FORWARD), rig->plan->choice.transform,
                 error, gate);
    }
}
