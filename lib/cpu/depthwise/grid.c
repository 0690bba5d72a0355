// SPDX-License-Identifier: MIT
#include "grid.h"

#include <assert.h>
#include <math.h>

#include "base/scalar.h"
#include "base/sizes.h"

enum {
    MAX_EDGE = 4096,
    MAX_CANDIDATES = 48, // of one axis
    SEVERAL_TILES = 8,   // among more, one tile reads samples all over its window
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

// The shortest transform of a tile. Results that are needed lie in [0, length), or of the gradient
// of the taps in [0, span), and the products spread from begin - (span - 1) to end - 1.
static size_t needed_edge(const struct grid_axis *axis, size_t tile)
{
    const struct grid_window w = grid_window(axis, tile);
    if (w.begin == w.end) return w.length;
    return size_max(w.length, size_max(w.length + axis->span - 1 - w.begin, w.end));
}

// Divides *n by `prime` as often as it goes; returns how often.
static size_t take_prime(size_t *n, size_t prime)
{
    size_t times = 0;
    for (; *n % prime == 0; *n /= prime) times++;
    return times;
}

// Appends `count` radices odd * 2^k; the k are as equal as possible and add up to `twos`.
static void add_radices(struct lanes_dft *dft, unsigned odd, size_t count, size_t twos)
{
    for (; count > 0; count--) {
        const size_t share = ceil_div(twos, count);
        dft->radix[dft->passes++] = (unsigned char)(odd << share);
        twos -= share;
    }
}

// Radices of a transform of n elements, in as few passes as there can be: a factor 3 is combined
// with up to two factors 2 (radix 12), a 5 with one (radix 10); three 2s left over make radix 8.
static void factor_dft(struct lanes_dft *dft, size_t n)
{
    *dft = (struct lanes_dft){.n = n};
    const size_t twos = take_prime(&n, 2), threes = take_prime(&n, 3), fives = take_prime(&n, 5);
    const size_t eights = ceil_div(twos - size_min(twos, 2 * threes + fives), 3);
    const size_t with_odd = twos - size_min(twos, 3 * eights);
    // A 5 takes a 2 only if some 3 would otherwise take two.
    const size_t with_five = size_min(fives, with_odd - size_min(with_odd, threes));
    add_radices(dft, 3, threes, with_odd - with_five);
    add_radices(dft, 5, fives, with_five);
    add_radices(dft, 1, eights, twos - with_odd);
    assert(n == 1 && dft->passes <= LANES_PASSES);
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

// Vector operations of one transform of n elements: butterflies and the factors before them.
static double dft_operations(size_t n)
{
    static const double butterfly[] = {
        [2] = 8, [3] = 28, [4] = 28, [5] = 56, [6] = 60, [8] = 90, [10] = 134, [12] = 148};
    struct lanes_dft dft;
    double sum = 0;
    factor_dft(&dft, n);
    for (int i = 0; i < dft.passes; i++) sum += butterfly[dft.radix[i]] * (double)n / dft.radix[i];
    return sum;
}

static struct grid_axis request_axis(const struct request *request, int i)
{
    const struct axis axis = shape_axis(request->shape, i + 1);
    struct grid_axis ret = {.size = axis.size,
                            .out = axis.out,
                            .kernel = axis.kernel,
                            .dilation = axis.dilation,
                            .span = axis.span,
                            .begin = axis.begin};
    if (request->direction != PARTITA_BACKWARD_DATA) return ret;
    ret.size = axis.out;
    ret.out = axis.size;
    ret.begin = -axis.begin - (ptrdiff_t)(axis.span - 1);
    return ret;
}

// Splits an axis into tiles whose transform has at most `edge` samples, as even as they can be;
// false if that is too short.
static bool split_axis(struct grid_axis *axis, size_t edge, bool last)
{
    axis->tiles = 1;
    axis->length = axis->out;
    axis->edge = 0;
    if (needed_edge(axis, 0) > edge) {
        if (edge < axis->span) return false;
        axis->length = size_split_even(axis->out, edge - axis->span + 1);
        axis->tiles = ceil_div(axis->out, axis->length);
    }
    const bool several = axis->tiles > SEVERAL_TILES;
    size_t longest = several ? axis->length + axis->span - 1 : 1;
    for (size_t i = 0; !several && i < axis->tiles; i++)
        longest = size_max(longest, needed_edge(axis, i));
    axis->edge = next_edge(longest, last);
    return axis->edge <= edge;
}

// Transforms worth trying for one axis, the shortest of each number of tiles. Tiles that lie in
// part in padding may need less than the `edge` they were split for, so a limit is on that
// edge: then a choice is found again with its own largest edge as limit.
static size_t list_candidates(const struct grid_axis *axis, bool last, size_t max,
                              struct grid_axis *ret)
{
    size_t n = 0;
    size_t tiles = 0; // of the transform before
    for (size_t edge = 1; edge <= MAX_EDGE && n < MAX_CANDIDATES; edge++) {
        edge = next_edge(edge, last);
        struct grid_axis tried = *axis;
        if (edge > MAX_EDGE || !split_axis(&tried, edge, last) || tried.tiles == tiles) continue;
        tiles = tried.tiles;
        if (tried.edge > max) continue;
        ret[n++] = tried;
        if (tried.tiles == 1) break;
    }
    return n;
}

// Tiles of all planes of x.
static double plane_tiles(const struct request *request, const struct depthwise_grid *grid)
{
    const struct shape *shape = request->shape;
    return (double)grid_tiles(grid) * (double)shape->batch * (double)shape->in_channels;
}

double depthwise_grid_operations(const struct request *request, const struct depthwise_grid *grid)
{
    const struct grid_axis *h = &grid->axis[0], *w = &grid->axis[1];
    const double columns = (double)w->edge / 2;
    const double rows = (double)size_min(h->size, size_min(h->edge, h->length + h->span - 1));
    const double transform = rows * dft_operations(w->edge / 2) + columns * dft_operations(h->edge);
    const double product = 8 * columns * (double)h->edge;
    return plane_tiles(request, grid) * (2 * transform + product);
}

static double grid_seconds(const struct request *request, const struct depthwise_grid *grid)
{
    const bool weight = request->direction == PARTITA_BACKWARD_WEIGHT;
    const bool near = grid->axis[1].edge <= DEPTHWISE.near_row && grid->axis[0].edge > 1;
    const double operation = (weight ? DEPTHWISE.weight_operation : DEPTHWISE.operation) *
                             (near ? 1 : DEPTHWISE.far_operation);
    const struct cost_rates *costs = &request->model->costs[request->shape->f64];
    const double samples =
        plane_tiles(request, grid) * (double)grid->axis[0].edge * (double)grid->axis[1].edge;
    // Beyond the cache rows and columns are fetched, there and back.
    const double fetched = grid->bytes > request->model->cache_bytes ? 4 * samples : 0;
    return depthwise_grid_operations(request, grid) * operation * costs->work.fma +
           fetched * costs->work.fetch;
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
    for (size_t i = 0; i < list->n[0]; i++)
        for (size_t k = 0; k < list->n[1]; k++) {
            const struct grid_axis *h = &list->axis[0][i], *w = &list->axis[1][k];
            struct depthwise_grid grid = {.axis = {*h, *w}, .row = w->edge / 2 + 1};
            grid.bytes = grid.row * h->edge * 2 * CONV_BLOCK_BYTES;
            if (grid.bytes > bytes || (edge && size_max(h->edge, w->edge) != edge)) continue;
            const double seconds = grid_seconds(request, &grid);
            if (seconds >= best) continue;
            best = seconds;
            *ret = grid;
        }
    return best;
}

bool depthwise_grid_choose(const struct request *request, size_t edge, size_t bytes,
                           struct depthwise_grid *ret, double *ret_seconds)
{
    struct candidates list;
    const size_t max = edge ? size_min(edge, MAX_EDGE) : MAX_EDGE;
    for (int i = 0; i < 2; i++) {
        const struct grid_axis axis = request_axis(request, i);
        list.n[i] = list_candidates(&axis, i == 1, max, list.axis[i]);
    }
    double best = choose_pair(request, &list, edge, bytes, ret);
    if (edge && isinf(best)) best = choose_pair(request, &list, 0, bytes, ret);
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

static void fill_factors(const struct lanes_dft *dft, int p, size_t nodes, double start, bool f64,
                         void *factors)
{
    size_t at = 0;
    for (size_t node = 0; node < nodes; node++)
        for (int k = 1; k < dft->radix[p]; k++, at += 2) {
            const double angle = -2 * M_PI * k * phase_of(dft, p, node, start) / dft->radix[p];
            scalar_put(f64, factors, at, cos(angle));
            scalar_put(f64, factors, at + 1, sin(angle));
        }
}

void depthwise_grid_factors(struct depthwise_grid *grid, bool f64, struct arena *arena)
{
    for (int i = 0; i < 2; i++) {
        struct lanes_dft *dft = &grid->axis[i].dft;
        // Along the last axis sample j + i times sample t/2 + j: modulo u^(t/2) - i.
        const double start = i == 1 ? -0.25 : 0;
        factor_dft(dft, i == 1 ? grid->axis[i].edge / 2 : grid->axis[i].edge);
        for (size_t p = 0, nodes = 1; p < (size_t)dft->passes; nodes *= dft->radix[p++]) {
            const size_t n = nodes * (dft->radix[p] - 1U) * 2;
            if (p == 0 && start == 0) continue;
            void *factors = arena_take(arena, n * (f64 ? sizeof(double) : sizeof(float)));
            dft->factors[p] = factors;
            if (arena->base) fill_factors(dft, (int)p, nodes, start, f64, factors);
        }
    }
}

size_t grid_tap(const struct grid_axis *axis, size_t r, bool *negative)
{
    const size_t back = axis->dilation * r, wraps = ceil_div(back, axis->edge);
    *negative = wraps % 2;
    return wraps * axis->edge - back;
}
