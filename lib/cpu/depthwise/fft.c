// SPDX-License-Identifier: MIT
// cpu/depthwise by transforms: tile by tile (grid.h) the rows of a window are read side by side and
// transformed, then column after column is transformed, multiplied by the filter's spectrum and
// transformed back while it is in the L1 cache, then the rows of the results. No spectrum
// leaves the L2 cache. For the gradient of the taps the products of the spectra of x and gy are
// summed over tiles and images, and transformed back once.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "grid.h"

struct depthwise_fft {
    struct depthwise_grid grid;
    bool weight;
    size_t planes_in, planes_out; // of one channel
    size_t splits, bytes;         // of backward weight: of tiles and images; of a group's sums
};

// A worker's memory: three spectra of x, gy and their sum in backward weight; of x and y, which are
// the same where each channel has one output; a row of samples; and columns of x and gy that are
// contiguous, since rows are pages apart: a column is read and written there once only.
struct fft_worker {
    char *x, *y, *sum, *row, *column[2];
};

static struct fft_worker layout_worker(const struct depthwise_fft *p, struct arena *arena)
{
    struct fft_worker worker = {.x = arena_take(arena, p->grid.bytes)};
    worker.y = worker.x;
    if (p->weight || size_max(p->planes_in, p->planes_out) > 1)
        worker.y = arena_take(arena, p->grid.bytes);
    worker.sum = arena_take(arena, p->weight ? p->grid.bytes : 0);
    worker.row = arena_take(arena, p->grid.axis[1].edge * CONV_BLOCK_BYTES);
    const size_t column = p->grid.axis[0].edge > 1 ? p->grid.axis[0].edge * ELEMENT_BYTES : 0;
    worker.column[0] = arena_take(arena, column);
    worker.column[1] = arena_take(arena, p->weight ? column : 0);
    return worker;
}

static size_t fft_worker_bytes(const struct depthwise_fft *p)
{
    struct arena arena = {0};
    layout_worker(p, &arena);
    return arena.used;
}

static bool layout_fft(const struct request *request, struct depthwise_fft *ret,
                       double *ret_seconds)
{
    const struct shape *shape = request->shape;
    const bool forward = request->direction == PARTITA_FORWARD;
    const size_t multiplier = depthwise_multiplier(shape);
    *ret = (struct depthwise_fft){.weight = request->direction == PARTITA_BACKWARD_WEIGHT,
                                  .planes_in = forward ? 1 : multiplier,
                                  .planes_out = forward ? multiplier : 1};
    // Beside the spectra there are a row and columns, together no larger than one of them.
    size_t spectra = multiplier > 1 ? 2 : 1;
    if (ret->weight) spectra = 3;
    const size_t max = request->workspace_limit / (spectra + 1);
    if (!depthwise_grid_choose(request, request->transform, max, &ret->grid, ret_seconds))
        return false;
    ret->bytes = size_mul(shape_taps(shape) * multiplier, CONV_BLOCK_BYTES);
    ret->splits = depthwise_k_splits(request, fft_worker_bytes(ret),
                                     shape->batch * grid_tiles(&ret->grid), ret->bytes);
    return true;
}

