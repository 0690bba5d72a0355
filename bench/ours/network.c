// SPDX-License-Identifier: MIT
// The layers of a network: one plan and filter each, one workspace for all. A training step updates
// every filter, as its weights would have changed. With channels last, every part has arrays of its
// own in that layout. Where steps share transforms, every layer saves its own.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ours/ours.h"
#include "workloads/network.h"

enum { MAX_DEPTH = 16 }; // equal layers that save transforms

struct ours_row {
    struct partita_plan *plan;
    struct partita_saved *saved[MAX_DEPTH]; // NULL: none
    struct partita_filter *filter;
    const struct network_part *forward, *weight, *data; // NULL: not computed
};

struct ours_network {
    struct network_part *parts; // those of the workload, with other arrays if channels come last
    struct ours_row *rows;
    size_t n, n_parts;
    bool training, last, shared;
    void *workspace;
};

// One array of a part: x or y of the layer, or their gradients.
struct planes {
    size_t items, channels, positions;
};

static struct planes layer_planes(const struct workload *w, bool outputs)
{
    const struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    return (struct planes){s.batch, outputs ? s.out : s.in, outputs ? s.outputs : s.plane};
}

// Copies f32 samples from [item][row][column] to [item][column][row].
static void copy_transposed(float *to, const float *from, size_t items, size_t rows, size_t columns)
{
    for (size_t n = 0; n < items; n++, to += rows * columns, from += rows * columns)
        for (size_t i = 0; i < rows; i++)
            for (size_t k = 0; k < columns; k++) to[k * rows + i] = from[i * columns + k];
}

static float *with_channels_last(const void *from, const struct planes *planes)
{
    float *to = bench_allocate(planes->items * planes->channels * planes->positions * sizeof *to);
    copy_transposed(to, from, planes->items, planes->channels, planes->positions);
    return to;
}

// Gives a part arrays of its own. Taps and their gradient have one layout.
static void part_own_arrays(struct network_part *part)
{
    struct workload *w = &part->workload;
    const enum partita_direction direction = part->layer.direction;
    const struct planes x = layer_planes(w, false), y = layer_planes(w, true);
    w->layer = &part->layer;
    w->x = (void *)with_channels_last(w->x, direction == PARTITA_BACKWARD_DATA ? &y : &x);
    if (direction == PARTITA_BACKWARD_WEIGHT) w->h = (void *)with_channels_last(w->h, &y);
    else w->y = bench_allocate(w->y_bytes);
}

static void part_free_arrays(const struct network_part *part)
{
    const bool weight = part->layer.direction == PARTITA_BACKWARD_WEIGHT;
    free(part->workload.x);
    free(weight ? part->workload.h : part->workload.y);
}

static bool ours_network_fetch(void *state, struct workload *w)
{
    const struct ours_network *o = state;
    for (size_t i = 0; i < o->n_parts; i++) {
        const struct workload *part = &o->parts[i].workload;
        const enum partita_direction direction = o->parts[i].layer.direction;
        const struct planes planes = layer_planes(part, direction == PARTITA_FORWARD);
        if (direction != PARTITA_BACKWARD_WEIGHT)
            copy_transposed((float *)w->parts[i].workload.y, (const float *)part->y, planes.items,
                            planes.positions, planes.channels);
    }
    return true;
}

static void ours_network_close(void *state)
{
    struct ours_network *o = state;
    for (size_t i = 0; i < o->n; i++) {
        for (int k = 0; k < MAX_DEPTH; k++) partita_saved_destroy(o->rows[i].saved[k]);
        partita_filter_destroy(o->rows[i].filter);
        partita_plan_destroy(o->rows[i].plan);
    }
    for (size_t i = 0; i < o->n_parts && o->last; i++) part_free_arrays(&o->parts[i]);
    free(o->workspace);
    free(o->parts);
    free(o->rows);
    free(o);
}

// Assigns the parts of a network to the rows.
static void ours_network_rows(struct ours_network *o)
{
    for (size_t i = 0; i < o->n_parts; i++) {
        const struct network_part *part = &o->parts[i];
        if (part->layer.direction == PARTITA_FORWARD) o->rows[o->n++].forward = part;
        else if (part->layer.direction == PARTITA_BACKWARD_WEIGHT) o->rows[o->n - 1].weight = part;
        else o->rows[o->n - 1].data = part;
    }
}

