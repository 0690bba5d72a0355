// SPDX-License-Identifier: MIT
// The table that keeps the load flat. A level's work on a block is cut into slices of about the same time, in the order
// in which they must run; the deadline of all of them is the last tick of its window. Levels are placed from the
// shortest period to the longest: each fills the ticks that the shorter ones left low, up to the lowest ceiling under
// which its slices still fit. Slices per tick follow from a table fixed beforehand; nothing is counted per incoming
// sample. Source: slices of the work of a block over the calls until it is due are as old as Gardner, Efficient
// convolution without input-output delay, JAES 43 (1995), section 4; filling to a level is scheduling by earliest
// deadline of tasks with one deadline (Liu & Layland 1973) under a ceiling found by bisection.
#include <math.h>

#include "partitioned.h"

// Slices take about this share of a tick's mean work, but are not cut smaller than their overhead allows.
static const double SHARE = 0.125, LEAST_SECONDS = 2.5e-7;

// Number of slices of about `target` seconds in work that takes `seconds` and consists of `units` indivisible parts,
// the same number of parts in each slice but perhaps the last.
static size_t slices_in(double seconds, double target, size_t units)
{
    const double wanted = round(target * (double)units / seconds);
    const size_t each = wanted < (double)units ? (size_t)fmax(1, wanted) : units;
    return (units + each - 1) / each;
}

static enum partita_status cut(struct partita_plan *plan, const struct request *request, size_t i, double target)
{
    struct partitioned *partitioned = plan->state;
    const struct level *level = &partitioned->layout.level[i];
    struct work *work = &partitioned->work[i];
    const struct shape *shape = &plan->shape;
    const struct fft_request transform = {.n = level->n,
                                          .f64 = shape->f64,
                                          .complex = shape->complex_signal,
                                          .measure = plan->measure,
                                          .level = plan->level};
    const enum partita_status status = fft_create(&transform, &plan->allocator, &work->fft);
    if (status != PARTITA_OK) return status;
    const struct level_costs costs = layout_costs(request, level);
    // A block's samples and the spectra of the last one have left the core's cache meanwhile.
    const struct host_costs *host = &request->host->costs[shape->f64];
    const double scalars = (double)(level->n * (shape->complex_signal ? 2 : 1));
    const double fetch = scalars * host->fetch;
    const double store = scalars * host->copy + fetch / 2;
    const double product = costs.product * (double)shape->group_in;
    work->tiles = (fft_blocks(work->fft) + SPECTRUM_TILE - 1) / SPECTRUM_TILE;
    work->transform_slices = slices_in(costs.transform, target, fft_steps(work->fft));
    work->store_slices = slices_in(store, target, work->tiles);
    work->product_slices = slices_in(product, target, work->tiles);
    work->edge_slices =
        (fft_edge_steps(work->fft) * work->transform_slices + fft_steps(work->fft) - 1) / fft_steps(work->fft);
    work->read_seconds = fetch / (double)work->edge_slices;
    work->write_seconds = fetch / 3 / (double)work->edge_slices; // half of the samples, and none are read
    work->forward = work->transform_slices + work->store_slices;
    work->output = work->product_slices + work->transform_slices;
    work->transform_seconds = costs.transform / (double)work->transform_slices;
    work->store_seconds = store / (double)work->store_slices;
    work->product_seconds = product / (double)work->product_slices;
    return PARTITA_OK;
}

static size_t slices_of(const struct shape *shape, const struct work *work)
{
    return shape->in_channels * work->forward + shape->out_channels * work->output;
}

static double slice_seconds(const struct shape *shape, const struct work *work, size_t slice)
{
    const size_t forward = shape->in_channels * work->forward;
    if (slice < forward) {
        const size_t number = slice % work->forward;
        if (number >= work->transform_slices) return work->store_seconds;
        return work->transform_seconds + (number < work->edge_slices ? work->read_seconds : 0);
    }
    const size_t number = (slice - forward) % work->output;
    if (number < work->product_slices) return work->product_seconds;
    return work->transform_seconds + (number >= work->output - work->edge_slices ? work->write_seconds : 0);
}

double slices_seconds(const struct shape *shape, const struct work *work, size_t first, size_t end)
{
    double seconds = 0;
    for (size_t slice = first; slice < end; slice++) seconds += slice_seconds(shape, work, slice);
    return seconds;
}

