// SPDX-License-Identifier: MIT
#include "grid.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "geometry/tile_tables.h"

enum {
    MAX_EDGE = 4096,
    MAX_CANDIDATES = 48, // of one axis
    MAX_RADIX = 12,
};

struct inside grid_window(const struct conv_axis *axis, size_t at, size_t length)
{
    const struct inside ret =
        samples_inside(axis->size, axis->low + (ptrdiff_t)at, 1, length + axis->reach);
    return ret.count ? ret : (struct inside){0};
}

// The shortest transform of a single tile. Results that are needed lie in [0, count), or of the
// gradient of the taps in [0, reach], and the products spread from window.begin - reach to the
// window's end.
static size_t whole_edge(const struct conv_axis *axis)
{
    const struct inside window = grid_window(axis, 0, axis->count);
    if (!window.count) return axis->count; // padding alone
    return size_max(axis->count, size_max(axis->count + axis->reach - window.begin,
                                          window.begin + window.count));
}

// Vector operations of a butterfly, with the factors before it.
static const double BUTTERFLY[MAX_RADIX + 1] = {
    [2] = 8, [3] = 28, [4] = 28, [5] = 56, [6] = 60, [8] = 90, [10] = 134, [12] = 148};

// Radices of a transform of n elements, the largest of which is at most `max`, from there down: in
// as few passes as there can be, and as even as they can be then. Returns the number of passes.
static int factor_dft(size_t n, size_t max, unsigned char radix[LANES_PASSES])
{
    int best = n == 1 ? 0 : LANES_PASSES;
    for (size_t r = 2; r <= size_min(max, n); r++) {
        unsigned char rest[LANES_PASSES] = {0};
        if (BUTTERFLY[r] == 0 || n % r) continue;
        const int passes = 1 + factor_dft(n / r, r, rest);
        if (passes >= best) continue;
        best = passes;
        radix[0] = (unsigned char)r;
        memcpy(radix + 1, rest, LANES_PASSES - 1);
    }
    return best;
}

static bool is_smooth(size_t n)
{
    static const size_t primes[] = {2, 3, 5};
    for (int i = 0; i < 3; i++)
        while (n % primes[i] == 0) n /= primes[i];
    return n == 1;
}

// The shortest transform of at least n samples; the last axis' consists of two halves, each a
// transform with at least one pass.
static size_t next_edge(size_t n, bool last)
{
    if (last) n = size_max(n, 4);
    while (!is_smooth(n) || (last && n % 2)) n++;
    return n;
}

// Splits an axis into tiles whose transform has at most `edge` samples, as even as they can be;
// false if that is too short.
static bool split_axis(const struct conv_axis *axis, size_t edge, bool last, struct grid_axis *ret)
{
    size_t needed = whole_edge(axis);
    *ret = (struct grid_axis){.tiles = 1, .length = axis->count};
    if (needed > edge) {
        if (edge <= axis->reach) return false;
        ret->length = size_split_even(axis->count, edge - axis->reach);
        ret->tiles = ceil_div(axis->count, ret->length);
        needed = ret->length + axis->reach;
    }
    ret->edge = next_edge(needed, last);
    return true;
}

// Transforms worth trying for one axis, the shortest of each number of tiles.
static size_t list_candidates(const struct conv_axis *axis, bool last, size_t max,
                              struct grid_axis *ret)
{
    size_t n = 0;
    for (size_t edge = next_edge(1, last); edge <= max && n < MAX_CANDIDATES;
         edge = next_edge(edge + 1, last)) {
        struct grid_axis *tried = &ret[n];
        if (!split_axis(axis, edge, last, tried) || (n && tried->tiles == ret[n - 1].tiles))
            continue;
        struct lanes_dft *dft = &tried->dft;
        dft->n = last ? tried->edge / 2 : tried->edge;
        dft->passes = factor_dft(dft->n, MAX_RADIX, dft->radix);
        assert(dft->passes < LANES_PASSES);
        for (int p = 0; p < dft->passes; p++)
            tried->operations += BUTTERFLY[dft->radix[p]] * (double)dft->n / dft->radix[p];
        n++;
        if (tried->tiles == 1) break;
    }
    return n;
}

