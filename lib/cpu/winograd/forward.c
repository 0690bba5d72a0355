// SPDX-License-Identifier: MIT
// Forward and backward data of cpu/winograd: tiles of a batch are transformed, for each frequency
// output channels are sums of input channels times transformed taps (kernels->conv, an input
// channel being a term and tiles positions), and the sums are transformed back, with bias and
// activation on the way into their rows (Lavin & Gray, algorithm 1, batch by batch). Batches and
// splits of the output channels are tasks, by shape alone. Where there are splits, and room for it,
// inputs are transformed once for all of them, before the first.
#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "geometry/samples.h"
#include "winograd.h"

// Taps of n output channels from `first` on of one group: ret[row][column][in][n]. Channels beyond
// the last are zeros.
static void gather_taps(const struct partita_plan *plan, char *ret, const char *taps, size_t group,
                        size_t first, size_t n)
{
    const struct winograd *p = plan->state;
    const struct tile_grid *grid = &p->grid;
    const size_t bytes = grid->scalar_bytes, columns = winograd_axis(p, 1)->taps;
    const size_t all = winograd_axis(p, 0)->taps * columns, path_taps = shape_taps(&plan->shape);
    const size_t next = tile_grid_cell(grid, 0, 0, 1) * path_taps; // input channel
    memset(ret, 0, all * p->in * n * bytes);
    for (size_t at = 0; at < all; at++)
        for (size_t c = 0; c < p->in; c += grid->in)
            for (size_t k = 0; k < n && first + k < p->out; k++) {
                const size_t tap_at[3] = {0, at / columns, at % columns};
                size_t phase[3];
                tile_grid_phase(grid, grid->phases_out ? (first + k) / grid->out : c / grid->in,
                                phase);
                const size_t tap = tile_grid_tap(grid, phase, tap_at);
                const size_t path = tile_grid_cell(grid, group, (first + k) % grid->out, 0);
                if (tap != SIZE_MAX)
                    samples_copy(ret + ((at * p->in + c) * n + k) * bytes, n,
                                 taps + (path * path_taps + tap) * bytes, next, grid->in, bytes);
            }
}

// Transformed taps: [group][frequency][block of output channels][in][channels of the block], each
// frequency with room for the last vector of its last block. Transposed, the last block is as wide
// as the others.
enum partita_status winograd_filter_create(struct partita_filter *filter, const void *taps)
{
    const struct partita_plan *plan = filter->plan;
    const struct winograd *p = plan->state;
    const size_t bytes = plan->shape.scalar_bytes, frequencies = p->frequencies;
    const size_t gathered = winograd_vectors(p, p->in * p->oc_block);
    struct winograd_transform transform = winograd_transform_of(p, plan->kernels, WINOGRAD_TAPS);
    const size_t rows = transform.from[0], columns = transform.from[1];
    const size_t planes = size_mul(plan->shape.groups * frequencies, p->filter_plane);
    filter->state = mem_reserve(&plan->allocator, size_mul(planes, bytes));
    char *scratch =
        mem_allocate(&plan->allocator, size_mul(rows * columns + frequencies, gathered * bytes));
    const bool made = scratch && filter->state;
    char *stage = made ? scratch + rows * columns * gathered * bytes : NULL;
    transform.y_plane = p->filter_plane;
    for (size_t group = 0; group < plan->shape.groups && made; group++)
        for (size_t first = 0; first < p->out; first += p->oc_block) {
            const size_t n = p->transposed ? p->oc_block : size_min(p->out - first, p->oc_block);
            char *to = (char *)filter->state +
                       (group * frequencies * p->filter_plane + first * p->in) * bytes;
            gather_taps(plan, scratch, taps, group, first, n);
            transform.n = winograd_vectors(p, p->in * n);
            transform.x_column = p->in * n;
            assert(first * p->in + transform.n <= p->filter_plane);
            for (size_t i = 0; i < rows; i++) transform.x_row[i] = i * columns * transform.x_column;
            winograd_transform_tiles(&transform, to, scratch, stage);
        }
    mem_release(&plan->allocator, scratch);
    return made ? PARTITA_OK : PARTITA_ERR_NOMEM;
}

