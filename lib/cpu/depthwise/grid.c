// SPDX-License-Identifier: MIT
// Tiles for transforms, see depthwise_grid.h.
#include "grid.h"
#include "base/sizes.h"

#include <math.h>

enum {
    MOST_EDGE = 4096,
    MOST_CANDIDATES = 48, // of one axis
};

struct grid_window grid_window(const struct grid_axis *axis, size_t tile)
{
    struct grid_window w = {.at = tile * axis->length};
    w.length = size_min(axis->length, axis->out - w.at);
    w.first = axis->begin + (ptrdiff_t)w.at;
    const size_t whole = w.length + axis->span - 1;
    const ptrdiff_t end = (ptrdiff_t)axis->size - w.first;
    w.begin = w.first < 0 ? size_min(whole, (size_t)-w.first) : 0;
    w.end = end > 0 ? size_min(whole, (size_t)end) : 0;
    if (w.end <= w.begin) w.begin = w.end = 0; // padding alone
    w.n = axis->edge ? size_min(whole, axis->edge) : whole;
    return w;
}

// The shortest edge for a tile. Results that are wanted lie in [0, length), or of the gradient of
// the taps in [0, span), and the products spread from begin - (span - 1) to end - 1.
static size_t needed(const struct grid_axis *axis, size_t tile)
{
    const struct grid_window w = grid_window(axis, tile);
    const size_t below = w.length + axis->span - 1 - w.begin,
                 longest = below > w.end ? below : w.end;
    return w.begin == w.end || longest < w.length ? w.length : longest;
}

static void factor(struct lanes_dft *dft, size_t n)
{
    *dft = (struct lanes_dft){.n = n};
    static const unsigned char odd[] = {5, 3};
    for (int i = 0; i < 2; i++)
        for (; n % odd[i] == 0; n /= odd[i]) dft->radix[dft->passes++] = odd[i];
    int twos = 0;
    for (; n % 2 == 0; n /= 2) twos++;
    for (int passes = (twos + 2) / 3; passes > 0; passes--) {
        const int share = (twos + passes - 1) / passes;
        dft->radix[dft->passes++] = (unsigned char)(1 << share);
        twos -= share;
    }
}

static bool smooth(size_t n)
{
    static const size_t primes[] = {2, 3, 5};
    for (int i = 0; i < 3; i++)
        while (n % primes[i] == 0) n /= primes[i];
    return n == 1;
}

// The shortest edge of at least n; the last axis' is of two halves, each a transform that moves the
// samples.
static size_t good_edge(size_t n, bool last)
{
    if (last && n < 4) n = 4;
    while (!smooth(n) || (last && n % 2)) n++;
    return n;
}

// Vector operations of one transform of n elements: butterflies and the factors before them.
static double operations(size_t n)
{
    static const double butterfly[] = {[2] = 8, [3] = 28, [4] = 28, [5] = 56, [8] = 90};
    struct lanes_dft dft;
    double sum = 0;
    factor(&dft, n);
    for (int i = 0; i < dft.passes; i++) sum += butterfly[dft.radix[i]] * (double)n / dft.radix[i];
    return sum;
}

static void set_axis(const struct request *request, int i, struct grid_axis *ret)
{
    const int from = i - (2 - request->shape->rank);
    if (from < 0) {
        *ret = (struct grid_axis){.size = 1, .out = 1, .kernel = 1, .dilation = 1, .span = 1};
        return;
    }
    const struct axis *axis = &request->shape->axis[from];
    *ret = (struct grid_axis){.size = axis->size,
                              .out = axis->out,
                              .kernel = axis->kernel,
                              .dilation = axis->dilation,
                              .span = axis->span,
                              .begin = axis->begin};
    if (request->direction != PARTITA_BACKWARD_DATA) return;
    ret->size = axis->out;
    ret->out = axis->size;
    ret->begin = -axis->begin - (ptrdiff_t)(axis->span - 1);
}

// Cuts an axis into tiles whose edge is at most `edge`, as even as they can be; false if that is
// too short.
static bool cut(struct grid_axis *axis, size_t edge, bool last)
{
    axis->tiles = 1;
    axis->length = axis->out;
    axis->edge = 0;
    if (needed(axis, 0) > edge) {
        if (edge < axis->span) return false;
        axis->tiles = ceil_div(axis->out, edge - axis->span + 1);
        axis->length = ceil_div(axis->out, axis->tiles);
        axis->tiles = ceil_div(axis->out, axis->length);
    }
    enum { FEW = 8 }; // among more there is one that sees samples all over its window
    size_t longest = axis->tiles > FEW ? axis->length + axis->span - 1 : 1;
    for (size_t i = 0; axis->tiles <= FEW && i < axis->tiles; i++) {
        const size_t n = needed(axis, i);
        if (n > longest) longest = n;
    }
    axis->edge = good_edge(longest, last);
    return axis->edge <= edge;
}

// Edges worth trying for one axis, the shortest of each number of tiles.
static size_t candidates(const struct grid_axis *axis, bool last, size_t most,
                         struct grid_axis *ret)
{
    size_t n = 0;
    for (size_t edge = 1; edge <= most && n < MOST_CANDIDATES; edge++) {
        edge = good_edge(edge, last);
        struct grid_axis tried = *axis;
        if (edge > most || !cut(&tried, edge, last)) continue;
        if (n && ret[n - 1].tiles == tried.tiles) continue;
        ret[n++] = tried;
        if (tried.tiles == 1) break;
    }
    return n;
}

