// SPDX-License-Identifier: MIT
// The table that keeps the load flat. A level's work on a block is cut into slices of about the
// same time, in the order in which they must run; the deadline of all of them is the last tick of
// its window. Levels are placed from the shortest period to the longest: each fills the ticks that
// the shorter ones left low, up to the lowest ceiling under which its slices still fit. Slices per
// tick follow from a table fixed beforehand; nothing is counted per incoming sample. Source: slices
// of the work of a block over the calls until it is due are as old as Gardner, Efficient
// convolution without input-output delay, JAES 43 (1995); filling to a level is scheduling by
// earliest deadline of tasks with one deadline (Liu & Layland 1973) under a ceiling found by
// bisection.
#include <math.h>

#include "partitioned.h"

// Slices take about an eighth of a tick's mean work, longer if that is less than a microsecond: a
// slice finds cold what the last one has left behind. But so many fit into a tick that it can be
// filled.
static double slice_target(double tick_seconds)
{
    return fmin(0.3 * tick_seconds, fmax(1e-6, 0.125 * tick_seconds));
}

// Cuts work that takes `seconds` and consists of `units` indivisible parts into slices of about
// `target` seconds.
static struct cut cut_work(double seconds, double target, size_t units)
{
    const double wanted = round(target * (double)units / seconds);
    const size_t each = wanted < (double)units ? (size_t)fmax(1, wanted) : units,
                 slices = (units + each - 1) / each;
    return (struct cut){units, each, slices, seconds * (double)each / (double)units};
}

static enum partita_status cut_level(struct partita_plan *plan, const struct request *request,
                                     size_t i, double target)
{
    struct partitioned *partitioned = plan->state;
    const struct level *level = &partitioned->layout.level[i];
    struct work *work = &partitioned->work[i];
    const struct shape *shape = &plan->shape;
    const struct fft_request transform = {.n = level->n,
                                          .f64 = shape->f64,
                                          .complex = shape->complex_signal,
                                          .measure = plan->measure,
                                          .level = plan->isa};
    const enum partita_status status = fft_create(&transform, &plan->allocator, &work->fft);
    if (status != PARTITA_OK) return status;
    const struct level_costs costs = cost_level(request, level);
    // A block's samples and the spectra of the last one have left the core's cache meanwhile.
    const struct cost_rates *model = &request->model->costs[shape->f64];
    const double scalars = (double)(level->n * (shape->complex_signal ? 2 : 1));
    const double fetch = scalars * model->fetch;
    const double store = scalars * model->copy + fetch / 2;
    work->tiles = fft_blocks(work->fft);
    work->pitch = work->tiles + 1;
    work->transform = cut_work(costs.transform, target, fft_steps(work->fft));
    // Cut as if every block had something to store, weighed by how often one has: slots with a
    // copy, and silence.
    work->store = cut_work(store, target, work->tiles);
    work->store.seconds *= (double)(level->bundle - 1) / (double)level_slots(level);
    const double products = costs.product * (double)(shape->out_channels * shape->group_in);
    work->product = cut_work(products, target, (work->tiles + level->bundle - 1) / level->bundle);
    work->stage[STAGE_FORWARD].chains = shape->in_channels;
    work->stage[STAGE_FORWARD].length = work->transform.slices + work->store.slices;
    const size_t chains =
        work->product.slices < MAX_PRODUCT_CHAINS ? work->product.slices : MAX_PRODUCT_CHAINS;
    work->stage[STAGE_PRODUCTS].chains = chains;
    work->stage[STAGE_PRODUCTS].length = (work->product.slices + chains - 1) / chains;
    work->stage[STAGE_INVERSE].chains = shape->out_channels;
    work->stage[STAGE_INVERSE].length = work->transform.slices;
    work->edge_slices =
        (fft_edge_steps(work->fft) + work->transform.each - 1) / work->transform.each;
    work->read_seconds = fetch / (double)work->edge_slices;
    work->write_seconds =
        fetch / 3 / (double)work->edge_slices; // half of the samples, and none are read
    return PARTITA_OK;
}

static double cut_seconds(const struct cut *cut, size_t slice)
{
    const struct fft_steps steps = slice_of(cut, slice);
    return cut->seconds * (double)(steps.end - steps.first) / (double)cut->each;
}

