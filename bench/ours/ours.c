// SPDX-License-Identifier: MIT
// An engine forced by name, or the planner's choice. A stream keeps plan, filter and stream open; a
// signal is timed as the whole call that a user of SciPy makes, planning and transforming the taps
// included.
#include "ours/ours.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/layer.h"

enum {
    MAX_CHANNELS = 128,
    MORPHED = 4, // filters whose weights move
};

struct ours {
    struct partita_problem problem;
    struct partita_options options;
    struct partita_plan *plan;
    struct partita_filter *filter, *other; // other: to swap with, of the same taps
    struct partita_stream *stream;
    struct { // of the same taps, too; the first is `filter`
        const struct partita_filter *filter[MORPHED];
        struct partita_stream *stream[MORPHED];
        float *y[MORPHED]; // [out][block]
    } mixed;
    void *workspace; // of layers
};

// Shared by all plans of the process.
static struct partita_wisdom *wisdom;

void ours_set_reason(void *user, const char *text)
{
    struct contender *contender = user;
    snprintf(contender->reason, sizeof contender->reason, "%s", text);
}

void ours_calibrate(void)
{
    enum partita_status status = partita_wisdom_create(&wisdom);
    if (status == PARTITA_OK) status = partita_wisdom_calibrate(wisdom);
    if (status != PARTITA_OK)
        fprintf(stderr, "no calibration: %s\n", partita_status_string(status));
}

struct partita_wisdom *ours_wisdom(void)
{
    return wisdom;
}

static double ours_gate(const struct workload *w, const struct partita_plan *plan)
{
    bool direct = strcmp(partita_plan_engine(plan, PARTITA_FORWARD), "cpu/direct") == 0;
    return direct ? gate_direct(w) : gate_transform(w);
}

static void ours_close(void *state)
{
    struct ours *o = state;
    partita_stream_close(o->stream);
    partita_filter_destroy(o->filter);
    partita_filter_destroy(o->other);
    for (size_t k = 0; k < MORPHED; k++) {
        partita_stream_close(o->mixed.stream[k]);
        if (k > 0) partita_filter_destroy((struct partita_filter *)(uintptr_t)o->mixed.filter[k]);
        free(o->mixed.y[k]);
    }
    partita_plan_destroy(o->plan);
    free(o->workspace);
    free(o);
}

// Plans a problem of a workload; on failure the contender's reason says why.
static struct ours *ours_create(struct contender *contender, const struct workload *w,
                                const struct partita_problem *problem)
{
    struct ours *o = bench_allocate(sizeof *o);
    o->problem = *problem;
    o->options = (struct partita_options){.device = contender->device,
                                          .engine = contender->engine,
                                          .threads = contender->threads,
                                          .directions = PARTITA_FORWARD,
                                          .error_budget = contender->error_budget,
                                          .wisdom = wisdom,
                                          .log = {ours_set_reason, contender}};
    if (contender->engine && strstr(contender->engine, "divisions")) o->options.parts = w->imposed;
    if (contender->engine && !strncmp(contender->engine, "cuda/", 5)) o->options.device = "cuda:0";
    enum partita_status status = partita_plan_create(&o->problem, &o->options, &o->plan);
    if (status == PARTITA_OK && w->lags == 0)
        status = partita_filter_create(o->plan, w->h, &o->filter);
    if (status == PARTITA_OK) return o;
    if (contender->reason[0] == '\0') ours_set_reason(contender, partita_status_string(status));
    ours_close(o);
    return NULL;
}

static void ours_stream_call(void *state, const struct workload *w, size_t at)
{
    struct ours *o = state;
    size_t bytes = partita_type_size(w->signal);
    const void *x[MAX_CHANNELS];
    void *y[MAX_CHANNELS];
    for (size_t c = 0; c < w->in_channels; c++) x[c] = w->x + (c * w->n_frames + at) * bytes;
    for (size_t c = 0; c < w->out_channels; c++)
        y[c] = w->y + (c * w->n_out + at * w->up / w->stride) * bytes;
    partita_stream_process(o->stream, y, x, w->block);
}

