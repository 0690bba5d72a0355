// SPDX-License-Identifier: MIT
// Layers as fft-conv of P. Harzig, Implementation of Frequency Domain Convolution for the
// Caffe-Framework (2016), computes them: transforms of whole planes, padded to multiples of 16
// (equation 3.2), by FFTW; and pw-simple, the product of spectra one by one instead of by a matrix
// product for each frequency (listing 3.3, here with the frequencies innermost, along which the
// compiler uses vectors). Only for that text's layers with unit stride. One thread; spectra of taps
// are kept.
#include <fftw3.h>
#include <stdlib.h>
#include <string.h>

#include "peers/peers.h"
#include "workloads/layer.h"

static const double MAX_BYTES = 4e9; // of spectra

// The spectra of an array of square planes [items][channels][edge][edge], whose samples lie from
// row and column `first` on in a padded plane.
struct pw_spectra {
    fftwf_complex *bins;
    size_t items, channels, edge, first;
};

struct pw {
    struct layer_sizes sizes;
    enum partita_direction direction;
    size_t edge, bins; // of a transform
    float *plane;
    struct pw_spectra a, b, to; // to: sums of products of a and b
    fftwf_plan forward, inverse;
};

static void pw_transform(const struct pw *p, const char *samples, const struct pw_spectra *to)
{
    const float *row = (const float *)samples;
    for (size_t i = 0; i < to->items * to->channels; i++) {
        memset(p->plane, 0, p->edge * p->edge * sizeof *p->plane);
        for (size_t r = 0; r < to->edge; r++, row += to->edge)
            memcpy(p->plane + (to->first + r) * p->edge + to->first, row, to->edge * sizeof *row);
        fftwf_execute_dft_r2c(p->forward, p->plane, to->bins + i * p->bins);
    }
}

static void pw_inverse(const struct pw *p, const struct pw_spectra *from, char *samples)
{
    const float scale = 1 / (float)(p->edge * p->edge);
    float *row = (float *)samples;
    for (size_t i = 0; i < from->items * from->channels; i++) {
        fftwf_execute_dft_c2r(p->inverse, from->bins + i * p->bins, p->plane);
        for (size_t r = 0; r < from->edge; r++, row += from->edge)
            for (size_t c = 0; c < from->edge; c++)
                row[c] = scale * p->plane[(from->first + r) * p->edge + from->first + c];
    }
}

// to += a times b, or its conjugate (sign -1).
static void pw_multiply(fftwf_complex *restrict to, const fftwf_complex *restrict a,
                        const fftwf_complex *restrict b, size_t n, float sign)
{
    for (size_t i = 0; i < n; i++) {
        to[i][0] += a[i][0] * b[i][0] - sign * a[i][1] * b[i][1];
        to[i][1] += a[i][1] * b[i][0] + sign * a[i][0] * b[i][1];
    }
}

// Result (i, j) of a direction is a sum over `terms` of products of planes of a and of b: each is
// (first + t * step) from the beginning.
static void pw_sum(const struct pw *p, size_t i, size_t j, fftwf_complex *to)
{
    const struct layer_sizes *s = &p->sizes;
    size_t terms, a, a_step, b, b_step;
    if (p->direction == PARTITA_FORWARD) { // over the channels of the group of output j
        const size_t group = j / s->group_out;
        terms = s->group_in, a = i * s->in + group * s->group_in, a_step = 1;
        b = j * s->group_in, b_step = 1;
    } else if (p->direction == PARTITA_BACKWARD_DATA) { // over the outputs of the group of input j
        const size_t first = j / s->group_in * s->group_out;
        terms = s->group_out, a = i * s->out + first, a_step = 1;
        b = first * s->group_in + j % s->group_in, b_step = s->group_in;
    } else { // of output i and channel j of its group, over the batch
        terms = s->batch, a = i / s->group_out * s->group_in + j, a_step = s->in;
        b = i, b_step = s->out;
    }
    memset(to, 0, p->bins * sizeof *to);
    for (size_t t = 0; t < terms; t++)
        pw_multiply(to, p->a.bins + (a + t * a_step) * p->bins,
                    p->b.bins + (b + t * b_step) * p->bins, p->bins,
                    p->direction == PARTITA_BACKWARD_DATA ? 1 : -1);
}

