// SPDX-License-Identifier: MIT
#include "filter.h"

#include <stdatomic.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "storage.h"

struct partita_filter *filter_allocate(const struct partita_plan *plan)
{
    struct partita_filter *filter = mem_allocate(&plan->allocator, sizeof *filter);
    if (filter) filter->plan = plan;
    return filter;
}

enum partita_status filter_fill(struct partita_filter *filter, const void *taps, void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    const struct engine *engine = plan->engine;
    if (!engine) return PARTITA_OK;
    if (engine->filter.create) return engine->filter.create(filter, taps);
    assert(!filter->state);
    filter->state = mem_reserve(&plan->allocator, engine->filter.bytes(plan).packed);
    if (!filter->state) return PARTITA_ERR_NOMEM;
    return filter_repack(filter, taps, workspace);
}

struct scan {
    const struct kernels *kernels;
    const char *values;
    size_t n;       // scalars
    uint64_t limit; // bits of a magnitude
    atomic_bool found;
};

enum { SCANNED = 1 << 15 }; // scalars of a task

static void scan_task(void *context, size_t task, int worker)
{
    struct scan *scan = context;
    const size_t first = task * SCANNED, bytes = scan->kernels->f64 ? 8 : 4;
    (void)worker;
    if (scan->kernels->peak(scan->values + first * bytes, size_min(scan->n - first, SCANNED)) >=
        scan->limit)
        atomic_store_explicit(&scan->found, true, memory_order_relaxed);
}

bool plan_scan(const struct partita_plan *plan, const void *values, size_t n, uint64_t limit)
{
    struct scan scan = {.kernels = plan->kernels, .values = values, .n = n, .limit = limit};
    atomic_init(&scan.found, false);
    thread_loop(plan->threads, ceil_div(n, SCANNED), scan_task, &scan);
    return atomic_load(&scan.found);
}

bool taps_are_finite(const struct partita_plan *plan, const void *taps)
{
    const struct shape *shape = &plan->shape;
    return !plan_scan(plan, taps, plan_taps(plan) * (shape->complex_taps ? 2 : 1),
                      shape_infinity_bits(shape));
}

struct pairing {
    const struct partita_plan *plan;
    const uint16_t *taps;
    char *pairs;
    size_t rows, row_pairs; // of taps whose products are added; of these
};

// Two adjacent rows of taps of bf16 as one of pairs; the last of an odd number becomes f32, which
// is pairs whose lower halves are zeros.
static void pair_task(void *context, size_t task, int worker)
{
    const struct pairing *all = context;
    const size_t row = all->plan->choice.pair_row, k = task % all->row_pairs * 2;
    const uint16_t *first = all->taps + (task / all->row_pairs * all->rows + k) * row;
    char *to = all->pairs + task * row * sizeof(float);
    (void)worker;
    if (k + 1 < all->rows) all->plan->kernels->pair(to, first, first + row, 1, row);
    else plan_widen(all->plan)(to, first, row);
}

enum partita_status filter_repack(struct partita_filter *filter, const void *taps, void *workspace)
{
    const struct partita_plan *plan = filter->plan;
    const struct engine *engine = plan->engine;
    if (!engine) return PARTITA_OK;
    const size_t bytes = engine->filter.bytes(plan).scratch, wide = plan_wide_taps(plan);
    const size_t all = wide ? size_add(mem_round(bytes), wide) : bytes;
    void *taken = NULL;
    if (!workspace && all && !(taken = mem_reserve(&plan->allocator, all)))
        return PARTITA_ERR_NOMEM;
    const struct region scratch = {taken ? taken : workspace, taken ? bytes : plan_workspace(plan)};
    char *given = (char *)scratch.data + mem_round(scratch.bytes);
    const size_t n = plan_taps(plan), row = plan->choice.pair_row;
    const size_t rows =
        plan->direction == PARTITA_FORWARD ? plan->shape.group_in : plan->shape.group_out;
    struct pairing pairs = {plan, taps, given, rows, ceil_div(rows, 2)};
    // In an even number of rows of one tap the adjacent ones are pairs as they are.
    const bool paired = row > 1 || (row && rows % 2);
    const int threads = n < SCANNED ? 1 : plan->threads;
    if (paired) thread_loop(threads, n / row / rows * pairs.row_pairs, pair_task, &pairs);
    if (paired) taps = given;
    else if (wide && !row) taps = storage_convert(plan, given, taps, n, true);
    const enum partita_status status = engine->filter.pack(filter, taps, &scratch);
    filter->nonfinite = plan->choice.spread && !taps_are_finite(plan, taps);
    mem_release(&plan->allocator, taken);
    return status;
}

enum partita_status filter_create(const struct partita_plan *plan, const void *taps,
                                  void *workspace, struct partita_filter **ret_filter)
{
    struct partita_filter *filter = filter_allocate(plan);
    if (!filter) return PARTITA_ERR_NOMEM;
    const enum partita_status status = filter_fill(filter, taps, workspace);
    if (status == PARTITA_OK) *ret_filter = filter;
    else filter_destroy(filter);
    return status;
}

void filter_destroy(struct partita_filter *filter)
{
    if (!filter) return;
    const struct partita_allocator allocator = filter->plan->allocator;
    const struct engine *engine = filter->plan->engine;
    filter_destroy(filter->backward_data);
    if (engine && engine->filter.destroy) engine->filter.destroy(filter);
    else mem_release(&allocator, filter->state);
    mem_release(&allocator, filter->bias);
    mem_release(&allocator, filter->branches);
    mem_release(&allocator, filter);
}
