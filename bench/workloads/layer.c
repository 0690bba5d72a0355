// SPDX-License-Identifier: MIT
// The three arrays of a layer, and its oracle: direct sums in float64 at some positions of the
// result. It shares no code with the library.
#include "workloads/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_POSITIONS = 300,
    MIN_POSITIONS = 16,
    MAX_TERMS = 1 << 24 // of all sums together, unless MIN_POSITIONS of them need more
};

struct layer_sizes layer_sizes(const struct partita_problem *p)
{
    struct layer_sizes s = {
        .batch = or_one(p->batch), .in = or_one(p->in_channels), .out = or_one(p->out_channels)};
    s.group_in = s.in / or_one(p->groups);
    s.group_out = s.out / or_one(p->groups);
    s.plane = s.outputs = s.taps = 1;
    for (int i = 0; i < 3; i++) {
        struct layer_axis *a = &s.axis[i];
        *a = (struct layer_axis){1, 1, 1, 1, 1, 0};
        if (i < p->rank) {
            *a = (struct layer_axis){or_one(p->kernel[i]),   p->size[i], or_one(p->stride[i]),
                                     or_one(p->dilation[i]), 0,          p->pad_begin[i]};
            ptrdiff_t padded = (ptrdiff_t)a->size + a->pad + p->pad_end[i];
            ptrdiff_t last = padded - (ptrdiff_t)(a->dilation * (a->kernel - 1)) - 1;
            a->out = (size_t)last / a->stride + 1;
        }
        s.plane *= a->size;
        s.outputs *= a->out;
        s.taps *= a->kernel;
    }
    return s;
}

size_t layer_terms(const struct layer_sizes *s)
{
    return s->batch * s->out * s->outputs * s->group_in * s->taps;
}

struct partita_problem layer_problem(const struct workload *w)
{
    struct partita_problem p = w->layer->problem;
    p.batch = w->layer_batch;
    p.signal = p.taps = w->signal;
    return p;
}

// Types of two bytes: the bits of a float after its sign, shifted, with another bias of exponents.
static uint16_t half_of_float(enum partita_type type, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (type == PARTITA_BF16) return (uint16_t)(bits >> 16);
    return (uint16_t)((bits >> 16 & 0x8000u) | (magnitude ? (magnitude - (112u << 23)) >> 13 : 0));
}

static double half_value(enum partita_type type, uint16_t bits)
{
    const int fraction = type == PARTITA_F16 ? 10 : 7, least = type == PARTITA_F16 ? -14 : -126;
    const int field = (bits & 0x7fff) >> fraction, rest = bits & ((1 << fraction) - 1);
    const double magnitude = field ? ldexp(rest + (1 << fraction), field - 1 + least - fraction)
                                   : ldexp(rest, least - fraction);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static char *layer_noise(const struct workload *w, size_t n, uint64_t seed)
{
    const bool half = layer_is_half(w->signal);
    char *samples = bench_allocate(n * partita_type_size(half ? PARTITA_F32 : w->signal));
    bench_noise(samples, n, type_is_f64(w->signal), seed);
    if (!half) return samples;
    // In steps of 2^-7, which both types can represent. Each is written after it was read.
    for (size_t i = 0; i < n; i++) {
        float noise;
        memcpy(&noise, samples + i * sizeof noise, sizeof noise);
        const uint16_t bits = half_of_float(w->signal, nearbyintf(noise * 128) / 128);
        memcpy(samples + i * sizeof bits, &bits, sizeof bits);
    }
    return samples;
}

void layer_measure(struct workload *w, bool quick)
{
    w->layer_batch = or_one(w->layer->problem.batch);
    if (quick) w->layer_batch = (w->layer_batch + 7) / 8;
    struct partita_problem p = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&p);
    const size_t x = s.batch * s.in * s.plane, y = s.batch * s.out * s.outputs,
                 taps = s.out * s.group_in * s.taps, bytes = partita_type_size(w->signal);
    const enum partita_direction direction = w->layer->direction;
    const size_t result = direction == PARTITA_FORWARD         ? y
                          : direction == PARTITA_BACKWARD_DATA ? x
                                                               : taps;
    w->x_bytes = (direction == PARTITA_BACKWARD_DATA ? y : x) * bytes;
    w->h_bytes = (direction == PARTITA_BACKWARD_WEIGHT ? y : taps) * bytes;
    w->y_bytes = result * bytes;
    // An item is a multiply-add.
    w->in_channels = w->out_channels = w->groups = w->stride = w->n_taps = 1;
    w->timed = w->n_frames = layer_terms(&s);
    w->n_out = result;
}

