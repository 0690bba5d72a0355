// SPDX-License-Identifier: MIT
// cpu/depthwise by transforms: tile by tile (depthwise_grid.h) the rows of a window are read side
// by side and transformed, then column after column transformed, multiplied by the filter's
// spectrum and transformed back while it is in the nearest cache, then the rows of the results. No
// spectrum leaves the L2 cache. Of the gradient of the taps the products of the spectra of x and gy
// are summed over tiles and images, and transformed back once.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "grid.h"

enum { ENOUGH_TASKS = 32, AHEAD = 2 };

struct fft_way {
    struct grid grid;
    size_t planes_in, planes_out; // of one channel
    size_t runs, run_bytes;       // of backward weight: sums of tiles and images
};

static size_t element_bytes(void)
{
    return 2 * CONV_BLOCK_BYTES;
}

static size_t spectra(const struct request *request)
{
    if (request->direction == PARTITA_BACKWARD_WEIGHT) return 3;
    return request->shape->group_out > 1 ? 2 : 1;
}

static size_t row_bytes(const struct grid *grid)
{
    return grid->axis[1].edge * CONV_BLOCK_BYTES;
}

static void decide_runs(const struct request *request, size_t worker, struct fft_way *ret)
{
    const struct shape *shape = request->shape;
    const size_t blocks = depthwise_blocks(shape), limit = request->workspace_limit;
    ret->run_bytes = size_mul(shape_taps(shape) * depthwise_multiple(shape), CONV_BLOCK_BYTES);
    const size_t left = limit > worker ? (limit - worker) / size_mul(blocks, ret->run_bytes) : 0;
    ret->runs = (ENOUGH_TASKS + blocks - 1) / blocks;
    const size_t most = shape->batch * grid_tiles(&ret->grid);
    if (ret->runs > most) ret->runs = most;
    if (ret->runs > left) ret->runs = left > 1 ? left : 1;
}

static bool decide(const struct request *request, struct fft_way *ret, double *ret_seconds)
{
    const bool forward = request->direction == PARTITA_FORWARD;
    // A workspace beside the spectra: a row of samples, shorter than one of them.
    const size_t most = request->workspace_limit / (spectra(request) + 1);
    *ret = (struct fft_way){.planes_in = forward ? 1 : depthwise_multiple(request->shape),
                            .planes_out = forward ? depthwise_multiple(request->shape) : 1};
    return grid_choose(request, request->transform, most, &ret->grid, ret_seconds);
}

void depthwise_fft_estimate(const struct request *request, struct estimate *ret)
{
    const struct shape *shape = request->shape;
    struct fft_way way;
    double seconds;
    if (shape->rank > 2) {
        snprintf(ret->reason, sizeof ret->reason, "transforms are along two axes at most");
        return;
    }
    for (int i = 0; i < shape->rank; i++)
        if (shape->axis[i].stride > 1) {
            snprintf(ret->reason, sizeof ret->reason, "transforms have a stride of 1");
            return;
        }
    if (!decide(request, &way, &seconds)) {
        snprintf(ret->reason, sizeof ret->reason, "no tiles of %zu", request->transform);
        return;
    }
    const struct grid *grid = &way.grid;
    const double planes = (double)shape->batch * (double)shape->in_channels,
                 multiple = (double)shape->group_out;
    const double tiles = (double)grid_tiles(grid),
                 edges = (double)grid->axis[0].edge * (double)grid->axis[1].edge;
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const double window = edges * tiles, out = (double)shape_outputs(shape);
    ret->transform =
        grid->axis[0].edge > grid->axis[1].edge ? grid->axis[0].edge : grid->axis[1].edge;
    ret->hop = grid->axis[0].length * grid->axis[1].length;
    ret->flops = grid_operations(request, grid) * (1 + multiple) / 2;
    ret->seconds = depthwise_seconds(
        request, seconds / request->model->costs[shape->f64].fma * (1 + multiple) / 2,
        (window + out * multiple) * planes);
    ret->worker = size_add(size_mul(spectra(request), grid->bytes), row_bytes(grid));
    ret->bytes =
        size_mul(size_mul(depthwise_blocks(shape), depthwise_multiple(shape)), grid->bytes);
    if (weight) {
        decide_runs(request, ret->worker, &way);
        ret->shared = size_mul(size_mul(way.runs, depthwise_blocks(shape)), way.run_bytes);
        ret->bytes = ret->shared;
    }
    ret->bytes = size_add(ret->bytes, ret->worker);
    // Two transforms, the product and one back, along both axes: Schatzman's 0.6 to 0.7 each, and a
    // little for factors.
    ret->error = shape_roundoff(shape) * 0.75 * sqrt(3 * log2(edges + 2));
    ret->variant = DEPTHWISE_FFT;
    ret->applicable = true;
}

