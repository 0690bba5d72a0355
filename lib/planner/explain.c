// SPDX-License-Identifier: MIT
// The planner's decision in words: one line for the problem, one for each engine, details of the
// chosen one.
#include "planner.h"

#include "kernels/kernels.h"
#include <stdio.h>

// An axis as the caller described it.
static const struct axis *described_axis(const struct shape *shape, int i)
{
    if (shape->ghosts.boundary) return &shape->ghosts.axis[i];
    return i == 0 ? shape_own_axis(shape) : &shape->axis[i];
}

// "3x3": one number of each axis.
static void describe_axes(const struct shape *shape, size_t field, struct text *text)
{
    for (int i = 0; i < shape->rank; i++)
        text_add(text, "%s%zu", i ? "x" : "",
                 *(const size_t *)((const char *)described_axis(shape, i) + field));
}

// Says it if any axis differs from 1.
static void describe_unusual(const struct shape *shape, const char *name, size_t field,
                             struct text *text)
{
    bool unusual = false;
    for (int i = 0; i < shape->rank; i++)
        unusual = unusual || *(const size_t *)((const char *)described_axis(shape, i) + field) != 1;
    if (!unusual) return;
    text_add(text, ", %s ", name);
    describe_axes(shape, field, text);
}

static void describe_problem(const struct partita_plan *plan, struct text *text)
{
    const struct shape *shape = &plan->shape;
    const char *bounded = shape->rank > 1 ? "layer" : "signal";
    const struct upsampling *up = &shape->up;
    const bool convolves = up->branches ? up->flip : shape->flip;
    text_add(text, "%s %s %s ", shape->stream ? "stream" : bounded,
             partita_type_name(shape->signal), convolves ? "convolve" : "correlate");
    describe_axes(shape, offsetof(struct axis, kernel), text);
    text_add(text, " %s taps", partita_type_name(shape->taps));
    if (shape->batch > 1) text_add(text, ", batch %zu", shape->batch);
    text_add(text, ", %zu -> %zu channels", shape->in_channels, shape_own_outputs(shape));
    if (shape->groups > 1) text_add(text, " in %zu groups", shape->groups);
    if (up->branches) text_add(text, ", up %zu", up->branches * up->tap_step);
    describe_unusual(shape, "stride", offsetof(struct axis, stride), text);
    describe_unusual(shape, "dilation", offsetof(struct axis, dilation), text);
    if (shape->stream && shape->latency == PARTITA_UNBOUNDED) text_add(text, ", any latency");
    else if (shape->stream) text_add(text, ", latency at most %zu", shape->latency);
    if (!shape->stream) {
        text_add(text, ", ");
        describe_axes(shape, offsetof(struct axis, size), text);
        text_add(text, " -> ");
        describe_axes(shape, offsetof(struct axis, out), text);
        text_add(text, " samples");
    }
    if (shape->whole_blocks) text_add(text, ", calls of whole blocks of %zu", shape->block);
    if (shape->relu) text_add(text, ", relu");
    if (shape->separable) text_add(text, ", separable");
    if (shape->channels_last) text_add(text, ", channels last");
    static const char *const boundaries[] = {"zero",    "constant",  "edge",
                                             "reflect", "symmetric", "wrap"};
    if (shape->ghosts.boundary) text_add(text, ", boundary %s", boundaries[shape->ghosts.boundary]);
    const bool parallel = plan->engine && plan->engine->stream.pause;
    if (!plan->device->host) {
        text_add(text, "; %s\n", plan->device->name);
        return;
    }
    const int stream_threads = parallel ? plan->stream_threads : 1;
    text_add(text, "; cpu x%d %s\n", shape->stream ? stream_threads : plan->threads,
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
    const bool chosen = plan->engines[i] == plan->engine;
    const struct estimate *estimate = chosen ? &plan->choice : &plan->estimates[i];
    const struct engine *engine = plan->engines[i];
    const bool variant =
        engine->variants && estimate->applicable && estimate->variant != ANY_VARIANT;
    char name[40];
    snprintf(name, sizeof name, "%s%s%s", engine->name, variant ? ":" : "",
             variant ? engine->variants[estimate->variant] : "");
    text_add(text, "  %-*s ", plan->device->host ? 17 : 21, name);
    if (!estimate->applicable) {
        text_add(text, "no: %s\n", estimate->reason);
        return;
    }
    if (estimate->summary[0]) text_add(text, "%-12s ", estimate->summary);
    else if (estimate->transform) text_add(text, "fft %-8zu ", estimate->transform);
    else text_add(text, "%-12s ", "");
    describe_time(estimate->seconds / (plan->device->host ? plan->threads : 1), plan->shape.stream,
                  text);
    text_add(text, "  ");
    describe_bytes(estimate->bytes, text);
    text_add(text, "  error %.0e", estimate->error);
    if (plan->shape.stream) text_add(text, "  latency %zu", estimate->latency);
    text_add(text, "%s\n", chosen ? "  <- chosen" : "");
}

// Who chose: an engine that was named is no choice of a model.
static void describe_chooser(const struct partita_plan *plan, struct text *text)
{
    const char *model = plan->device->host ? "the cost model" : "the device's model";
    const char *chooser = plan->remembered ? "measurement" : model;
    if (plan->parts_asked) text_add(text, "; as asked\n");
    else if (plan->engine_asked)
        text_add(text, "; the engine as asked, its sizes by %s\n", chooser);
    else text_add(text, "; chosen by %s\n", chooser);
}

// The arrays of one part: of a batch, of taps, of rows.
static void describe_micro_batch(const struct partita_plan *plan, struct text *text)
{
    const struct axis *whole = plan->shape.axis, *part = plan->micro_batch->shape.axis;
    const bool data = plan->direction == PARTITA_BACKWARD_DATA;
    text_add(text, "  arrays in the host's memory: ");
    if (part->size == whole->size && part->out == whole->out)
        text_add(text, "%zu items of the batch at a time\n", plan->micro_batch->shape.batch);
    else
        text_add(text, "%zu samples of each line of %s at a time\n", data ? part->size : part->out,
                 data ? "x" : "y");
}

static void describe_unbounded(const struct partita_plan *plan, struct text *text)
{
    const struct unbounded *any = &plan->unbounded;
    if (!any->engine) return;
    text_add(text, "  error_reach %zu: takes %.3g times as long as %s", plan->error_reach,
             any->times, any->engine->name);
    if (any->reach == SIZE_MAX) text_add(text, ", whose rounding errors reach any tile");
    else if (any->reach) text_add(text, ", whose rounding errors reach %zu positions", any->reach);
    text_add(text, "\n");
}

static void describe_variants(const struct engine *engine, struct text *text)
{
    text_add(text, "  variants of %s:", engine->name);
    for (int i = 0; engine->variants[i]; i++) text_add(text, " %s", engine->variants[i]);
    text_add(text, "\n");
}

static void describe_choice(const struct partita_plan *plan, struct text *text)
{
    const struct estimate *choice = &plan->choice;
    const bool detailed = plan->engine->explain;
    if (detailed) text_add(text, "  partitions as below");
    else if (choice->summary[0])
        text_add(text, "  %s in blocks of %zu tiles", choice->summary, choice->hop);
    else if (choice->transform)
        text_add(text, "  blocks of %zu frames by transforms of %zu samples", choice->hop,
                 choice->transform);
    else text_add(text, "  tiles of %zu outputs", choice->hop);
    text_add(text, "; %.4g flops %s", choice->flops, plan->shape.stream ? "a frame" : "in all");
    describe_chooser(plan, text);
    if (choice->reach == SIZE_MAX)
        text_add(text, "  rounding errors of a loud tile reach others, also of other items\n");
    else if (choice->transform && !plan->shape.stream && plan->shape.rank == 1)
        text_add(text,
                 "  rounding errors of a loud passage reach at most %zu samples beyond the results "
                 "that depend on it\n",
                 estimate_reach(choice));
    describe_unbounded(plan, text);
    if (detailed) plan->engine->explain(plan, text);
    if (plan->engine_asked && plan->engine->variants) describe_variants(plan->engine, text);
    if (plan->micro_batch) describe_micro_batch(plan, text);
}

static void describe_direction(const struct partita_plan *plan, const char *name, struct text *text)
{
    if (!plan) return;
    if (name) text_add(text, "%s\n", name);
    for (size_t i = 0; plan->engines[i]; i++) describe_engine(plan, i, text);
    describe_choice(plan, text);
}

void explain_plan(const struct partita_plan *plan, struct text *text)
{
    const bool layer = plan->shape.rank > 1; // gradients of signals are not described
    describe_problem(plan, text);
    describe_direction(plan->engine ? plan : NULL, layer ? "forward" : NULL, text);
    describe_direction(layer || !plan->engine ? plan->backward_data : NULL, "backward data", text);
    describe_direction(layer || !plan->engine ? plan->backward_weight : NULL, "backward weight",
                       text);
    if (!plan->device->host) text_add(text, "rates: %s\n", plan->device->rates);
}