void depthwise_fft_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct depthwise_fft p;
    double seconds;
    bool strided = false;
    for (int i = 0; i < shape->rank; i++) strided |= shape->axis[i].stride > 1;
    if (shape->rank > 2) estimate_refuse(ret, "transforms are along two axes at most");
    else if (strided) estimate_refuse(ret, "transforms have a stride of 1");
    else if (!layout_fft(request, &p, &seconds))
        estimate_refuse(ret, "no tiles of %zu", request->transform);
    else ret->applicable = true;
    if (!ret->applicable) return;
    const struct grid_axis *h = &p.grid.axis[0], *w = &p.grid.axis[1];
    const size_t groups = depthwise_groups(shape);
    const double planes = (double)shape->batch * (double)shape->in_channels;
    const double multiplier = (double)depthwise_multiplier(shape);
    const double samples = (double)h->edge * (double)w->edge;
    const double window = samples * (double)grid_tiles(&p.grid);
    const double outputs = (double)shape_outputs(shape);
    const double fma = request->model->costs[shape->f64].work.fma;
    ret->transform = size_max(h->edge, w->edge);
    ret->spread = 1;
    ret->peaks = !p.weight;
    ret->hop = h->length * w->length;
    ret->flops = depthwise_grid_operations(request, &p.grid) * (1 + multiplier) / 2;
    ret->seconds = depthwise_seconds(request, seconds / fma * (1 + multiplier) / 2,
                                     (window + outputs * multiplier) * planes);
    ret->worker = fft_worker_bytes(&p);
    ret->shared = p.weight ? size_mul(size_mul(p.splits, groups), p.bytes) : 0;
    const size_t filter = size_mul(size_mul(groups, depthwise_multiplier(shape)), p.grid.bytes);
    ret->bytes = size_add(p.weight ? ret->shared : filter, ret->worker);
    if (!p.weight)
        ret->filter_seconds = filter_seconds(request, (double)(filter / shape->scalar_bytes),
                                             DEPTHWISE.filter_copies);
    // Two transforms, the product and one back, along both axes: Schatzman's 0.6 to 0.7 each, and a
    // little for factors.
    ret->error = shape_roundoff(shape) * 0.75 * sqrt(3 * log2(samples + 2));
    ret->variant = DEPTHWISE_FFT;
}

static void *fft_build(const struct partita_plan *plan, const struct request *request,
                       struct arena *arena)
{
    struct depthwise_fft made, *p = arena_take(arena, sizeof *p);
    double seconds;
    const bool fits = layout_fft(request, &made, &seconds);
    assert(fits);
    (void)plan;
    (void)fits;
    depthwise_grid_factors(&made.grid, request->shape->f64, arena);
    if (arena->base) *p = made;
    return p;
}

void depthwise_fft_explain(const struct partita_plan *plan, struct text *text)
{
    const struct depthwise_fft *p = plan->state;
    const struct grid_axis *h = &p->grid.axis[0], *w = &p->grid.axis[1];
    text_add(
        text,
        "  %zu planes side by side, by transforms: fft %zux%zu, %zu tiles of %zux%zu outputs\n",
        depthwise_width(&plan->shape), h->edge, w->edge, grid_tiles(&p->grid), h->length,
        w->length);
}

static void clear_rows(const struct depthwise_grid *grid, char *spectrum, size_t first, size_t end)
{
    memset(spectrum + first * grid->row * ELEMENT_BYTES, 0,
           (end - first) * grid->row * ELEMENT_BYTES);
}

static const struct depthwise_grid *grid_of(const struct depthwise_call *call)
{
    return &((const struct depthwise_fft *)call->plan->state)->grid;
}

// Rows of a rectangle of a plane of each lane: of x its windows, or of gy a tile's outputs.
struct rectangle {
    struct grid_window axis[2];
    size_t size[2]; // of the plane
    size_t plane;
};

// Transforms the rows of the rectangle in planes of x; columns are left to do.
static void read_rows(const struct depthwise_call *call, const struct rectangle *rectangle,
                      const struct depthwise_lanes *lanes, char *spectrum, char *row, const char *x)
{
    const struct depthwise_grid *grid = grid_of(call);
    const struct grid_window *h = &rectangle->axis[0], *w = &rectangle->axis[1];
    const struct lanes_row samples = samples_line(grid, row);
    clear_rows(grid, spectrum, 0, h->begin);
    clear_rows(grid, spectrum, h->end, grid->axis[0].edge);
    memset(row + w->n * CONV_BLOCK_BYTES, 0, (grid->axis[1].edge - w->n) * CONV_BLOCK_BYTES);
    const size_t width = depthwise_width(&call->plan->shape);
    const bool weight = call->plan->direction == PARTITA_BACKWARD_WEIGHT;
    _Atomic uint64_t *call_peak = weight ? NULL : call->operands->peak;
    uint64_t peak = 0;
    for (size_t i = h->begin; i < h->end; i++) {
        const size_t at = (size_t)(h->first + (ptrdiff_t)i);
        const struct depthwise_row from = {.plane = rectangle->plane,
                                           .row = at * rectangle->size[1],
                                           .size = rectangle->size[1],
                                           .step = 1,
                                           .n = w->n,
                                           .first = w->first};
        const struct lanes_row to = row_line(grid, spectrum, i);
        const size_t next = at + DEPTHWISE.ahead, bytes = call->plan->shape.scalar_bytes;
        if (next < rectangle->size[0])
            depthwise_prefetch(lanes, x + rectangle->plane * lanes->strides.channel * bytes, bytes,
                               next * rectangle->size[1], (next + 1) * rectangle->size[1], false);
        depthwise_read(call->plan, lanes, row, x, &from);
        if (call_peak) {
            const uint64_t of_row = call->plan->kernels->peak(row + w->begin * CONV_BLOCK_BYTES,
                                                              (w->end - w->begin) * width);
            peak = of_row > peak ? of_row : peak;
        }
        call->plan->kernels->lanes_dft(&to, &samples, &grid->axis[1].dft);
    }
    if (peak) operands_raise_peak(call_peak, peak);
}