static struct fft_way *cut_way(const struct request *request, struct arena *arena)
{
    struct fft_way decided, *way = arena_take(arena, sizeof *way);
    double seconds;
    decide(request, &decided, &seconds);
    decide_runs(request, spectra(request) * decided.grid.bytes + row_bytes(&decided.grid),
                &decided);
    grid_factors(&decided.grid, request->shape, arena);
    if (arena->base) *way = decided;
    return way;
}

enum partita_status depthwise_fft_plan_create(struct partita_plan *plan,
                                              const struct request *request)
{
    struct arena arena = {0};
    cut_way(request, &arena);
    arena.base = mem_allocate(&plan->allocator, arena.used);
    if (!arena.base) return PARTITA_ERR_NOMEM;
    arena.used = 0;
    plan->state = cut_way(request, &arena);
    return PARTITA_OK;
}

void depthwise_fft_explain(const struct partita_plan *plan, struct text *text)
{
    const struct fft_way *way = plan->state;
    const struct grid_axis *h = &way->grid.axis[0], *w = &way->grid.axis[1];
    text_add(
        text,
        "  %zu planes side by side, by transforms: fft %zux%zu, %zu tiles of %zux%zu outputs\n",
        depthwise_width(&plan->shape), h->edge, w->edge, grid_tiles(&way->grid), h->length,
        w->length);
}

// A row of t real blocks as t/2 elements, a row and a column of a spectrum, and a column laid out
// by itself.
static struct lanes_row samples_line(const struct grid *grid, char *row)
{
    return (struct lanes_row){row, grid->axis[1].edge / 2, 1};
}

static struct lanes_row row_line(const struct grid *grid, char *spectrum, size_t i)
{
    return (struct lanes_row){spectrum + i * grid->row * element_bytes(), 1, 2};
}

static struct lanes_row column_line(const struct grid *grid, char *spectrum, size_t i)
{
    return (struct lanes_row){spectrum + i * element_bytes(), 1, 2 * grid->row};
}

static struct lanes_row apart_line(const struct grid *grid, const char *spectrum, size_t i)
{
    return (struct lanes_row){(char *)spectrum + i * grid->axis[0].edge * element_bytes(), 1, 2};
}

static void clear_rows(const struct grid *grid, char *spectrum, size_t first, size_t end)
{
    memset(spectrum + first * grid->row * element_bytes(), 0,
           (end - first) * grid->row * element_bytes());
}

// Rows of a rectangle of one plane: of x its windows, or of gy a tile's outputs.
struct rectangle {
    struct grid_window axis[2];
    size_t size[2]; // of the plane
};

// Transforms the rows of the rectangle; columns are left to be done.
static void read_rows(const struct partita_plan *plan, const struct rectangle *of,
                      const struct depthwise_lanes *lanes, char *spectrum, char *row, const char *x)
{
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    const struct grid_window *h = &of->axis[0], *w = &of->axis[1];
    const struct lanes_row samples = samples_line(grid, row);
    clear_rows(grid, spectrum, 0, h->begin);
    clear_rows(grid, spectrum, h->end, grid->axis[0].edge);
    memset(row + w->n * CONV_BLOCK_BYTES, 0, (grid->axis[1].edge - w->n) * CONV_BLOCK_BYTES);
    for (size_t i = h->begin; i < h->end; i++) {
        const struct depthwise_row from = {.plane_size = of->size[0] * of->size[1],
                                           .row = (size_t)(h->first + (ptrdiff_t)i) * of->size[1],
                                           .size = of->size[1],
                                           .step = 1,
                                           .n = w->n,
                                           .first = w->first};
        const struct lanes_row to = row_line(grid, spectrum, i);
        depthwise_fetch_ahead(plan, lanes, x, (size_t)(h->first + (ptrdiff_t)i) + AHEAD,
                              of->size[0], of->size[1]);
        depthwise_read(plan, lanes, row, x, &from);
        plan->kernels->lanes_dft(&to, &samples, &grid->axis[1].dft);
    }
}

static struct rectangle window_of(const struct fft_way *way, size_t tile)
{
    const struct grid_axis *h = &way->grid.axis[0], *w = &way->grid.axis[1];
    return (struct rectangle){{grid_window(h, tile / w->tiles), grid_window(w, tile % w->tiles)},
                              {h->size, w->size}};
}