static double ours_stream_pass(void *state, const struct workload *w, double *calls)
{
    struct ours *o = state;
    partita_stream_reset(o->stream);
    return bench_calls(w, calls, ours_stream_call, o);
}

// Whether a pass of direct sums would take seconds.
static bool ours_stream_is_slow(const struct ours *o, const struct workload *w)
{
    double products =
        (double)(w->n_frames * w->in_channels * w->out_channels / w->groups) * (double)w->n_taps;
    return strcmp(partita_plan_engine(o->plan, PARTITA_FORWARD), "cpu/direct") == 0 &&
           products > 5e10;
}

static bool ours_stream_open(struct contender *contender, const struct workload *w,
                             const struct partita_problem *problem)
{
    struct ours *o = ours_create(contender, w, problem);
    if (o == NULL) return false;
    if (ours_stream_is_slow(o, w)) {
        ours_set_reason(contender, "a pass of direct sums would take more than a second");
        ours_close(o);
        return false;
    }
    if (partita_stream_open(o->plan, o->filter, &o->stream) != PARTITA_OK) {
        ours_set_reason(contender, "stream does not open");
        ours_close(o);
        return false;
    }
    contender->state = o;
    contender->pass = ours_stream_pass;
    contender->close = ours_close;
    contender->gate = ours_gate(w, o->plan);
    contender->delay = partita_stream_latency(o->stream);
    return true;
}

bool ours_stream(struct contender *contender, const struct workload *w)
{
    const struct partita_problem problem = workload_problem(w);
    return ours_stream_open(contender, w, &problem);
}

bool ours_stream_whole(struct contender *contender, const struct workload *w)
{
    struct partita_problem problem = workload_problem(w);
    problem.whole_blocks = true;
    return ours_stream_open(contender, w, &problem);
}

// Closes a stream whose plan has no spectra of 16 bits, so that it gets no row of its own.
static bool ours_keep_i16(struct contender *contender)
{
    static char text[1 << 14];
    struct ours *o = contender->state;
    partita_plan_explain(o->plan, text, sizeof text);
    contender->gate += contender->error_budget;
    if (strstr(text, ", 16 bits")) return true;
    ours_close(o);
    return false;
}

bool ours_stream_i16(struct contender *contender, const struct workload *w)
{
    return ours_stream(contender, w) && ours_keep_i16(contender);
}

bool ours_stream_whole_i16(struct contender *contender, const struct workload *w)
{
    return ours_stream_whole(contender, w) && ours_keep_i16(contender);
}

bool ours_stream_parallel(struct contender *contender, const struct workload *w)
{
    return w->in_channels * w->out_channels > 1 && ours_stream(contender, w);
}

// Starts a fade while the history fills that is longer than the pass, so that both filters are
// active in all timed calls. Their taps are the same, so the answer is that of either; their
// spectra are in memory twice. Resetting the stream ends the swap of the previous pass, and its new
// filter stays.
static double ours_swap_pass(void *state, const struct workload *w, double *calls)
{
    struct ours *o = state;
    partita_stream_reset(o->stream);
    if (partita_stream_swap(o->stream, o->other, w->n_frames) != PARTITA_OK) return NAN;
    struct partita_filter *before = o->filter;
    o->filter = o->other;
    o->other = before;
    double seconds = bench_calls(w, calls, ours_stream_call, o);
    return partita_stream_swapping(o->stream) ? seconds : NAN;
}

bool ours_stream_swap(struct contender *contender, const struct workload *w)
{
    struct partita_load load;
    if (w->warm == 0 || !ours_stream_whole(contender, w)) return false;
    struct ours *o = contender->state;
    contender->pass = ours_swap_pass;
    if (partita_plan_load(o->plan, &load) == PARTITA_OK && load.swap_delay <= w->warm &&
        partita_filter_create(o->plan, w->h, &o->other) == PARTITA_OK)
        return true;
    ours_set_reason(contender, "no second filter, or its fade would begin while calls are timed");
    ours_close(o);
    return false;
}