static struct rectangle window_of(const struct depthwise_grid *grid, size_t tile)
{
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    return (struct rectangle){
        {grid_window(h, tile / w->tiles), grid_window(w, tile % w->tiles)}, {h->size, w->size}, 0};
}

// Adds row h of the taps of output j of each channel, over the gain of the transforms, to a row of
// samples, where grid_tap says.
static void put_taps(const struct partita_plan *plan, const struct depthwise_group *group, size_t j,
                     const char *taps, size_t h, char *row)
{
    const struct depthwise_fft *p = plan->state;
    const struct grid_axis *axis = p->grid.axis;
    const double gain = 2 / ((double)axis[0].edge * (double)axis[1].edge);
    _Alignas(CONV_BLOCK_BYTES) char tap[CONV_BLOCK_BYTES];
    for (size_t r = 0; r < axis[1].kernel; r++) {
        bool negative;
        const size_t i = h * axis[1].kernel + r;
        char *to = row + grid_tap(&axis[1], r, &negative) * CONV_BLOCK_BYTES;
        const double scale = negative ? -gain : gain;
        depthwise_copy_tap(&plan->shape, group, j,
                           p->grid.flip ? shape_taps(&plan->shape) - 1 - i : i, taps, tap);
        for (size_t l = 0; l < group->channels * group->images; l++)
            if (plan->shape.f64) ((double *)to)[l] += scale * ((double *)tap)[l];
            else ((float *)to)[l] += (float)(scale * (double)((float *)tap)[l]);
    }
}

// Makes the spectrum of output j of a lane group, column by column; `work` holds a spectrum and a
// row.
static void transform_taps(const struct partita_filter *filter, size_t g, size_t j,
                           const char *taps, char *work)
{
    const struct partita_plan *plan = filter->plan;
    const struct depthwise_fft *p = plan->state;
    const struct depthwise_grid *grid = &p->grid;
    const struct depthwise_group group = depthwise_group(&plan->shape, g);
    const size_t half = grid->axis[1].edge / 2, lanes = depthwise_width(&plan->shape);
    char *row = work + grid->bytes;
    char *to = (char *)filter->state + (g * depthwise_multiplier(&plan->shape) + j) * grid->bytes;
    const struct lanes_row samples = samples_line(grid, row);
    memset(work, 0, grid->bytes);
    for (size_t h = 0; h < grid->axis[0].kernel; h++) {
        bool negative; // along this axis the wrap has no sign
        const struct lanes_row line = row_line(grid, work, grid_tap(&grid->axis[0], h, &negative));
        memset(row, 0, 2 * half * CONV_BLOCK_BYTES);
        put_taps(plan, &group, j, taps, h, row);
        plan->kernels->lanes_dft(&samples, &samples, &grid->axis[1].dft);
        // Taps further apart than a transform may meet in one row.
        for (size_t i = 0; i < 2 * half; i++)
            plan->kernels->add((char *)line.re + i * CONV_BLOCK_BYTES,
                               row + (i / 2 + i % 2 * half) * CONV_BLOCK_BYTES, lanes);
    }
    for (size_t i = 0; i < half; i++) {
        const struct lanes_row column = column_line(grid, work, i);
        const struct lanes_row contiguous = contiguous_line(grid, to, i);
        plan->kernels->lanes_dft(&column, &column, &grid->axis[0].dft);
        for (size_t k = 0; k < grid->axis[0].edge; k++)
            memcpy((char *)contiguous.re + k * ELEMENT_BYTES,
                   (char *)column.re + k * column.stride * CONV_BLOCK_BYTES, ELEMENT_BYTES);
    }
}