// The filter's spectra, column by column, block of channels after block: of the taps where grid_tap
// says, over the gain of the transforms.
static void put_taps(const struct partita_plan *plan, const struct depthwise_block *block, size_t j,
                     const char *taps, size_t h, char *row)
{
    const struct fft_way *way = plan->state;
    const struct grid_axis *axis = way->grid.axis;
    const struct shape *shape = &plan->shape;
    const size_t n_taps = axis[0].kernel * axis[1].kernel, bytes = shape->scalar_bytes;
    const double scale = 2 / ((double)axis[0].edge * (double)axis[1].edge);
    for (size_t r = 0; r < axis[1].kernel; r++) {
        bool negative;
        const size_t at = grid_tap(&axis[1], r, &negative), i = h * axis[1].kernel + r;
        const size_t tap = way->grid.flip ? n_taps - 1 - i : i;
        for (size_t l = 0; l < block->channels * block->images; l++) {
            const size_t cell =
                (block->first + l % block->channels) * depthwise_multiple(shape) + j;
            const char *from = taps + (cell * n_taps + tap) * bytes;
            char *to = row + at * CONV_BLOCK_BYTES + l * bytes;
            if (shape->f64) *(double *)to += (negative ? -scale : scale) * *(const double *)from;
            else
                *(float *)to += (float)((negative ? -scale : scale) * (double)*(const float *)from);
        }
    }
}

static void transform_taps(const struct partita_filter *filter, size_t b, size_t j,
                           const char *taps, char *work)
{
    const struct partita_plan *plan = filter->plan;
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    const struct depthwise_block block = depthwise_block(&plan->shape, b);
    char *row = work + grid->bytes;
    char *to = (char *)filter->state + (b * depthwise_multiple(&plan->shape) + j) * grid->bytes;
    memset(work, 0, grid->bytes);
    for (size_t h = 0; h < grid->axis[0].kernel; h++) {
        bool negative; // along this axis the wrap has no sign
        const size_t at = grid_tap(&grid->axis[0], h, &negative);
        const struct lanes_row samples = samples_line(grid, row), line = row_line(grid, work, at);
        struct lanes_row fresh = {row, grid->axis[1].edge / 2, 1};
        memset(row, 0, row_bytes(grid));
        put_taps(plan, &block, j, taps, h, row);
        plan->kernels->lanes_dft(&fresh, &samples, &grid->axis[1].dft);
        // Taps further apart than an edge may meet in one row.
        for (size_t i = 0; i < grid->axis[1].edge / 2; i++)
            for (size_t im = 0; im < 2; im++)
                plan->kernels->add((char *)line.re + (2 * i + im) * CONV_BLOCK_BYTES,
                                   row + (i + im * grid->axis[1].edge / 2) * CONV_BLOCK_BYTES,
                                   CONV_BLOCK_BYTES / plan->shape.scalar_bytes);
    }
    for (size_t i = 0; i < grid->axis[1].edge / 2; i++) {
        const struct lanes_row column = column_line(grid, work, i),
                                apart = apart_line(grid, to, i);
        plan->kernels->lanes_dft(&column, &column, &grid->axis[0].dft);
        for (size_t k = 0; k < grid->axis[0].edge; k++)
            memcpy((char *)apart.re + k * element_bytes(),
                   (char *)column.re + k * column.stride * CONV_BLOCK_BYTES, element_bytes());
    }
}

enum partita_status depthwise_fft_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct fft_way *way = plan->state;
    const size_t multiple = depthwise_multiple(&plan->shape),
                 blocks = depthwise_blocks(&plan->shape);
    filter->state =
        mem_reserve(&plan->allocator, size_mul(size_mul(blocks, multiple), way->grid.bytes));
    void *work = mem_reserve(&plan->allocator, way->grid.bytes + row_bytes(&way->grid));
    if (filter->state && work)
        for (size_t i = 0; i < blocks * multiple; i++)
            transform_taps(filter, i / multiple, i % multiple, taps, work);
    mem_release(&plan->allocator, work);
    return filter->state && work ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

struct call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *to;
    const char *from, *gy;
    char *sums, *workspace;
};

