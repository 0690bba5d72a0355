// SPDX-License-Identifier: MIT
// Making filters: arguments are checked, cells spread out where an engine wants dense taps.
#include <string.h>

#include "core/filter.h"
#include "cpu/conv/half.h"

static enum partita_status finish_filter(struct partita_filter *filter, enum partita_status status,
                                         struct partita_filter **ret_filter)
{
    if (status == PARTITA_OK) *ret_filter = filter;
    else partita_filter_destroy(filter);
    return status;
}

// Dense taps for every planned direction that reads them.
static enum partita_status pack_directions(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const enum partita_status status = filter_pack(filter, taps);
    if (status != PARTITA_OK || !plan->backward_data) return status;
    filter->backward_data = filter_allocate(plan->backward_data);
    return filter->backward_data ? filter_pack(filter->backward_data, taps) : PARTITA_ERR_NOMEM;
}

static enum partita_status copy_bias(struct partita_filter *filter, const void *bias)
{
    const struct engine *engine = filter->plan->engine;
    const struct shape *shape = &filter->plan->shape;
    const size_t bytes = shape->out_channels * shape->scalar_bytes;
    if (engine && engine->filter_bias) return engine->filter_bias(filter, bias);
    filter->bias = mem_allocate(&filter->plan->allocator, bytes);
    if (!filter->bias) return PARTITA_ERR_NOMEM;
    if (shape->half) plan_widen(filter->plan)(filter->bias, bias, shape->out_channels);
    else memcpy(filter->bias, bias, bytes);
    return PARTITA_OK;
}

enum partita_status partita_filter_create_biased(const struct partita_plan *plan, const void *taps,
                                                 const void *bias,
                                                 struct partita_filter **ret_filter)
{
    if (!plan || !taps || !ret_filter) return PARTITA_ERR_ARG;
    if (bias && (plan->shape.stream || plan->shape.complex_signal)) {
        log_line(&plan->log, "a bias: of bounded real problems only");
        return PARTITA_ERR_UNSUPPORTED;
    }
    struct partita_filter *filter = filter_allocate(plan);
    if (!filter) return PARTITA_ERR_NOMEM;
    enum partita_status status = pack_directions(filter, taps);
    if (status == PARTITA_OK && bias && plan->engine) status = copy_bias(filter, bias);
    return finish_filter(filter, status, ret_filter);
}

enum partita_status partita_filter_create(const struct partita_plan *plan, const void *taps,
                                          struct partita_filter **ret_filter)
{
    return partita_filter_create_biased(plan, taps, NULL, ret_filter);
}

static bool cell_is_valid(const struct partita_plan *plan, const struct partita_cell *cells,
                          size_t i)
{
    const struct shape *shape = &plan->shape;
    const struct partita_cell *cell = &cells[i];
    if (cell->out >= shape->out_channels || cell->in >= shape->in_channels)
        log_line(&plan->log, "cell %zu: %zu -> %zu, but there are %zu -> %zu channels", i, cell->in,
                 cell->out, shape->in_channels, shape->out_channels);
    else if (cell->out / shape->group_out != cell->in / shape->group_in)
        log_line(&plan->log, "cell %zu: input %zu and output %zu are of different groups", i,
                 cell->in, cell->out);
    else if (cell->length > shape->axis[0].kernel ||
             cell->delay > shape->axis[0].kernel - cell->length)
        log_line(&plan->log, "cell %zu: %zu taps after %zu zeros are more than the kernel's %zu", i,
                 cell->length, cell->delay, shape->axis[0].kernel);
    else if (cell->length && !cell->taps) log_line(&plan->log, "cell %zu: no taps", i);
    else return true;
    return false;
}

static bool cells_are_valid(const struct partita_plan *plan, const struct partita_cell *cells,
                            size_t n_cells)
{
    if (plan->shape.rank > 1) {
        log_line(&plan->log, "cells: the problem has %d axes, not one", plan->shape.rank);
        return false;
    }
    for (size_t i = 0; i < n_cells; i++) {
        if (!cell_is_valid(plan, cells, i)) return false;
        for (size_t j = 0; j < i; j++) {
            if (cells[j].out != cells[i].out || cells[j].in != cells[i].in) continue;
            log_line(&plan->log, "cells %zu and %zu: both %zu -> %zu", j, i, cells[i].in,
                     cells[i].out);
            return false;
        }
    }
    return true;
}

// For engines that want all taps: a dense array with the cells in their places.
static enum partita_status create_spread(struct partita_filter *filter,
                                         const struct partita_cell *cells, size_t n_cells)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const size_t row = shape->axis[0].kernel * shape->tap_bytes;
    char *taps =
        mem_allocate(&plan->allocator, size_mul(shape->out_channels * shape->group_in, row));
    if (!taps) return PARTITA_ERR_NOMEM;
    for (size_t i = 0; i < n_cells; i++) {
        char *cell = taps + (cells[i].out * shape->group_in + cells[i].in % shape->group_in) * row;
        if (cells[i].length)
            memcpy(cell + cells[i].delay * shape->tap_bytes, cells[i].taps,
                   cells[i].length * shape->tap_bytes);
    }
    const enum partita_status status = pack_directions(filter, taps);
    mem_release(&plan->allocator, taps);
    return status;
}

enum partita_status partita_filter_create_cells(const struct partita_plan *plan,
                                                const struct partita_cell *cells, size_t n_cells,
                                                struct partita_filter **ret_filter)
{
    if (!plan || (!cells && n_cells) || !ret_filter || !cells_are_valid(plan, cells, n_cells))
        return PARTITA_ERR_ARG;
    struct partita_filter *filter = filter_allocate(plan);
    if (!filter) return PARTITA_ERR_NOMEM;
    return finish_filter(filter,
                         plan->engine && plan->engine->filter_create_paths
                             ? plan->engine->filter_create_paths(filter, cells, n_cells, NULL)
                             : create_spread(filter, cells, n_cells),
                         ret_filter);
}

enum partita_status partita_filter_edit(const struct partita_filter *base,
                                        const struct partita_cell *cells, size_t n_cells,
                                        struct partita_filter **ret_filter)
{
    if (!base || (!cells && n_cells) || !ret_filter) return PARTITA_ERR_ARG;
    const struct partita_plan *plan = base->plan;
    if (!cells_are_valid(plan, cells, n_cells)) return PARTITA_ERR_ARG;
    if (!plan->engine || !plan->engine->filter_create_paths) return PARTITA_ERR_UNSUPPORTED;
    struct partita_filter *filter = filter_allocate(plan);
    if (!filter) return PARTITA_ERR_NOMEM;
    return finish_filter(filter, plan->engine->filter_create_paths(filter, cells, n_cells, base),
                         ret_filter);
}

void partita_filter_destroy(struct partita_filter *filter)
{
    filter_destroy(filter);
}
