// SPDX-License-Identifier: MIT
// Sums whose error does not grow with their length: 2 units in the last place of the sum of
// magnitudes (Kahan 1965).
#ifndef PARTITA_APPS_COMPENSATED_SUM_H
#define PARTITA_APPS_COMPENSATED_SUM_H

struct compensated_sum {
    double high, low;
};

static inline void sum_add(struct compensated_sum *sum, double x)
{
    const double y = x - sum->low, next = sum->high + y;
    sum->low = (next - sum->high) - y;
    sum->high = next;
}

#endif