// Results of a tile from a spectrum whose columns are back.
static void write_rows(const struct call *call, const struct rectangle *window,
                       const struct depthwise_lanes *lanes, const struct depthwise_block *block,
                       size_t j, char *spectrum, char *row)
{
    const struct partita_plan *plan = call->plan;
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    const struct grid_window *h = &window->axis[0], *w = &window->axis[1];
    const size_t width = grid->axis[1].out, plane = grid->axis[0].out * width;
    const bool forward = plan->direction == PARTITA_FORWARD, biased = forward && call->filter->bias;
    const struct lanes_row samples = samples_line(grid, row);
    _Alignas(CONV_BLOCK_BYTES) char bias[CONV_BLOCK_BYTES];
    if (biased) depthwise_bias(call->filter, block, j, bias);
    for (size_t i = 0; i < h->length; i++) {
        const struct lanes_row from = row_line(grid, spectrum, i);
        const struct depthwise_row to = {.plane_size = plane,
                                         .row = j * plane + (h->at + i) * width,
                                         .step = 1,
                                         .n = w->length,
                                         .first = (ptrdiff_t)w->at};
        plan->kernels->lanes_dft_inverse(&samples, &from, &grid->axis[1].dft);
        depthwise_write(plan, lanes, call->to, row, &to, biased ? bias : NULL,
                        forward && plan->shape.relu);
    }
}

// Columns of y = or += x times the filter's spectrum of output or input j, and back where it is
// complete.
static void multiply_columns(const struct call *call, size_t b, size_t j, char *y, char *x,
                             bool add, bool back)
{
    const struct partita_plan *plan = call->plan;
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    const char *h = (const char *)call->filter->state +
                    (b * depthwise_multiple(&plan->shape) + j) * grid->bytes;
    for (size_t i = 0; i < grid->axis[1].edge / 2; i++) {
        const struct lanes_row in = column_line(grid, x, i), out = column_line(grid, y, i),
                                factor = apart_line(grid, h, i);
        if (way->planes_out == 1) plan->kernels->lanes_dft(&in, &in, &grid->axis[0].dft);
        plan->kernels->lanes_product(&out, &in, &factor, grid->axis[0].edge, false, add);
        if (back) plan->kernels->lanes_dft_inverse(&out, &out, &grid->axis[0].dft);
    }
}

static void transform_columns(const struct partita_plan *plan, char *spectrum)
{
    const struct fft_way *way = plan->state;
    for (size_t i = 0; i < way->grid.axis[1].edge / 2; i++) {
        const struct lanes_row column = column_line(&way->grid, spectrum, i);
        plan->kernels->lanes_dft(&column, &column, &way->grid.axis[0].dft);
    }
}

// One task: one tile of the planes of one block and turn.
static void run_tile(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct partita_plan *plan = call->plan;
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    const size_t tiles = grid_tiles(grid);
    const struct rectangle window = window_of(way, task % tiles);
    const struct depthwise_task of = depthwise_task(&plan->shape, task / tiles);
    const struct depthwise_block block = depthwise_block(&plan->shape, of.block);
    struct depthwise_lanes lanes = depthwise_lanes(&plan->shape, &block, of.turn, way->planes_in);
    char *x = call->workspace + (size_t)worker * plan->choice.worker;
    char *y = depthwise_multiple(&plan->shape) > 1 ? x + grid->bytes : x, *row = y + grid->bytes;
    const size_t plane = grid->axis[0].size * grid->axis[1].size * plan->shape.scalar_bytes;
    for (size_t i = 0; i < way->planes_in; i++) {
        read_rows(plan, &window, &lanes, x, row, call->from + i * plane);
        if (way->planes_out == 1)
            multiply_columns(call, of.block, i, y, x, i > 0, i == way->planes_in - 1);
        else transform_columns(plan, x);
    }
    lanes = depthwise_lanes(&plan->shape, &block, of.turn, way->planes_out);
    for (size_t j = 0; j < way->planes_out; j++) {
        if (way->planes_out > 1) multiply_columns(call, of.block, j, y, x, false, true);
        write_rows(call, &window, &lanes, &block, j, y, row);
    }
}

void depthwise_fft_run(const struct partita_plan *plan, const struct partita_filter *filter,
                       void *to, const void *from, void *workspace)
{
    const struct fft_way *way = plan->state;
    struct call call = {plan, filter, to, from, NULL, NULL, workspace};
    thread_loop(plan->threads, grid_tiles(&way->grid) * depthwise_tasks(&plan->shape), run_tile,
                &call);
}

static size_t tap_of(const void *state, size_t i)
{
    const struct fft_way *way = state;
    return way->grid.flip ? way->grid.axis[0].kernel * way->grid.axis[1].kernel - 1 - i : i;
}