// Weights that move all the time and whose sum is 1, so that the answer is that of each filter.
static void morphed_weights(size_t at, double *ret)
{
    enum { PERIOD = 1 << 16 };
    for (size_t k = 0; k < MORPHED; k++)
        ret[k] =
            (1 + cos(2 * M_PI * ((double)at / PERIOD + (double)k / MORPHED)) / 2) / (double)MORPHED;
}

static void ours_morph_call(void *state, const struct workload *w, size_t at)
{
    struct ours *o = state;
    double weights[MORPHED];
    morphed_weights(at, weights);
    partita_stream_morph(o->stream, weights, w->block);
    ours_stream_call(o, w, at);
}

static double ours_morph_pass(void *state, const struct workload *w, double *calls)
{
    partita_stream_reset(((struct ours *)state)->stream);
    return bench_calls(w, calls, ours_morph_call, state);
}

// The filters, and memory of a block for each; false: without memory.
static bool create_mixed(struct ours *o, const struct workload *w)
{
    for (size_t k = 0; k < MORPHED; k++) {
        struct partita_filter *filter = o->filter;
        if (k > 0 && partita_filter_create(o->plan, w->h, &filter) != PARTITA_OK) return false;
        o->mixed.filter[k] = filter;
        o->mixed.y[k] = bench_allocate(w->out_channels * w->block * sizeof(float));
    }
    return true;
}

bool ours_stream_morph(struct contender *contender, const struct workload *w)
{
    double weights[MORPHED];
    if (w->warm == 0 || w->in_channels > 1 || !ours_stream_whole(contender, w)) return false;
    struct ours *o = contender->state;
    contender->pass = ours_morph_pass;
    partita_stream_close(o->stream);
    o->stream = NULL;
    morphed_weights(0, weights);
    if (create_mixed(o, w) && partita_stream_open_morph(o->plan, o->mixed.filter, MORPHED, weights,
                                                        &o->stream) == PARTITA_OK)
        return true;
    ours_close(o);
    return false;
}

static void ours_mixed_call(void *state, const struct workload *w, size_t at)
{
    struct ours *o = state;
    const float *x[MAX_CHANNELS];
    float *y[MAX_CHANNELS];
    double weights[MORPHED];
    morphed_weights(at, weights);
    for (size_t c = 0; c < w->in_channels; c++)
        x[c] = (const float *)(const void *)w->x + c * w->n_frames + at;
    for (size_t k = 0; k < MORPHED; k++) {
        for (size_t c = 0; c < w->out_channels; c++) y[c] = o->mixed.y[k] + c * w->block;
        partita_stream_process(o->mixed.stream[k], y, x, w->block);
    }
    for (size_t c = 0; c < w->out_channels; c++)
        for (size_t i = 0; i < w->block; i++) {
            float sum = 0;
            for (size_t k = 0; k < MORPHED; k++)
                sum += (float)weights[k] * o->mixed.y[k][c * w->block + i];
            ((float *)(void *)w->y)[c * w->n_out + at + i] = sum;
        }
}

static double ours_mixed_pass(void *state, const struct workload *w, double *calls)
{
    struct ours *o = state;
    for (size_t k = 0; k < MORPHED; k++) partita_stream_reset(o->mixed.stream[k]);
    return bench_calls(w, calls, ours_mixed_call, o);
}

bool ours_stream_mixed(struct contender *contender, const struct workload *w)
{
    if (w->warm == 0 || w->in_channels > 1 || !ours_stream_whole(contender, w)) return false;
    struct ours *o = contender->state;
    contender->pass = ours_mixed_pass;
    bool opened = create_mixed(o, w);
    for (size_t k = 0; k < MORPHED && opened; k++)
        opened =
            partita_stream_open(o->plan, o->mixed.filter[k], &o->mixed.stream[k]) == PARTITA_OK;
    if (opened) return true;
    ours_close(o);
    return false;
}

