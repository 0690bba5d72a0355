// SPDX-License-Identifier: MIT
// The planner's decision in words: one line for the problem, one for each engine, details of the chosen one.
#include "explain.h"

static void describe_axis(const struct shape *shape, int i, struct text *text)
{
    const struct axis *axis = &shape->axis[i];
    text_add(text, "%s%zu", i ? "x" : " ", axis->kernel);
}

static void describe_problem(const struct partita_plan *plan, struct text *text)
{
    const struct shape *shape = &plan->shape;
    const struct axis *axis = &shape->axis[0];
    text_add(text, "%s %s %s", shape->stream ? "stream" : "signal", partita_type_name(shape->signal),
             shape->flip ? "convolve" : "correlate");
    for (int i = 0; i < shape->rank; i++) describe_axis(shape, i, text);
    text_add(text, " %s taps", partita_type_name(shape->taps));
    if (shape->batch > 1) text_add(text, ", batch %zu", shape->batch);
    text_add(text, ", %zu -> %zu channels", shape->in_channels, shape->out_channels);
    if (shape->groups > 1) text_add(text, " in %zu groups", shape->groups);
    if (axis->stride > 1) text_add(text, ", stride %zu", axis->stride);
    if (axis->dilation > 1) text_add(text, ", dilation %zu", axis->dilation);
    if (shape->stream && shape->latency == PARTITA_UNBOUNDED) text_add(text, ", any latency");
    else if (shape->stream) text_add(text, ", latency at most %zu", shape->latency);
    else text_add(text, ", %zu -> %zu samples", axis->size, axis->out);
    if (shape->whole_blocks) text_add(text, ", calls of whole blocks of %zu", shape->block);
    text_add(text, "; cpu x%d %s\n",
             !shape->stream               ? plan->threads
             : plan->engine->stream_pause ? plan->stream_threads
                                          : 1,
             plan->kernels->isa);
}

static void describe_time(double seconds, bool stream, struct text *text)
{
    if (stream) text_add(text, "%9.3g ns/frame", seconds * 1e9);
    else if (seconds < 1e-3) text_add(text, "%9.3g us      ", seconds * 1e6);
    else text_add(text, "%9.3g ms      ", seconds * 1e3);
}

static void describe_bytes(size_t bytes, struct text *text)
{
    if (bytes < (size_t)10 << 10) text_add(text, "%5zu B  ", bytes);
    else if (bytes < (size_t)10 << 20) text_add(text, "%5zu KiB", bytes >> 10);
    else text_add(text, "%5zu MiB", bytes >> 20);
}

static void describe_engine(const struct partita_plan *plan, size_t i, struct text *text)
{
    const bool chosen = engines[i] == plan->engine;
    const struct estimate *estimate = chosen ? &plan->choice : &plan->considered[i];
    text_add(text, "  %-17s ", engines[i]->name);
    if (!estimate->applicable) {
        text_add(text, "no: %s\n", estimate->reason);
        return;
    }
    if (estimate->transform) text_add(text, "fft %-8zu ", estimate->transform);
    else text_add(text, "%-12s ", "");
    describe_time(estimate->seconds / plan->threads, plan->shape.stream, text);
    text_add(text, "  ");
    describe_bytes(estimate->bytes, text);
    text_add(text, "  error %.0e", estimate->error);
    if (plan->shape.stream) text_add(text, "  latency %zu", estimate->latency);
    text_add(text, "%s\n", chosen ? "  <- chosen" : "");
}

static void describe_choice(const struct partita_plan *plan, struct text *text)
{
    const struct estimate *choice = &plan->choice;
    const bool cut = plan->engine->plan_explain;
    if (cut) text_add(text, "  in parts, below");
    else if (choice->transform)
        text_add(text, "  blocks of %zu frames by transforms of %zu samples", choice->hop, choice->transform);
    else text_add(text, "  tiles of %zu outputs", choice->hop);
    text_add(text, "; %.3g flops %s; chosen by %s\n", choice->flops, plan->shape.stream ? "a frame" : "in all",
             plan->remembered ? "measurement" : "the host model");
    if (cut) plan->engine->plan_explain(plan, text);
}

void explain(const struct partita_plan *plan, struct text *text)
{
    describe_problem(plan, text);
    for (size_t i = 0; engines[i]; i++) describe_engine(plan, i, text);
    describe_choice(plan, text);
}
