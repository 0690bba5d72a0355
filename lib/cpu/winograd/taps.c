// SPDX-License-Identifier: MIT
// Filters of cpu/winograd: taps are gathered by tap and channel, and transformed (G g G').
// Gradients of taps: sums are transformed, and scattered to the caller's array.
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "winograd.h"

// Input channels in .. in+n-1, of one branch, and an output channel of a group.
struct paths {
    size_t group, out, in, n;
};

// The taps of paths, tap by tap of a branch, and scalars from one tap and channel to the next.
struct tap_matrix {
    char *at;
    size_t tap, channel;
};

// Copies taps from the caller's array to a matrix or, `scatter`, from there. Those that a branch
// does not have are left out.
static void copy_taps(const struct partita_plan *plan, const struct paths *paths,
                      const struct tap_matrix *matrix, char *taps, bool scatter)
{
    const struct winograd *p = plan->state;
    const struct tile_grid *grid = &p->grid;
    const size_t bytes = grid->scalar_bytes, columns = winograd_axis(p, 1)->taps;
    const size_t path_taps = shape_taps(&plan->shape), out = paths->out, in = paths->in;
    const size_t path = tile_grid_path(grid, paths->group, out % grid->out, in % grid->in);
    const size_t next = tile_grid_path(grid, 0, 0, 1) * path_taps; // input channel
    size_t branch[3];
    tile_grid_branch(grid, grid->branches_out ? out / grid->out : in / grid->in, branch);
    const size_t rows = winograd_axis(p, 0)->taps;
    for (size_t at = 0; at < grid->axis[0].taps * rows * columns; at++) {
        const size_t tap_at[3] = {at / columns / rows, at / columns % rows, at % columns};
        const size_t tap = tile_grid_tap(grid, branch, tap_at);
        if (tap == SIZE_MAX) continue;
        char *plain = taps + (path * path_taps + tap) * bytes;
        char *packed = matrix->at + at * matrix->tap * bytes;
        if (scatter) samples_copy(plain, next, packed, matrix->channel, paths->n, bytes);
        else samples_copy(packed, matrix->channel, plain, next, paths->n, bytes);
    }
}

// The fewest inputs of n outputs that are whole vectors.
static size_t taps_step(const struct winograd *p, size_t n)
{
    const size_t lanes = winograd_lanes(p);
    return lanes / size_gcd(lanes, n);
}

// Inputs of n outputs that are transformed together: their planes stay in the nearest caches. They
// are whole vectors, or all inputs.
static size_t taps_chunk(const struct winograd *p, size_t n)
{
    return size_min(size_round_up(WINOGRAD.taps_together / n, taps_step(p, n)), p->in);
}

// Scratch memory of packing taps of n_in inputs and n outputs: gathered, then the stage.
static size_t gathered_bytes(const struct winograd *p, size_t n_in, size_t n)
{
    const struct tile_axis *axis = p->grid.axis;
    const size_t taps = axis[0].taps * axis[1].taps * axis[2].taps;
    return (taps + p->frequencies) * winograd_vectors(p, n_in * n) * p->grid.scalar_bytes;
}

struct filter_bytes winograd_filter_bytes(const struct partita_plan *plan)
{
    const struct winograd *p = plan->state;
    const size_t planes = size_mul(plan->shape.groups * p->frequencies, p->filter_plane);
    const size_t worker = gathered_bytes(p, taps_chunk(p, p->oc_block), p->oc_block);
    return (struct filter_bytes){.packed = size_mul(planes, plan->shape.scalar_bytes),
                                 .scratch = size_mul((size_t)plan->threads, worker)};
}

// Packing taps of all groups; a worker has `bytes` of scratch memory.
struct pack {
    const struct partita_filter *filter;
    char *taps, *scratch;
    size_t bytes;
};

// Transforms the taps of a block of n output channels from `first` on and of n_in inputs from `in`
// on. Few inputs are gathered at once, whose taps stay in the L1 cache until all of a line are
// copied; outputs beyond the last are zeros.
static void transform_block_of_taps(const struct pack *pack, size_t group, const size_t in[2],
                                    const size_t out[2], char *scratch)
{
    enum { INPUTS = 32 };
    const struct partita_plan *plan = pack->filter->plan;
    const struct winograd *p = plan->state;
    const size_t bytes = p->grid.scalar_bytes, n = out[1] - out[0], all = (in[1] - in[0]) * n;
    struct winograd_transform transform = winograd_transform_of(p, plan->kernels, WINOGRAD_TAPS);
    const size_t taps = transform.from[0] * transform.from[1] * transform.from[WINOGRAD_DEPTH];
    memset(scratch, 0, taps * all * bytes);
    for (size_t c = in[0], count; c < in[1]; c += count) {
        count = size_min(size_min(p->grid.in - c % p->grid.in, in[1] - c), INPUTS);
        for (size_t k = 0; k < size_min(n, p->out - out[0]); k++)
            copy_taps(plan, &(struct paths){group, out[0] + k, c, count},
                      &(struct tap_matrix){scratch + ((c - in[0]) * n + k) * bytes, all, n},
                      pack->taps, false);
    }
    winograd_transform_strides(&transform, winograd_vectors(p, all), all, p->filter_plane);
    const size_t at =
        group * p->frequencies * p->filter_plane + winograd_taps_at(p, in[0], out[0], n);
    winograd_transform_tiles(&transform, (char *)pack->filter->state + at * bytes, scratch,
                             scratch + taps * transform.n * bytes);
}

