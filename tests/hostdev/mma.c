// SPDX-License-Identifier: MIT
// mma.sync.m16n8k8 of TF32: the threads of a warp multiply a matrix of 16 x 8 by one of 8 x 8.
//
// How a device sums is not specified. That it truncates was found by experiment (Fasi, Higham,
// Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, 2021). Here products are exact,
// and twice four of them, in the order of the terms, are added to what was there in double and
// truncated to f32. Subnormal numbers are numbers as others.
#include <math.h>
#include <string.h>

#include "internal.h"

enum { ROWS = 16, COLUMNS = 8, TERMS = 8, AT_ONCE = 4 };

struct lane {
    int n;
    float *sum;
    const uint32_t *a, *b;
};

uint32_t hostdev_tf32(float x);
void hostdev_mma(int n, float *sum, const uint32_t *a, const uint32_t *b);

uint32_t hostdev_tf32(float x)
{
    const uint32_t lost = 0x1fff, half = 0x1000, quiet = 0x7fffffff;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (isnan(x)) return quiet & ~lost;
    return isinf(x) ? bits : (bits + half) & ~lost;
}

static float number(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float number_of(uint32_t bits)
{
    if (bits & 0x1fff) hostdev_abort("an operand of mma is not a number of TF32");
    return number(bits);
}

static float truncated(double sum)
{
    const float near = (float)sum;
    uint32_t bits;
    if (!isfinite(near) || fabs((double)near) <= fabs(sum)) return near;
    memcpy(&bits, &near, sizeof bits);
    return number(bits - 1); // the next one towards 0, as magnitudes are in the order of their bits
}

// The columns of one instruction.
static void multiply(void *const lanes[WARP_LANES], double a[ROWS][TERMS], int n)
{
    double b[TERMS][COLUMNS];
    for (int term = 0; term < TERMS; term++)
        for (int column = 0; column < COLUMNS; column++) {
            const struct lane *lane = lanes[column * 4 + term % 4];
            b[term][column] = number_of(lane->b[n * 2 + term / 4]);
        }
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            const struct lane *lane = lanes[row % 8 * 4 + column / 2];
            float *sum = &lane->sum[n * 4 + row / 8 * 2 + column % 2];
            for (int first = 0; first < TERMS; first += AT_ONCE) {
                double all = *sum;
                for (int t = first; t < first + AT_ONCE; t++) all += a[row][t] * b[t][column];
                *sum = truncated(all);
            }
        }
}

static void multiply_all(void *const lanes[WARP_LANES])
{
    const struct lane *first = lanes[0];
    double a[ROWS][TERMS];
    for (int row = 0; row < ROWS; row++)
        for (int term = 0; term < TERMS; term++) {
            const struct lane *lane = lanes[row % 8 * 4 + term % 4];
            a[row][term] = number_of(lane->a[row / 8 + term / 4 * 2]);
        }
    for (int n = 0; n < first->n; n++) multiply(lanes, a, n);
}

void hostdev_mma(int n, float *sum, const uint32_t *a, const uint32_t *b)
{
    struct lane mine = {n, sum, a, b};
    fiber_gather(multiply_all, &mine);
}
