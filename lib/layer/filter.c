// SPDX-License-Identifier: MIT
#include "filter.h"

#include <string.h>

#include "base/sizes.h"
#include "core/filter.h"
#include "geometry/samples.h"
#include "geometry/upsampling.h"

// Dense taps of a problem with `up`, for a filter without taps or in place of its taps. A filter
// that can be updated keeps the memory of the branches' taps, so that an update allocates nothing.
static enum partita_status pack_branches(struct partita_filter *filter, const void *taps,
                                         void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    if (!filter->branches)
        filter->branches = mem_reserve(&plan->allocator, upsampling_taps_bytes(&plan->shape));
    if (!filter->branches) return PARTITA_ERR_NOMEM;
    upsampling_taps(plan, taps, filter->branches);
    const enum partita_status status = filter->state
                                           ? filter_repack(filter, filter->branches, workspace)
                                           : filter_fill(filter, filter->branches, NULL);
    if (!plan->shape.stream) return status;
    mem_release(&plan->allocator, filter->branches);
    filter->branches = NULL;
    return status;
}

// Dense taps for every planned direction that reads them.
static enum partita_status pack_directions(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    if (plan->shape.up.branches) return pack_branches(filter, taps, NULL);
    const enum partita_status status = filter_fill(filter, taps, NULL);
    if (status != PARTITA_OK || !plan->backward_data || plan->shares) return status;
    filter->backward_data = filter_allocate(plan->backward_data);
    return filter->backward_data ? filter_fill(filter->backward_data, taps, NULL)
                                 : PARTITA_ERR_NOMEM;
}

static void store_bias(const struct partita_filter *filter, const void *bias)
{
    const struct shape *shape = &filter->plan->shape;
    if (shape->half) plan_widen(filter->plan)(filter->bias, bias, shape->out_channels);
    else memcpy(filter->bias, bias, shape->out_channels * shape->scalar_bytes);
}

static enum partita_status copy_bias(struct partita_filter *filter, const void *bias)
{
    const struct engine *engine = filter->plan->engine;
    const struct shape *shape = &filter->plan->shape;
    filter->biased = true;
    if (!engine) return PARTITA_OK; // forward was not requested
    if (engine->filter.bias) return engine->filter.bias(filter, bias);
    filter->bias =
        mem_allocate(&filter->plan->allocator, shape->out_channels * shape->scalar_bytes);
    if (!filter->bias) return PARTITA_ERR_NOMEM;
    store_bias(filter, bias);
    return PARTITA_OK;
}

// For engines without sparse filters: a dense array that holds the paths, and zeros.
static enum partita_status create_spread(struct partita_filter *filter,
                                         const struct partita_path *paths, size_t n_paths)
{
    const struct partita_plan *plan = filter->plan;
    const struct shape *shape = &plan->shape;
    const size_t row = shape_own_axis(shape)->kernel * shape->tap_bytes;
    char *taps =
        mem_allocate(&plan->allocator, size_mul(shape_own_outputs(shape) * shape->group_in, row));
    if (!taps) return PARTITA_ERR_NOMEM;
    for (size_t i = 0; i < n_paths; i++) {
        char *path = taps + (paths[i].out * shape->group_in + paths[i].in % shape->group_in) * row;
        if (paths[i].length)
            memcpy(path + paths[i].delay * shape->tap_bytes, paths[i].taps,
                   paths[i].length * shape->tap_bytes);
    }
    const enum partita_status status = pack_directions(filter, taps);
    mem_release(&plan->allocator, taps);
    return status;
}

static enum partita_status pack_taps(struct partita_filter *filter, const struct partita_taps *taps)
{
    const struct engine *engine = filter->plan->engine;
    if (taps->dense) return pack_directions(filter, taps->dense);
    if (engine && engine->filter.create_paths && !filter->plan->shape.up.branches)
        return engine->filter.create_paths(filter, taps->paths, taps->path_count, taps->base);
    return create_spread(filter, taps->paths, taps->path_count);
}

enum partita_status filter_from_taps(const struct partita_plan *plan,
                                     const struct partita_taps *taps,
                                     struct partita_filter **ret_filter)
{
    struct partita_filter *filter = filter_allocate(plan);
    if (!filter) return PARTITA_ERR_NOMEM;
    enum partita_status status = pack_taps(filter, taps);
    if (status == PARTITA_OK && taps->bias) status = copy_bias(filter, taps->bias);
    if (status == PARTITA_OK) *ret_filter = filter;
    else filter_destroy(filter);
    return status;
}

enum partita_status cpu_filter_update(struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    const void *taps = operands->from[0], *bias = operands->from[1];
    enum partita_status status = PARTITA_OK;
    if (filter->plan->shape.up.branches) return pack_branches(filter, taps, workspace);
    for (struct partita_filter *f = filter; f && status == PARTITA_OK; f = f->backward_data)
        status = filter_repack(f, taps, workspace);
    if (status == PARTITA_OK && filter->bias && bias) store_bias(filter, bias);
    return status;
}
