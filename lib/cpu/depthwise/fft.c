// SPDX-License-Identifier: MIT
// cpu/depthwise by transforms: tile by tile (grid.h) the rows of a window are read side by side and
// transformed, then column after column is transformed, multiplied by the filter's spectrum and
// transformed back while it is in the L1 cache, then the rows of the results. No spectrum
// leaves the L2 cache. For the gradient of the taps the products of the spectra of x and gy are
// summed over tiles and images, and transformed back once.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "grid.h"

// The state of a plan; the tables of the layout are the grid.
struct depthwise_fft {
    struct conv_layout layout;
    struct depthwise_grid grid;
};

// A worker's memory: three spectra of x, gy and their sum in backward weight; of x and y, which are
// the same where each output has one input; a row of samples; and columns of x and gy that are
// contiguous, since rows are pages apart: a column is read and written there once only.
struct fft_memory {
    char *x, *y, *sum, *row, *column[2];
};

static struct fft_memory layout_memory(const struct depthwise_grid *grid, bool weight,
                                       struct arena *arena)
{
    struct fft_memory memory = {.x = arena_take(arena, grid->bytes)};
    memory.y = memory.x;
    if (weight || grid->pass.in > 1) memory.y = arena_take(arena, grid->bytes);
    memory.sum = arena_take(arena, weight ? grid->bytes : 0);
    memory.row = arena_take(arena, grid->axis[1].edge * CONV_BLOCK_BYTES);
    const size_t column = grid->axis[0].edge > 1 ? grid->axis[0].edge * ELEMENT_BYTES : 0;
    memory.column[0] = arena_take(arena, column);
    memory.column[1] = arena_take(arena, weight ? column : 0);
    return memory;
}

static bool choose_grid(const struct request *request, struct depthwise_grid *ret)
{
    // Beside the spectra there are a row, columns and a gradient, together about as large as one.
    size_t spectra = depthwise_multiplier(request->shape) > 1 ? 2 : 1;
    if (request->direction == PARTITA_BACKWARD_WEIGHT) spectra = 3;
    return depthwise_grid_choose(request, request->transform,
                                 request->workspace_limit / (spectra + 1), ret);
}

static void fft_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    struct depthwise_grid grid;
    struct arena worker = {0};
    bool strided = false;
    for (int i = 0; i < shape->rank; i++) strided |= shape->axis[i].stride > 1;
    if (shape->rank > 2) estimate_refuse(ret, "transforms are along two axes at most");
    else if (strided) estimate_refuse(ret, "transforms have a stride of 1");
    else if (!choose_grid(request, &grid))
        estimate_refuse(ret, "no tiles of %zu", request->transform);
    else ret->applicable = true;
    if (!ret->applicable) return;
    const struct grid_axis *h = &grid.axis[0], *w = &grid.axis[1];
    const size_t groups = depthwise_groups(shape);
    const double lanes = depthwise_all_lanes(shape);
    const double multiplier = (double)depthwise_multiplier(shape);
    const double samples = (double)h->edge * (double)w->edge;
    const double window = samples * (double)conv_pass_boxes(&grid.pass);
    const double outputs = (double)shape_outputs(shape);
    const size_t filter = size_mul(size_mul(groups, depthwise_multiplier(shape)), grid.bytes);
    const struct work plane = depthwise_grid_work(request, &grid);
    struct ledger ledger = {
        .work = {.copy = (shape->half ? 3 : 2) * (window + outputs * multiplier) * lanes},
        .filter = {.pack = weight ? 0 : (double)(filter / shape->scalar_bytes)}};
    work_add(&ledger.work, &plane, lanes * (1 + multiplier) / 2);
    ledger_price(request, &ledger, ret);
    ret->transform = size_max(h->edge, w->edge);
    ret->spread = 1;
    ret->peaks = !weight;
    ret->hop = h->length * w->length;
    ret->flops = 2 * ledger.work.fma;
    layout_memory(&grid, weight, &worker);
    ret->worker = worker.used;
    if (weight)
        depthwise_split_memory(request, worker.used, groups,
                               size_mul(depthwise_last_sets(shape), conv_pass_boxes(&grid.pass)),
                               ret);
    else ret->bytes = size_add(filter, ret->worker);
    // Two transforms, the product and one back, along both axes: Schatzman's 0.6 to 0.7 each, and a
    // little for factors.
    ret->error = shape_roundoff(shape) * 0.75 * sqrt(3 * log2(samples + 2));
}