static double ours_signal_pass(void *state, const struct workload *w, double *calls)
{
    struct ours *o = state;
    struct partita_plan *plan = NULL;
    (void)calls;
    double start = bench_now();
    enum partita_status status = partita_plan_create(&o->problem, &o->options, &plan);
    if (status == PARTITA_OK)
        status = partita_forward(plan, NULL, w->y, w->x, &(struct partita_call){.taps = w->h});
    partita_plan_destroy(plan);
    return status == PARTITA_OK ? bench_now() - start : NAN;
}

bool ours_signal(struct contender *contender, const struct workload *w)
{
    bool slow = w->n_taps > 4096 && contender->engine != NULL &&
                strcmp(contender->engine, "cpu/direct") == 0;
    const struct partita_problem problem = workload_problem(w);
    struct ours *o = slow ? NULL : ours_create(contender, w, &problem);
    if (o == NULL) return false;
    contender->state = o;
    contender->pass = ours_signal_pass;
    contender->close = ours_close;
    contender->gate = ours_gate(w, o->plan);
    contender->bytes = partita_plan_workspace(o->plan, PARTITA_FORWARD);
    return true;
}

// Direct sums have the gate of sums; engines that transform may use the default error budget too.
static double ours_layer_gate(const struct workload *w, const struct partita_plan *plan)
{
    const char *engine = partita_plan_engine(plan, w->layer->direction);
    const bool sums = strcmp(engine, "cpu/direct") == 0 || strcmp(engine, "cpu/gemm") == 0;
    return sums || type_is_f64(w->signal) ? gate_layer(w)
                                          : fmax(gate_layer(w), OURS_DEFAULT_BUDGET);
}

static double ours_layer_pass(void *state, const struct workload *w, double *calls)
{
    struct ours *o = state;
    enum partita_status status;
    (void)calls;
    double start = bench_now();
    if (w->layer->direction == PARTITA_FORWARD)
        status = partita_forward(o->plan, o->filter, w->y, w->x,
                                 &(struct partita_call){.workspace = o->workspace});
    else if (w->layer->direction == PARTITA_BACKWARD_DATA)
        status = partita_backward_data(o->plan, o->filter, w->y, w->x,
                                       &(struct partita_call){.workspace = o->workspace});
    else
        status = partita_backward_weight(o->plan, w->y, w->x, w->h,
                                         &(struct partita_call){.workspace = o->workspace});
    return status == PARTITA_OK ? bench_now() - start : NAN;
}

bool ours_layer(struct contender *contender, const struct workload *w)
{
    struct ours *o = bench_allocate(sizeof *o);
    const enum partita_direction direction = w->layer->direction;
    o->problem = layer_problem(w);
    o->options = (struct partita_options){.engine = contender->engine,
                                          .threads = contender->threads,
                                          .directions = direction,
                                          .wisdom = wisdom,
                                          .log = {ours_set_reason, contender}};
    enum partita_status status = partita_plan_create(&o->problem, &o->options, &o->plan);
    if (status == PARTITA_OK && direction != PARTITA_BACKWARD_WEIGHT)
        status = partita_filter_create(o->plan, w->h, &o->filter);
    if (status != PARTITA_OK) {
        if (contender->reason[0] == '\0') ours_set_reason(contender, partita_status_string(status));
        ours_close(o);
        return false;
    }
    o->workspace = bench_allocate(partita_plan_workspace(o->plan, direction));
    contender->state = o;
    contender->pass = ours_layer_pass;
    contender->close = ours_close;
    contender->gate = ours_layer_gate(w, o->plan);
    return true;
}

const char *ours_layer_choice(const struct workload *w, int threads)
{
    static char name[40];
    const struct partita_problem problem = layer_problem(w);
    const struct partita_options options = {
        .threads = threads, .directions = w->layer->direction, .wisdom = wisdom};
    struct partita_plan *plan;
    name[0] = '\0';
    if (partita_plan_create(&problem, &options, &plan) != PARTITA_OK) return name;
    snprintf(name, sizeof name, "%s", partita_plan_engine(plan, w->layer->direction));
    partita_plan_destroy(plan);
    return name;
}