static struct filter_bytes fft_filter_bytes(const struct partita_plan *plan)
{
    const struct depthwise_grid *grid = &((const struct depthwise_fft *)plan->state)->grid;
    const size_t spectra = depthwise_groups(&plan->shape) * depthwise_multiplier(&plan->shape);
    return (struct filter_bytes){.packed = size_mul(spectra, grid->bytes),
                                 .scratch = grid->bytes + grid->axis[1].edge * CONV_BLOCK_BYTES};
}

static void fft_filter_pack(struct partita_filter *filter, const void *taps, void *scratch)
{
    const size_t groups = depthwise_groups(&filter->plan->shape);
    for (size_t g = 0; g < groups; g++)
        for (size_t j = 0; j < depthwise_multiplier(&filter->plan->shape); j++)
            transform_taps(filter, g, j, taps, scratch);
}

static struct fft_worker worker_memory(const struct depthwise_call *call, int worker)
{
    struct arena arena = {.base = call->workers + (size_t)worker * call->plan->choice.worker};
    const struct fft_worker memory = layout_worker(call->plan->state, &arena);
    assert(arena.used <= call->plan->choice.worker);
    return memory;
}

// Writes output j of a tile from a spectrum whose columns are transformed back.
static void write_rows(const struct depthwise_call *call, const struct rectangle *window,
                       const struct depthwise_task *task, size_t j, char *spectrum, char *row)
{
    const struct partita_plan *plan = call->plan;
    const struct depthwise_grid *grid = grid_of(call);
    const struct grid_window *h = &window->axis[0], *w = &window->axis[1];
    const size_t width = grid->axis[1].out, bytes = plan->shape.scalar_bytes;
    const struct lanes_row samples = samples_line(grid, row);
    const struct depthwise_group group = depthwise_group(&plan->shape, task->group);
    const struct depthwise_lanes lanes =
        depthwise_lanes(&plan->shape, &group, task->set, plan->direction == PARTITA_FORWARD);
    _Alignas(CONV_BLOCK_BYTES) char bias[CONV_BLOCK_BYTES];
    const struct conv_finish finish = depthwise_finish(call->filter, task->group, j, bias);
    const char *planes = call->to + j * lanes.strides.channel * bytes;
    const bool far = depthwise_array_bytes(&plan->shape) > DEPTHWISE.far_bytes;
    for (size_t i = 0; i < h->length; i++) {
        const struct lanes_row from = row_line(grid, spectrum, i);
        const struct depthwise_row to = {.plane = j,
                                         .row = (h->at + i) * width,
                                         .step = 1,
                                         .n = w->length,
                                         .first = (ptrdiff_t)w->at};
        const size_t ahead = to.row + DEPTHWISE.ahead * width + w->at;
        if (far && i + DEPTHWISE.ahead < h->length)
            depthwise_prefetch(&lanes, planes, bytes, ahead, ahead + w->length, true);
        call->plan->kernels->lanes_dft_inverse(&samples, &from, &grid->axis[1].dft);
        depthwise_write(plan, &lanes, call->to, row, &to, &finish);
    }
}

// Transforms a column into contiguous memory, which it returns; a single element stays where it is.
static struct lanes_row transform_column(const struct depthwise_call *call, char *spectrum,
                                         size_t k, char *to)
{
    const struct depthwise_grid *grid = grid_of(call);
    const struct lanes_row from = column_line(grid, spectrum, k);
    if (grid->axis[0].dft.passes == 0) return from;
    const struct lanes_row ret = contiguous_line(grid, to, 0);
    call->plan->kernels->lanes_dft(&ret, &from, &grid->axis[0].dft);
    return ret;
}

