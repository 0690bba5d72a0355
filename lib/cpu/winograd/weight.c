// SPDX-License-Identifier: MIT
// Backward weight of cpu/winograd: tiles of x and of gy are transformed, for each frequency their
// products are summed over all tiles (kernels->conv on panels, tiles being the terms), and the sums
// are transformed to taps: F(r x r, m x m), gy being the taps and the taps the outputs (Lavin &
// Gray, 4.1). Channels are moved into panels a vector at a time, while their transforms are in the
// cache. Sums are kept in one of three ways:
// - With few channels a task has its own panels and sums, over a split of the batches, and makes
//   taps of them; the splits are added.
// - With shared panels and several batches, a task makes one vector or block of the panels that all
//   threads share; when all are made, a task adds the products of one frequency and 256 x 256
//   channels to sums that are shared as well; taps come last.
// - With shared panels and a single batch, a task makes the sums of a strip of input channels and
//   four blocks of output channels, for all frequencies, and at once their taps.
#include <assert.h>
#include <string.h>

#include "base/thread.h"
#include "geometry/samples.h"
#include "product/product.h"
#include "winograd.h"

// Input channel c of the task, of one frequency: [tile][strip], c being the first of a strip or of
// a vector of it.
static char *weight_in_panel(const struct winograd_task *task, size_t c, size_t f)
{
    const struct winograd *p = task->p;
    const size_t strip = p->strip, plane = c / strip * p->frequencies + f;
    const size_t at = plane * p->positions * strip + c % strip;
    assert(at < p->in_panel);
    return task->scratch.in_panel + at * p->grid.scalar_bytes;
}

// The block of output channels k of the task: [tile][channel of the block].
static char *weight_out_panel(const struct winograd_task *task, size_t k, size_t f)
{
    const struct winograd *p = task->p;
    const size_t plane = k / CONV_CHANNELS * p->frequencies + f;
    const size_t at = plane * p->positions * CONV_CHANNELS;
    assert(at < p->out_panel);
    return task->scratch.out_panel + at * p->grid.scalar_bytes;
}

// Sums of one frequency: [strip][block of output channels][channel of the block][channel of the
// strip]; of all strips, or with a single batch of one.
static size_t sums_plane(const struct winograd *p)
{
    const size_t strips = p->single_batch ? 1 : ceil_div(p->chunk, p->strip);
    return strips * p->sum_blocks * CONV_CHANNELS * p->strip;
}

static char *weight_sums(const struct winograd_task *task, size_t c, size_t k, size_t f)
{
    const struct winograd *p = task->p;
    const size_t strip = p->single_batch ? 0 : c / p->strip;
    const size_t block = strip * p->sum_blocks + k / CONV_CHANNELS % p->sum_blocks;
    const size_t at = f * sums_plane(p) + block * CONV_CHANNELS * p->strip;
    assert(at < p->sums);
    return task->scratch.sums + at * p->grid.scalar_bytes;
}

// Panels of a vector of input channels from c on, or of a block of output channels.
static void make_panels(const struct winograd_task *task, bool outputs, size_t c)
{
    const struct winograd *p = task->p;
    const size_t count = outputs ? CONV_CHANNELS : winograd_lanes(p);
    const size_t first = outputs ? task->out : task->in;
    const size_t left = (outputs ? task->n_out : task->n_in) - c;
    const size_t plane = (outputs ? p->out_plane : p->in_plane) * p->grid.scalar_bytes;
    char *tiles = task->scratch.in;
    winograd_transform_channels(task, outputs, first + c, size_min(count, left), tiles);
    for (size_t f = 0; f < p->frequencies; f++)
        task->kernels->interleave(outputs ? weight_out_panel(task, c, f)
                                          : weight_in_panel(task, c, f),
                                  outputs ? CONV_CHANNELS : p->strip, tiles + f * plane,
                                  (ptrdiff_t)p->positions, count, task->index.tiles);
}

// A rectangle of channels of a task: whole strips of input channels in .. in_end-1, and output
// channels out .. out_end-1.
struct channels {
    size_t in, in_end, out, out_end;
};

