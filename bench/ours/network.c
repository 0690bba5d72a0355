// SPDX-License-Identifier: MIT
// The layers of a network: one plan and filter each, one workspace for all. A training step updates
// every filter, as its weights would have changed.
#include <math.h>
#include <stdlib.h>

#include "ours/ours.h"
#include "workloads/network.h"

struct ours_row {
    struct partita_plan *plan;
    struct partita_filter *filter;
    const struct network_part *forward, *weight, *data; // NULL: not computed
};

struct ours_network {
    struct ours_row *rows;
    size_t n;
    bool training;
    void *workspace;
};

static void ours_network_close(void *state)
{
    struct ours_network *o = state;
    for (size_t i = 0; i < o->n; i++) {
        partita_filter_destroy(o->rows[i].filter);
        partita_plan_destroy(o->rows[i].plan);
    }
    free(o->workspace);
    free(o->rows);
    free(o);
}

// Assigns the parts of a network to the rows.
static void ours_network_rows(struct ours_network *o, const struct workload *w)
{
    for (size_t i = 0; i < w->n_parts; i++) {
        const struct network_part *part = &w->parts[i];
        if (part->layer.direction == PARTITA_FORWARD) o->rows[o->n++].forward = part;
        else if (part->layer.direction == PARTITA_BACKWARD_WEIGHT) o->rows[o->n - 1].weight = part;
        else o->rows[o->n - 1].data = part;
    }
}

static enum partita_status ours_network_plan(struct contender *contender, const struct workload *w,
                                             struct ours_row *row, size_t *workspace)
{
    const struct network_part *parts[] = {row->forward, row->weight, row->data};
    const struct partita_problem problem = layer_problem(&row->forward->workload);
    struct partita_options options = {.engine = contender->engine,
                                      .threads = contender->threads,
                                      .filter_uses = w->network->training ? 1 : 0,
                                      .wisdom = ours_wisdom(),
                                      .log = {ours_set_reason, contender}};
    for (size_t i = 0; i < N_DIRECTIONS; i++)
        if (parts[i] != NULL) options.directions |= parts[i]->layer.direction;
    enum partita_status status = partita_plan_create(&problem, &options, &row->plan);
    if (status == PARTITA_OK) status = partita_filter_create(row->plan, w->h, &row->filter);
    for (size_t i = 0; i < N_DIRECTIONS && status == PARTITA_OK; i++) {
        if (parts[i] == NULL) continue;
        const size_t bytes = partita_plan_workspace(row->plan, parts[i]->layer.direction);
        if (bytes > *workspace) *workspace = bytes;
    }
    return status;
}

static enum partita_status ours_row_forward(const struct ours_row *row, bool training,
                                            const struct partita_call *call)
{
    const struct workload *w = &row->forward->workload;
    enum partita_status status = PARTITA_OK;
    for (unsigned k = 0; k < row->forward->depth && status == PARTITA_OK; k++) {
        if (training) status = partita_filter_update(row->filter, w->h, NULL, call);
        if (status == PARTITA_OK)
            status = partita_forward(row->plan, row->filter, w->y, w->x, call);
    }
    return status;
}

static enum partita_status ours_row_backward(const struct ours_row *row,
                                             const struct partita_call *call)
{
    const struct workload *weight = &row->weight->workload;
    enum partita_status status = PARTITA_OK;
    for (unsigned k = 0; k < row->forward->depth && status == PARTITA_OK; k++) {
        status = partita_backward_weight(row->plan, weight->y, weight->x, weight->h, call);
        if (status == PARTITA_OK && row->data != NULL)
            status = partita_backward_data(row->plan, row->filter, row->data->workload.y,
                                           row->data->workload.x, call);
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

bool ours_network(struct contender *contender, const struct workload *w)
{
    struct ours_network *o = bench_allocate(sizeof *o);
    enum partita_status status = PARTITA_OK;
    size_t workspace = 0;
    o->rows = bench_allocate(w->n_parts * sizeof *o->rows);
    o->training = w->network->training;
    ours_network_rows(o, w);
    for (size_t i = 0; i < o->n && status == PARTITA_OK; i++)
        status = ours_network_plan(contender, w, &o->rows[i], &workspace);
    if (status != PARTITA_OK) {
        if (contender->reason[0] == '\0') ours_set_reason(contender, partita_status_string(status));
        ours_network_close(o);
        return false;
    }
    o->workspace = bench_allocate(workspace);
    contender->state = o;
    contender->pass = ours_network_pass;
    contender->close = ours_network_close;
    contender->gate = fmax(gate_network(w), OURS_DEFAULT_BUDGET);
    return true;
}
