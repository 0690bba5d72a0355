// SPDX-License-Identifier: MIT
// The table that keeps the load flat. A segment's work on a block is split into tasks of about the
// same time, in the order in which they must run; the deadline of all of them is the last quantum
// of its window. Segments are placed from the shortest period to the longest: each fills the quanta
// that the shorter ones left low, up to the lowest ceiling under which its tasks still fit. Tasks
// per quantum follow from a table fixed beforehand; nothing is counted per incoming sample. Source:
// spreading the work of a block over the calls until it is due is as old as Gardner, Efficient
// convolution without input-output delay, JAES 43 (1995); filling to a level is scheduling by
// earliest deadline of tasks with one deadline (Liu & Layland 1973) under a ceiling found by
// bisection.
#include <assert.h>
#include <math.h>

#include "base/sizes.h"
#include "partitioned.h"

// Splits work that takes `seconds` and consists of `units` indivisible parts into tasks of about
// `target` seconds.
static struct split split_work(double seconds, double target, size_t units)
{
    const double wanted = round(target * (double)units / seconds);
    const size_t each = wanted < (double)units ? (size_t)fmax(1, wanted) : units;
    return (struct split){.units = units,
                          .each = each,
                          .tasks = ceil_div(units, each),
                          .seconds = seconds * (double)each / (double)units};
}

static double split_seconds(const struct split *split, size_t task)
{
    const struct fft_steps range = split_range(split, task);
    return split->seconds * (double)(range.end - range.first) / (double)split->each;
}

static double task_seconds(const struct segment_work *work, size_t task)
{
    int stage = STAGE_FORWARD;
    for (size_t all; task >= (all = stage_tasks(work, (enum stage)stage)); task -= all) stage++;
    if (stage == STAGE_PRODUCTS) return split_seconds(&work->product, task);
    const size_t number = task % work->stage[stage].length, last = work->transform.tasks;
    if (number >= last) return split_seconds(&work->store, number - last);
    const double slot = stage == STAGE_FORWARD ? work->slot_seconds : 0;
    return split_seconds(&work->transform, number) + slot;
}

double schedule_seconds(const struct segment_work *work, size_t first, size_t end)
{
    double sum = 0;
    assert(end <= block_tasks(work));
    for (size_t task = first; task < end; task++) sum += task_seconds(work, task);
    return sum;
}

static void split_segment(const struct request *request, const struct partition_device *device,
                          const struct partition_segment *segment, double target,
                          struct segment_work *work)
{
    const struct shape *shape = request->shape;
    const struct cost_rates *costs = &request->model->costs[shape->f64];
    const struct signal_rates *rates = device->rates;
    const double paths = (double)shape_path_count(shape);
    const double scalars = (double)(segment->n * (shape->complex_signal ? 2 : 1));
    // A block's samples and the spectra of the last one have left the core's cache meanwhile.
    const double fetch = scalars * costs->work.fetch,
                 store = scalars * costs->work.copy + fetch / 2;
    const double transform = rates->transforms(rates, segment->n, 1);
    const double products = partition_product_seconds(shape, device, segment) * paths;
    work->lines = work->fft->lines;
    work->pitch = work->lines + 1;
    // A step of a transform finds its data near, so short tasks take no longer.
    work->transform = split_work(transform, target / 2, work->fft->steps);
    // Only slots with a copy, and silence, have something to store, but then all of it: every block
    // reserves the time.
    work->store = split_work(store, target, work->lines);
    work->product = split_work(products, target, ceil_div(work->lines, segment->batch));
    work->stage[STAGE_FORWARD].chains = shape->in_channels;
    work->stage[STAGE_FORWARD].length = work->transform.tasks + work->store.tasks;
    const size_t chains = size_min(work->product.tasks, MAX_PRODUCT_CHAINS);
    work->stage[STAGE_PRODUCTS].chains = chains;
    work->stage[STAGE_PRODUCTS].length = ceil_div(work->product.tasks, chains);
    work->stage[STAGE_INVERSE].chains = shape->out_channels;
    work->stage[STAGE_INVERSE].length = work->transform.tasks;
    // The slot of the oldest spectrum has left all caches while a round of the ring was written.
    if (segment->memory)
        work->slot_seconds = scalars * costs->work.copy_far / (double)work->transform.tasks;
    const size_t slots = partition_slots(segment), plain = slots - (segment->batch - 1);
    work->mean_seconds = schedule_seconds(work, 0, block_tasks(work)) -
                         store * (double)(shape->in_channels * plain) / (double)slots;
}

// The load by shorter segments in a segment's quantum r of its cycle.
static double *load_at(const struct partition_segment *segment, double *load, size_t r)
{
    return &load[(segment->start + r) & (segment->quanta - 1)];
}