// Columns of memory->y = or += those of memory->x times spectrum i of a group of the filter, and
// transformed back where y is complete. Where each group has one output, x is not transformed yet.
static void multiply_columns(const struct depthwise_call *call, const struct fft_worker *memory,
                             size_t group, size_t i, bool add, bool complete)
{
    const struct depthwise_grid *grid = grid_of(call);
    const struct lanes_dft *dft = &grid->axis[0].dft;
    const struct kernels *kernels = call->plan->kernels;
    const bool transformed = ((const struct depthwise_fft *)call->plan->state)->planes_out > 1;
    const size_t spectrum = group * depthwise_multiplier(&call->plan->shape) + i;
    const char *h = (const char *)call->filter->state + spectrum * grid->bytes;
    for (size_t k = 0; k < grid->axis[1].edge / 2; k++) {
        struct lanes_row in = column_line(grid, memory->x, k);
        const struct lanes_row out = column_line(grid, memory->y, k);
        const struct lanes_row factor = contiguous_line(grid, h, k);
        const bool near = complete && !add && dft->passes > 0;
        const struct lanes_row product = near ? contiguous_line(grid, memory->column[0], 0) : out;
        if (!transformed && near) {
            kernels->lanes_filter(&out, &in, factor.re, memory->column[0], dft);
            continue;
        }
        if (!transformed) in = transform_column(call, memory->x, k, memory->column[0]);
        kernels->lanes_product(&product, &in, &factor, grid->axis[0].edge, false, add);
        if (complete) kernels->lanes_dft_inverse(&out, &product, dft);
    }
}

// One task: one tile of the planes of one group and set.
static void run_tile(void *context, size_t index, int worker)
{
    const struct depthwise_call *call = context;
    const struct depthwise_fft *p = call->plan->state;
    const struct depthwise_grid *grid = &p->grid;
    const struct shape *shape = &call->plan->shape;
    const size_t tiles = grid_tiles(grid);
    const bool data = call->plan->direction == PARTITA_BACKWARD_DATA;
    struct rectangle window = window_of(grid, index % tiles);
    const struct depthwise_task task = depthwise_task(shape, index / tiles);
    const struct depthwise_group group = depthwise_group(shape, task.group);
    const struct depthwise_lanes lanes = depthwise_lanes(shape, &group, task.set, data);
    const struct fft_worker memory = worker_memory(call, worker);
    for (size_t i = 0; i < p->planes_in; i++) {
        window.plane = i;
        read_rows(call, &window, &lanes, memory.x, memory.row, call->from);
        if (p->planes_out == 1)
            multiply_columns(call, &memory, task.group, i, i > 0, i + 1 == p->planes_in);
    }
    for (size_t k = 0; k < grid->axis[1].edge / 2 && p->planes_out > 1; k++) {
        const struct lanes_row column = column_line(grid, memory.x, k);
        call->plan->kernels->lanes_dft(&column, &column, &grid->axis[0].dft);
    }
    for (size_t j = 0; j < p->planes_out; j++) {
        if (p->planes_out > 1) multiply_columns(call, &memory, task.group, j, false, true);
        write_rows(call, &window, &task, j, memory.y, memory.row);
    }
}

// Products of x and the conjugate of gy's plane j of one tile, added to the sum unless it is the
// first, column by column.
static void add_tile(const struct depthwise_call *call, const struct depthwise_task *task,
                     size_t tile, size_t j, const struct fft_worker *memory, bool first)
{
    const struct shape *shape = &call->plan->shape;
    const struct kernels *kernels = call->plan->kernels;
    const struct depthwise_grid *grid = grid_of(call);
    const struct depthwise_group group = depthwise_group(shape, task->group);
    const struct rectangle window = window_of(grid, tile);
    struct rectangle outputs = {.size = {grid->axis[0].out, grid->axis[1].out}, .plane = j};
    for (int i = 0; i < 2; i++) {
        const struct grid_window *w = &window.axis[i];
        outputs.axis[i] =
            (struct grid_window){.first = (ptrdiff_t)w->at, .n = w->length, .end = w->length};
    }
    struct depthwise_lanes lanes = depthwise_lanes(shape, &group, task->set, false);
    read_rows(call, &window, &lanes, memory->x, memory->row, call->from);
    lanes = depthwise_lanes(shape, &group, task->set, true);
    read_rows(call, &outputs, &lanes, memory->y, memory->row, call->gy);
    for (size_t i = 0; i < grid->axis[1].edge / 2; i++) {
        const struct lanes_row x = transform_column(call, memory->x, i, memory->column[0]);
        const struct lanes_row gy = transform_column(call, memory->y, i, memory->column[1]);
        const struct lanes_row sum = contiguous_line(grid, memory->sum, i);
        kernels->lanes_product(&sum, &x, &gy, grid->axis[0].edge, true, !first);
    }
}