void layer_create(struct workload *w, bool quick)
{
    layer_measure(w, quick);
    w->x = layer_noise(w, w->x_bytes / partita_type_size(w->signal), 1);
    w->h = layer_noise(w, w->h_bytes / partita_type_size(w->signal), 2);
    w->y = bench_allocate(w->y_bytes);
}

static double layer_sample(const struct workload *w, const char *samples, size_t i)
{
    if (layer_is_half(w->signal)) return half_value(w->signal, ((const uint16_t *)samples)[i]);
    return type_is_f64(w->signal) ? ((const double *)samples)[i]
                                  : (double)((const float *)samples)[i];
}

// Coordinates of an index into an array of three axes.
static void unravel(size_t index, const size_t extent[3], size_t ret[3])
{
    ret[2] = index % extent[2];
    ret[1] = index / extent[2] % extent[1];
    ret[0] = index / extent[2] / extent[1];
}

// The sample of x that `tap` multiplies in the sum of `output`; -1 if it lies in the padding.
static ptrdiff_t sample_under_tap(const struct layer_sizes *s, size_t output, size_t tap)
{
    const struct layer_axis *a = s->axis;
    size_t p[3], r[3];
    ptrdiff_t index = 0;
    unravel(output, (const size_t[]){a[0].out, a[1].out, a[2].out}, p);
    unravel(tap, (const size_t[]){a[0].kernel, a[1].kernel, a[2].kernel}, r);
    for (int i = 0; i < 3; i++) {
        ptrdiff_t at = (ptrdiff_t)(p[i] * a[i].stride + r[i] * a[i].dilation) - a[i].pad;
        if (at < 0 || at >= (ptrdiff_t)a[i].size) return -1;
        index = index * (ptrdiff_t)a[i].size + at;
    }
    return index;
}

// The output in whose sum `tap` multiplies sample `at` of x; -1 if there is none.
static ptrdiff_t output_over_sample(const struct layer_sizes *s, size_t at, size_t tap)
{
    const struct layer_axis *a = s->axis;
    size_t i[3], r[3];
    ptrdiff_t index = 0;
    unravel(at, (const size_t[]){a[0].size, a[1].size, a[2].size}, i);
    unravel(tap, (const size_t[]){a[0].kernel, a[1].kernel, a[2].kernel}, r);
    for (int k = 0; k < 3; k++) {
        ptrdiff_t q = (ptrdiff_t)i[k] + a[k].pad - (ptrdiff_t)(r[k] * a[k].dilation);
        if (q < 0 || q % (ptrdiff_t)a[k].stride ||
            q / (ptrdiff_t)a[k].stride >= (ptrdiff_t)a[k].out)
            return -1;
        index = index * (ptrdiff_t)a[k].out + q / (ptrdiff_t)a[k].stride;
    }
    return index;
}

// The sum that forward and backward weight have in common: x, shifted by a tap, times the other
// array, over `planes` planes of either and `n` terms in each. Terms are the taps of output `fixed`
// forward, the outputs of tap `fixed` backward. All cases correlate.
struct layer_sum {
    size_t planes, x_plane, x_step, h_first, h_step, n, fixed;
    bool over_taps;
};

static double expected_sum(const struct workload *w, const struct layer_sizes *s,
                           const struct layer_sum *sum)
{
    double total = 0;
    for (size_t j = 0; j < sum->planes; j++)
        for (size_t q = 0; q < sum->n; q++) {
            const ptrdiff_t at = sum->over_taps ? sample_under_tap(s, sum->fixed, q)
                                                : sample_under_tap(s, q, sum->fixed);
            const size_t plane = sum->x_plane + j * sum->x_step;
            if (at >= 0)
                total += layer_sample(w, w->x, plane * s->plane + (size_t)at) *
                         layer_sample(w, w->h, sum->h_first + j * sum->h_step + q);
        }
    return total;
}

