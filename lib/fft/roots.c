// SPDX-License-Identifier: MIT
#include "roots.h"

#include <math.h>

// Products of 16 roots with 16 more: long double has digits to spare.
void roots_make(struct roots *roots)
{
    enum { FINE = 16, COARSE = ROOTS / FINE };
    const long double revolution = -2 * acosl(-1);
    long double coarse[COARSE][2], fine[FINE][2];
    for (int k = 0; k < COARSE; k++) {
        coarse[k][0] = cosl(revolution * k / COARSE);
        coarse[k][1] = sinl(revolution * k / COARSE);
    }
    for (int k = 0; k < FINE; k++) {
        fine[k][0] = cosl(revolution * k / ROOTS);
        fine[k][1] = sinl(revolution * k / ROOTS);
    }
    for (int k = 0; k < ROOTS; k++) {
        const long double *a = coarse[k / FINE], *b = fine[k % FINE];
        const long double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
        const struct root root = {(double)re, (double)im};
        roots->root[k] = root;
        roots->rest[k] = (struct root){(double)(re - root.re), (double)(im - root.im)};
    }
}