// Gradients of the taps from their summed spectrum: tap r lies where x is r * dilation
// later than gy. Where that is beyond the transform x ends before, and the value there is 0,
// wrapped or not.
static void take_taps(const struct depthwise_call *call, const struct fft_worker *memory, char *to)
{
    const struct depthwise_grid *grid = grid_of(call);
    const struct kernels *kernels = call->plan->kernels;
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    const struct lanes_row samples = samples_line(grid, memory->row);
    const double scale = 2 / ((double)h->edge * (double)w->edge);
    const size_t lanes = depthwise_width(&call->plan->shape);
    for (size_t i = 0; i < w->edge / 2; i++) {
        const struct lanes_row from = contiguous_line(grid, memory->sum, i);
        const struct lanes_row column = column_line(grid, memory->x, i);
        kernels->lanes_dft_inverse(&column, &from, &h->dft);
        if (h->dft.passes == 0) memcpy(column.re, from.re, ELEMENT_BYTES);
    }
    for (size_t r = 0; r < h->kernel; r++) {
        const struct lanes_row from = row_line(grid, memory->x, r * h->dilation % h->edge);
        kernels->lanes_dft_inverse(&samples, &from, &w->dft);
        for (size_t s = 0; s < w->kernel; s++) {
            const size_t tap = r * w->kernel + s;
            const size_t at = grid->flip ? h->kernel * w->kernel - 1 - tap : tap;
            kernels->scale(to + at * CONV_BLOCK_BYTES,
                           memory->row + s * w->dilation % w->edge * CONV_BLOCK_BYTES, scale,
                           lanes);
        }
    }
}

// One task: one lane group in one split of its tiles and sets.
static void sum_tiles(void *context, size_t index, int worker)
{
    const struct depthwise_call *call = context;
    const struct depthwise_fft *p = call->plan->state;
    const struct shape *shape = &call->plan->shape;
    struct depthwise_task task = {.group = index / p->splits};
    const struct depthwise_group group = depthwise_group(shape, task.group);
    const size_t split = index % p->splits, multiplier = depthwise_multiplier(shape);
    const size_t tiles = grid_tiles(&p->grid), all = depthwise_sets(shape, &group) * tiles;
    const size_t begin = split * all / p->splits, end = (split + 1) * all / p->splits;
    const struct fft_worker memory = worker_memory(call, worker);
    char *sums = call->shared + index * p->bytes;
    if (begin == end) memset(sums, 0, p->bytes);
    for (size_t j = 0; begin < end && j < multiplier; j++) {
        for (size_t i = begin; i < end; i++) {
            task.set = i / tiles;
            add_tile(call, &task, i % tiles, j, &memory, i == begin);
        }
        take_taps(call, &memory, sums + j * shape_taps(shape) * CONV_BLOCK_BYTES);
    }
}

static void fft_run(struct depthwise_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct depthwise_fft *p = plan->state;
    const struct shape *shape = &plan->shape;
    const struct depthwise_sums sums = {p->splits, p->bytes, NULL};
    if (!p->weight) {
        thread_loop(plan->threads, grid_tiles(&p->grid) * depthwise_tasks(shape), run_tile, call);
        return;
    }
    thread_loop(plan->threads, depthwise_groups(shape) * p->splits, sum_tiles, call);
    call->sums = &sums;
    depthwise_reduce(call);
}

const struct depthwise_method depthwise_fft = {.build = fft_build,
                                               .filter_bytes = fft_filter_bytes,
                                               .filter_pack = fft_filter_pack,
                                               .run = fft_run};