static void *fft_build(const struct partita_plan *plan, const struct request *request,
                       struct arena *arena)
{
    struct depthwise_fft *p = arena_take(arena, sizeof *p);
    struct depthwise_grid grid;
    const bool fits = choose_grid(request, &grid);
    assert(fits);
    (void)plan;
    (void)fits;
    depthwise_grid_factors(&grid, request->shape->f64, arena);
    if (arena->base) *p = (struct depthwise_fft){{.pass = grid.pass, .tables = &p->grid}, grid};
    return p;
}

void depthwise_fft_explain(const struct partita_plan *plan, struct text *text)
{
    const struct depthwise_fft *p = plan->state;
    const struct grid_axis *h = &p->grid.axis[0], *w = &p->grid.axis[1];
    text_add(
        text,
        "  %zu planes side by side, by transforms: fft %zux%zu, %zu tiles of %zux%zu outputs\n",
        depthwise_width(&plan->shape), h->edge, w->edge, conv_pass_boxes(&p->grid.pass), h->length,
        w->length);
}

// Adds row h of the taps of output j of each channel, over the gain of the transforms, to a row of
// samples, where grid_tap says.
static void put_taps(const struct partita_plan *plan, size_t group, size_t j, const char *taps,
                     size_t h, char *row)
{
    const struct depthwise_grid *grid = &((const struct depthwise_fft *)plan->state)->grid;
    const struct shape *shape = &plan->shape;
    const double gain = 2 / ((double)grid->axis[0].edge * (double)grid->axis[1].edge);
    const size_t width = grid->pass.axis[2].taps, path = shape_taps(shape);
    const size_t lanes = depthwise_width(shape);
    _Alignas(CONV_BLOCK_BYTES) char tap[CONV_BLOCK_BYTES];
    for (size_t r = 0; r < width; r++) {
        bool negative;
        const size_t i = grid_caller_tap(grid, h * width + r) + j * path;
        char *to = row + grid_tap(grid, 1, r, &negative) * CONV_BLOCK_BYTES;
        depthwise_copy_lanes(shape, group, tap, taps + i * shape->scalar_bytes,
                             depthwise_multiplier(shape) * path);
        plan->kernels->scale(tap, tap, negative ? -gain : gain, lanes);
        plan->kernels->add(to, tap, lanes);
    }
}

