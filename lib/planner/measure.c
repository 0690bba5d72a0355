// SPDX-License-Identifier: MIT
#include "measure.h"

#include <string.h>

#include "base/clock.h"
#include "core/filter.h"
#include "estimate.h"
#include "fft/fft.h"
#include "stream/stream.h"

enum { RUNS = 3 };

static const double LAYER_PRODUCTS = 1e9; // of one run, where there are several items

// Long signals are timed on a part: enough blocks for a steady rate. Of layers on fewer items of
// the batch.
static void shorten(struct shape *shape, enum partita_direction direction, size_t transform)
{
    struct axis *axis = &shape->axis[0];
    if (shape->rank > 1 || direction != PARTITA_FORWARD) {
        const double products = (double)shape->out_channels * (double)shape->group_in *
                                (double)shape_taps(shape) * (double)shape_outputs(shape);
        const double items = LAYER_PRODUCTS / products;
        if ((double)shape->batch > items) shape->batch = items > 1 ? (size_t)items : 1;
        return;
    }
    const size_t enough =
        size_add(size_mul(8, transform > axis->span ? transform : axis->span), 1 << 16);
    shape->batch = 1;
    if (axis->out <= enough / axis->stride) return;
    axis->out = enough / axis->stride + 1;
    if (axis->size > enough) axis->size = enough;
}

// Arrays of a bounded trial, behind each other in one piece of memory; all but the workspace hold
// small numbers.
struct arrays {
    size_t x, y, w; // bytes
};

static struct arrays arrays_of(const struct shape *shape)
{
    return (struct arrays){
        mem_round(shape->batch * shape->in_channels * shape_inputs(shape) * shape->sample_bytes),
        mem_round(shape->batch * shape->out_channels * shape_outputs(shape) * shape->sample_bytes),
        mem_round(shape->out_channels * shape->group_in * shape_taps(shape) * shape->tap_bytes),
    };
}

static void run_bounded(const struct partita_plan *trial, const struct partita_filter *filter,
                        char *memory)
{
    const struct arrays bytes = arrays_of(&trial->shape);
    char *x = memory, *y = x + bytes.x, *w = y + bytes.y, *workspace = w + bytes.w;
    struct operands operands = {.to = y, .from = {x}};
    if (trial->direction == PARTITA_BACKWARD_DATA)
        operands = (struct operands){.to = x, .from = {y}};
    if (trial->direction == PARTITA_BACKWARD_WEIGHT)
        operands = (struct operands){.to = w, .from = {x, y}};
    trial->engine->run(trial, filter, &operands, workspace);
}

// Seconds of one output of one item.
static double time_bounded(const struct partita_plan *trial, const struct partita_filter *filter,
                           char *memory)
{
    double best = 1e30;
    for (int i = 0; i < RUNS; i++) {
        const double start = clock_seconds();
        run_bounded(trial, filter, memory);
        const double time = clock_seconds() - start;
        if (time < best) best = time;
    }
    return best / ((double)trial->shape.batch * (double)shape_outputs(&trial->shape));
}

static size_t bounded_bytes(const struct partita_plan *trial)
{
    const struct arrays bytes = arrays_of(&trial->shape);
    return size_add(size_add(bytes.x, bytes.y), size_add(bytes.w, plan_workspace(trial)));
}

// All channels read one buffer and write another: the work is the same.
static double time_stream(struct partita_stream *stream, const void *x, void *y,
                          const void **inputs, void **outputs)
{
    const struct shape *shape = &stream->plan->shape;
    for (size_t c = 0; c < shape->in_channels; c++) inputs[c] = x;
    for (size_t k = 0; k < shape->out_channels; k++) outputs[k] = y;
    const size_t frames = shape->block, calls = 4 * stream->plan->choice.hop / frames + 4;
    const struct frames whole = {
        .y = outputs, .y_stride = 1, .x = inputs, .x_stride = 1, .n = frames};
    double best = 1e30;
    for (int i = 0; i < RUNS; i++) {
        const double start = clock_seconds();
        for (size_t call = 0; call < calls; call++) stream_feed(stream, whole);
        const double time = clock_seconds() - start;
        if (time < best) best = time;
    }
    return best / (double)(calls * frames);
}

// Seconds a frame of a built plan, or a negative number without memory.
static double time_plan(const struct partita_plan *trial)
{
    const struct shape *shape = &trial->shape;
    const struct partita_allocator *allocator = &trial->allocator;
    struct partita_filter *filter = NULL;
    struct partita_stream *stream = NULL;
    double seconds = -1;
    struct arena arena = {0};
    const size_t taps_bytes = arrays_of(shape).w;
    void *taps = NULL, *x = NULL, *y = NULL, *inputs = NULL, *outputs = NULL, *rest = NULL;
    for (int pass = 0; pass < 2; pass++) {
        taps = arena_take(&arena, taps_bytes);
        if (shape->stream) {
            x = arena_take(&arena, shape->block * shape->sample_bytes);
            y = arena_take(&arena, shape->block * shape->sample_bytes);
            inputs = arena_take(&arena, shape->in_channels * sizeof(void *));
            outputs = arena_take(&arena, shape->out_channels * sizeof(void *));
        } else {
            rest = arena_take(&arena, bounded_bytes(trial));
        }
        if (pass == 1) break;
        arena.base = mem_allocate(allocator, arena.used);
        if (!arena.base) return -1;
        // Small numbers, not zeros: engines save themselves silence and empty partitions.
        memset(arena.base, 0x3c, arena.used);
        arena.used = 0;
    }
    if (trial->direction != PARTITA_BACKWARD_WEIGHT &&
        filter_create(trial, taps, &filter) != PARTITA_OK)
        goto done;
    if (!shape->stream) seconds = time_bounded(trial, filter, rest);
    else if (stream_open(trial, filter, &stream) == PARTITA_OK)
        seconds = time_stream(stream, x, y, inputs, outputs);
done:
    stream_close(stream);
    filter_destroy(filter);
    mem_release(allocator, arena.base);
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
    if (trial.engine->plan_create(&trial, &request) == PARTITA_OK) seconds = time_plan(&trial);
    plan_destroy_state(&trial);
    if (seconds >= 0 && seconds < contest->best) {
        contest->best = seconds;
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
    const double most = 3 * choice->seconds;
    struct contest contest = {plan, options, model, 1e30, index, choice};
    if (!has_rivals(plan, options, *index)) return PARTITA_OK;
    for (size_t i = 0; plan->engines[i]; i++) {
        const struct estimate *estimate = &plan->estimates[i];
        if (!estimate->applicable || estimate->seconds > most) continue;
        if (estimate_variant(options->engine, plan->engines[i]) == NOT_NAMED) continue;
        const size_t n = estimate->transform;
        const size_t tries[] = {n, n ? fft_good_size(n / 2) : 0, n ? fft_good_size(n + 1) : 0,
                                2 * n};
        for (size_t k = 0; k < (n ? 4 : 1); k++)
            if (!try_transform(&contest, i, tries[k])) return PARTITA_ERR_NOMEM;
    }
    return PARTITA_OK;
}
