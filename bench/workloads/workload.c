// SPDX-License-Identifier: MIT
// Data of a case, and the oracle: direct sums at about a thousand positions of the result, in
// float64 for f32 signals and in long double for the others, so that float64 contenders can be
// checked too. It shares no code with the library.
#include "workloads/workload.h"

#include <math.h>
#include <stdlib.h>

#include "workloads/network.h"

enum {
    EDGE = 128,
    INSIDE = 768,
    POSITIONS = EDGE + INSIDE + EDGE,
    LAG_POSITIONS = 32 // each is a sum over a whole recording
};

// The expected result at some positions, [channel][position][real, imaginary].
struct oracle {
    size_t n, at[POSITIONS];
    double *value;
};

static char *noise_create(enum partita_type type, size_t n, uint64_t seed)
{
    char *samples = bench_allocate(n * partita_type_size(type));
    bench_noise(samples, type_is_complex(type) ? 2 * n : n, type_is_f64(type), seed);
    return samples;
}

struct partita_problem workload_problem(const struct workload *w)
{
    struct partita_problem problem = {
        .signal = w->signal,
        .taps = w->taps,
        .in_channels = w->in_channels,
        .out_channels = w->out_channels,
        .groups = w->groups,
        .kernel = {w->n_taps},
        .up = w->up,
        .stride = {w->stride},
        .size = {PARTITA_UNBOUNDED},
        .block = w->block,
        .latency = w->latency,
    };
    if (w->block == 0) {
        const ptrdiff_t n = (ptrdiff_t)w->n_frames, taps = (ptrdiff_t)w->n_taps,
                        lags = (ptrdiff_t)w->lags;
        problem.size[0] = w->n_frames;
        problem.op = lags ? PARTITA_CORRELATE : PARTITA_CONVOLVE;
        problem.pad_begin[0] = lags ? lags : taps - 1;
        problem.pad_end[0] = lags ? lags + taps - n : taps - 1;
    }
    return problem;
}

struct partita_problem workload_planned(const struct workload *w)
{
    struct workload described = *w;
    described.signal = w->signal ? w->signal : PARTITA_F32;
    described.taps = w->taps ? w->taps : described.signal;
    if (!w->layer) return workload_problem(&described);
    described.layer_batch = or_one(w->layer->problem.batch);
    return layer_problem(&described);
}

void workload_create(struct workload *w, bool quick)
{
    if (!w->signal) w->signal = PARTITA_F32;
    if (!w->taps) w->taps = w->signal;
    w->oracle = NULL;
    w->expected = NULL;
    if (w->layer != NULL || w->network != NULL) {
        if (w->layer != NULL) layer_create(w, quick);
        else network_create(w, quick);
        if (w->shape != NULL) w->shape(w);
        return;
    }
    w->up = or_one(w->up);
    w->stride = or_one(w->stride);
    w->in_channels = or_one(w->in_channels);
    w->out_channels = or_one(w->out_channels);
    w->groups = or_one(w->groups);
    if (quick) w->n_frames = w->warm + (w->n_frames - w->warm) / 8;
    if (w->block > 0) w->warm = (w->warm + w->block - 1) / w->block * w->block;
    if (w->block > 0) w->n_frames = (w->n_frames + w->block - 1) / w->block * w->block;
    w->timed = w->n_frames - w->warm;
    w->n_out = w->block > 0 ? w->n_frames * w->up / w->stride : w->n_frames + w->n_taps - 1;
    if (w->lags > 0) w->n_out = 2 * w->lags + 1;
    const size_t n_h = w->out_channels * (w->in_channels / w->groups) * w->n_taps;
    w->x_bytes = w->in_channels * w->n_frames * partita_type_size(w->signal);
    w->h_bytes = n_h * partita_type_size(w->taps);
    w->y_bytes = w->out_channels * w->n_out * partita_type_size(w->signal);
    w->x = noise_create(w->signal, w->in_channels * w->n_frames, 1);
    w->h = noise_create(w->taps, n_h, 2);
    w->y = bench_allocate(w->y_bytes);
    if (w->shape != NULL) w->shape(w);
}

void workload_destroy(struct workload *w)
{
    free(w->x);
    free(w->h);
    free(w->y);
    free(w->expected);
    network_destroy(w);
    if (w->oracle == NULL) return;
    free(w->oracle->value);
    free(w->oracle);
}

// Real and imaginary part of a sample as float64.
static void sample_get(double ret[2], const char *samples, enum partita_type type, size_t i)
{
    bool is_complex = type_is_complex(type);
    size_t at = is_complex ? 2 * i : i;
    for (size_t part = 0; part < 2; part++) {
        if (part == 1 && !is_complex) ret[part] = 0;
        else
            ret[part] = type_is_f64(type) ? ((const double *)samples)[at + part]
                                          : ((const float *)samples)[at + part];
    }
}

// sum over k < n of h[k] x[k * step], step 1 or -1, for f32: products are exact, and there may be
// millions of them.
static inline double sum_f32(const float *x, ptrdiff_t step, const float *h, size_t n)
{
    enum { LANES = 8 };
    double sum[LANES] = {0}, rest = 0;
    size_t k = 0;
    for (; k + LANES <= n; k += LANES, x += LANES * step)
        for (size_t i = 0; i < LANES; i++)
            sum[i] += (double)h[k + i] * (double)x[(ptrdiff_t)i * step];
    for (; k < n; k++, x += step) rest += (double)h[k] * (double)*x;
    for (size_t i = 0; i < LANES; i++) rest += sum[i];
    return rest;
}