// Makes the spectrum of output j of a lane group; `work` holds a spectrum and a row. Taps further
// apart than a transform may meet in one row.
static void transform_taps(const struct partita_filter *filter, size_t group, size_t j,
                           const char *taps, char *work)
{
    const struct partita_plan *plan = filter->plan;
    const struct depthwise_grid *grid = &((const struct depthwise_fft *)plan->state)->grid;
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    const size_t spectrum = group * depthwise_multiplier(&plan->shape) + j;
    char *row = work + grid->bytes, *to = (char *)filter->state + spectrum * grid->bytes;
    const struct lanes_row samples = samples_line(grid, row);
    bool negative; // along this axis the wrap has no sign
    memset(work, 0, grid->bytes);
    for (size_t k = 0; k < grid->pass.axis[1].taps; k++)
        put_taps(plan, group, j, taps, k, row_line(grid, work, grid_tap(grid, 0, k, &negative)).re);
    for (size_t i = 0; i < h->edge; i++) {
        const struct lanes_row line = row_line(grid, work, i);
        if (!plan->kernels->peak(line.re, w->edge * depthwise_width(&plan->shape))) continue;
        memcpy(row, line.re, w->edge * CONV_BLOCK_BYTES);
        plan->kernels->lanes_dft(&line, &samples, &w->dft);
    }
    for (size_t i = 0; i < w->edge / 2; i++) {
        const struct lanes_row column = column_line(grid, work, i);
        const struct lanes_row contiguous = contiguous_line(grid, to, i);
        plan->kernels->lanes_dft(&contiguous, &column, &h->dft);
        if (h->dft.passes == 0) memcpy(contiguous.re, column.re, ELEMENT_BYTES);
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

static const struct depthwise_grid *grid_of(const struct depthwise_task *task)
{
    return task->call->layout->tables;
}

static struct fft_memory task_memory(const struct depthwise_task *task)
{
    struct arena arena = {.base = task->memory};
    return layout_memory(grid_of(task), !task->call->filter, &arena);
}

// Transforms a row of samples into row i of a spectrum, and raises the call's peak.
static void transform_row(const struct depthwise_task *task, char *spectrum, size_t i, char *row)
{
    const struct depthwise_call *call = task->call;
    const struct depthwise_grid *grid = grid_of(task);
    const struct lanes_row samples = samples_line(grid, row), to = row_line(grid, spectrum, i);
    _Atomic uint64_t *peak = call->filter ? call->operands->peak : NULL;
    const size_t n = grid->axis[1].edge * depthwise_width(&call->plan->shape);
    if (peak) operands_raise_peak(peak, call->plan->kernels->peak(row, n));
    call->plan->kernels->lanes_dft(&to, &samples, &grid->axis[1].dft);
}

// Clears a row from sample n on.
static void clear_row(const struct depthwise_grid *grid, char *row, size_t n)
{
    memset(row + n * CONV_BLOCK_BYTES, 0, (grid->axis[1].edge - n) * CONV_BLOCK_BYTES);
}

static void clear_rows(const struct depthwise_grid *grid, char *spectrum, size_t first, size_t end)
{
    memset(spectrum + first * grid->row * ELEMENT_BYTES, 0,
           (end - first) * grid->row * ELEMENT_BYTES);
}

// Transforms the rows of plane k of a tile's inputs; columns are left to do.
static void read_inputs(const struct depthwise_task *task, const struct fft_memory *memory,
                        size_t k)
{
    const struct depthwise_grid *grid = grid_of(task);
    const struct conv_axis *h = &grid->pass.axis[1], *w = &grid->pass.axis[2];
    const size_t *at = task->index.at, *count = task->index.count;
    const struct inside rows = grid_window(h, at[1], count[1]);
    const size_t end = rows.begin + rows.count,
                 n = size_min(count[2] + w->reach, grid->axis[1].edge);
    clear_rows(grid, memory->x, 0, rows.begin);
    clear_rows(grid, memory->x, end, grid->axis[0].edge);
    clear_row(grid, memory->row, n);
    for (size_t i = rows.begin; i < end; i++) {
        const size_t sample = (size_t)(h->low + (ptrdiff_t)(at[1] + i));
        const struct depthwise_row row = {.plane = k,
                                          .row = sample * w->size,
                                          .pitch = w->size,
                                          .size = w->size,
                                          .step = 1,
                                          .n = n,
                                          .first = w->low + (ptrdiff_t)at[2]};
        depthwise_read(task, memory->row, &row);
        transform_row(task, memory->x, i, memory->row);
    }
}

// Transforms a column into contiguous memory, which it returns; a single element stays where it is.
static struct lanes_row transform_column(const struct depthwise_task *task, char *spectrum,
                                         size_t k, char *to)
{
    const struct depthwise_grid *grid = grid_of(task);
    const struct lanes_row from = column_line(grid, spectrum, k);
    if (grid->axis[0].dft.passes == 0) return from;
    const struct lanes_row ret = contiguous_line(grid, to, 0);
    task->call->plan->kernels->lanes_dft(&ret, &from, &grid->axis[0].dft);
    return ret;
}

// Columns of memory->y = or, after the first input, += those of input k times the spectrum of the
// filter for output j; they are transformed back after the last one.
static void multiply_columns(const struct depthwise_task *task, const struct fft_memory *memory,
                             size_t j, size_t k)
{
    const struct depthwise_grid *grid = grid_of(task);
    const struct depthwise_call *call = task->call;
    const struct kernels *kernels = call->plan->kernels;
    const struct lanes_dft *dft = &grid->axis[0].dft;
    const size_t in = grid->pass.in;
    const size_t spectrum = task->group * depthwise_multiplier(&call->plan->shape) + j + k;
    const char *h = (const char *)call->filter->state + spectrum * grid->bytes;
    for (size_t i = 0; i < grid->axis[1].edge / 2; i++) {
        struct lanes_row x = column_line(grid, memory->x, i);
        const struct lanes_row y = column_line(grid, memory->y, i);
        const struct lanes_row factor = contiguous_line(grid, h, i);
        if (in == 1 && dft->passes) {
            kernels->lanes_filter(&y, &x, factor.re, memory->column[0], dft);
            continue;
        }
        x = transform_column(task, memory->x, i, memory->column[0]);
        kernels->lanes_product(&y, &x, &factor, grid->axis[0].edge, false, k > 0);
        if (k + 1 == in) kernels->lanes_dft_inverse(&y, &y, dft);
    }
}

static void filter_tile(const struct depthwise_task *task, size_t j)
{
    const struct fft_memory memory = task_memory(task);
    for (size_t k = 0; k < grid_of(task)->pass.in; k++) {
        read_inputs(task, &memory, k);
        multiply_columns(task, &memory, j, k);
    }
}

static char *inverse_row(const struct depthwise_task *task, size_t j, size_t i)
{
    const struct depthwise_grid *grid = grid_of(task);
    const struct fft_memory memory = task_memory(task);
    const struct lanes_row from = row_line(grid, memory.y, i);
    const struct lanes_row samples = samples_line(grid, memory.row);
    (void)j;
    task->call->plan->kernels->lanes_dft_inverse(&samples, &from, &grid->axis[1].dft);
    return memory.row;
}

// Adds products of x and the conjugate of gy's plane j of one tile, column by column.
static void add_tile(const struct depthwise_task *task, size_t j, bool first)
{
    const struct depthwise_grid *grid = grid_of(task);
    const struct fft_memory memory = task_memory(task);
    const size_t *count = task->index.count;
    read_inputs(task, &memory, 0);
    clear_rows(grid, memory.y, count[1], grid->axis[0].edge);
    clear_row(grid, memory.row, count[2]);
    for (size_t i = 0; i < count[1]; i++) {
        depthwise_read_gy(task, j, i, memory.row);
        transform_row(task, memory.y, i, memory.row);
    }
    for (size_t i = 0; i < grid->axis[1].edge / 2; i++) {
        const struct lanes_row x = transform_column(task, memory.x, i, memory.column[0]);
        const struct lanes_row gy = transform_column(task, memory.y, i, memory.column[1]);
        const struct lanes_row sum = contiguous_line(grid, memory.sum, i);
        task->call->plan->kernels->lanes_product(&sum, &x, &gy, grid->axis[0].edge, true, !first);
    }
}

// Gradients of the taps from their summed spectrum: a tap lies where x is as much later than gy.
// Where that is beyond the transform x ends before, and the value there is 0, wrapped or not.
static void take_taps(const struct depthwise_task *task, char *gradient)
{
    const struct depthwise_grid *grid = grid_of(task);
    const struct conv_pass *pass = &grid->pass;
    const struct kernels *kernels = task->call->plan->kernels;
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    const struct fft_memory memory = task_memory(task);
    const struct lanes_row samples = samples_line(grid, memory.row);
    const double scale = 2 / ((double)h->edge * (double)w->edge);
    for (size_t i = 0; i < w->edge / 2; i++) {
        const struct lanes_row from = contiguous_line(grid, memory.sum, i);
        const struct lanes_row column = column_line(grid, memory.x, i);
        kernels->lanes_dft_inverse(&column, &from, &h->dft);
        if (h->dft.passes == 0) memcpy(column.re, from.re, ELEMENT_BYTES);
    }
    for (size_t r = 0, t = 0; r < pass->axis[1].taps; r++) {
        const size_t at = grid_offset(&pass->axis[1], r) % h->edge;
        const struct lanes_row from = row_line(grid, memory.x, at);
        kernels->lanes_dft_inverse(&samples, &from, &w->dft);
        for (size_t s = 0; s < pass->axis[2].taps; s++, t++) {
            const size_t sample = grid_offset(&pass->axis[2], s) % w->edge;
            kernels->scale(gradient + grid_caller_tap(grid, t) * CONV_BLOCK_BYTES,
                           memory.row + sample * CONV_BLOCK_BYTES, scale,
                           depthwise_width(&task->call->plan->shape));
        }
    }
}

static void fft_run(struct depthwise_call *call)
{
    static const struct depthwise_sums sums = {filter_tile, inverse_row, add_tile, take_taps};
    depthwise_sum(call, &sums);
}

const struct depthwise_method depthwise_fft = {.estimate = fft_estimate,
                                               .build = fft_build,
                                               .filter_bytes = fft_filter_bytes,
                                               .filter_pack = fft_filter_pack,
                                               .run = fft_run};
