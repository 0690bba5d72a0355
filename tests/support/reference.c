// SPDX-License-Identifier: MIT
// Slow on purpose: every product of the sum, one after the other, in long double.

#include "support/reference.h"

#include <math.h>
#include <stdlib.h>

static size_t or_one(size_t value)
{
    return value ? value : 1;
}

// Bits after the point, and the exponent of the smallest normal number.
static int half_fraction(enum partita_type type)
{
    return type == PARTITA_F16 ? 10 : 7;
}

static int half_exponent(enum partita_type type)
{
    return type == PARTITA_F16 ? -14 : -126;
}

bool half_is(enum partita_type type)
{
    return type == PARTITA_F16 || type == PARTITA_BF16;
}

double half_roundoff(enum partita_type type)
{
    return ldexp(1, -half_fraction(type) - 1);
}

double half_value(enum partita_type type, uint16_t bits)
{
    const int fraction = half_fraction(type), field = (bits & 0x7fff) >> fraction;
    const int m = bits & ((1 << fraction) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (field == 0x7fff >> fraction) return m ? (double)NAN : sign * (double)INFINITY;
    const int normal = field > 0; // denormal numbers have the exponent of the smallest normal one
    return sign * ldexp(m + (normal << fraction), half_exponent(type) + field - normal - fraction);
}

uint16_t half_bits(enum partita_type type, double value)
{
    const int fraction = half_fraction(type), least = half_exponent(type);
    const unsigned sign = signbit(value) ? 0x8000u : 0, infinity = 0x7fffu >> fraction << fraction;
    const double magnitude = fabs(value);
    if (isnan(value)) return (uint16_t)(infinity + 1);
    if (magnitude >= ldexp(1, 2 - least)) return (uint16_t)(infinity | sign);
    const int exponent = magnitude < ldexp(1, least) ? least : ilogb(magnitude);
    // Denormal numbers and carries into the exponent count units from 0 on.
    const unsigned bits = (unsigned)nearbyint(ldexp(magnitude, fraction - exponent)) +
                          ((unsigned)(exponent - least) << fraction);
    return (uint16_t)((bits < infinity ? bits : infinity) | sign);
}

double complex reference_sample(enum partita_type type, const void *samples, size_t i)
{
    if (half_is(type)) return half_value(type, ((const uint16_t *)samples)[i]);
    if (type == PARTITA_F32 || type == PARTITA_TYPE_DEFAULT) return ((const float *)samples)[i];
    if (type == PARTITA_F64) return ((const double *)samples)[i];
    if (type == PARTITA_CF32) return ((const float complex *)samples)[i];
    return ((const double complex *)samples)[i];
}

int reference_rank(const struct partita_problem *problem)
{
    int rank = problem->rank;
    if (rank) return rank;
    for (int i = 0; i < PARTITA_MAX_RANK; i++)
        if (problem->size[i]) rank = i + 1;
    return rank;
}

enum partita_type reference_taps(const struct partita_problem *problem)
{
    return problem->taps ? problem->taps : problem->signal;
}

size_t reference_outputs(const struct partita_problem *problem, size_t axis)
{
    if ((int)axis >= reference_rank(problem)) return 1;
    ptrdiff_t span =
        (ptrdiff_t)(or_one(problem->dilation[axis]) * (or_one(problem->kernel[axis]) - 1) + 1);
    ptrdiff_t room = (ptrdiff_t)(problem->size[axis] * or_one(problem->up)) +
                     problem->pad_begin[axis] + problem->pad_end[axis] - span;
    return room < 0 ? 0 : (size_t)room / or_one(problem->stride[axis]) + 1;
}

// |i| steps from sample 0 on, back and forth between the ends; `twice`: a turn is a step, too.
static ptrdiff_t bounce(size_t n, ptrdiff_t i, bool twice)
{
    ptrdiff_t at = 0, step = i < 0 ? -1 : 1;
    for (ptrdiff_t k = i < 0 ? -i : i; n > 1 && k > 0; k--) {
        const bool turns = at + step < 0 || at + step == (ptrdiff_t)n;
        if (turns) step = -step;
        if (!turns || !twice) at += step;
    }
    return at;
}

ptrdiff_t reference_inside(enum partita_boundary boundary, size_t n, ptrdiff_t i)
{
    if (i >= 0 && i < (ptrdiff_t)n) return i;
    if (boundary == PARTITA_BOUNDARY_REFLECT) return bounce(n, i, false);
    if (boundary == PARTITA_BOUNDARY_SYMMETRIC) return bounce(n, i, true);
    if (boundary == PARTITA_BOUNDARY_EDGE) return i < 0 ? 0 : (ptrdiff_t)n - 1;
    if (boundary != PARTITA_BOUNDARY_WRAP) return -1;
    while (i < 0) i += (ptrdiff_t)n;
    return i % (ptrdiff_t)n;
}

// A problem with defaults filled in, its axes at the end and unused ones of extent 1, and its
// samples in long double.
struct loops {
    size_t batch, in, out, group_in, group_out, taps, plane, outputs;
    size_t kernel[3], size[3], stride[3], dilation[3], out_size[3];
    size_t up; // of the last axis, problems of one axis only
    ptrdiff_t pad[3];
    enum partita_boundary boundary;
    double outside; // PARTITA_BOUNDARY_CONSTANT
    bool convolve, real;
    double complex *x, *w;
};

static double complex *widen(enum partita_type type, const void *samples, size_t n, bool conjugate)
{
    double complex *wide = malloc((n + !n) * sizeof *wide);
    if (!wide) abort();
    for (size_t i = 0; i < n; i++) {
        double complex value = reference_sample(type, samples, i);
        wide[i] = conjugate ? conj(value) : value;
    }
    return wide;
}

static bool is_real(enum partita_type type)
{
    return type == PARTITA_TYPE_DEFAULT || type == PARTITA_F32 || type == PARTITA_F64;
}

static struct loops prepare(const struct partita_problem *p, const void *x, const void *w)
{
    struct loops s = {
        .batch = or_one(p->batch), .in = or_one(p->in_channels), .out = or_one(p->out_channels)};
    s.group_in = s.in / or_one(p->groups);
    s.group_out = s.out / or_one(p->groups);
    s.convolve = p->op == PARTITA_CONVOLVE;
    s.real = is_real(p->signal) && is_real(reference_taps(p));
    s.taps = s.plane = s.outputs = 1;
    s.up = or_one(p->up);
    s.boundary = p->boundary;
    s.outside = p->boundary_value;
    size_t unused = 3 - (size_t)reference_rank(p);
    for (size_t a = 0; a < 3; a++) {
        size_t b = a < unused ? 0 : a - unused;
        s.kernel[a] = a < unused ? 1 : or_one(p->kernel[b]);
        s.size[a] = a < unused ? 1 : p->size[b];
        s.stride[a] = a < unused ? 1 : or_one(p->stride[b]);
        s.dilation[a] = a < unused ? 1 : or_one(p->dilation[b]);
        s.pad[a] = a < unused ? 0 : p->pad_begin[b];
        s.out_size[a] = a < unused ? 1 : reference_outputs(p, b);
        s.taps *= s.kernel[a];
        s.plane *= s.size[a];
        s.outputs *= s.out_size[a];
    }
    s.x = widen(p->signal, x, s.batch * s.in * s.plane, false);
    s.w = widen(reference_taps(p), w, s.out * s.group_in * s.taps, !s.convolve);
    return s;
}

// Sample of an axis of x under tap r of output p, or a negative number where x is zero or constant.
static ptrdiff_t under(const struct loops *s, size_t axis, size_t p, size_t r)
{
    const ptrdiff_t at = (ptrdiff_t)(s->stride[axis] * p + s->dilation[axis] * r) - s->pad[axis];
    const ptrdiff_t up = axis == 2 ? (ptrdiff_t)s->up : 1;
    if (s->boundary) return reference_inside(s->boundary, s->size[axis], at);
    return at % up == 0 && at / up < (ptrdiff_t)s->size[axis] ? at / up : -1;
}

static void add_product(const struct loops *s, long double *sum, double complex a, double complex b)
{
    if (s->real) {
        sum[0] += (long double)creal(a) * creal(b);
        return;
    }
    sum[0] += (long double)creal(a) * creal(b) - (long double)cimag(a) * cimag(b);
    sum[1] += (long double)creal(a) * cimag(b) + (long double)cimag(a) * creal(b);
}

// Adds the products of one input channel to an output, sum[2]; x and w are that channel's planes.
static void add_channel(const struct loops *s, long double *sum, const double complex *x,
                        const double complex *w, size_t output)
{
    const size_t columns = s->out_size[2], rows = s->out_size[1];
    const size_t p[3] = {output / columns / rows, output / columns % rows, output % columns};
    for (size_t i = 0; i < s->kernel[0]; i++)
        for (size_t j = 0; j < s->kernel[1]; j++) {
            const ptrdiff_t slice = under(s, 0, p[0], i), line = under(s, 1, p[1], j);
            const bool constant = s->boundary == PARTITA_BOUNDARY_CONSTANT;
            const bool outside = slice < 0 || line < 0;
            if (outside && !constant) continue;
            const double complex *row =
                outside ? NULL : x + ((size_t)slice * s->size[1] + (size_t)line) * s->size[2];
            for (size_t k = 0; k < s->kernel[2]; k++) {
                const size_t tap = (i * s->kernel[1] + j) * s->kernel[2] + k;
                const ptrdiff_t at = under(s, 2, p[2], k);
                const double complex weight = w[s->convolve ? s->taps - 1 - tap : tap];
                if (row && at >= 0) add_product(s, sum, row[at], weight);
                else if (constant) add_product(s, sum, s->outside, weight);
            }
        }
}

// Output p of channel k of item n, as a real and an imaginary part.
static void compute(const struct loops *s, double complex *y, size_t n, size_t k, size_t p)
{
    long double sum[2] = {0, 0};
    for (size_t c = 0; c < s->group_in; c++) {
        size_t from = n * s->in + k / s->group_out * s->group_in + c;
        add_channel(s, sum, s->x + from * s->plane, s->w + (k * s->group_in + c) * s->taps, p);
    }
    ((double *)y)[0] = (double)sum[0]; // re + im*I would spread a NaN to both parts
    ((double *)y)[1] = (double)sum[1];
}

void reference_forward(const struct partita_problem *problem, double complex *y, const void *x,
                       const void *w)
{
    struct loops s = prepare(problem, x, w);
    for (size_t i = 0; i < s.batch * s.out * s.outputs; i++)
        compute(&s, y + i, i / s.outputs / s.out, i / s.outputs % s.out, i % s.outputs);
    free(s.x);
    free(s.w);
}

static struct partita_problem as_signal(const struct partita_problem *stream, size_t n_frames)
{
    struct partita_problem bounded = *stream;
    bounded.size[0] = n_frames;
    bounded.pad_begin[0] =
        (ptrdiff_t)(or_one(stream->dilation[0]) * (or_one(stream->kernel[0]) - 1));
    return bounded;
}

void reference_stream(const struct partita_problem *problem, size_t n_frames, double complex *y,
                      const void *x, const void *w)
{
    struct partita_problem bounded = as_signal(problem, n_frames);
    reference_forward(&bounded, y, x, w);
}

void reference_stream_at(const struct partita_problem *problem, size_t n_frames, const size_t *at,
                         size_t n_at, double complex *y, const void *x, const void *w)
{
    struct partita_problem bounded = as_signal(problem, n_frames);
    struct loops s = prepare(&bounded, x, w);
    for (size_t i = 0; i < s.out * n_at; i++) compute(&s, y + i, 0, i / n_at, at[i % n_at]);
    free(s.x);
    free(s.w);
}