// Fills the first quanta of a segment's window in order, none above the ceiling. Returns whether
// every task found a quantum.
static bool fill_window(const struct partition_segment *segment, struct segment_work *work,
                        double *load, double ceiling)
{
    size_t task = 0;
    const size_t n = block_tasks(work);
    for (size_t r = 0; r < segment->quanta; r++) {
        double quantum = r < segment->window ? *load_at(segment, load, r) : ceiling;
        for (; task < n; task++) {
            quantum += task_seconds(work, task);
            if (quantum > ceiling) break;
        }
        work->due[r] = (uint32_t)task;
    }
    return task == n;
}

// Places a segment in the first quanta of its window: the lowest ceiling under which it fits, then
// its share added to the load.
static void schedule_segment(const struct partition_segment *segment, struct segment_work *work,
                             double *load)
{
    const double whole = schedule_seconds(work, 0, block_tasks(work));
    double low = 0, high = whole * 1.01;
    for (size_t r = 0; r < segment->quanta; r++) high = fmax(high, load[r] + whole * 1.01);
    for (int i = 0; i < 40; i++) {
        const double middle = (low + high) / 2;
        if (fill_window(segment, work, load, middle)) high = middle;
        else low = middle;
    }
    const bool fits = fill_window(segment, work, load, high);
    assert(fits && work->due[segment->window - 1] == block_tasks(work));
    (void)fits;
    for (size_t r = 0; r < segment->quanta; r++) {
        const size_t first = r ? work->due[r - 1] : 0;
        *load_at(segment, load, r) += schedule_seconds(work, first, work->due[r]);
    }
}

// The heaviest of all spans of `quanta` quanta that follow one another; load[n] repeats.
static double worst_span(const double *load, size_t n, size_t quanta)
{
    double all = 0, sum = 0, worst = 0;
    for (size_t i = 0; i < n; i++) all += load[i];
    const size_t rest = quanta % n;
    for (size_t i = 0; i < rest + n; i++) {
        sum += load[i % n];
        if (i >= rest) sum -= load[(i - rest) % n];
        worst = fmax(worst, sum);
    }
    return (double)(quanta / n) * all + (rest ? worst : 0);
}

// Mean and worst of a call of the problem's block: the cost of every frame, and of the quanta that
// the call brings due.
static void predict_load(struct partita_plan *plan)
{
    struct partitioned *partitioned = plan->state;
    const struct partition_layout *layout = &partitioned->layout;
    const size_t block = plan->shape.block, quanta = ceil_div(block, layout->quantum);
    const double rest = layout->head_seconds * (double)block;
    double mean = 0;
    size_t swap = 0;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const size_t begin = size_max(segment->start, segment->quanta);
        const size_t end = begin + (segment->batch - 1) * segment->quanta + segment->window;
        swap = size_max(swap, end);
        mean += partitioned->work[i].mean_seconds / (double)segment->quanta;
    }
    partitioned->load = (struct partita_load){
        .frames = block,
        .mean = rest + mean * (double)block / (double)layout->quantum,
        .worst = rest + worst_span(partitioned->quantum_seconds, partitioned->period, quanta),
        .swap_delay = swap * layout->quantum,
    };
}

// Distributes the tasks of all segments over their windows.
static void distribute_tasks(struct partita_plan *plan)
{
    struct partitioned *partitioned = plan->state;
    const struct partition_layout *layout = &partitioned->layout;
    double *load = partitioned->quantum_seconds;
    size_t shorter = 1; // period of the segments placed so far
    load[0] = 0;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        assert(segment->quanta >= shorter && segment->quanta % shorter == 0);
        for (size_t r = shorter; r < segment->quanta; r++) load[r] = load[r % shorter];
        shorter = segment->quanta;
        schedule_segment(segment, &partitioned->work[i], load);
    }
    predict_load(plan);
}

enum partita_status schedule_create(struct partita_plan *plan, const struct request *request,
                                    const struct partition_device *device)
{
    struct partitioned *partitioned = plan->state;
    const struct partition_layout *layout = &partitioned->layout;
    const size_t period = layout->segment[layout->n_segments - 1].quanta;
    const double mean = layout->seconds * (double)layout->quantum; // of the work of a quantum
    // Tasks take about an eighth of it, longer if that is less than a microsecond: a task finds its
    // data outside the cache after the last one. But a quantum holds enough of them to be filled.
    const double target = fmin(0.3 * mean, fmax(1e-6, 0.125 * mean));
    partitioned->period = period;
    partitioned->quantum_seconds =
        mem_allocate(&plan->allocator, period * sizeof *partitioned->quantum_seconds);
    if (!partitioned->quantum_seconds) return PARTITA_ERR_NOMEM;
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        struct segment_work *work = &partitioned->work[i];
        const enum partita_status status = plan_fft(plan, segment->n, &work->fft);
        if (status != PARTITA_OK) return status;
        // Work that is done in one quantum needs no small tasks.
        split_segment(request, device, segment, segment->window == 1 ? INFINITY : target, work);
        tasks_plan(segment, work);
        work->due = mem_allocate(&plan->allocator, segment->quanta * sizeof *work->due);
        if (!work->due) return PARTITA_ERR_NOMEM;
    }
    distribute_tasks(plan);
    return PARTITA_OK;
}
