// SPDX-License-Identifier: MIT
// Filters of cpu/winograd: taps are gathered by tap and channel, and transformed (G g G').
#include <assert.h>
#include <string.h>

#include "base/sizes.h"
#include "geometry/samples.h"
#include "winograd.h"

// Taps of some channels of one group, of n outputs from `first` on and n_in inputs from `in` on.
struct taps_of {
    const char *taps;
    size_t group, first, n, in, n_in;
};

// ret[row][column][in][n]; channels beyond the last are zeros.
static void gather_taps(const struct partita_plan *plan, char *ret, const struct taps_of *of)
{
    const struct winograd *p = plan->state;
    const struct tile_grid *grid = &p->grid;
    const size_t bytes = grid->scalar_bytes, columns = winograd_axis(p, 1)->taps;
    const size_t all = winograd_axis(p, 0)->taps * columns, path_taps = shape_taps(&plan->shape);
    const size_t next = tile_grid_path(grid, 0, 0, 1) * path_taps; // input channel
    memset(ret, 0, all * of->n_in * of->n * bytes);
    for (size_t at = 0; at < all; at++)
        for (size_t c = of->in, count; c < of->in + of->n_in; c += count) {
            char *to = ret + (at * of->n_in + c - of->in) * of->n * bytes;
            count = size_min(grid->in - c % grid->in, of->in + of->n_in - c);
            for (size_t k = 0; k < of->n && of->first + k < p->out; k++) {
                const size_t tap_at[3] = {0, at / columns, at % columns}, out = of->first + k;
                size_t branch[3];
                tile_grid_branch(grid, grid->branches_out ? out / grid->out : c / grid->in, branch);
                const size_t tap = tile_grid_tap(grid, branch, tap_at);
                const size_t path = tile_grid_path(grid, of->group, out % grid->out, c % grid->in);
                if (tap != SIZE_MAX)
                    samples_copy(to + k * bytes, of->n, of->taps + (path * path_taps + tap) * bytes,
                                 next, count, bytes);
            }
        }
}

// Scratch memory of packing taps of n_in inputs and n outputs: gathered, then the stage.
static size_t winograd_gathered_bytes(const struct winograd *p, size_t n_in, size_t n)
{
    const size_t taps = winograd_axis(p, 0)->taps * winograd_axis(p, 1)->taps;
    return (taps + p->frequencies) * winograd_vectors(p, n_in * n) * p->grid.scalar_bytes;
}

struct filter_bytes winograd_filter_bytes(const struct partita_plan *plan)
{
    const struct winograd *p = plan->state;
    const size_t planes = size_mul(plan->shape.groups * p->frequencies, p->filter_plane);
    return (struct filter_bytes){.packed = size_mul(planes, plan->shape.scalar_bytes),
                                 .scratch = winograd_gathered_bytes(p, p->in, p->oc_block)};
}

// Transforms taps to where filter->state has them from `to` on.
static void transform_taps_of(const struct partita_filter *filter, const struct taps_of *of,
                              char *to, char *scratch)
{
    const struct winograd *p = filter->plan->state;
    const size_t bytes = p->grid.scalar_bytes, n = of->n_in * of->n;
    struct winograd_transform transform =
        winograd_transform_of(p, filter->plan->kernels, WINOGRAD_TAPS);
    gather_taps(filter->plan, scratch, of);
    transform.y_plane = p->filter_plane;
    transform.n = winograd_vectors(p, n);
    transform.x_column = n;
    for (size_t i = 0; i < transform.from[0]; i++)
        transform.x_row[i] = i * transform.from[1] * transform.x_column;
    winograd_transform_tiles(&transform, to, scratch,
                             scratch + transform.from[0] * transform.from[1] * transform.n * bytes);
}

// Transformed taps: [group][frequency][block of output channels][in][channels of the block], each
// frequency with capacity for the last vector of its last block. Transposed, the last block is as
// wide as the others. All inputs of a block at once, or as many whole vectors as there is memory
// for: a workspace has it for the fewest, since it holds vectors of more planes.
enum partita_status winograd_filter_pack(struct partita_filter *filter, const void *taps,
                                         const struct region *scratch)
{
    const struct partita_plan *plan = filter->plan;
    const struct winograd *p = plan->state;
    const size_t bytes = plan->shape.scalar_bytes, lanes = winograd_lanes(p);
    for (size_t group = 0; group < plan->shape.groups; group++)
        for (size_t first = 0; first < p->out; first += p->oc_block) {
            const size_t n = p->transposed ? p->oc_block : size_min(p->out - first, p->oc_block);
            const size_t step = lanes / size_gcd(lanes, n); // the fewest inputs of whole vectors
            size_t chunk = scratch->bytes / winograd_gathered_bytes(p, step, n) * step;
            if (winograd_gathered_bytes(p, p->in, n) <= scratch->bytes) chunk = p->in;
            assert(chunk > 0);
            for (size_t in = 0; in < p->in; in += chunk) {
                const size_t at = group * p->frequencies * p->filter_plane + first * p->in + in * n;
                const struct taps_of of = {taps, group, first, n, in, size_min(chunk, p->in - in)};
                transform_taps_of(filter, &of, (char *)filter->state + at * bytes, scratch->data);
            }
        }
    return PARTITA_OK;
}