struct forward_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    char *to;
    const char *from;
    char *workspace;
};

// One task: a batch of tiles, some output channels of a group, and the memory of its worker.
struct forward_task {
    const struct forward_call *call;
    const struct winograd *p;
    const struct kernels *kernels;
    struct winograd_index index;
    size_t group, first, end; // output channels of the group, phases included
    size_t n;                 // positions of the batch
    const char *in;           // transformed inputs of the chunk
    char *panels;             // shared, transposed: one for each frequency
    struct winograd_scratch scratch;
};

// Taps of a frequency and block of output channels.
static const char *forward_taps(const struct forward_task *task, size_t f, size_t k)
{
    const struct winograd *p = task->p;
    const size_t plane = (task->group * p->frequencies + f) * p->filter_plane;
    return (const char *)task->call->filter->state + (plane + k * p->in) * p->grid.scalar_bytes;
}

// Adds n transformed input channels from `first` on to all output channels of the task.
static void multiply_tiles(const struct forward_task *task, size_t first, size_t n)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, pitch = p->positions;
    for (size_t f = 0; f < p->frequencies; f++)
        for (size_t k = task->first; k < task->end; k += CONV_CHANNELS) {
            const size_t channels = size_min(task->end - k, CONV_CHANNELS);
            char *sums = task->scratch.out + (f * p->out_plane + (k - task->first) * pitch) * bytes;
            if (first == 0) memset(sums, 0, channels * pitch * bytes);
            task->kernels->conv(sums, pitch, task->in + f * p->in_plane * bytes, p->offset, n,
                                forward_taps(task, f, k) + first * channels * bytes, channels,
                                task->n, 0);
        }
}

// The panel of a frequency in shared memory.
static char *shared_panel(const struct forward_task *task, size_t f)
{
    return task->panels + f * mem_round(task->p->in_panel * task->p->grid.scalar_bytes);
}

// Transposed: makes the panel of a frequency.
static const char *make_panel(const struct forward_task *task, size_t f, char *panel)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, tiles = task->index.tiles;
    for (size_t t = 0; t < tiles; t += CONV_CHANNELS)
        task->kernels->conv_rows(panel + t * p->in * bytes,
                                 task->scratch.in + (f * p->in_plane + t) * bytes, p->positions,
                                 p->in, size_min(tiles - t, CONV_CHANNELS));
    return panel;
}

// The same with output channels as positions, for all input channels: sums [tile][output channel],
// then transposed.
static void multiply_transposed(const struct forward_task *task)
{
    const struct winograd *p = task->p;
    const struct winograd_scratch *scratch = &task->scratch;
    const size_t bytes = p->grid.scalar_bytes, in = p->in, pitch = p->oc_split;
    const size_t lanes = winograd_lanes(p), tiles = task->index.tiles;
    for (size_t f = 0; f < p->frequencies; f++) {
        const char *panel =
            p->shared_inputs ? shared_panel(task, f) : make_panel(task, f, task->scratch.in_panel);
        memset(scratch->out_panel, 0, task->n * pitch * bytes);
        for (size_t k = task->first; k < task->end; k += p->oc_block)
            for (size_t t = 0; t < tiles; t += CONV_CHANNELS)
                for (size_t c = 0; c < in; c += WINOGRAD_TERMS) {
                    const size_t n = size_min(tiles - t, CONV_CHANNELS);
                    task->kernels->conv(scratch->out_panel + (t * pitch + k - task->first) * bytes,
                                        pitch, forward_taps(task, f, k) + c * p->oc_block * bytes,
                                        p->offset, size_min(in - c, WINOGRAD_TERMS),
                                        panel + (t * in + c * n) * bytes, n, p->oc_block,
                                        t ? 0 : CONV_AHEAD_BYTES);
                }
        for (size_t t = 0; t < tiles; t += lanes)
            task->kernels->interleave(scratch->out + (f * p->out_plane + t) * bytes, p->positions,
                                      scratch->out_panel + t * pitch * bytes, (ptrdiff_t)pitch,
                                      lanes, task->end - task->first);
    }
}