// Adds the batch to the sums of a frequency, unless they begin with it. Terms are tiles, columns
// input channels.
static void multiply_panels(const struct winograd_task *task, size_t f,
                            const struct channels *channels, bool add)
{
    const struct winograd *p = task->p;
    const size_t strip = p->strip,
                 rows = size_round_up(channels->out_end - channels->out, CONV_CHANNELS);
    const size_t columns = winograd_vectors(p, channels->in_end - channels->in);
    const size_t panel = p->positions * strip;
    char *sums = weight_sums(task, channels->in, channels->out, f);
    if (!add && columns % strip) // the transform to taps reads the whole strip
        memset(weight_sums(task, channels->in_end - 1, channels->out, f), 0,
               rows * strip * p->grid.scalar_bytes);
    product_run(&(struct product){.plan = task->call->plan,
                                  .rows = rows,
                                  .columns = columns,
                                  .terms = task->index.tiles,
                                  .a = {.at = weight_out_panel(task, channels->out, f),
                                        .block = CONV_CHANNELS,
                                        .pitch = p->frequencies * p->positions * CONV_CHANNELS},
                                  .b = {.at = weight_in_panel(task, channels->in, f),
                                        .block = strip,
                                        .pitch = p->frequencies * panel,
                                        .term = strip,
                                        .offset = p->offset},
                                  .c = sums,
                                  .c_step = strip,
                                  .c_pitch = p->sum_blocks * CONV_CHANNELS * strip,
                                  .add = add,
                                  .segment = WINOGRAD.single_tiles,
                                  .next_b = weight_in_panel(task, channels->in, f) +
                                            panel * p->grid.scalar_bytes});
}

// Stores the taps of output channel k of the task and the strip of input channels from `first` on;
// tap (i, j) of channel c is at (i * columns + j) * n + c.
static void store_taps(const struct winograd_task *task, size_t first, size_t k, const char *taps,
                       size_t n)
{
    const struct winograd *p = task->p;
    const struct tile_grid *grid = &p->grid;
    const size_t bytes = grid->scalar_bytes, lanes = winograd_lanes(p);
    const size_t path_taps = shape_taps(&task->call->plan->shape);
    const size_t columns = winograd_axis(p, 1)->taps, all = winograd_axis(p, 0)->taps * columns;
    const size_t channels = size_min(task->n_in - first, p->strip);
    char *gw = split_k_sums(&task->call->split_k, task->split);
    for (size_t c = 0, n_c; c < channels; c += n_c) { // of one branch
        const size_t in = task->in + first + c;
        const size_t path = tile_grid_path(grid, task->group, task->out + k, in % grid->in);
        char *to = gw + path * path_taps * bytes;
        size_t branch[3];
        n_c = size_min(channels - c, grid->in - in % grid->in);
        tile_grid_branch(grid, in / grid->in, branch);
        // Whole vectors of channels whose taps follow one another in gw, in either direction.
        const size_t whole = grid->branches == 1 ? n_c / lanes * lanes : 0;
        const char *first_tap = taps + (c + (grid->flip ? (all - 1) * n : 0)) * bytes;
        task->kernels->interleave(to, all, first_tap, grid->flip ? -(ptrdiff_t)n : (ptrdiff_t)n,
                                  all, whole);
        for (size_t at = 0; at < all && whole < n_c; at++) {
            const size_t tap_at[3] = {0, at / columns, at % columns};
            const size_t tap = tile_grid_tap(grid, branch, tap_at);
            if (tap != SIZE_MAX)
                samples_copy(to + (whole * path_taps + tap) * bytes, path_taps,
                             taps + (at * n + c + whole) * bytes, 1, n_c - whole, bytes);
        }
    }
}

// Makes the taps of output channels k .. end-1 and of the strip of input channels c.
static void finish_taps(const struct winograd_task *task, size_t c, size_t k, size_t end)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes;
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, WINOGRAD_TAP_SUMS);
    transform.n = transform.y_plane = CONV_CHANNELS * p->strip;
    transform.x_column = sums_plane(p);
    for (size_t i = 0; i < transform.from[0]; i++)
        transform.x_row[i] = i * transform.from[1] * transform.x_column;
    // The memory of tiles, which are no longer needed.
    char *taps = task->scratch.in;
    char *stage = taps + transform.to[0] * transform.to[1] * transform.n * bytes;
    for (; k < end; k += CONV_CHANNELS) {
        winograd_transform_tiles(&transform, taps, weight_sums(task, c, k, 0), stage);
        for (size_t i = 0; i < CONV_CHANNELS && k + i < task->n_out; i++)
            store_taps(task, c, k + i, taps + i * p->strip * bytes, transform.n);
    }
}

