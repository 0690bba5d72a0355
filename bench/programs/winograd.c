// SPDX-License-Identifier: MIT
// Tables 1 and 2 of A. Lavin & S. Gray, Fast Algorithms for Convolutional Neural Networks (2015),
// for the transforms of this library: the arithmetic of one tile of a layer with square taps.
// Winograd's is counted in the matrices that winograd_matrix.h constructs, that of FFTs follows
// from the operations of the split-radix algorithm (Sorensen et al., Real-valued fast Fourier
// transform algorithms, 1987). Prints CSV, a row for each algorithm, edge of a tile and of the
// taps:
//   multiply               multiplications for each output; 3 or 4 for each complex product
//   data, filter, inverse  operations of a transform for each multiplication of the tile, a
//                          multiplication with an addition counting as one
//   growth                 of rounding errors along both axes (decision 14); empty for FFTs
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/winograd_matrix.h"

enum { ROWS = WINOGRAD_MATRIX_ROWS };

struct matrix {
    size_t rows, columns;
    double at[ROWS][ROWS];
};

// Operations of a sum of the entries from `first` on, `step` apart, times variables; `scaled`: a
// factor of all is free, since the sum is then added with it.
static int sum_operations(const double *entries, size_t n, size_t first, size_t step, bool scaled)
{
    int terms = 0;
    bool plain = scaled;
    for (size_t k = first; k < n; k += step) {
        terms += entries[k] != 0;
        plain |= fabs(entries[k]) == 1;
    }
    return terms ? terms - plain : 0;
}

// Operations of a matrix whose rows but the last, and the first of an even extent, are pairs of
// points: their even and odd parts are computed once.
static int paired_rows(const struct matrix *m)
{
    int operations = 0;
    const size_t zero = 1 - m->rows % 2;
    for (size_t i = 0; i < m->rows; i++) {
        if (i < zero || i + 1 == m->rows)
            operations += sum_operations(m->at[i], m->columns, 0, 1, false);
        else if ((i - zero) % 2 == 0)
            operations += sum_operations(m->at[i], m->columns, zero, 2, true) +
                          sum_operations(m->at[i], m->columns, 1 - zero, 2, false) + 2;
    }
    return operations;
}

// The same where columns are pairs: sums and differences of pairs come first.
static int paired_columns(const struct matrix *m)
{
    const size_t zero = 1 - m->columns % 2, pairs = (m->columns - 1) / 2;
    int operations = 2 * (int)pairs;
    for (size_t k = 0; k < m->rows; k++) {
        double terms[ROWS] = {zero ? m->at[k][0] : 0, m->at[k][m->columns - 1]};
        for (size_t pair = 0; pair < pairs; pair++) terms[2 + pair] = m->at[k][zero + 2 * pair];
        operations += sum_operations(terms, 2 + pairs, 0, 1, false);
    }
    return operations;
}

// A row of F(m x m, taps x taps), with transforms along one axis after the other.
static void winograd_row(size_t extent, size_t taps)
{
    const size_t outputs = extent + 1 - taps;
    struct matrix data = {extent, extent, {{0}}}, filter = {extent, taps, {{0}}},
                  inverse = {outputs, extent, {{0}}};
    double growth = 0;
    for (size_t i = 0; i < extent; i++) {
        double norms[3] = {0};
        winograd_input_row(extent, i, data.at[i]);
        for (size_t k = 0; k < extent; k++) norms[0] += pow(data.at[i][k], 2);
        for (size_t k = 0; k < taps; k++)
            norms[1] += pow(filter.at[i][k] = winograd_taps_entry(extent, taps, k, i), 2);
        for (size_t k = 0; k < outputs; k++)
            norms[2] += pow(inverse.at[k][i] = winograd_output_entry(extent, outputs, k, i), 2);
        growth += norms[0] * norms[1] * norms[2] / (double)(outputs * taps);
    }
    const double products = (double)(extent * extent);
    printf("winograd,%zu,%zu,%.3f,%.3f,%.3f,%.3f,%.3f\n", extent, taps,
           products / (double)(outputs * outputs),
           (double)(2 * extent) * paired_rows(&data) / products,
           (double)(extent + taps) * paired_rows(&filter) / products,
           (double)(extent + outputs) * paired_columns(&inverse) / products, growth);
}

// Rows of an FFT tile: of real rows, then of columns, of which the first and the last are real. A
// product of 3 multiplications takes an addition for each value of the data, and two for each of
// the filter and of the result.
static void fft_rows(size_t tile, size_t taps)
{
    const double n = (double)tile, outputs = n + 1 - (double)taps;
    const double real = 2 * n * log2(n) - 4 * n + 6, whole = 4 * n * log2(n) - 6 * n + 8;
    const double transform = (n + 2) * real + (n / 2 - 1) * whole, values = n * (n / 2 + 1);
    for (int each = 4; each >= 3; each--) {
        const double products = each * values, more = each == 3 ? values : 0;
        printf("%s,%zu,%zu,%.3f,%.3f,%.3f,%.3f,\n", each == 3 ? "fft-gauss" : "fft", tile, taps,
               products / (outputs * outputs), (transform + more) / products,
               (transform + 2 * more) / products, (transform + 2 * more) / products);
    }
}

int main(void)
{
    printf("algorithm,tile,taps,multiply,data,filter,inverse,growth\n");
    for (size_t taps = 3; taps <= 5; taps += 2) {
        printf("direct,%zu,%zu,%.3f,,,,1\n", taps, taps, (double)(taps * taps));
        for (size_t extent = taps + 1; extent <= ROWS; extent++)
            if (extent != 9) winograd_row(extent, taps);
        for (size_t tile = 8; tile <= 256; tile *= 2) fft_rows(tile, taps);
    }
    return 0;
}