// ret += sum over k of h[k] x[p - k], x being zero outside its frames.
static void direct_sum(double ret[2], const struct workload *w, const char *x, const char *h,
                       size_t p)
{
    size_t first = p >= w->n_frames ? p - w->n_frames + 1 : 0,
           last = p < w->n_taps ? p + 1 : w->n_taps;
    long double value[2] = {0, 0};
    if (w->signal == PARTITA_F32 && w->taps == PARTITA_F32) {
        if (first < last)
            ret[0] +=
                sum_f32((const float *)x + (p - first), -1, (const float *)h + first, last - first);
        return;
    }
    for (size_t k = first; k < last; k++) {
        double a[2], b[2];
        sample_get(a, x, w->signal, p - k);
        sample_get(b, h, w->taps, k);
        value[0] += (long double)a[0] * b[0] - (long double)a[1] * b[1];
        value[1] += (long double)a[0] * b[1] + (long double)a[1] * b[0];
    }
    for (int part = 0; part < 2; part++) ret[part] += (double)value[part];
}

// ret += sum over i of h[p - i up] x[i], for f32.
static void resampled_sum(double ret[2], const struct workload *w, const char *x, const char *h,
                          size_t p)
{
    const float *a = (const float *)x, *b = (const float *)h;
    for (size_t i = p / w->up + 1; i-- > 0 && p - i * w->up < w->n_taps;)
        if (i < w->n_frames) ret[0] += (double)b[p - i * w->up] * (double)a[i];
}

// ret += sum over k of h[k] x[k + p - lags], for f32.
static void lag_sum(double ret[2], const struct workload *w, const char *x, const char *h, size_t p)
{
    const float *a = (const float *)x, *b = (const float *)h;
    ptrdiff_t lag = (ptrdiff_t)p - (ptrdiff_t)w->lags, first = lag < 0 ? -lag : 0;
    ptrdiff_t end = (ptrdiff_t)w->n_frames - lag, n_taps = (ptrdiff_t)w->n_taps;
    ptrdiff_t last = end < n_taps ? end : n_taps;
    if (first < last) ret[0] += sum_f32(a + (first + lag), 1, b + first, (size_t)(last - first));
}

// Draws positions whose samples arrive within the stream with any allowed delay.
static struct oracle *oracle_create(const struct workload *w)
{
    struct oracle *oracle = bench_allocate(sizeof *oracle);
    size_t n = w->block > 0 ? (w->n_frames - w->latency) * w->up / w->stride : w->n_out,
           edge = n < EDGE ? n : EDGE;
    uint64_t state = 3;
    oracle->n = w->lags > 0 ? LAG_POSITIONS : POSITIONS;
    for (size_t i = 0; i < oracle->n; i++) {
        size_t p = (size_t)(bench_random(&state) % n);
        if (i < edge) p = i;
        if (i >= POSITIONS - edge) p = n - (POSITIONS - i);
        oracle->at[i] = p;
    }
    size_t x_bytes = w->n_frames * partita_type_size(w->signal),
           h_bytes = w->n_taps * partita_type_size(w->taps);
    oracle->value = bench_allocate(w->out_channels * POSITIONS * 2 * sizeof(double));
    void (*const sum)(double[2], const struct workload *, const char *, const char *, size_t) =
        w->lags > 0 ? lag_sum
        : w->up > 1 ? resampled_sum
                    : direct_sum;
    size_t group_in = w->in_channels / w->groups, group_out = w->out_channels / w->groups;
    for (size_t out = 0; out < w->out_channels; out++)
        for (size_t i = 0; i < oracle->n; i++)
            for (size_t in = 0; in < group_in; in++)
                sum(oracle->value + 2 * (out * POSITIONS + i), w,
                    w->x + (out / group_out * group_in + in) * x_bytes,
                    w->h + (out * group_in + in) * h_bytes, oracle->at[i] * w->stride);
    return oracle;
}

size_t oracle_positions(struct workload *w, size_t **ret_positions)
{
    if (w->layer != NULL) return layer_positions(w, ret_positions);
    if (w->oracle == NULL) w->oracle = oracle_create(w);
    const size_t n = w->oracle->n;
    *ret_positions = bench_allocate(w->out_channels * n * sizeof **ret_positions);
    for (size_t out = 0; out < w->out_channels; out++)
        for (size_t i = 0; i < n; i++)
            (*ret_positions)[out * n + i] = out * w->n_out + w->oracle->at[i];
    return w->out_channels * n;
}

double oracle_error(struct workload *w, size_t delay)
{
    if (w->layer != NULL) return layer_error(w);
    if (w->network != NULL) return network_error(w);
    if (w->oracle == NULL) w->oracle = oracle_create(w);
    double error = 0, norm = 0;
    for (size_t out = 0; out < w->out_channels; out++)
        for (size_t i = 0; i < w->oracle->n; i++) {
            const double *expected = w->oracle->value + 2 * (out * POSITIONS + i);
            double y[2];
            sample_get(y, w->y, w->signal, out * w->n_out + w->oracle->at[i] + delay / w->stride);
            for (int part = 0; part < 2; part++) {
                error += (y[part] - expected[part]) * (y[part] - expected[part]);
                norm += expected[part] * expected[part];
            }
        }
    return sqrt(error / norm);
}

static double unit_roundoff(const struct workload *w)
{
    return type_is_f64(w->signal) ? 0x1p-53 : 0x1p-24;
}

double gate_direct(const struct workload *w)
{
    return 4 * unit_roundoff(w) * sqrt((double)w->n_taps);
}

double gate_transform(const struct workload *w)
{
    return 3 * unit_roundoff(w) * sqrt(log2((double)(w->n_frames + w->n_taps)));
}

double gate_peer(const struct workload *w)
{
    return 1000 * unit_roundoff(w);
}