static double expected_forward(const struct workload *w, const struct layer_sizes *s, size_t i)
{
    const size_t k = i / s->outputs % s->out, n = i / s->outputs / s->out;
    const struct layer_sum sum = {.planes = s->group_in,
                                  .x_plane = n * s->in + k / s->group_out * s->group_in,
                                  .x_step = 1,
                                  .h_first = k * s->group_in * s->taps,
                                  .h_step = s->taps,
                                  .n = s->taps,
                                  .fixed = i % s->outputs,
                                  .over_taps = true};
    return expected_sum(w, s, &sum);
}

static double expected_weight(const struct workload *w, const struct layer_sizes *s, size_t i)
{
    const size_t c = i / s->taps % s->group_in, k = i / s->taps / s->group_in;
    const struct layer_sum sum = {.planes = s->batch,
                                  .x_plane = k / s->group_out * s->group_in + c,
                                  .x_step = s->in,
                                  .h_first = k * s->outputs,
                                  .h_step = s->out * s->outputs,
                                  .n = s->outputs,
                                  .fixed = i % s->taps};
    return expected_sum(w, s, &sum);
}

static double expected_data(const struct workload *w, const struct layer_sizes *s, size_t i)
{
    const size_t at = i % s->plane, c = i / s->plane % s->in, n = i / s->plane / s->in;
    double sum = 0;
    for (size_t j = 0; j < s->group_out; j++)
        for (size_t r = 0; r < s->taps; r++) {
            const ptrdiff_t p = output_over_sample(s, at, r);
            const size_t k = c / s->group_in * s->group_out + j;
            if (p >= 0)
                sum += layer_sample(w, w->x, (n * s->out + k) * s->outputs + (size_t)p) *
                       layer_sample(w, w->h, (k * s->group_in + c % s->group_in) * s->taps + r);
        }
    return sum;
}

static size_t layer_position(const struct workload *w, size_t k)
{
    return (size_t)((double)(w->n_out - 1) * (double)k / (double)(w->n_expected - 1));
}

// Terms of one sum.
static size_t layer_sum_terms(const struct workload *w, const struct layer_sizes *s)
{
    return w->layer->direction == PARTITA_FORWARD         ? s->group_in * s->taps
           : w->layer->direction == PARTITA_BACKWARD_DATA ? s->group_out * s->taps
                                                          : s->batch * s->outputs;
}

// Positions are spread evenly over the result, both ends included; fewer where the sums are long.
static void layer_oracle_create(struct workload *w)
{
    struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    w->n_expected = MAX_TERMS / layer_sum_terms(w, &s);
    if (w->n_expected > MAX_POSITIONS) w->n_expected = MAX_POSITIONS;
    if (w->n_expected < MIN_POSITIONS) w->n_expected = MIN_POSITIONS;
    w->expected = bench_allocate(w->n_expected * sizeof *w->expected);
    for (size_t k = 0; k < w->n_expected; k++) {
        const size_t i = layer_position(w, k);
        w->expected[k] = w->layer->direction == PARTITA_FORWARD         ? expected_forward(w, &s, i)
                         : w->layer->direction == PARTITA_BACKWARD_DATA ? expected_data(w, &s, i)
                                                                        : expected_weight(w, &s, i);
    }
}

size_t layer_positions(struct workload *w, size_t **ret_positions)
{
    if (w->expected == NULL) layer_oracle_create(w);
    *ret_positions = bench_allocate(w->n_expected * sizeof **ret_positions);
    for (size_t k = 0; k < w->n_expected; k++) (*ret_positions)[k] = layer_position(w, k);
    return w->n_expected;
}

double layer_error(struct workload *w)
{
    double error = 0, norm = 0;
    if (w->expected == NULL) layer_oracle_create(w);
    for (size_t k = 0; k < w->n_expected; k++) {
        const double difference = layer_sample(w, w->y, layer_position(w, k)) - w->expected[k];
        error += difference * difference;
        norm += w->expected[k] * w->expected[k];
    }
    return sqrt(error / norm);
}

double gate_layer(const struct workload *w)
{
    struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    const double sums =
        4 * (type_is_f64(w->signal) ? 0x1p-53 : 0x1p-24) * sqrt((double)layer_sum_terms(w, &s));
    if (!layer_is_half(w->signal)) return sums;
    return sums + (w->signal == PARTITA_F16 ? 0x1p-11 : 0x1p-8); // results are rounded
}