// Adds one tile's products of x and the conjugate of gy to `sum`, column by column.
static void add_tile(const struct call *call, const struct depthwise_block *block, size_t turn,
                     size_t tile, size_t j, char *x, char *row, bool first)
{
    const struct partita_plan *plan = call->plan;
    const struct shape *shape = &plan->shape;
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    char *gy = x + grid->bytes, *sum = gy + grid->bytes;
    const struct rectangle window = window_of(way, tile);
    struct rectangle outputs = {.size = {grid->axis[0].out, grid->axis[1].out}};
    for (int i = 0; i < 2; i++) {
        const struct grid_window *w = &window.axis[i];
        outputs.axis[i] =
            (struct grid_window){.first = (ptrdiff_t)w->at, .n = w->length, .end = w->length};
    }
    struct depthwise_lanes lanes = depthwise_lanes(shape, block, turn, 1);
    read_rows(plan, &window, &lanes, x, row, call->from);
    lanes = depthwise_lanes(shape, block, turn, depthwise_multiple(shape));
    read_rows(plan, &outputs, &lanes, gy, row,
              call->gy + j * shape_outputs(shape) * shape->scalar_bytes);
    for (size_t i = 0; i < grid->axis[1].edge / 2; i++) {
        const struct lanes_row a = column_line(grid, x, i), b = column_line(grid, gy, i),
                                c = apart_line(grid, sum, i);
        plan->kernels->lanes_dft(&a, &a, &grid->axis[0].dft);
        plan->kernels->lanes_dft(&b, &b, &grid->axis[0].dft);
        plan->kernels->lanes_product(&c, &a, &b, grid->axis[0].edge, true, !first);
    }
}

// Gradients of the taps from their summed spectrum: tap r is what lies where x is r * dilation
// later than gy. Where that is beyond the edge x ends before, and what lies there is 0, wrapped or
// not.
static void take_taps(const struct partita_plan *plan, char *sum, char *spectrum, char *row,
                      char *to)
{
    const struct fft_way *way = plan->state;
    const struct grid_axis *h = &way->grid.axis[0], *w = &way->grid.axis[1];
    const struct lanes_row samples = samples_line(&way->grid, row);
    const double scale = 2 / ((double)h->edge * (double)w->edge);
    const size_t lanes = depthwise_width(&plan->shape);
    for (size_t i = 0; i < w->edge / 2; i++) {
        const struct lanes_row from = apart_line(&way->grid, sum, i),
                                column = column_line(&way->grid, spectrum, i);
        plan->kernels->lanes_dft_inverse(&column, &from, &h->dft);
        if (h->dft.passes == 0) memcpy(column.re, from.re, element_bytes());
    }
    for (size_t r = 0; r < h->kernel; r++) {
        const struct lanes_row from = row_line(&way->grid, spectrum, r * h->dilation % h->edge);
        plan->kernels->lanes_dft_inverse(&samples, &from, &w->dft);
        for (size_t s = 0; s < w->kernel; s++, to += CONV_BLOCK_BYTES)
            plan->kernels->scale(to, row + s * w->dilation % w->edge * CONV_BLOCK_BYTES, scale,
                                 lanes);
    }
}

// One task: one block of lanes in one run of its tiles and turns.
static void sum_run(void *context, size_t task, int worker)
{
    const struct call *call = context;
    const struct partita_plan *plan = call->plan;
    const struct fft_way *way = plan->state;
    const struct grid *grid = &way->grid;
    const size_t b = task / way->runs, run = task % way->runs,
                 multiple = depthwise_multiple(&plan->shape);
    const struct depthwise_block block = depthwise_block(&plan->shape, b);
    const size_t tiles = grid_tiles(grid), all = depthwise_turns(&plan->shape, &block) * tiles;
    char *x = call->workspace + (size_t)worker * plan->choice.worker, *row = x + 3 * grid->bytes;
    char *sums = call->sums + task * way->run_bytes;
    const size_t begin = run * all / way->runs, end = (run + 1) * all / way->runs;
    if (begin == end) memset(sums, 0, way->run_bytes);
    for (size_t j = 0; begin < end && j < multiple; j++) {
        for (size_t i = begin; i < end; i++)
            add_tile(call, &block, i / tiles, i % tiles, j, x, row, i == begin);
        take_taps(plan, x + 2 * grid->bytes, x, row,
                  sums + j * shape_taps(&plan->shape) * CONV_BLOCK_BYTES);
    }
}

void depthwise_fft_weight(const struct partita_plan *plan, void *gw, const void *x, const void *gy,
                          void *workspace)
{
    const struct fft_way *way = plan->state;
    struct call call = {
        plan, NULL, NULL, x, gy, workspace, (char *)workspace + plan->choice.shared};
    const struct depthwise_sums sums = {workspace, way->runs, way->run_bytes, tap_of};
    thread_loop(plan->threads, depthwise_blocks(&plan->shape) * way->runs, sum_run, &call);
    depthwise_add_sums(plan, &sums, gw);
}
