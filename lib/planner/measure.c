// SPDX-License-Identifier: MIT
// PARTITA_MEASURE: times the likely choices by running them.
#include "planner.h"

#include <string.h>

#include "base/clock.h"
#include "base/sizes.h"
#include "core/filter.h"
#include "fft/fft.h"
#include "stream/stream.h"

enum { RUNS = 3 };

static const double LAYER_PRODUCTS = 1e9; // of one run, where there are several items

// Long signals are timed on a part: enough blocks for a steady rate. Of layers on fewer items of
// the batch.
static void shorten(struct shape *shape, enum partita_direction direction, size_t transform)
{
    struct axis *axis = &shape->axis[0];
    if (shape->up.branches) return; // short signals, as their branches are kept in memory
    if (shape->rank > 1 || direction != PARTITA_FORWARD) {
        const double products = (double)shape->out_channels * (double)shape->group_in *
                                (double)shape_taps(shape) * (double)shape_outputs(shape);
        const double items = LAYER_PRODUCTS / products;
        if ((double)shape->batch > items) shape->batch = items > 1 ? (size_t)items : 1;
        return;
    }
    const size_t enough =
        size_add(size_mul(8, transform > axis->span ? transform : axis->span), 1 << 16);
    // Engines for layers serve batches, but not one signal.
    shape->batch = size_min(shape->batch, 2);
    if (axis->out <= enough / axis->stride) return;
    axis->out = enough / axis->stride + 1;
    if (axis->size > enough) axis->size = enough;
}

// The memory of a trial, all of it small numbers. The channels of a stream all read one block and
// all write another: the work is the same. Backward weight writes where others read taps.
struct trial_memory {
    char *taps, *x, *y, *workspace;
    const void **inputs;
    void **outputs;
};

static struct trial_memory layout_trial(const struct partita_plan *trial, struct arena *arena)
{
    const struct shape *shape = &trial->shape;
    const size_t taps = shape->out_channels * shape->group_in * shape_taps(shape);
    size_t inputs = shape->block, outputs = size_mul(shape->block, shape_positions(shape));
    if (!shape->stream) {
        inputs = shape_samples(shape, false);
        outputs = shape_samples(shape, true);
    }
    struct trial_memory memory;
    memory.taps = arena_take(arena, taps * size_max(shape->tap_bytes, shape->scalar_bytes));
    memory.x = arena_take(arena, inputs * shape->sample_bytes);
    memory.y = arena_take(arena, outputs * shape->sample_bytes);
    memory.workspace = arena_take(arena, shape->stream ? 0 : plan_workspace(trial));
    memory.inputs = arena_take(arena, shape->in_channels * sizeof(void *));
    memory.outputs = arena_take(arena, shape->out_channels * sizeof(void *));
    return memory;
}

// One call of a bounded plan, or enough calls of a stream for a cycle of its work. Returns the
// number of outputs or frames.
static double run_trial(const struct partita_plan *trial, const struct partita_filter *filter,
                        struct partita_stream *stream, const struct trial_memory *memory)
{
    const struct shape *shape = &trial->shape;
    if (!stream) {
        struct operands operands = {.to = memory->y, .from = {memory->x}};
        if (trial->direction == PARTITA_BACKWARD_DATA)
            operands = (struct operands){.to = memory->x, .from = {memory->y}};
        if (trial->direction == PARTITA_BACKWARD_WEIGHT)
            operands = (struct operands){.to = memory->taps, .from = {memory->x, memory->y}};
        trial->engine->bounded.run(trial, filter, &operands, memory->workspace);
        return (double)shape->batch * (double)shape_outputs(shape);
    }
    const size_t frames = shape->block, calls = 4 * trial->choice.hop / frames + 4;
    for (size_t call = 0; call < calls; call++)
        stream_feed(stream, &(struct frames){.y = memory->outputs,
                                             .y_stride = 1,
                                             .x = memory->inputs,
                                             .x_stride = 1,
                                             .n = frames});
    return (double)(calls * frames);
}

