// SPDX-License-Identifier: MIT
// The table that keeps the load flat. A level's work on a block is cut into slices of about the same time, in the order
// in which they must run; the deadline of all of them is the last tick of its window. Levels are placed from the
// shortest period to the longest: each fills the ticks that the shorter ones left low, up to the lowest ceiling under
// which its slices still fit. Slices per tick follow from a table fixed beforehand; nothing is counted per incoming
// sample. Source: slices of the work of a block over the calls until it is due are as old as Gardner, Efficient
// convolution without input-output delay, JAES 43 (1995); filling to a level is scheduling by earliest
// deadline of tasks with one deadline (Liu & Layland 1973) under a ceiling found by bisection.
#include <math.h>

#include "partitioned.h"

// Slices take about this share of a tick's mean work, but are not cut smaller than their overhead allows.
static const double SHARE = 0.125, LEAST_SECONDS = 2.5e-7;

// Cuts work that takes `seconds` and consists of `units` indivisible parts into slices of about `target` seconds.
static struct cut cut_work(double seconds, double target, size_t units)
{
    const double wanted = round(target * (double)units / seconds);
    const size_t each = wanted < (double)units ? (size_t)fmax(1, wanted) : units, slices = (units + each - 1) / each;
    return (struct cut){units, each, slices, seconds * (double)each / (double)units};
}

static enum partita_status cut_level(struct partita_plan *plan, const struct request *request, size_t i, double target)
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
    work->tiles = (fft_blocks(work->fft) + SPECTRUM_TILE - 1) / SPECTRUM_TILE;
    work->transform = cut_work(costs.transform, target, fft_steps(work->fft));
    work->store = cut_work(store, target, work->tiles);
    work->forward = work->transform.slices + work->store.slices;
    for (int place = 0; place < 2; place++) {
        work->product[place] = cut_work(costs.product[place] * (double)shape->group_in, target, work->tiles);
        work->output[place] = work->product[place].slices + work->transform.slices;
    }
    work->edge_slices = (fft_edge_steps(work->fft) + work->transform.each - 1) / work->transform.each;
    work->read_seconds = fetch / (double)work->edge_slices;
    work->write_seconds = fetch / 3 / (double)work->edge_slices; // half of the samples, and none are read
    return PARTITA_OK;
}

static size_t slices_of(const struct shape *shape, const struct work *work, size_t place)
{
    return shape->in_channels * work->forward + shape->out_channels * work->output[place];
}

static double slice_seconds(const struct shape *shape, const struct work *work, size_t place, size_t slice)
{
    const size_t forward = shape->in_channels * work->forward;
    if (slice < forward) {
        const size_t number = slice % work->forward;
        if (number >= work->transform.slices) return work->store.seconds;
        return work->transform.seconds + (number < work->edge_slices ? work->read_seconds : 0);
    }
    const size_t number = (slice - forward) % work->output[place];
    if (number < work->product[place].slices) return work->product[place].seconds;
    return work->transform.seconds + (number >= work->output[place] - work->edge_slices ? work->write_seconds : 0);
}

double slices_seconds(const struct shape *shape, const struct work *work, size_t place, size_t first, size_t end)
{
    double sum = 0;
    for (size_t slice = first; slice < end; slice++) sum += slice_seconds(shape, work, place, slice);
    return sum;
}

// What the shorter levels left in a level's tick r of its cycle.
static double *load_at(const struct level *level, double *load, size_t r)
{
    return &load[(level->start + r) & (level_cycle(level) - 1)];
}

// Fills a level's windows in order, no tick above the ceiling. Returns whether all slices found a place.
static bool fill(const struct shape *shape, const struct level *level, struct work *work, double *load, double ceiling)
{
    size_t slice = 0, n = 0;
    bool fits = true;
    for (size_t r = 0; r < level_cycle(level); r++) {
        const size_t place = r / level->ticks, into = ticks_into_block(level, r);
        if (into == 0) {
            fits &= slice == n;
            slice = 0;
            n = slices_of(shape, work, place);
        }
        double tick = into < level->window ? *load_at(level, load, r) : ceiling;
        for (; slice < n; slice++) {
            tick += slice_seconds(shape, work, place, slice);
            if (tick > ceiling) break;
        }
        work->due[r] = (uint32_t)slice;
    }
    return fits && slice == n;
}

