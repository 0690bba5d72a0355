// SPDX-License-Identifier: MIT
// Plain loops of constant length, which compilers revolution into vectors and gathers.
#include "select_kernels.h"

#include "kernels/names.h"

static void KERNEL(bins_select)(void *y_, const void *x_, const uint32_t *indices, const void *h_,
                                size_t lines, size_t layers)
{
    const BITS_OF_REAL *x = x_;
    const REAL *h = h_;
    const size_t line = 2 * SPECTRUM_LANES;
    REAL *y = y_;
    for (size_t at = 0; at < lines; at++, y += line) {
        REAL re[SPECTRUM_LANES] = {0}, im[SPECTRUM_LANES] = {0};
        for (size_t layer = 0; layer < layers; layer++) {
            const uint32_t *from = indices + (layer * lines + at) * SPECTRUM_LANES;
            const REAL *factor = h + (layer * lines + at) * line;
            for (size_t i = 0; i < SPECTRUM_LANES; i++) {
                const int32_t index = (int32_t)(from[i] & ~BINS_CONJUGATE);
                const BITS_OF_REAL sign = (BITS_OF_REAL)(from[i] & BINS_CONJUGATE)
                                          << (8 * sizeof(REAL) - 32);
                union {
                    BITS_OF_REAL bits;
                    REAL real;
                } a = {x[index]}, b = {x[index + SPECTRUM_LANES] ^ sign};
                re[i] += a.real * factor[i] - b.real * factor[SPECTRUM_LANES + i];
                im[i] += a.real * factor[SPECTRUM_LANES + i] + b.real * factor[i];
            }
        }
        for (size_t i = 0; i < SPECTRUM_LANES; i++) {
            y[i] = re[i];
            y[SPECTRUM_LANES + i] = im[i];
        }
    }
}

static void KERNEL(bins_rotate)(void *y_, const void *x_, const void *fine_,
                                const struct rotation *rotation, size_t n)
{
    const REAL *x = x_, *fine = fine_;
    REAL *y = y_;
    double re = rotation->start[0], im = rotation->start[1];
    for (size_t at = 0; at < n; at += SELECT_FINE, x += 2 * SELECT_FINE, y += 2 * SELECT_FINE) {
        const REAL a = (REAL)re, b = (REAL)im;
        const size_t count = n - at < SELECT_FINE ? n - at : SELECT_FINE;
        for (size_t i = 0; i < count; i++) {
            const REAL factor[] = {a * fine[i] - b * fine[SELECT_FINE + i],
                                   a * fine[SELECT_FINE + i] + b * fine[i]};
            const REAL sample[] = {x[2 * i], x[2 * i + 1]};
            y[2 * i] = sample[0] * factor[0] - sample[1] * factor[1];
            y[2 * i + 1] = sample[0] * factor[1] + sample[1] * factor[0];
        }
        const double next = re * rotation->step[0] - im * rotation->step[1];
        im = re * rotation->step[1] + im * rotation->step[0];
        re = next;
    }
}

const struct select_kernels KERNEL(select) = {KERNEL(bins_select), KERNEL(bins_rotate)};