// A segment of a block of output channels of one group, as many inputs at once as there is memory
// for. Indices are in the order of memory.
static void pack_block(void *context, size_t index, int worker)
{
    const struct pack *pack = context;
    const struct winograd *p = pack->filter->plan->state;
    const size_t blocks = ceil_div(p->out, p->oc_block), segments = ceil_div(p->in, p->segment);
    const size_t begin = index / blocks % segments * p->segment;
    const size_t end = size_min(begin + p->segment, p->in), first = index % blocks * p->oc_block;
    const size_t n = p->transposed ? p->oc_block : size_min(p->out - first, p->oc_block);
    size_t chunk = taps_chunk(p, n);
    if (gathered_bytes(p, chunk, n) > pack->bytes)
        chunk = pack->bytes / gathered_bytes(p, taps_step(p, n), n) * taps_step(p, n);
    assert(chunk > 0);
    for (size_t in = begin; in < end; in += chunk)
        transform_block_of_taps(
            pack, index / blocks / segments, (const size_t[]){in, size_min(in + chunk, end)},
            (const size_t[]){first, first + n}, pack->scratch + (size_t)worker * pack->bytes);
}

// Transformed taps: [group][frequency][segment][block of output channels][in][channels of the
// block], each frequency with capacity for the last vector of its last block. Transposed, the last
// block is as wide as the others. A workspace has memory for the fewest inputs of a block on one
// thread, since it holds vectors of more planes. The last vector of a block that is no whole one
// reaches into the next block, which then has to be packed later, by the same thread.
enum partita_status winograd_filter_pack(struct partita_filter *filter, const void *taps,
                                         const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct winograd *p = plan->state;
    const size_t n = p->oc_block, blocks = plan->shape.groups * ceil_div(p->out, n);
    struct pack pack = {filter, (char *)taps, scratch->data,
                        size_min(gathered_bytes(p, taps_chunk(p, n), n), scratch->bytes)};
    const size_t segments = ceil_div(p->in, p->segment), lanes = winograd_lanes(p);
    const size_t last = p->transposed ? 0 : p->out % n;
    const bool whole =
        segments == 1 || (p->segment * n % lanes == 0 && p->segment * last % lanes == 0);
    const bool alone = !whole || p->in * n % lanes || blocks * p->in * n < WINOGRAD.few_taps;
    thread_loop(alone ? 1 : plan_threads_in(plan, scratch, pack.bytes), segments * blocks,
                pack_block, &pack);
    return PARTITA_OK;
}

// Stores the taps of output channel k of the task and of its input channels, a matrix with n
// scalars from one tap to the next.
static void scatter_taps(const struct winograd_task *task, size_t k, char *taps, size_t n)
{
    const struct winograd *p = task->p;
    const struct tile_grid *grid = &p->grid;
    const struct partita_plan *plan = task->call->plan;
    const size_t bytes = grid->scalar_bytes, lanes = winograd_lanes(p);
    const size_t all = shape_taps(&plan->shape);
    char *gw = split_k_sums(&task->call->split_k, task->split);
    for (size_t c = 0, n_c; c < task->n_in; c += n_c) { // of one branch
        const size_t in = task->in + c;
        const size_t path = tile_grid_path(grid, task->group, task->out + k, in % grid->in);
        n_c = size_min(task->n_in - c, grid->in - in % grid->in);
        // Whole vectors of channels whose taps follow one another in gw, in either direction.
        const size_t whole = grid->branches == 1 ? n_c / lanes * lanes : 0;
        const struct paths rest = {task->group, task->out + k, in + whole, n_c - whole};
        task->kernels->transpose(gw + path * all * bytes, all,
                                 taps + (c + (grid->flip ? (all - 1) * n : 0)) * bytes,
                                 grid->flip ? -n : n, all, whole);
        if (rest.n)
            copy_taps(plan, &rest, &(struct tap_matrix){taps + (c + whole) * bytes, n, 1}, gw,
                      true);
    }
}

void winograd_store_taps(const struct winograd_task *task)
{
    const struct winograd *p = task->p;
    const size_t bytes = p->grid.scalar_bytes, width = winograd_vectors(p, task->n_in);
    struct winograd_transform transform =
        winograd_transform_of(p, task->kernels, WINOGRAD_TAP_SUMS);
    const size_t results = transform.to[0] * transform.to[1] * transform.to[WINOGRAD_DEPTH];
    char *taps = task->scratch.tiles;
    for (size_t k = 0; k < task->n_out; k += CONV_CHANNELS) {
        const size_t count = size_min(CONV_CHANNELS, task->n_out - k), n = count * width;
        winograd_transform_strides(&transform, n, p->sums_plane, n);
        winograd_transform_tiles(&transform, taps, task->scratch.sums + k * width * bytes,
                                 taps + results * n * bytes);
        for (size_t i = 0; i < count; i++) scatter_taps(task, k + i, taps + i * width * bytes, n);
    }
}
