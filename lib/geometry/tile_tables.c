// SPDX-License-Identifier: MIT
// Sizes, costs and tables of the transforms of tiles. Neighbouring rows and planes are an odd
// number of elements apart, so that a column does not fall into one set of the cache.
#include "tile_tables.h"

#include <assert.h>
#include <math.h>

#include "base/scalar.h"
#include "base/sizes.h"

// Additions and multiplications of one butterfly; each twiddle factor takes 6 more.
static const double BUTTERFLY_FLOPS[TILE_MAX_RADIX + 1] = {
    [2] = 4, [3] = 16, [4] = 16, [5] = 48, [6] = 44, [7] = 96, [8] = 56};

static bool is_size(size_t n, bool sevens)
{
    n >>= __builtin_ctzll(n);
    if (sevens && n % 5 == 0) n /= 5;
    else if (sevens && n % 7 == 0) n /= 7;
    while (n % 3 == 0) n /= 3;
    return n == 1;
}

size_t tile_tables_next_size(size_t n, bool sevens)
{
    static const size_t odd[] = {1, 5, 7};
    size_t best = SIZE_MAX;
    if (is_size(n, sevens)) return n;
    for (size_t i = 0; i < (sevens ? 3 : 1); i++)
        for (size_t three = odd[i]; three < 3 * n; three *= 3) {
            size_t even = three;
            while (even < n) even *= 2;
            best = size_min(best, even);
        }
    return best;
}

// Radices whose product is n = 2^a 3^b, or 5 or 7 times that, in as few passes as possible: a six
// for each pair of a 2 and a 3, the other twos in eights. Returns their number.
static int tile_tables_factor(size_t n, unsigned char radix[LANES_PASSES])
{
    int a = 0, b = 0, passes = 0;
    for (; n % 2 == 0; n /= 2) a++;
    for (; n % 3 == 0; n /= 3) b++;
    const int sixes = a < b ? a : b;
    for (int i = sixes; i < b; i++) radix[passes++] = 3;
    if (n > 1) radix[passes++] = (unsigned char)n;
    a -= sixes;
    if (a % 3 == 1 && a > 1) {
        radix[passes++] = 4;
        radix[passes++] = 4;
        a -= 4;
    } else if (a % 3) {
        radix[passes++] = a % 3 == 1 ? 2 : 4;
        a -= a % 3;
    }
    for (int i = 0; i < sixes; i++) radix[passes++] = 6;
    for (; a; a -= 3) radix[passes++] = 8;
    return passes;
}

// Costs of the butterflies of a transform of n samples, each twiddle factor at its own cost.
static double axis_cost(size_t n, const double cost[TILE_MAX_RADIX + 1], double twiddle)
{
    unsigned char radix[LANES_PASSES];
    const int passes = tile_tables_factor(n, radix);
    double sum = 0;
    size_t length = n;
    for (int p = 0; p < passes; p++) {
        const size_t r = radix[p], blocks = n / length;
        length /= r;
        sum += (double)(n / r) * cost[r] + twiddle * (double)(blocks * (length - 1) * (r - 1));
    }
    return sum;
}

static struct tile_costs axis_costs(const size_t n[3], const double cost[TILE_MAX_RADIX + 1],
                                    double twiddle)
{
    struct tile_costs ret;
    for (int a = 0; a < 3; a++)
        ret.axis[a] = a > 0 && n[a] == n[a - 1] ? ret.axis[a - 1] : axis_cost(n[a], cost, twiddle);
    return ret;
}

double tile_tables_flops(const size_t n[3], size_t rows, const struct tile_costs *costs)
{
    const double count[3] = {(double)(n[1] * n[2]), (double)(n[0] * n[2]), (double)rows};
    double sum = 0;
    for (int a = 2; a >= 0; a--) sum += count[a] * costs->axis[a];
    return sum;
}

double tile_tables_cost(const size_t n[3], size_t rows, const double cost[TILE_MAX_RADIX + 1])
{
    const struct tile_costs costs = axis_costs(n, cost, 0);
    return tile_tables_flops(n, rows, &costs);
}

struct tile_costs tile_tables_costs(const size_t n[3])
{
    return axis_costs(n, BUTTERFLY_FLOPS, 6);
}

size_t tile_tables_bins(const size_t n[3])
{
    size_t all = 1, real = 1; // frequencies; those that are their own negative
    for (int i = 0; i < 3; i++) {
        all *= n[i];
        real *= n[i] % 2 ? 1 : 2;
    }
    return (all + real) / 2;
}

static void layout_elements(const size_t n[3], size_t step[3])
{
    step[2] = 1;
    step[1] = n[2] | 1;
    step[0] = n[1] * step[1] | 1;
}

