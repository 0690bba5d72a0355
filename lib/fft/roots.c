// SPDX-License-Identifier: MIT
#include "roots.h"

#include <math.h>

// An eighth of the circle in long double, which has digits to spare: angles are halved, and each
// half is added to all roots so far. The rest of the circle are the same numbers. Calls of sinl and
// cosl took a third of the time of planning a short signal.
void roots_make(struct roots *roots)
{
    enum { EIGHTH = ROOTS / 8, QUARTER = ROOTS / 4 };
    long double eighth[EIGHTH + 1][2] = {{1, 0}}, re = sqrtl(0.5L), im = -re;
    eighth[EIGHTH][0] = re;
    eighth[EIGHTH][1] = im;
    for (int step = EIGHTH / 2; step; step /= 2) {
        re = sqrtl((1 + re) / 2);
        im /= 2 * re;
        for (int k = step; k < EIGHTH; k += 2 * step) {
            const long double *a = eighth[k - step];
            eighth[k][0] = a[0] * re - a[1] * im;
            eighth[k][1] = a[0] * im + a[1] * re;
        }
    }
    for (int k = 0; k <= EIGHTH; k++) {
        const struct root root = {(double)eighth[k][0], (double)eighth[k][1]};
        const struct root rest = {(double)(eighth[k][0] - root.re),
                                  (double)(eighth[k][1] - root.im)};
        roots->root[k] = root;
        roots->rest[k] = rest;
        roots->root[QUARTER - k] = (struct root){-root.im, -root.re};
        roots->rest[QUARTER - k] = (struct root){-rest.im, -rest.re};
    }
    for (int k = QUARTER; k < ROOTS; k++) {
        const struct root root = roots->root[k - QUARTER], rest = roots->rest[k - QUARTER];
        roots->root[k] = (struct root){root.im, -root.re};
        roots->rest[k] = (struct root){rest.im, -rest.re};
    }
}