static double pw_pass(void *state, const struct workload *w, double *calls)
{
    const struct pw *p = state;
    (void)calls;
    const double start = bench_now();
    pw_transform(p, w->x, &p->a);
    if (p->direction == PARTITA_BACKWARD_WEIGHT) pw_transform(p, w->h, &p->b);
    for (size_t i = 0; i < p->to.items; i++)
        for (size_t j = 0; j < p->to.channels; j++)
            pw_sum(p, i, j, p->to.bins + (i * p->to.channels + j) * p->bins);
    pw_inverse(p, &p->to, w->y);
    return bench_now() - start;
}

static void pw_close(void *state)
{
    struct pw *p = state;
    fftwf_destroy_plan(p->forward);
    fftwf_destroy_plan(p->inverse);
    free(p->a.bins), free(p->b.bins), free(p->to.bins);
    free(p->plane);
    free(p);
}

static bool pw_serves(const struct workload *w, const struct layer_sizes *s)
{
    const struct layer_axis *axis = s->axis;
    const bool listed = !strncmp(w->name, "caffenet-", 9) || !strncmp(w->name, "thesis-", 7);
    return listed && strstr(w->name, "-n") && w->signal == PARTITA_F32 && axis->stride == 1 &&
           axis->pad >= 0 && s->axis[1].size == axis->size && s->axis[1].kernel == axis->kernel;
}

bool peer_pw_simple(struct contender *contender, const struct workload *w)
{
    const struct partita_problem problem = layer_problem(w);
    const struct layer_sizes s = layer_sizes(&problem);
    const struct layer_axis *axis = s.axis;
    if (!pw_serves(w, &s)) return false;
    const size_t pads = 2 * (size_t)axis->pad, reach = axis->kernel - 1;
    const size_t edge = (axis->size + (pads > reach ? pads : reach) + 15) / 16 * 16;
    const size_t bins = edge * (edge / 2 + 1);
    const struct pw_spectra x = {NULL, s.batch, s.in, axis->size, (size_t)axis->pad},
                            y = {NULL, s.batch, s.out, axis->out, 0},
                            taps = {NULL, s.out, s.group_in, axis->kernel, 0};
    if ((double)(x.items * x.channels + y.items * y.channels + taps.items * taps.channels) *
            (double)bins * sizeof(fftwf_complex) >
        MAX_BYTES)
        return false;
    struct pw *p = bench_allocate(sizeof *p);
    *p = (struct pw){s, w->layer->direction, edge, bins, NULL, x, taps, y, NULL, NULL};
    if (p->direction == PARTITA_BACKWARD_DATA) p->a = y, p->to = x;
    if (p->direction == PARTITA_BACKWARD_WEIGHT) p->b = y, p->to = taps;
    struct pw_spectra *const spectra[] = {&p->a, &p->b, &p->to};
    for (int i = 0; i < 3; i++)
        spectra[i]->bins =
            bench_allocate(spectra[i]->items * spectra[i]->channels * bins * sizeof(fftwf_complex));
    p->plane = bench_allocate(edge * edge * sizeof *p->plane);
    p->forward = fftwf_plan_dft_r2c_2d((int)edge, (int)edge, p->plane, p->a.bins, FFTW_MEASURE);
    p->inverse = fftwf_plan_dft_c2r_2d((int)edge, (int)edge, p->to.bins, p->plane, FFTW_MEASURE);
    if (p->direction != PARTITA_BACKWARD_WEIGHT) pw_transform(p, w->h, &p->b);
    contender->state = p;
    contender->pass = pw_pass;
    contender->close = pw_close;
    contender->gate = gate_peer(w);
    return true;
}
