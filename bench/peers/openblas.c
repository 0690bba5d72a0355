// SPDX-License-Identifier: MIT
// The matrix product of OpenBLAS as a contender, as Caffe computes layers: the samples under the
// taps of one image are copied into a matrix (im2col), which is multiplied by the weights; layers
// of one tap without stride or padding need no copy. One thread, because OpenBLAS's own threads
// would spin during the next contender's time.
#include <cblas.h>
#include <stdlib.h>
#include <string.h>

#include "peers/peers.h"
#include "workloads/layer.h"

// Beyond these the method takes gigabytes or seconds.
static const double MAX_COLUMNS = 128e6, MAX_TERMS = 1e11;

struct blas {
    struct layer_sizes sizes;
    float *columns; // [group_in][taps][outputs]; NULL: the image has that layout already
};

// Copies row `row` (group_in and tap) of the matrix from x, or adds it to x if `back`.
static void blas_column_row(const struct layer_sizes *s, size_t row, float *columns, float *x,
                            bool back)
{
    const struct layer_axis *a = s->axis;
    const size_t r[3] = {row / a[2].kernel / a[1].kernel % a[0].kernel,
                         row / a[2].kernel % a[1].kernel, row % a[2].kernel};
    x += row / s->taps * s->plane;
    columns += row * s->outputs;
    size_t p[3];
    for (p[0] = 0; p[0] < a[0].out; p[0]++)
        for (p[1] = 0; p[1] < a[1].out; p[1]++)
            for (p[2] = 0; p[2] < a[2].out; p[2]++, columns++) {
                size_t index = 0;
                bool inside = true;
                for (int i = 0; i < 3; i++) {
                    const ptrdiff_t at =
                        (ptrdiff_t)(p[i] * a[i].stride + r[i] * a[i].dilation) - a[i].pad;
                    inside &= at >= 0 && at < (ptrdiff_t)a[i].size;
                    index = index * a[i].size + (size_t)at;
                }
                if (back && inside) x[index] += *columns;
                if (!back) *columns = inside ? x[index] : 0;
            }
}

static float *blas_columns(const struct blas *b, float *x)
{
    if (b->columns == NULL) return x;
    for (size_t row = 0; row < b->sizes.group_in * b->sizes.taps; row++)
        blas_column_row(&b->sizes, row, b->columns, x, false);
    return b->columns;
}

// Computes one group of one image; `first`: the gradient of the weights starts from 0.
static void blas_multiply(const struct blas *b, enum partita_direction direction, float *x,
                          float *w, float *y, bool first)
{
    const struct layer_sizes *s = &b->sizes;
    const int k = (int)s->group_out, n = (int)s->outputs, m = (int)(s->group_in * s->taps);
    if (direction == PARTITA_FORWARD)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, k, n, m, 1, w, m, blas_columns(b, x),
                    n, 0, y, n);
    else if (direction == PARTITA_BACKWARD_WEIGHT)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, k, m, n, 1, y, n, blas_columns(b, x),
                    n, !first, w, m);
    else {
        float *columns = b->columns == NULL ? x : b->columns;
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, 1, w, m, y, n, 0, columns, n);
        if (b->columns == NULL) return;
        memset(x, 0, s->group_in * s->plane * sizeof *x);
        for (int row = 0; row < m; row++) blas_column_row(s, (size_t)row, columns, x, true);
    }
}

static double blas_pass(void *state, const struct workload *w, double *calls)
{
    const struct blas *b = state;
    const struct layer_sizes *s = &b->sizes;
    const enum partita_direction direction = w->layer->direction;
    float *x = (float *)(direction == PARTITA_BACKWARD_DATA ? w->y : w->x);
    float *y = (float *)(direction == PARTITA_FORWARD         ? w->y
                         : direction == PARTITA_BACKWARD_DATA ? w->x
                                                              : w->h);
    float *taps = (float *)(direction == PARTITA_BACKWARD_WEIGHT ? w->y : w->h);
    (void)calls;
    openblas_set_num_threads(1);
    const double start = bench_now();
    for (size_t n = 0; n < s->batch; n++)
        for (size_t g = 0; g < s->in / s->group_in; g++)
            blas_multiply(b, direction, x + (n * s->in + g * s->group_in) * s->plane,
                          taps + g * s->group_out * s->group_in * s->taps,
                          y + (n * s->out + g * s->group_out) * s->outputs, n == 0);
    return bench_now() - start;
}

static void blas_close(void *state)
{
    struct blas *b = state;
    free(b->columns);
    free(b);
}

static bool blas_needs_no_copy(const struct layer_sizes *s)
{
    bool plain = s->taps == 1;
    for (int i = 0; i < 3; i++)
        plain &= s->axis[i].stride == 1 && s->axis[i].pad == 0 && s->axis[i].out == s->axis[i].size;
    return plain;
}

bool peer_openblas(struct contender *contender, const struct workload *w)
{
    const struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    const double columns = (double)(s.group_in * s.taps) * (double)s.outputs;
    if (w->signal != PARTITA_F32 || s.group_in == 1 || columns > MAX_COLUMNS ||
        (double)w->timed > MAX_TERMS)
        return false;
    struct blas *b = bench_allocate(sizeof *b);
    *b = (struct blas){.sizes = s};
    if (!blas_needs_no_copy(&s)) b->columns = bench_allocate((size_t)columns * sizeof(float));
    contender->state = b;
    contender->pass = blas_pass;
    contender->close = blas_close;
    contender->gate = gate_peer(w);
    return true;
}