// Stores the rows of outputs of one map and output channel from their tiles; element (i, j) is at
// (i * columns + j) * n.
static void store_rows(const struct forward_task *task, size_t map, size_t k, const char *tiles,
                       size_t n)
{
    const struct forward_call *call = task->call;
    const struct winograd *p = task->p;
    const struct tile_grid *grid = &p->grid;
    const struct winograd_index *index = &task->index;
    const struct tile_axis *down = winograd_axis(p, 0), *along = winograd_axis(p, 1);
    const size_t bytes = grid->scalar_bytes, cols = index->batch.cols;
    const size_t channel = task->group * grid->out + k % grid->out;
    const size_t plane_bytes = down->out.size * along->out.size * bytes;
    const bool forward = !grid->phases_out;
    const char *bias = forward ? call->filter->bias : NULL;
    const struct conv_finish finish = {.bias = bias ? bias + channel * bytes : NULL,
                                       .relu = forward && call->plan->shape.relu};
    struct winograd_plane plane;
    winograd_map(p, map, &plane);
    tile_grid_phase(grid, forward ? 0 : k / grid->out, plane.phase);
    char *to = call->to + (plane.item * grid->groups * grid->out + channel) * plane_bytes;
    plane.samples = to + plane_bytes; // of the next channel
    if (k + 1 < task->end && k % grid->out + 1 < grid->out && index->batch.maps == 1)
        winograd_prefetch(p, index, &plane, true, true);
    const ptrdiff_t q = tile_output(along, index->at[1]);
    const struct tile_range range =
        tile_within(&along->out, plane.image[2], plane.phase[2], q, cols * along->tile);
    if (range.begin == range.end) return;
    const ptrdiff_t column =
        tile_sample(&along->out, plane.image[2], plane.phase[2], q + (ptrdiff_t)range.begin);
    for (size_t i = 0; i < down->tile; i++) {
        task->kernels->interleave(task->scratch.rows, along->tile,
                                  tiles + i * along->tile * n * bytes, (ptrdiff_t)n, along->tile,
                                  index->batch.rows * cols);
        for (size_t r = 0; r < index->batch.rows; r++) {
            const ptrdiff_t row = tile_sample(&down->out, plane.image[1], plane.phase[1],
                                              tile_output(down, index->at[0] + r) + (ptrdiff_t)i);
            if (!tile_inside(&down->out, row)) continue;
            task->kernels->conv_store(
                to + ((size_t)row * along->out.size + (size_t)column) * bytes, along->out.step,
                task->scratch.rows + (r * cols * along->tile + range.begin) * bytes,
                range.end - range.begin, &finish);
        }
    }
}

static void transform_outputs(const struct forward_task *task)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes;
    const size_t tiles = task->index.batch.rows * task->index.batch.cols;
    struct winograd_transform transform = winograd_transform_of(p, task->kernels, WINOGRAD_OUTPUT);
    transform.n = transform.y_plane = winograd_vectors(p, tiles);
    transform.x_column = p->out_plane;
    for (size_t i = 0; i < transform.from[0]; i++)
        transform.x_row[i] = i * transform.from[1] * p->out_plane;
    for (size_t k = task->first; k < task->end; k++)
        for (size_t m = 0; m < task->index.batch.maps; m++) {
            const size_t at = (k - task->first) * p->positions + m * tiles;
            winograd_transform_tiles(&transform, task->scratch.samples,
                                     task->scratch.out + at * bytes, task->scratch.stage);
            store_rows(task, task->index.map + m, k, task->scratch.samples, transform.n);
        }
}