// Places a level: the lowest ceiling under which it fits, then its share added to the load.
static void place_level(const struct shape *shape, const struct level *level, struct work *work, double *load)
{
    const double most = fmax(slices_seconds(shape, work, 0, 0, slices_of(shape, work, 0)),
                             slices_seconds(shape, work, 1, 0, slices_of(shape, work, 1)));
    double low = 0, high = most * 1.01;
    for (size_t r = 0; r < level_cycle(level); r++) high = fmax(high, load[r] + most * 1.01);
    for (int i = 0; i < 40; i++) {
        const double middle = (low + high) / 2;
        if (fill(shape, level, work, load, middle)) high = middle;
        else low = middle;
    }
    fill(shape, level, work, load, high);
    for (size_t r = 0; r < level_cycle(level); r++) {
        const size_t done = ticks_into_block(level, r) ? work->due[r - 1] : 0;
        *load_at(level, load, r) += slices_seconds(shape, work, r / level->ticks, done, work->due[r]);
    }
}

// The heaviest of all runs of `ticks` ticks that follow one another; load[n] repeats.
static double worst_run(const double *load, size_t n, size_t ticks)
{
    double all = 0, sum = 0, worst = 0;
    for (size_t i = 0; i < n; i++) all += load[i];
    const size_t rest = ticks % n;
    for (size_t i = 0; i < rest + n; i++) {
        sum += load[i % n];
        if (i >= rest) sum -= load[(i - rest) % n];
        worst = fmax(worst, sum);
    }
    return (double)(ticks / n) * all + (rest ? worst : 0);
}

// Mean and worst of a call of the problem's block: what every frame costs, and the ticks that the call brings due.
static void predict(struct partita_plan *plan)
{
    struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const size_t block = plan->shape.block, ticks = (block + layout->tick - 1) / layout->tick;
    const double rest = layout->head_seconds * (double)block;
    double mean = 0;
    size_t swap = 0;
    for (size_t r = 0; r < partitioned->hyper; r++) mean += partitioned->tick_seconds[r] / (double)partitioned->hyper;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const size_t begin = (level->start > level->ticks ? level->start : level->ticks) + level->ticks;
        if (begin + level->window > swap) swap = begin + level->window;
    }
    partitioned->load = (struct partita_load){
        .frames = block,
        .mean = rest + mean * (double)block / (double)layout->tick,
        .worst = rest + worst_run(partitioned->tick_seconds, partitioned->hyper, ticks),
        .swap_delay = swap * layout->tick,
    };
}

enum partita_status schedule_create(struct partita_plan *plan, const struct request *request)
{
    struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const struct shape *shape = &plan->shape;
    const size_t hyper = level_cycle(&layout->level[layout->n_levels - 1]);
    const double target = fmax(LEAST_SECONDS, SHARE * layout->seconds * (double)layout->tick);
    partitioned->hyper = hyper;
    partitioned->tick_seconds = mem_allocate(&plan->allocator, hyper * sizeof *partitioned->tick_seconds);
    if (!partitioned->tick_seconds) return PARTITA_ERR_NOMEM;
    size_t period = 1;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        struct work *work = &partitioned->work[i];
        const enum partita_status status = cut_level(plan, request, i, target);
        if (status != PARTITA_OK) return status;
        work->due = mem_allocate(&plan->allocator, level_cycle(level) * sizeof *work->due);
        if (!work->due) return PARTITA_ERR_NOMEM;
        for (size_t r = period; r < level_cycle(level); r++)
            partitioned->tick_seconds[r] = partitioned->tick_seconds[r % period];
        period = level_cycle(level);
        place_level(shape, level, work, partitioned->tick_seconds);
    }
    predict(plan);
    return PARTITA_OK;
}