static double slice_seconds(const struct work *work, size_t slice)
{
    int stage = STAGE_FORWARD;
    for (size_t all; slice >= (all = stage_slices(work, (enum stage)stage)); slice -= all) stage++;
    if (stage == STAGE_PRODUCTS) return cut_seconds(&work->product, slice);
    const size_t number = slice % work->stage[stage].length, last = work->transform.slices;
    if (number >= last) return cut_seconds(&work->store, number - last);
    const bool edge =
        stage == STAGE_FORWARD ? number < work->edge_slices : number + work->edge_slices >= last;
    const double more = stage == STAGE_FORWARD ? work->read_seconds : work->write_seconds;
    return cut_seconds(&work->transform, number) + (edge ? more : 0);
}

double slices_seconds(const struct work *work, size_t first, size_t end)
{
    double sum = 0;
    for (size_t slice = first; slice < end; slice++) sum += slice_seconds(work, slice);
    return sum;
}

// What the shorter levels left in a level's tick r of its cycle.
static double *load_at(const struct level *level, double *load, size_t r)
{
    return &load[(level->start + r) & (level->ticks - 1)];
}

// Fills a level's window in order, no tick above the ceiling. Returns whether all slices found a
// place.
static bool fill(const struct level *level, struct work *work, double *load, double ceiling)
{
    size_t slice = 0;
    const size_t n = block_slices(work);
    for (size_t r = 0; r < level->ticks; r++) {
        double tick = r < level->window ? *load_at(level, load, r) : ceiling;
        for (; slice < n; slice++) {
            tick += slice_seconds(work, slice);
            if (tick > ceiling) break;
        }
        work->due[r] = (uint32_t)slice;
    }
    return slice == n;
}

// Places a level: the lowest ceiling under which it fits, then its share added to the load.
static void place_level(const struct level *level, struct work *work, double *load)
{
    const double most = slices_seconds(work, 0, block_slices(work));
    double low = 0, high = most * 1.01;
    for (size_t r = 0; r < level->ticks; r++) high = fmax(high, load[r] + most * 1.01);
    for (int i = 0; i < 40; i++) {
        const double middle = (low + high) / 2;
        if (fill(level, work, load, middle)) high = middle;
        else low = middle;
    }
    fill(level, work, load, high);
    for (size_t r = 0; r < level->ticks; r++) {
        *load_at(level, load, r) += slices_seconds(work, r ? work->due[r - 1] : 0, work->due[r]);
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

// Mean and worst of a call of the problem's block: what every frame costs, and the ticks that the
// call brings due.
static void predict(struct partita_plan *plan)
{
    struct partitioned *partitioned = plan->state;
    const struct layout *layout = &partitioned->layout;
    const size_t block = plan->shape.block, ticks = (block + layout->tick - 1) / layout->tick;
    const double rest = layout->head_seconds * (double)block;
    double mean = 0;
    size_t swap = 0;
    for (size_t r = 0; r < partitioned->hyper; r++)
        mean += partitioned->tick_seconds[r] / (double)partitioned->hyper;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        const size_t begin = (level->start > level->ticks ? level->start : level->ticks) +
                             (level->bundle - 1) * level->ticks;
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
    const size_t hyper = layout->level[layout->n_levels - 1].ticks;
    const double target = slice_target(layout->seconds * (double)layout->tick);
    partitioned->hyper = hyper;
    partitioned->tick_seconds =
        mem_allocate(&plan->allocator, hyper * sizeof *partitioned->tick_seconds);
    if (!partitioned->tick_seconds) return PARTITA_ERR_NOMEM;
    size_t period = 1;
    for (size_t i = 0; i < layout->n_levels; i++) {
        const struct level *level = &layout->level[i];
        struct work *work = &partitioned->work[i];
        const enum partita_status status = cut_level(plan, request, i, target);
        if (status != PARTITA_OK) return status;
        work->due = mem_allocate(&plan->allocator, level->ticks * sizeof *work->due);
        if (!work->due) return PARTITA_ERR_NOMEM;
        for (size_t r = period; r < level->ticks; r++)
            partitioned->tick_seconds[r] = partitioned->tick_seconds[r % period];
        period = level->ticks;
        place_level(level, work, partitioned->tick_seconds);
    }
    predict(plan);
    return PARTITA_OK;
}