static struct forward_task forward_task(const struct forward_call *call, size_t batch, size_t group,
                                        int worker)
{
    const struct winograd *p = call->plan->state;
    struct forward_task task = {
        .call = call, .p = p, .kernels = call->plan->kernels, .group = group};
    struct arena own = {.base = call->workspace + call->plan->choice.shared +
                                (size_t)worker * p->worker};
    task.index = winograd_index(p, batch);
    task.n = winograd_vectors(p, task.index.tiles);
    task.scratch = winograd_layout_worker(p, &own);
    if (p->shared_inputs) {
        const struct winograd_shared shared =
            winograd_shared(p, call->workspace, batch * p->grid.groups + group);
        task.scratch.in = shared.in;
        task.panels = shared.in_panel;
    }
    return task;
}

// Transforms n input channels from `first` on to where channel `at` of the batch's inputs is.
static void transform_chunk(const struct forward_task *task, size_t first, size_t n, size_t at)
{
    const struct winograd *p = task->p;
    const struct winograd_inputs inputs = {.p = p,
                                           .kernels = task->kernels,
                                           .group = task->group,
                                           .index = task->index,
                                           .from = task->call->from,
                                           .to = task->scratch.in +
                                                 at * p->positions * p->grid.scalar_bytes,
                                           .scratch = &task->scratch};
    winograd_transform_inputs(&inputs, first, n);
}

// Some input channels of a batch, for all splits.
static void run_shared_inputs(void *context, size_t index, int worker)
{
    const struct forward_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t chunks = ceil_div(p->in, WINOGRAD.input_channels), groups = p->grid.groups;
    const size_t first = index % chunks * WINOGRAD.input_channels;
    const struct forward_task task =
        forward_task(call, index / chunks / groups, index / chunks % groups, worker);
    transform_chunk(&task, first, size_min(WINOGRAD.input_channels, p->in - first), first);
}

// The panel of a frequency, for all splits.
static void run_shared_panel(void *context, size_t index, int worker)
{
    const struct forward_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t groups = p->grid.groups, f = index % p->frequencies;
    index /= p->frequencies;
    const struct forward_task task = forward_task(call, index / groups, index % groups, worker);
    make_panel(&task, f, shared_panel(&task, f));
}

static void run_forward_task(void *context, size_t index, int worker)
{
    const struct forward_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t splits = p->oc_splits, groups = p->grid.groups;
    struct forward_task task =
        forward_task(call, index / splits / groups, index / splits % groups, worker);
    task.first = index % splits * p->oc_split;
    task.end = size_min(task.first + p->oc_split, p->out);
    task.in = task.scratch.in;
    for (size_t first = 0; first < p->in; first += p->chunk) {
        const size_t n = size_min(p->chunk, p->in - first);
        if (p->shared_inputs)
            task.in = task.scratch.in + first * p->positions * p->grid.scalar_bytes;
        else transform_chunk(&task, first, n, 0);
        if (p->transposed) multiply_transposed(&task);
        else multiply_tiles(&task, first, n);
    }
    transform_outputs(&task);
}

void winograd_forward(const struct partita_plan *plan, const struct partita_filter *filter, void *y,
                      const void *x, void *workspace)
{
    const struct winograd *p = plan->state;
    const struct shape *shape = &plan->shape;
    const size_t batches = winograd_batches(p) * p->grid.groups;
    struct forward_call call = {plan, filter, y, x, workspace};
    assert(winograd_shared_bytes(p) <= plan->choice.shared);
    if (!p->grid.covers)
        memset(y, 0, shape->batch * shape->in_channels * shape_inputs(shape) * shape->scalar_bytes);
    if (p->shared_inputs)
        thread_loop(plan->threads, batches * ceil_div(p->in, WINOGRAD.input_channels),
                    run_shared_inputs, &call);
    if (p->shared_inputs && p->transposed)
        thread_loop(plan->threads, batches * p->frequencies, run_shared_panel, &call);
    thread_loop(plan->threads, batches * p->oc_splits, run_forward_task, &call);
}
