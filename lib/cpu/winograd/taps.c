// SPDX-License-Identifier: MIT
// Filters of cpu/winograd: taps are gathered by tap and channel, and transformed (G g G').
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "base/thread.h"
#include "geometry/samples.h"
#include "winograd.h"

// Taps of some channels of one group, of n outputs from `first` on and n_in inputs from `in` on.
struct taps_of {
    const char *taps;
    size_t group, first, n, in, n_in;
};

// The taps of `count` inputs from c on, all of one branch, to ret[row][column][in][n].
static void gather_inputs(const struct partita_plan *plan, char *ret, const struct taps_of *range,
                          size_t c, size_t count)
{
    const struct winograd *p = plan->state;
    const struct tile_grid *grid = &p->grid;
    const size_t bytes = grid->scalar_bytes, columns = winograd_axis(p, 1)->taps;
    const size_t all = winograd_axis(p, 0)->taps * columns, path_taps = shape_taps(&plan->shape);
    const size_t next = tile_grid_path(grid, 0, 0, 1) * path_taps; // input channel
    for (size_t at = 0; at < all; at++) {
        char *to = ret + (at * range->n_in + c - range->in) * range->n * bytes;
        const size_t tap_at[3] = {0, at / columns, at % columns};
        size_t tap = SIZE_MAX, last = SIZE_MAX; // branch
        for (size_t k = 0; k < range->n && range->first + k < p->out; k++) {
            const size_t out = range->first + k;
            const size_t number = grid->branches_out ? out / grid->out : c / grid->in;
            size_t branch[3];
            if (number != last) {
                tile_grid_branch(grid, number, branch);
                tap = tile_grid_tap(grid, branch, tap_at);
                last = number;
            }
            const size_t path = tile_grid_path(grid, range->group, out % grid->out, c % grid->in);
            if (tap != SIZE_MAX)
                samples_copy(to + k * bytes, range->n,
                             range->taps + (path * path_taps + tap) * bytes, next, count, bytes);
        }
    }
}

// ret[row][column][in][n]; channels beyond the last are zeros. Few inputs at once, whose taps stay
// in the L1 cache until all of a line are copied.
static void gather_taps(const struct partita_plan *plan, char *ret, const struct taps_of *range)
{
    enum { INPUTS = 32 };
    const struct winograd *p = plan->state;
    const size_t in = p->grid.in, end = range->in + range->n_in;
    memset(ret, 0,
           winograd_axis(p, 0)->taps * winograd_axis(p, 1)->taps * range->n_in * range->n *
               p->grid.scalar_bytes);
    for (size_t c = range->in, count; c < end; c += count) {
        count = size_min(size_min(in - c % in, end - c), INPUTS);
        gather_inputs(plan, ret, range, c, count);
    }
}

// Scratch memory of packing taps of n_in inputs and n outputs: gathered, then the stage.
static size_t winograd_gathered_bytes(const struct winograd *p, size_t n_in, size_t n)
{
    const size_t taps = winograd_axis(p, 0)->taps * winograd_axis(p, 1)->taps;
    return (taps + p->frequencies) * winograd_vectors(p, n_in * n) * p->grid.scalar_bytes;
}

// The fewest inputs of n outputs that are whole vectors.
static size_t winograd_taps_step(const struct winograd *p, size_t n)
{
    const size_t lanes = winograd_lanes(p);
    return lanes / size_gcd(lanes, n);
}

// Inputs of n outputs that are transformed together: their planes stay in the nearest caches. They
// are whole vectors, or all inputs.
static size_t winograd_taps_chunk(const struct winograd *p, size_t n)
{
    return size_min(size_round_up(WINOGRAD.taps_together / n, winograd_taps_step(p, n)), p->in);
}

struct filter_bytes winograd_filter_bytes(const struct partita_plan *plan)
{
    const struct winograd *p = plan->state;
    const size_t planes = size_mul(plan->shape.groups * p->frequencies, p->filter_plane);
    const size_t worker =
        winograd_gathered_bytes(p, winograd_taps_chunk(p, p->oc_block), p->oc_block);
    return (struct filter_bytes){.packed = size_mul(planes, plan->shape.scalar_bytes),
                                 .scratch = size_mul((size_t)plan->threads, worker)};
}

// Transforms taps to where filter->state has them from `to` on.
static void transform_taps_of(const struct partita_filter *filter, const struct taps_of *range,
                              char *to, char *scratch)
{
    const struct winograd *p = filter->plan->state;
    const size_t bytes = p->grid.scalar_bytes, n = range->n_in * range->n;
    struct winograd_transform transform =
        winograd_transform_of(p, filter->plan->kernels, WINOGRAD_TAPS);
    gather_taps(filter->plan, scratch, range);
    transform.y_plane = p->filter_plane;
    transform.n = winograd_vectors(p, n);
    transform.x_column = n;
    for (size_t i = 0; i < transform.from[0]; i++)
        transform.x_row[i] = i * transform.from[1] * transform.x_column;
    winograd_transform_tiles(&transform, to, scratch,
                             scratch + transform.from[0] * transform.from[1] * transform.n * bytes);
}

// Packing taps of all groups; a worker has `bytes` of scratch memory.
struct winograd_pack {
    const struct partita_filter *filter;
    const char *taps;
    char *scratch;
    size_t bytes;
};

// Output channels of a block.
static size_t winograd_block_width(const struct winograd *p, size_t first)
{
    return p->transposed ? p->oc_block : size_min(p->out - first, p->oc_block);
}

// A segment of a block of output channels of one group, as many inputs at once as there is memory
// for. Indices are in the order of memory.
static void winograd_pack_block(void *context, size_t index, int worker)
{
    const struct winograd_pack *pack = context;
    const struct winograd *p = pack->filter->plan->state;
    const size_t blocks = ceil_div(p->out, p->oc_block), segments = ceil_div(p->in, p->segment);
    const size_t group = index / blocks / segments, begin = index / blocks % segments * p->segment;
    const size_t end = size_min(begin + p->segment, p->in);
    const size_t first = index % blocks * p->oc_block, n = winograd_block_width(p, first);
    const size_t step = winograd_taps_step(p, n);
    size_t chunk = winograd_taps_chunk(p, n);
    if (winograd_gathered_bytes(p, chunk, n) > pack->bytes)
        chunk = pack->bytes / winograd_gathered_bytes(p, step, n) * step;
    assert(chunk > 0);
    for (size_t in = begin; in < end; in += chunk) {
        const size_t at =
            group * p->frequencies * p->filter_plane + winograd_taps_at(p, in, first, n);
        const struct taps_of range = {pack->taps, group, first, n, in, size_min(chunk, end - in)};
        transform_taps_of(pack->filter, &range,
                          (char *)pack->filter->state + at * p->grid.scalar_bytes,
                          pack->scratch + (size_t)worker * pack->bytes);
    }
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
    struct winograd_pack pack = {
        filter, taps, scratch->data,
        size_min(winograd_gathered_bytes(p, winograd_taps_chunk(p, n), n), scratch->bytes)};
    const size_t segments = ceil_div(p->in, p->segment);
    const size_t last = p->transposed ? 0 : p->out % n;
    const bool whole = segments == 1 || (p->segment * n % winograd_lanes(p) == 0 &&
                                         p->segment * last % winograd_lanes(p) == 0);
    const bool alone =
        !whole || p->in * n % winograd_lanes(p) || blocks * p->in * n < WINOGRAD.few_taps;
    thread_loop(alone ? 1 : plan_threads_in(plan, scratch, pack.bytes), segments * blocks,
                winograd_pack_block, &pack);
    return PARTITA_OK;
}