static enum partita_status ours_network_plan(struct contender *contender,
                                             const struct ours_network *o, struct ours_row *row,
                                             size_t *workspace)
{
    const struct network_part *parts[] = {row->forward, row->weight, row->data};
    struct partita_problem problem = layer_problem(&row->forward->workload);
    problem.channels_last = o->last;
    struct partita_options options = {.engine = contender->engine,
                                      .threads = contender->threads,
                                      .filter_uses = o->training ? 1 : 0,
                                      .wisdom = ours_wisdom(),
                                      .saved_limit = o->shared ? (size_t)1 << 30 : 0,
                                      .log = {ours_set_reason, contender}};
    for (size_t i = 0; i < N_DIRECTIONS; i++)
        if (parts[i] != NULL) options.directions |= parts[i]->layer.direction;
    enum partita_status status = partita_plan_create(&problem, &options, &row->plan);
    if (status == PARTITA_OK)
        status = partita_filter_create(row->plan, row->forward->workload.h, &row->filter);
    for (size_t i = 0; i < N_DIRECTIONS && status == PARTITA_OK; i++) {
        if (parts[i] == NULL) continue;
        const size_t bytes = partita_plan_workspace(row->plan, parts[i]->layer.direction);
        if (bytes > *workspace) *workspace = bytes;
    }
    const bool saves = o->shared && status == PARTITA_OK && partita_saved_bytes(row->plan);
    for (unsigned k = 0; saves && k < row->forward->depth && status == PARTITA_OK; k++)
        status = k < MAX_DEPTH ? partita_saved_create(row->plan, &row->saved[k]) : PARTITA_ERR_ARG;
    return status;
}

static enum partita_status ours_row_forward(const struct ours_row *row, bool training,
                                            const struct partita_call *call)
{
    const struct workload *w = &row->forward->workload;
    enum partita_status status = PARTITA_OK;
    struct partita_call saving = *call;
    for (unsigned k = 0; k < row->forward->depth && status == PARTITA_OK; k++) {
        if (row->saved[0]) saving.saved = row->saved[k];
        if (training) status = partita_filter_update(row->filter, w->h, NULL, call);
        if (status == PARTITA_OK)
            status = partita_forward(row->plan, row->filter, w->y, w->x, &saving);
    }
    return status;
}

static enum partita_status ours_row_backward(const struct ours_row *row,
                                             const struct partita_call *call)
{
    const struct workload *weight = &row->weight->workload;
    enum partita_status status = PARTITA_OK;
    struct partita_call saving = *call;
    for (unsigned k = 0; k < row->forward->depth && status == PARTITA_OK; k++) {
        if (row->saved[0]) saving.saved = row->saved[k];
        status = partita_backward_weight(row->plan, weight->y, weight->x, weight->h, &saving);
        if (status == PARTITA_OK && row->data != NULL)
            status = partita_backward_data(row->plan, row->filter, row->data->workload.y,
                                           row->data->workload.x, &saving);
    }
    return status;
}

static double ours_network_pass(void *state, const struct workload *w, double *calls)
{
    const struct ours_network *o = state;
    const struct partita_call call = {.workspace = o->workspace};
    enum partita_status status = PARTITA_OK;
    (void)w;
    (void)calls;
    const double start = bench_now();
    for (size_t i = 0; i < o->n && status == PARTITA_OK; i++)
        status = ours_row_forward(&o->rows[i], o->training, &call);
    for (size_t i = o->n; o->training && i-- > 0 && status == PARTITA_OK;)
        status = ours_row_backward(&o->rows[i], &call);
    return status == PARTITA_OK ? bench_now() - start : NAN;
}

static bool ours_network_open(struct contender *contender, const struct workload *w, bool last,
                              bool shared)
{
    struct ours_network *o = bench_allocate(sizeof *o);
    enum partita_status status = PARTITA_OK;
    size_t workspace = 0;
    o->n_parts = w->n_parts;
    o->parts = bench_allocate(w->n_parts * sizeof *o->parts);
    o->rows = bench_allocate(w->n_parts * sizeof *o->rows);
    o->training = w->network->training;
    o->last = last;
    o->shared = shared;
    memcpy(o->parts, w->parts, w->n_parts * sizeof *o->parts);
    for (size_t i = 0; i < o->n_parts && last; i++) part_own_arrays(&o->parts[i]);
    ours_network_rows(o);
    for (size_t i = 0; i < o->n && status == PARTITA_OK; i++)
        status = ours_network_plan(contender, o, &o->rows[i], &workspace);
    if (status != PARTITA_OK) {
        if (contender->reason[0] == '\0') ours_set_reason(contender, partita_status_string(status));
        ours_network_close(o);
        return false;
    }
    o->workspace = bench_allocate(workspace);
    contender->state = o;
    contender->pass = ours_network_pass;
    if (last) contender->fetch = ours_network_fetch;
    contender->close = ours_network_close;
    contender->gate = fmax(gate_network(w), OURS_DEFAULT_BUDGET);
    return true;
}

bool ours_network(struct contender *contender, const struct workload *w)
{
    return ours_network_open(contender, w, false, false);
}

bool ours_network_last(struct contender *contender, const struct workload *w)
{
    return ours_network_open(contender, w, true, false);
}

bool ours_network_shared(struct contender *contender, const struct workload *w)
{
    if (!w->network->training) {
        ours_set_reason(contender, "no training step");
        return false;
    }
    return ours_network_open(contender, w, false, true);
}
