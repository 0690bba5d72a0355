// SPDX-License-Identifier: MIT
// All directions iterate over the same products; they differ in which of the three factors is the
// sum.
#include "support/reference_layer.h"

#include <stdlib.h>

#include "support/reference.h"

struct layer_shape {
    size_t batch, groups, in, out; // channels of a group
    size_t kernel[3], size[3], outputs[3], stride[3], dilation[3];
    ptrdiff_t pad[3];
    size_t plane, positions, taps;
    size_t x_channel, x_position, y_channel, y_position; // strides
    bool flip;
    enum partita_boundary boundary;
    double outside; // PARTITA_BOUNDARY_CONSTANT
};

static size_t or_one(size_t value)
{
    return value ? value : 1;
}

static struct layer_shape layer_shape_of(const struct partita_problem *p)
{
    struct layer_shape s = {.batch = or_one(p->batch),
                            .groups = or_one(p->groups),
                            .plane = 1,
                            .positions = 1,
                            .taps = 1};
    s.in = or_one(p->in_channels) / s.groups;
    s.out = or_one(p->out_channels) / s.groups;
    s.flip = p->op == PARTITA_CONVOLVE;
    s.boundary = p->boundary;
    s.outside = p->boundary_value;
    int rank = reference_rank(p);
    for (int a = 0; a < 3; a++) {
        bool used = a < rank;
        s.kernel[a] = used ? or_one(p->kernel[a]) : 1;
        s.size[a] = used ? p->size[a] : 1;
        s.stride[a] = used ? or_one(p->stride[a]) : 1;
        s.dilation[a] = used ? or_one(p->dilation[a]) : 1;
        s.pad[a] = used ? p->pad_begin[a] : 0;
        ptrdiff_t room = (ptrdiff_t)s.size[a] + s.pad[a] + (used ? p->pad_end[a] : 0) -
                         (ptrdiff_t)(s.dilation[a] * (s.kernel[a] - 1)) - 1;
        s.outputs[a] = room < 0 ? 0 : (size_t)room / s.stride[a] + 1;
        s.plane *= s.size[a];
        s.positions *= s.outputs[a];
        s.taps *= s.kernel[a];
    }
    const bool last = p->channels_last;
    s.x_channel = last ? 1 : s.plane;
    s.x_position = last ? s.groups * s.in : 1;
    s.y_channel = last ? 1 : s.positions;
    s.y_position = last ? s.groups * s.out : 1;
    return s;
}

static void split(size_t index, const size_t extent[3], size_t ret[3])
{
    ret[2] = index % extent[2];
    ret[1] = index / extent[2] % extent[1];
    ret[0] = index / extent[2] / extent[1];
}

// The sample of a plane of x that tap r multiplies in output p; -1 where that is zero or constant.
static ptrdiff_t met(const struct layer_shape *s, const size_t p[3], const size_t r[3])
{
    ptrdiff_t index = 0;
    for (int a = 0; a < 3; a++) {
        ptrdiff_t at = (ptrdiff_t)(s->stride[a] * p[a] + s->dilation[a] * r[a]) - s->pad[a];
        at = reference_inside(s->boundary, s->size[a], at);
        if (at < 0) return -1;
        index = index * (ptrdiff_t)s->size[a] + at;
    }
    return index;
}

// The three factors; exactly one of y, x and w is NULL, and `sum` takes its place.
struct factors {
    long double *sum;
    const double *y, *x, *w;
};

// sum[...] += product for all images and channels, at one position, tap and sample of their planes;
// sample -1: the constant.
static void add_products(const struct layer_shape *s, const struct factors *f, size_t position,
                         size_t tap, ptrdiff_t sample)
{
    for (size_t n = 0; n < s->batch; n++)
        for (size_t k = 0; k < s->groups * s->out; k++)
            for (size_t c = 0; c < s->in; c++) {
                const size_t iy = n * s->groups * s->out * s->positions + k * s->y_channel +
                                  position * s->y_position;
                const size_t ix = n * s->groups * s->in * s->plane +
                                  (k / s->out * s->in + c) * s->x_channel +
                                  (size_t)(sample < 0 ? 0 : sample) * s->x_position;
                const size_t iw = (k * s->in + c) * s->taps + tap;
                const double x = sample < 0 || !f->x ? s->outside : f->x[ix];
                if (!f->y) f->sum[iy] += (long double)x * f->w[iw];
                else if (f->x) f->sum[iw] += (long double)f->y[iy] * x;
                else if (sample >= 0) f->sum[ix] += (long double)f->y[iy] * f->w[iw];
            }
}

// For all positions and taps; these determine which sample it is.
static void accumulate(const struct layer_shape *s, long double *sum, const double *y,
                       const double *x, const double *w)
{
    const struct factors factors = {sum, y, x, w};
    for (size_t position = 0; position < s->positions; position++) {
        size_t p[3], r[3];
        split(position, s->outputs, p);
        for (size_t tap = 0; tap < s->taps; tap++) {
            split(s->flip ? s->taps - 1 - tap : tap, s->kernel, r);
            const ptrdiff_t at = met(s, p, r);
            if (at >= 0 || s->boundary == PARTITA_BOUNDARY_CONSTANT)
                add_products(s, &factors, position, tap, at);
        }
    }
}

static long double *zeros(size_t n)
{
    long double *sum = calloc(n + !n, sizeof *sum);
    if (!sum) abort();
    return sum;
}

static void narrow(double *to, long double *sum, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = (double)sum[i];
    free(sum);
}

void reference_layer_forward(const struct partita_problem *problem, double *y, const double *x,
                             const double *w, const double *bias)
{
    struct layer_shape s = layer_shape_of(problem);
    size_t n = s.batch * s.groups * s.out * s.positions;
    long double *sum = zeros(n);
    accumulate(&s, sum, NULL, x, w);
    for (size_t i = 0; i < n; i++) {
        if (bias) sum[i] += bias[i / s.y_channel % (s.groups * s.out)];
        if (problem->activation == PARTITA_RELU && sum[i] < 0) sum[i] = 0;
    }
    narrow(y, sum, n);
}

void reference_backward_data(const struct partita_problem *problem, double *gx, const double *gy,
                             const double *w)
{
    struct layer_shape s = layer_shape_of(problem);
    size_t n = s.batch * s.groups * s.in * s.plane;
    long double *sum = zeros(n);
    accumulate(&s, sum, gy, NULL, w);
    narrow(gx, sum, n);
}

void reference_backward_weight(const struct partita_problem *problem, double *gw, const double *x,
                               const double *gy)
{
    struct layer_shape s = layer_shape_of(problem);
    size_t n = s.groups * s.out * s.in * s.taps;
    long double *sum = zeros(n);
    accumulate(&s, sum, gy, x, NULL);
    narrow(gw, sum, n);
}

void reference_backward_bias(const struct partita_problem *problem, double *gb, const double *gy)
{
    struct layer_shape s = layer_shape_of(problem);
    size_t channels = s.groups * s.out;
    long double *sum = zeros(channels);
    for (size_t i = 0; i < s.batch * channels * s.positions; i++)
        sum[i / s.y_channel % channels] += gy[i];
    narrow(gb, sum, channels);
}
