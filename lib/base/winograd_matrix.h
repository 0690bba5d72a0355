// SPDX-License-Identifier: MIT
// The matrices of Winograd's minimal filtering F(m, r), generated from points by the construction
// of Cook and Toom:
//   y = A' [(G g) . (B' d)], of m + r - 1 = extent inputs d, r taps g, m outputs y = correlation of
//   d and g.
// Row i of B' holds the coefficients of the product of (x - p_k) over all k != i, the last row (the
// point at infinity) those of the product over all k. A' and G hold powers of the points; row i of
// G is divided by the product of (p_i - p_k), k != i. So B' depends only on the extent, and the
// gradient of the taps, F(r, m), uses the same B'.
//
// Points are pairs +-p, infinity and, for an even extent, 0. The p have few bits, so that all
// entries except quotients are exact in double. They were chosen among multiples of 1/8 (extent 10:
// 1/4) by the error of random tiles in f32 or by its growth (winograd_search.h): for 6 inputs, 5/8
// and 3/2 have 0.6 times the error of 1 and 2; for 8, 1/2, 1 and 2 are within 3 % of the best seen.
// Sources: Winograd, Arithmetic Complexity of Computations (1980); Blahut, Fast Algorithms for
// Digital Signal Processing (1985); Lavin & Gray, Fast algorithms for convolutional neural networks
// (2015), for layers; Barabasz et al., Error analysis and improving the accuracy of Winograd
// convolution for deep neural networks (2020), for points.
#ifndef PARTITA_WINOGRAD_MATRIX_H
#define PARTITA_WINOGRAD_MATRIX_H

#include <assert.h>
#include <stddef.h>

enum {
    WINOGRAD_EXTENT = 8,       // the largest with kernels; the others are 4 to 7
    WINOGRAD_MATRIX_ROWS = 10, // the largest with points; 9 has none
};

// The p of pair number `pair`; there are (extent - 1)/2 pairs.
static inline __attribute__((always_inline)) double winograd_pair(size_t extent, size_t pair)
{
    if (extent == 4) return 1;
    if (extent == 5) return pair ? 1.25 : 0.375;
    if (extent == 6) return pair ? 1.5 : 0.625;
    if (extent == 7) return pair ? 0.875 * (double)pair : 0.25;
    if (extent == 8 || pair == 0) return 0.5 * (double)(1 << pair); // 1/2, 1, 2
    return pair == 1 ? 0.75 : 1.25 * (double)(pair - 1);
}

// Point i < extent - 1: 0 of an even extent, then the pairs.
static inline double winograd_point(size_t extent, size_t i)
{
    const size_t number = i + extent % 2; // among 0 and the pairs
    if (!number) return 0;
    const double p = winograd_pair(extent, (number - 1) / 2);
    return number % 2 ? p : -p;
}

static inline double winograd_power(double x, size_t n)
{
    double power = 1;
    for (; n; n--) power *= x;
    return power;
}

// Row i of B': ret[extent].
static inline void winograd_input_row(size_t extent, size_t i, double *ret)
{
    assert(extent <= WINOGRAD_MATRIX_ROWS && i < extent);
    for (size_t k = 0; k < extent; k++) ret[k] = k == 0;
    for (size_t point = 0, degree = 0; point + 1 < extent; point++) {
        if (point == i) continue;
        degree++;
        for (size_t k = degree + 1; k-- > 0;)
            ret[k] =
                (k ? ret[k - 1] : 0) - winograd_point(extent, point) * (k < degree ? ret[k] : 0);
    }
}

// Entry of A' for output k of m, and of G for tap k of r, at point i.
static inline double winograd_output_entry(size_t extent, size_t m, size_t k, size_t i)
{
    return i + 1 == extent ? k + 1 == m : winograd_power(winograd_point(extent, i), k);
}

static inline double winograd_taps_entry(size_t extent, size_t r, size_t k, size_t i)
{
    double divisor = 1;
    assert(i < extent && k < r);
    if (i + 1 == extent) return k + 1 == r;
    for (size_t j = 0; j + 1 < extent; j++)
        if (j != i) divisor *= winograd_point(extent, i) - winograd_point(extent, j);
    return winograd_power(winograd_point(extent, i), k) / divisor;
}

#endif