// One task by itself: its channels through a split of the batches, then their taps.
static void run_weight_alone(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t chunks = ceil_div(p->in, p->chunk), batches = winograd_batches(p);
    struct winograd_task task =
        winograd_task(call, 0, index / chunks / p->oc_splits % p->grid.groups, worker);
    task.in = index % chunks * p->chunk;
    task.out = index / chunks % p->oc_splits * p->oc_split;
    task.split = index / chunks / p->oc_splits / p->grid.groups;
    task.n_in = size_min(p->chunk, p->in - task.in);
    task.n_out = size_min(p->oc_split, p->out - task.out);
    const size_t begin = task.split * batches / p->k_splits;
    const size_t end = (task.split + 1) * batches / p->k_splits;
    const struct channels all = {0, task.n_in, 0, task.n_out};
    for (size_t batch = begin; batch < end; batch++) {
        task.index = winograd_index(p, batch);
        for (size_t c = 0; c < task.n_in; c += winograd_lanes(p)) make_panels(&task, false, c);
        for (size_t k = 0; k < task.n_out; k += CONV_CHANNELS) make_panels(&task, true, k);
        for (size_t f = 0; f < p->frequencies; f++) multiply_panels(&task, f, &all, batch > begin);
    }
    for (size_t c = 0; c < task.n_in; c += p->strip) finish_taps(&task, c, 0, task.n_out);
}

// A vector of input channels, or a block of output channels.
static void run_shared_panels(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t vectors = ceil_div(p->in, winograd_lanes(p));
    const size_t tasks = vectors + ceil_div(p->out, CONV_CHANNELS), i = index % tasks;
    const struct winograd_task task =
        winograd_task(call, call->batch, call->first + index / tasks, worker);
    if (i < vectors) make_panels(&task, false, i * winograd_lanes(p));
    else make_panels(&task, true, (i - vectors) * CONV_CHANNELS);
}

// A frequency of at most 256 input and 256 output channels, whose panels and sums stay in the
// cache.
static void run_shared_products(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t max = WINOGRAD.weight_channels;
    const size_t n_in = ceil_div(p->in, max), n_out = ceil_div(p->out, max);
    const size_t in = index / n_out % n_in * max, out = index % n_out * max;
    const size_t f = index / n_out / n_in;
    const struct winograd_task task =
        winograd_task(call, call->batch, call->first + f / p->frequencies, worker);
    const struct channels channels = {in, size_min(in + max, p->in), out,
                                      size_min(out + max, p->out)};
    multiply_panels(&task, f % p->frequencies, &channels, call->batch > 0);
}

// The taps of a strip by some blocks of output channels; with a single batch their products first.
static void run_shared_taps(void *context, size_t index, int worker)
{
    const struct winograd_call *call = context;
    const struct winograd *p = call->plan->state;
    const size_t max = WINOGRAD.sum_blocks * CONV_CHANNELS;
    const size_t splits = ceil_div(p->out, max), strips = ceil_div(p->in, p->strip);
    const struct winograd_task task =
        winograd_task(call, 0, call->first + index / splits / strips, worker);
    const size_t in = index / splits % strips * p->strip, out = index % splits * max;
    const struct channels channels = {in, size_min(in + p->strip, p->in), out,
                                      size_min(out + max, p->out)};
    for (size_t f = 0; f < p->frequencies && p->single_batch; f++)
        multiply_panels(&task, f, &channels, false);
    finish_taps(&task, in, out, channels.out_end);
}

// The call's groups: panels and products batch by batch, then taps.
static void run_shared_groups(struct winograd_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct winograd *p = plan->state;
    const size_t max = WINOGRAD.weight_channels;
    const size_t panels = ceil_div(p->in, winograd_lanes(p)) + ceil_div(p->out, CONV_CHANNELS);
    const size_t products = p->frequencies * ceil_div(p->in, max) * ceil_div(p->out, max);
    const size_t taps =
        ceil_div(p->in, p->strip) * ceil_div(p->out, WINOGRAD.sum_blocks * CONV_CHANNELS);
    for (call->batch = 0; call->batch < winograd_batches(p); call->batch++) {
        thread_loop(plan->threads, call->groups * panels, run_shared_panels, call);
        if (!p->single_batch)
            thread_loop(plan->threads, call->groups * products, run_shared_products, call);
    }
    thread_loop(plan->threads, call->groups * taps, run_shared_taps, call);
}

void winograd_backward_weight(struct winograd_call *call)
{
    const struct partita_plan *plan = call->plan;
    const struct winograd *p = plan->state;
    assert(!p->shared_panels || p->k_splits == 1);
    for (; p->shared_panels && call->first < p->grid.groups; call->first += p->group_chunk) {
        call->groups = size_min(p->group_chunk, p->grid.groups - call->first);
        run_shared_groups(call);
    }
    if (p->shared_panels) return;
    const size_t tasks = ceil_div(p->in, p->chunk) * p->oc_splits * p->grid.groups;
    thread_loop(plan->threads, p->k_splits * tasks, run_weight_alone, call);
    split_k_reduce(&call->split_k);
}