// Seconds an output or frame of a built plan, or a negative number without memory.
static double time_plan(const struct partita_plan *trial)
{
    struct partita_filter *filter = NULL;
    struct partita_stream *stream = NULL;
    struct arena arena = {0};
    double seconds = -1;
    layout_trial(trial, &arena);
    if (!arena_allocate(&arena, &trial->allocator)) return -1;
    // Small numbers, not zeros: engines save themselves silence and empty partitions.
    memset(arena.base, 0x3c, arena.size);
    const struct trial_memory memory = layout_trial(trial, &arena);
    enum partita_status status = PARTITA_OK;
    if (trial->direction != PARTITA_BACKWARD_WEIGHT)
        status = filter_create(trial, memory.taps, NULL, &filter);
    if (status == PARTITA_OK && trial->shape.stream) status = stream_open(trial, filter, &stream);
    for (size_t c = 0; c < trial->shape.in_channels; c++) memory.inputs[c] = memory.x;
    for (size_t k = 0; k < trial->shape.out_channels; k++) memory.outputs[k] = memory.y;
    for (int i = 0; status == PARTITA_OK && i < RUNS; i++) {
        const double start = clock_seconds();
        const double outputs = run_trial(trial, filter, stream, &memory);
        const double each = (clock_seconds() - start) / outputs;
        if (i == 0 || each < seconds) seconds = each;
    }
    stream_close(stream);
    filter_destroy(filter);
    mem_release(&trial->allocator, arena.base);
    return seconds;
}

struct contest {
    const struct partita_plan *plan;
    const struct partita_options *options;
    const struct cost_model *model;
    double best;
    size_t *index;
    struct estimate *choice;
};

// Times engine i with one transform size, on one thread as estimates are; false without memory.
static bool try_transform(struct contest *contest, size_t i, size_t transform)
{
    struct partita_plan trial = *contest->plan;
    struct estimate estimate;
    estimate_engine(contest->plan, contest->options, contest->model, i, transform, &estimate);
    if (!estimate.applicable) return true;
    trial.engine = trial.engines[i];
    trial.state = NULL;
    trial.threads = 1;
    trial.choice = estimate;
    if (!trial.shape.stream) {
        shorten(&trial.shape, trial.direction, transform);
        estimate_engine(&trial, contest->options, contest->model, i, transform, &trial.choice);
        if (!trial.choice.applicable) return true; // too short for it: nothing to time
    }
    double seconds = -1;
    const struct request request =
        estimate_request(&trial, contest->options, contest->model, trial.engine, transform);
    if (plan_create_state(&trial, &request) == PARTITA_OK) seconds = time_plan(&trial);
    plan_destroy_state(&trial);
    const double share = estimate_cost(&estimate, contest->options->filter_uses) - estimate.seconds;
    if (seconds >= 0 && seconds + share < contest->best) {
        contest->best = seconds + share;
        *contest->index = i;
        *contest->choice = estimate;
    }
    return seconds >= 0;
}

// Whether there is anything but engine i, without transforms of several sizes, to time.
static bool has_rivals(const struct partita_plan *plan, const struct partita_options *options,
                       size_t i)
{
    if (plan->estimates[i].transform) return true;
    for (size_t k = 0; plan->engines[k] && !options->engine; k++)
        if (k != i && plan->estimates[k].applicable) return true;
    return false;
}

enum partita_status measure_best(const struct partita_plan *plan,
                                 const struct partita_options *options,
                                 const struct cost_model *model, size_t *index,
                                 struct estimate *choice)
{
    const double limit = 3 * estimate_cost(choice, options->filter_uses);
    struct contest contest = {plan, options, model, 1e30, index, choice};
    if (!has_rivals(plan, options, *index)) return PARTITA_OK;
    for (size_t i = 0; plan->engines[i]; i++) {
        const struct estimate *estimate = &plan->estimates[i];
        if (!estimate->applicable || estimate_cost(estimate, options->filter_uses) > limit)
            continue;
        if (estimate_variant(options->engine, plan->engines[i]) == NOT_NAMED) continue;
        const size_t n = estimate->transform;
        const size_t tries[] = {n, n ? fft_good_size(n / 2) : 0, n ? fft_good_size(n + 1) : 0,
                                2 * n};
        for (size_t k = 0; k < (n ? 4 : 1); k++)
            if (!try_transform(&contest, i, tries[k])) return PARTITA_ERR_NOMEM;
    }
    return PARTITA_OK;
}