struct work depthwise_grid_work(const struct request *request, const struct depthwise_grid *grid)
{
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    const struct conv_axis *axis = &grid->pass.axis[1];
    const double columns = (double)w->edge / 2, samples = (double)h->edge * (double)w->edge;
    const double rows = (double)size_min(axis->size, size_min(h->edge, h->length + axis->reach));
    const double transform = rows * w->operations + columns * h->operations;
    const double tiles = (double)h->tiles * (double)w->tiles;
    // Spectra move through the L2 cache, three of them in backward weight, and long rows again and
    // again. Beyond the cache rows and columns are fetched, there and back.
    const bool near = w->edge <= DEPTHWISE.near_row && h->edge > 1;
    const bool far = grid->bytes > request->model->cache_bytes;
    const double moves = (request->direction == PARTITA_BACKWARD_WEIGHT ? 4 : 1) + (near ? 0 : 8);
    return (struct work){.fma = tiles * (2 * transform + 4 * samples),
                         .copy = tiles * moves * samples,
                         .fetch = far ? tiles * 4 * samples : 0};
}

struct candidates {
    struct grid_axis axis[2][MAX_CANDIDATES];
    size_t n[2];
};

// The cheapest pair of candidates, of those whose larger transform is `edge` if that is not 0.
static double choose_pair(const struct request *request, const struct candidates *list, size_t edge,
                          size_t bytes, struct depthwise_grid *ret)
{
    double best = INFINITY;
    struct depthwise_grid grid = *ret;
    for (size_t i = 0; i < list->n[0]; i++)
        for (size_t k = 0; k < list->n[1]; k++) {
            const struct grid_axis *h = &list->axis[0][i], *w = &list->axis[1][k];
            grid.axis[0] = *h;
            grid.axis[1] = *w;
            grid.row = w->edge / 2 + 1;
            grid.bytes = grid.row * h->edge * ELEMENT_BYTES;
            if (grid.bytes > bytes || (edge && size_max(h->edge, w->edge) != edge)) continue;
            const struct work work = depthwise_grid_work(request, &grid);
            const double seconds = work_seconds(&work, &request->model->costs[request->shape->f64]);
            if (seconds >= best) continue;
            best = seconds;
            *ret = grid;
        }
    return best;
}

bool depthwise_grid_choose(const struct request *request, size_t edge, size_t bytes,
                           struct depthwise_grid *ret)
{
    struct candidates list;
    struct conv_pass *pass = &ret->pass;
    const size_t max = edge ? size_min(edge, MAX_EDGE) : MAX_EDGE;
    if (!conv_pass_make(request->shape, request->direction, 0, pass)) return false;
    for (int i = 0; i < 2; i++)
        list.n[i] = list_candidates(&pass->axis[i + 1], i == 1, max, list.axis[i]);
    double best = choose_pair(request, &list, edge, bytes, ret);
    if (edge && isinf(best)) best = choose_pair(request, &list, 0, bytes, ret);
    if (isinf(best)) return false;
    pass->batch = 1;
    pass->box =
        (struct conv_box){.images = 1, .count = {1, ret->axis[0].length, ret->axis[1].length}};
    conv_pass_layout_box(pass);
    return true;
}

void depthwise_grid_factors(struct depthwise_grid *grid, bool f64, struct arena *arena)
{
    // Along the last axis sample j + i times sample t/2 + j: modulo u^(t/2) - i.
    tile_tables_factors(&grid->axis[0].dft, 0, f64, arena);
    tile_tables_factors(&grid->axis[1].dft, -0.25, f64, arena);
}

size_t grid_tap(const struct depthwise_grid *grid, int axis, size_t j, bool *negative)
{
    const size_t edge = grid->axis[axis].edge, back = grid_offset(&grid->pass.axis[axis + 1], j);
    const size_t wraps = ceil_div(back, edge);
    *negative = wraps % 2;
    return wraps * edge - back;
}
