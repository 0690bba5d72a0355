// SPDX-License-Identifier: MIT
// Tables of the transforms of tiles, and their axes in order. Elements of neighbouring rows, and of
// planes, are an odd number of elements apart, so that a column does not meet itself in the cache.
#include "tile_transform.h"

#include <math.h>

// Adds and multiplications of one butterfly without twiddles; of every twiddle 6 more.
static double butterfly_flops(size_t radix)
{
    switch (radix) {
    case 2:
        return 4;
    case 3:
        return 16;
    case 4:
        return 16;
    case 6:
        return 44;
    default:
        return 56;
    }
}

static size_t least_power(size_t n, size_t of)
{
    while (of < n) of *= 2;
    return of;
}

bool tile_transform_has(size_t n)
{
    return n > 0 && n <= TILE_TRANSFORM_MOST && tile_transform_size(n) == n;
}

size_t tile_transform_size(size_t n)
{
    size_t best = least_power(n, 1);
    for (size_t three = 3; three < 3 * n; three *= 3)
        if (least_power(n, three) < best) best = least_power(n, three);
    return best;
}

// The fewest radices whose product is n = 2^a 3^b: as many sixes as spare a pass, twos in eights;
// larger ones last, where passes need no twiddles. Returns their number.
static int factor(size_t n, unsigned char radix[TILE_MOST_PASSES])
{
    int a = 0, b = 0, sixes = 0, passes = 0;
    for (; n % 2 == 0; n /= 2) a++;
    for (; n % 3 == 0; n /= 3) b++;
    for (int s = 1; s <= a && s <= b; s++)
        if (b - s + s + (a - s + 2) / 3 <= b - sixes + sixes + (a - sixes + 2) / 3) sixes = s;
    for (int i = sixes; i < b; i++) radix[passes++] = 3;
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

static double axis_flops(size_t n)
{
    unsigned char radix[TILE_MOST_PASSES];
    const int passes = factor(n, radix);
    double flops = 0;
    size_t length = n;
    for (int p = 0; p < passes; p++) {
        const size_t r = radix[p], blocks = n / length;
        flops += (double)(n / r) * butterfly_flops(r) +
                 6.0 * (double)(blocks * (length / r - 1) * (r - 1));
        length /= r;
    }
    return flops;
}

static double axis_cost(size_t n, const double cost[TILE_MOST_RADIX + 1])
{
    unsigned char radix[TILE_MOST_PASSES];
    const int passes = factor(n, radix);
    double sum = 0;
    for (int p = 0; p < passes; p++) sum += (double)(n / radix[p]) * cost[radix[p]];
    return sum;
}

double tile_transform_cost(const size_t n[3], size_t rows, const double cost[TILE_MOST_RADIX + 1])
{
    return (double)rows * axis_cost(n[2], cost) + (double)(n[0] * n[2]) * axis_cost(n[1], cost) +
           (double)(n[1] * n[2]) * axis_cost(n[0], cost);
}

double tile_transform_flops(const size_t n[3], size_t rows)
{
    return (double)rows * axis_flops(n[2]) + (double)(n[0] * n[2]) * axis_flops(n[1]) +
           (double)(n[1] * n[2]) * axis_flops(n[0]);
}

size_t tile_transform_bins(const size_t n[3])
{
    size_t all = 1, own = 1; // frequencies; those that are their own negative
    for (int i = 0; i < 3; i++) {
        all *= n[i];
        own *= n[i] % 2 ? 1 : 2;
    }
    return (all + own) / 2;
}

static void lay_out(const size_t n[3], size_t step[3], size_t *ret_elements)
{
    step[2] = 1;
    step[1] = n[2] | 1;
    step[0] = n[1] * step[1] | 1;
    *ret_elements = n[0] * step[0];
}

size_t tile_transform_bytes(const size_t n[3])
{
    size_t step[3], elements;
    lay_out(n, step, &elements);
    return size_mul(elements, 2 * (size_t)TILE_LINE_BYTES);
}

static void put(void *table, bool f64, size_t i, double value)
{
    if (f64) ((double *)table)[i] = value;
    else ((float *)table)[i] = (float)value;
}

static void make_dft(size_t n, bool f64, struct arena *arena, struct tile_dft *ret)
{
    ret->n = n;
    ret->passes = factor(n, ret->radix);
    size_t length = n;
    for (int p = 0; p < ret->passes; p++) {
        const size_t r = ret->radix[p], quotient = length / r;
        void *table = arena_take(arena, (quotient - 1) * (r - 1) * 2 *
                                            (f64 ? sizeof(double) : sizeof(float)));
        ret->twiddle[p] = table;
        for (size_t i = 0; table && i < (quotient - 1) * (r - 1); i++) {
            const double angle = -2 * M_PI *
                                 (double)((1 + i / (r - 1)) * (1 + i % (r - 1)) % length) /
                                 (double)length;
            put(table, f64, 2 * i, cos(angle));
            put(table, f64, 2 * i + 1, sin(angle));
        }
        length = quotient;
    }
}

// Where the passes leave frequency f.
static size_t place_of(const struct tile_dft *dft, size_t f)
{
    size_t length = dft->n, place = 0;
    for (int p = 0; p < dft->passes; p++) {
        length /= dft->radix[p];
        place += f % dft->radix[p] * length;
        f /= dft->radix[p];
    }
    return place;
}

static size_t negative(size_t n, size_t f)
{
    return f ? n - f : 0;
}

// The lower half of the first line, and its opposites: from there the other lines know where they
// leave frequencies.
static void pair_first_line(const struct tile_dft *dft, uint32_t *pair)
{
    for (size_t f = 0; f <= dft->n / 2; f++) {
        pair[2 * f] = (uint32_t)place_of(dft, f);
        pair[2 * f + 1] = (uint32_t)place_of(dft, negative(dft->n, f));
    }
}

// Bins in the order of the elements of their first frequency, as far as the order of frequencies
// allows.
static void pair_up(struct tile_transform *transform)
{
    const size_t *n = transform->n, half = n[2] / 2;
    const struct tile_dft *dft = transform->dft;
    const uint32_t *first = transform->pair;
    pair_first_line(&dft[2], transform->pair);
    uint32_t *pair = transform->pair + 2 * (half + 1);
    for (size_t line = 1; line < n[0] * n[1]; line++) {
        const size_t plane = line / n[1], row = line % n[1], back_plane = negative(n[0], plane),
                     back_row = negative(n[1], row), opposite = back_plane * n[1] + back_row;
        const uint32_t from = (uint32_t)(place_of(&dft[0], plane) * transform->step[0] +
                                         place_of(&dft[1], row) * transform->step[1]),
                       back = (uint32_t)(place_of(&dft[0], back_plane) * transform->step[0] +
                                         place_of(&dft[1], back_row) * transform->step[1]);
        if (opposite < line) continue;
        for (size_t f = 0; f <= half; f++) {
            *pair++ = from + first[2 * f];
            *pair++ = back + first[2 * f + 1];
        }
        // Of a line that is its own opposite that was all.
        for (size_t f = half + 1; f < n[2] && opposite > line; f++) {
            *pair++ = from + first[2 * (n[2] - f) + 1];
            *pair++ = back + first[2 * (n[2] - f)];
        }
    }
}

void tile_transform_make(const size_t n[3], bool f64, struct arena *arena,
                         struct tile_transform *ret)
{
    *ret = (struct tile_transform){.n = {n[0], n[1], n[2]}, .bins = tile_transform_bins(n)};
    lay_out(n, ret->step, &ret->elements);
    for (int i = 0; i < 3; i++) make_dft(n[i], f64, arena, &ret->dft[i]);
    ret->pair = arena_take(arena, ret->bins * 2 * sizeof *ret->pair);
    if (ret->pair) pair_up(ret);
}

static void *element(void *z, size_t i)
{
    return (char *)z + i * 2 * TILE_LINE_BYTES;
}

void tile_row(const struct tile_transform *transform, const struct kernels *kernels, void *row)
{
    if (transform->n[2] > 1) kernels->tile.forward(row, &transform->dft[2], 1, 1, 0);
}

void tile_row_inverse(const struct tile_transform *transform, const struct kernels *kernels,
                      void *row)
{
    if (transform->n[2] > 1) kernels->tile.inverse(row, &transform->dft[2], 1, 1, 0);
}

// All columns along axis 1 or 0.
static void columns(const struct tile_transform *transform, tile_dft_fn *run, void *z, int axis)
{
    const int other = 1 - axis;
    if (transform->n[axis] == 1) return;
    for (size_t i = 0; i < transform->n[other]; i++)
        run(element(z, i * transform->step[other]), &transform->dft[axis], transform->step[axis],
            transform->n[2], 1);
}

void tile_columns(const struct tile_transform *transform, const struct kernels *kernels, void *z)
{
    columns(transform, kernels->tile.forward, z, 1);
    columns(transform, kernels->tile.forward, z, 0);
}

void tile_columns_inverse(const struct tile_transform *transform, const struct kernels *kernels,
                          void *z)
{
    columns(transform, kernels->tile.inverse, z, 0);
    columns(transform, kernels->tile.inverse, z, 1);
}