size_t tile_tables_elements(const size_t n[3])
{
    size_t step[3];
    layout_elements(n, step);
    return n[0] * step[0];
}

// Index of frequency f, or of the node that has it, after so many passes.
static size_t frequency_index(const struct lanes_dft *dft, int passes, size_t f)
{
    size_t length = 1, index = 0;
    for (int p = 0; p < passes; p++) length *= dft->radix[p];
    for (int p = 0; p < passes; p++) {
        length /= dft->radix[p];
        index += f % dft->radix[p] * length;
        f /= dft->radix[p];
    }
    return index;
}

void tile_tables_factors(struct lanes_dft *dft, double phase, bool f64, struct arena *arena)
{
    size_t nodes = 1;
    for (int p = 0; p < dft->passes; nodes *= dft->radix[p++]) {
        const size_t n = dft->radix[p] - 1U, length = nodes * dft->radix[p];
        if (p == 0 && phase == 0) continue;
        void *table = arena_take(arena, nodes * n * 2 * (f64 ? sizeof(double) : sizeof(float)));
        dft->factors[p] = table;
        for (size_t f = 0; table && f < nodes; f++) { // the node of frequencies f + phase
            const size_t at = frequency_index(dft, p, f) * n;
            for (size_t k = 0; k < n; k++) {
                const double product = (double)(k + 1) * ((double)f + phase);
                const double angle = -2 * M_PI * fmod(product, (double)length) / (double)length;
                scalar_put(f64, table, 2 * (at + k), cos(angle));
                scalar_put(f64, table, 2 * (at + k) + 1, sin(angle));
            }
        }
    }
}

static size_t negative(size_t n, size_t f)
{
    return f ? n - f : 0;
}

// Pairs of the first row. The other rows take the indices of their frequencies from here.
static void pair_first_row(const struct lanes_dft *dft, uint32_t *pair)
{
    for (size_t f = 0; f <= dft->n / 2; f++) {
        pair[2 * f] = (uint32_t)frequency_index(dft, dft->passes, f);
        pair[2 * f + 1] = (uint32_t)frequency_index(dft, dft->passes, negative(dft->n, f));
    }
}

// Element of frequency 0 of the row of frequencies d and h.
static uint32_t row_index(const struct tile_tables *tables, size_t d, size_t h)
{
    const struct lanes_dft *dft = tables->dft;
    return (uint32_t)(frequency_index(&dft[0], dft[0].passes, d) * tables->step[0] +
                      frequency_index(&dft[1], dft[1].passes, h) * tables->step[1]);
}

// Pairs of all rows, in the order of the elements of their first frequency where the order of
// frequencies allows. A row and its opposite, which has the negative frequencies, are paired once.
static void pair_rows(struct tile_tables *tables)
{
    const size_t *n = tables->n, half = n[2] / 2;
    const uint32_t *first = tables->pair;
    pair_first_row(&tables->dft[2], tables->pair);
    uint32_t *pair = tables->pair + 2 * (half + 1);
    for (size_t row = 1; row < n[0] * n[1]; row++) {
        const size_t d = row / n[1], h = row % n[1];
        const size_t back_d = negative(n[0], d), back_h = negative(n[1], h);
        const size_t opposite = back_d * n[1] + back_h;
        if (opposite < row) continue;
        const uint32_t from = row_index(tables, d, h), back = row_index(tables, back_d, back_h);
        for (size_t f = 0; f <= half; f++) {
            *pair++ = from + first[2 * f];
            *pair++ = back + first[2 * f + 1];
        }
        // A row that is its own opposite has no other pairs.
        for (size_t f = half + 1; f < n[2] && opposite > row; f++) {
            *pair++ = from + first[2 * (n[2] - f) + 1];
            *pair++ = back + first[2 * (n[2] - f)];
        }
    }
    assert(pair == tables->pair + 2 * tables->bins);
}

void tile_tables_make(const size_t n[3], bool f64, struct arena *arena, struct tile_tables *ret)
{
    *ret = (struct tile_tables){
        .n = {n[0], n[1], n[2]}, .elements = tile_tables_elements(n), .bins = tile_tables_bins(n)};
    layout_elements(n, ret->step);
    for (int i = 0; i < 3; i++) {
        assert(tile_tables_next_size(n[i], true) == n[i]);
        ret->dft[i].n = n[i];
        ret->dft[i].passes = tile_tables_factor(n[i], ret->dft[i].radix);
        tile_tables_factors(&ret->dft[i], 0, f64, arena);
    }
    ret->pair = arena_take(arena, ret->bins * 2 * sizeof *ret->pair);
    if (ret->pair) pair_rows(ret);
}