// Fills a level's ticks in order, none above the ceiling. Returns whether all slices found a place. load[] are the
// ticks of one period as the shorter levels left them; the level's own first tick is at `start`.
static bool fill(const struct shape *shape, const struct level *level, struct work *work, const double *load,
                 double ceiling)
{
    const size_t n = slices_of(shape, work);
    size_t slice = 0;
    for (size_t r = 0; r < level->ticks; r++) {
        double tick = r < level->window ? load[ticks_into_block(level, level->start + r)] : ceiling;
        for (; slice < n; slice++) {
            tick += slice_seconds(shape, work, slice);
            if (tick > ceiling) break;
        }
        work->due[r] = (uint32_t)slice;
    }
    return slice == n;
}

static double sum_of(const struct shape *shape, const struct work *work)
{
    double sum = 0;
    for (size_t slice = 0; slice < slices_of(shape, work); slice++) sum += slice_seconds(shape, work, slice);
    return sum;
}

// Places a level: the lowest ceiling under which it fits, then its share added to the load.
static void place(const struct shape *shape, const struct level *level, struct work *work, double *load)
{
    double low = 0, high = sum_of(shape, work) * 1.01;
    for (size_t r = 0; r < level->ticks; r++) high = fmax(high, load[r] + sum_of(shape, work) * 1.01);
    for (int i = 0; i < 40; i++) {
        const double middle = (low + high) / 2;
        if (fill(shape, level, work, load, middle)) high = middle;
        else low = middle;
    }
    fill(shape, level, work, load, high);
    for (size_t r = 0, slice = 0; r < level->ticks; r++)
        for (; slice < work->due[r]; slice++)
            load[ticks_into_block(level, level->start + r)] += slice_seconds(shape, work, slice);
}

// The heaviest of all runs of `ticks` ticks that follow one another.
static double worst_run(const double *load, size_t n, size_t ticks)
{
    double sum = 0, worst = 0;
    for (size_t i = 0; i < ticks + n; i++) {
        sum += load[i % n];
        if (i >= ticks) sum -= load[(i - ticks) % n];
        worst = fmax(worst, sum);
    }
    return worst;
}

// Mean and worst of a call of the problem's block: the head and the copies, and the ticks that it brings due.
static void predict(struct partita_plan *plan, const struct request *request)
{
    struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const struct shape *shape = &plan->shape;
    double mean = 0, levels = 0, swap = 0;
    for (size_t r = 0; r < partitioned->hyper; r++) mean += partitioned->tick_seconds[r] / (double)partitioned->hyper;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const struct level_costs costs = layout_costs(request, level);
        levels += (double)(shape->in_channels + shape->out_channels) * costs.transform / (double)level->hop +
                  (double)(shape->out_channels * shape->group_in) * costs.product / (double)level->hop;
        swap = fmax(swap, (double)((level->start + level->window + 1) * layout->tick));
    }
    const double rest = fmax(0, layout->seconds - levels) * (double)shape->block; // what no tick does
    const size_t ticks = (shape->block + layout->tick - 1) / layout->tick;
    partitioned->load = (struct partita_load){
        .frames = shape->block,
        .mean = rest + mean * (double)shape->block / (double)layout->tick,
        .worst = rest + worst_run(partitioned->tick_seconds, partitioned->hyper, ticks),
        .swap_delay = (size_t)swap,
    };
}

enum partita_status schedule_create(struct partita_plan *plan, const struct request *request)
{
    struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const struct shape *shape = &plan->shape;
    const size_t hyper = layout->level[layout->n_levels - 1].ticks;
    const double target = fmax(LEAST_SECONDS, SHARE * layout->seconds * (double)layout->tick);
    partitioned->hyper = hyper;
    partitioned->tick_seconds = mem_allocate(&plan->allocator, hyper * sizeof *partitioned->tick_seconds);
    if (!partitioned->tick_seconds) return PARTITA_ERR_NOMEM;
    size_t period = 1;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        struct work *work = &partitioned->work[i];
        const enum partita_status status = cut(plan, request, i, target);
        if (status != PARTITA_OK) return status;
        work->due = mem_allocate(&plan->allocator, level->ticks * sizeof *work->due);
        if (!work->due) return PARTITA_ERR_NOMEM;
        for (size_t r = period; r < level->ticks; r++)
            partitioned->tick_seconds[r] = partitioned->tick_seconds[r % period];
        period = level->ticks;
        place(shape, level, work, partitioned->tick_seconds);
    }
    predict(plan, request);
    return PARTITA_OK;
}
