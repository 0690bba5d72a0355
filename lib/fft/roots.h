// SPDX-License-Identifier: MIT
// Roots of unity for tables of factors, many of them faster than sin and cos give them: a root is
// the nearest one of a short table times a rotation by a small angle, which is a short polynomial.
// The error stays below 0.53 units in the last place of the larger part. Source: the table method,
// Tang, "Table-Lookup Algorithms for Elementary Functions", IEEE Symp. Computer Arithmetic (1991).
#ifndef PARTITA_ROOTS_H
#define PARTITA_ROOTS_H

#include <math.h>

enum { ROOTS = 256 };

struct root {
    double re, im;
};

// e^(-2 pi i k / ROOTS), rounded, and the rest after rounding.
struct roots {
    struct root root[ROOTS], rest[ROOTS];
};
void roots_make(struct roots *roots);

// e^(-2 pi i revolutions), for 0 <= revolutions < 2^22.
static inline struct root roots_at(const struct roots *roots, double revolutions)
{
    const unsigned nearest = (unsigned)(revolutions * ROOTS + 0.5);
    const struct root root = roots->root[nearest % ROOTS], rest = roots->rest[nearest % ROOTS];
    const double x = -2 * M_PI * (revolutions - nearest * (1.0 / ROOTS)), square = x * x;
    if (x == 0) return root;
    // sin x, and cos x - 1.
    const double sine = x + x * square * (-1 / 6.0 + square * (1 / 120.0 - square * (1 / 5040.0)));
    const double less = square * (-1 / 2.0 + square * (1 / 24.0 - square * (1 / 720.0)));
    return (struct root){root.re + (rest.re + root.re * less - root.im * sine),
                         root.im + (rest.im + root.im * less + root.re * sine)};
}

#endif