double grid_operations(const struct request *request, const struct grid *grid)
{
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    const double columns = (double)w->edge / 2, row = operations(w->edge / 2),
                 column = operations(h->edge);
    const double rows = (double)size_min(h->size, size_min(h->edge, h->length + h->span - 1));
    const double one = rows * row + columns * column, product = 8 * columns * (double)h->edge;
    const double tiles = (double)grid_tiles(grid) * (double)request->shape->batch *
                         (double)request->shape->in_channels;
    return tiles * (2 * one + product);
}

static double seconds_of(const struct request *request, const struct grid *grid)
{
    // A vector operation of a transform against a multiply-add of the direct sums: loads, stores
    // and the L2 cache; measured on AVX-512 with edges of 60 to 96. Three spectra do not fit into
    // the cache as well as one.
    const double slower = request->direction == PARTITA_BACKWARD_WEIGHT ? 1.4 : 1.1;
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double tiles = (double)grid_tiles(grid) * (double)request->shape->batch *
                         (double)request->shape->in_channels;
    const double samples = tiles * (double)grid->axis[0].edge * (double)grid->axis[1].edge;
    // Beyond the cache rows and columns are fetched, there and back.
    const double fetched = grid->bytes > request->model->cache_bytes ? 4 * samples : 0;
    return grid_operations(request, grid) * slower * costs->fma + fetched * costs->fetch;
}

static size_t larger_edge(const struct grid *grid)
{
    const size_t h = grid->axis[0].edge, w = grid->axis[1].edge;
    return h > w ? h : w;
}

// The cheapest pair of candidates, of those whose larger edge is `edge` if that is not 0.
static double cheapest(const struct request *request, struct grid_axis list[2][MOST_CANDIDATES],
                       const size_t n[2], size_t edge, size_t bytes, struct grid *ret)
{
    double best = INFINITY;
    for (size_t i = 0; i < n[0]; i++)
        for (size_t k = 0; k < n[1]; k++) {
            struct grid grid = {.axis = {list[0][i], list[1][k]}, .row = list[1][k].edge / 2 + 1};
            grid.bytes = grid.row * grid.axis[0].edge * 2 * CONV_BLOCK_BYTES;
            if (grid.bytes > bytes || (edge && larger_edge(&grid) != edge)) continue;
            const double seconds = seconds_of(request, &grid);
            if (seconds >= best) continue;
            best = seconds;
            *ret = grid;
        }
    return best;
}

bool grid_choose(const struct request *request, size_t edge, size_t bytes, struct grid *ret,
                 double *ret_seconds)
{
    struct grid_axis list[2][MOST_CANDIDATES], axis;
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        set_axis(request, i, &axis);
        n[i] = candidates(&axis, i == 1, edge ? size_min(edge, MOST_EDGE) : MOST_EDGE, list[i]);
    }
    double best = cheapest(request, list, n, edge, bytes, ret);
    if (edge && isinf(best)) best = cheapest(request, list, n, 0, bytes, ret);
    ret->flip = request->shape->flip != (request->direction == PARTITA_BACKWARD_DATA);
    *ret_seconds = best;
    return best < INFINITY;
}

// The phase of a node before pass p.
static double phase_of(const struct lanes_dft *dft, int p, size_t node, double start)
{
    size_t nodes = 1;
    for (int i = 0; i < p; i++) nodes *= dft->radix[i];
    double phase = start;
    for (int i = 0; i < p; i++) {
        nodes /= dft->radix[i];
        phase = (phase + (double)(node / nodes)) / dft->radix[i];
        node %= nodes;
    }
    return phase;
}

static void fill(const struct lanes_dft *dft, int p, size_t nodes, double start, bool f64,
                 void *factors)
{
    size_t at = 0;
    for (size_t node = 0; node < nodes; node++)
        for (int k = 1; k < dft->radix[p]; k++, at += 2) {
            const double angle = -2 * M_PI * k * phase_of(dft, p, node, start) / dft->radix[p];
            if (f64) {
                ((double *)factors)[at] = cos(angle);
                ((double *)factors)[at + 1] = sin(angle);
            } else {
                ((float *)factors)[at] = (float)cos(angle);
                ((float *)factors)[at + 1] = (float)sin(angle);
            }
        }
}

void grid_factors(struct grid *grid, const struct shape *shape, struct arena *arena)
{
    for (int i = 0; i < 2; i++) {
        struct lanes_dft *dft = &grid->axis[i].dft;
        const double start =
            i == 1 ? -0.25 : 0; // sample j + i times sample t/2 + j: modulo u^(t/2) - i
        factor(dft, i == 1 ? grid->axis[i].edge / 2 : grid->axis[i].edge);
        for (size_t p = 0, nodes = 1; p < (size_t)dft->passes; nodes *= dft->radix[p++]) {
            void *factors =
                arena_take(arena, nodes * (dft->radix[p] - 1U) * 2 * shape->scalar_bytes);
            dft->factors[p] = factors;
            if (arena->base) fill(dft, (int)p, nodes, start, shape->f64, factors);
        }
    }
}

size_t grid_tap(const struct grid_axis *axis, size_t r, bool *negative)
{
    const size_t back = axis->dilation * r, wraps = ceil_div(back, axis->edge);
    *negative = wraps % 2;
    return wraps * axis->edge - back;
}
