// SPDX-License-Identifier: MIT
// See problem_check.h.
#include "problem_check.h"

#include <math.h>
#include <stdlib.h>

#include "support/reference.h"
#include "support/reference_layer.h"

enum { MAX_BYTES = 1 << 26, MAX_PRODUCTS = 300000, MAX_SAMPLES = 20000 };

// Limits memory, so that valid but huge problems return NOMEM.
static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return bytes > MAX_BYTES ? NULL : aligned_alloc(64, (bytes + 64) / 64 * 64);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static size_t or_one(size_t value)
{
    return value ? value : 1;
}

static void fill(enum partita_type type, void *samples, size_t n, uint64_t seed)
{
    size_t parts =
        n * partita_type_size(type) / (type == PARTITA_F32 || type == PARTITA_CF32 ? 4 : 8);
    for (size_t i = 0; i < parts; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double value = (double)(seed >> 40) / (double)(1 << 23) - 1;
        if (type == PARTITA_F32 || type == PARTITA_CF32) ((float *)samples)[i] = (float)value;
        else ((double *)samples)[i] = value;
    }
}

// Tolerance for every engine: 16 times that of the tests, relative to the reference's norm.
static void compare(const struct partita_problem *p, const void *y, const double complex *expected,
                    size_t n)
{
    double products = (double)or_one(p->in_channels);
    for (int a = 0; a < reference_rank(p); a++) products *= (double)or_one(p->kernel[a]);
    double u = p->signal == PARTITA_F32 || p->signal == PARTITA_CF32 ? 0x1p-24 : 0x1p-53;
    for (size_t i = 0; i < n; i++) {
        double error = cabs(reference_sample(p->signal, y, i) - expected[i]);
        if (!(error <= 16 * 4 * u * sqrt(20 * products) * sqrt(products))) abort();
    }
}

static void run_stream(const struct partita_problem *p, const struct partita_plan *plan,
                       const struct partita_filter *filter, const void *w, uint64_t seed)
{
    struct partita_stream *stream;
    size_t in = or_one(p->in_channels), out = or_one(p->out_channels),
           stride = or_one(p->stride[0]), n = 3000;
    size_t bytes = partita_type_size(p->signal), first = partita_plan_latency(plan) / stride,
           n_y = (n + stride - 1) / stride;
    if (p->stride[0] > n || partita_plan_latency(plan) > p->latency ||
        partita_stream_open(plan, filter, &stream) != PARTITA_OK) {
        if (partita_plan_latency(plan) > p->latency) abort();
        return;
    }
    char *x = malloc(in * n * bytes), *y = malloc(out * n_y * bytes);
    double complex *expected = calloc(out * n_y, sizeof *expected);
    fill(p->signal, x, in * n, 1);
    const void *x_at[8];
    void *y_at[8];
    for (size_t at = 0, done = 0, chunk; at < n; at += chunk) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        chunk = (size_t)(seed >> 40) % 700 % (n - at + 1);
        if (seed >> 61 == 0) chunk = n - at;
        for (size_t c = 0; c < in; c++) x_at[c] = x + (c * n + at) * bytes;
        for (size_t c = 0; c < out; c++) y_at[c] = y + (c * n_y + done) * bytes;
        done += partita_stream_output_frames(stream, chunk);
        if (done > n_y) abort();
        partita_stream_process(stream, y_at, x_at, chunk);
    }
    reference_stream(p, n, expected, x, w);
    for (size_t k = 0; k < out && first < n_y; k++) {
        compare(p, y + (k * n_y + first) * bytes, expected + k * n_y, n_y - first);
    }
    partita_stream_close(stream);
    free(expected);
    free(y);
    free(x);
}

// Samples of one channel of x and of y, and taps of one path.
struct sizes {
    size_t plane, outputs, taps;
};

static struct sizes sizes_of(const struct partita_problem *p)
{
    struct sizes s = {1, 1, 1};
    size_t outputs[PARTITA_MAX_RANK];
    if (partita_problem_output_size(p, outputs) != PARTITA_OK) abort();
    for (int a = 0; a < reference_rank(p); a++) {
        s.plane *= p->size[a];
        s.outputs *= outputs[a];
        s.taps *= or_one(p->kernel[a]);
    }
    return s;
}

static double *doubles(enum partita_type type, const void *samples, size_t n)
{
    double *converted = malloc((n + 1) * sizeof *converted);
    for (size_t i = 0; i < n; i++) converted[i] = creal(reference_sample(type, samples, i));
    return converted;
}

static void compare_doubles(const struct partita_problem *p, const void *y, const double *expected,
                            size_t n, double products)
{
    double u = p->signal == PARTITA_F32 ? 0x1p-24 : 0x1p-53;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(creal(reference_sample(p->signal, y, i)) - expected[i]) <=
              64 * u * (products + 1)))
            abort();
}

static size_t taps_of(const struct partita_problem *p)
{
    return or_one(p->out_channels) * (or_one(p->in_channels) / or_one(p->groups)) *
           sizes_of(p).taps;
}

// Gradients of ghost cells, at most, that backward data adds to that of one sample.
static double copies_of(const struct partita_problem *p)
{
    double copies = 1;
    for (int a = 0; a < reference_rank(p) && p->boundary; a++)
        copies *= 1 + fmax(0, (double)p->pad_begin[a]) + fmax(0, (double)p->pad_end[a]);
    return copies;
}

// Both gradients, with random samples for that of y.
static void run_gradients(const struct partita_problem *p, const struct partita_plan *plan,
                          const struct partita_filter *filter, const void *x, const void *w,
                          size_t n_x, size_t n_y)
{
    const size_t n_w = taps_of(p);
    char *gy = malloc(n_y * 8), *g = malloc((n_x + n_w) * 8);
    fill(p->signal, gy, n_y, 3);
    double *double_x = doubles(p->signal, x, n_x), *double_w = doubles(p->signal, w, n_w),
           *double_gy = doubles(p->signal, gy, n_y),
           *expected = malloc((n_x + n_w) * sizeof *expected);
    if (partita_backward_data(plan, filter, g, gy, NULL) == PARTITA_OK) {
        reference_backward_data(p, expected, double_gy, double_w);
        compare_doubles(p, g, expected, n_x, (double)n_w * copies_of(p));
    }
    if (partita_backward_weight(plan, g, x, gy, NULL) == PARTITA_OK) {
        reference_backward_weight(p, expected, double_x, double_gy);
        compare_doubles(p, g, expected, n_w, (double)n_y);
    }
    free(expected);
    free(double_x);
    free(double_w);
    free(double_gy);
    free(g);
    free(gy);
}

static void check_forward(const struct partita_problem *p, const void *y, const void *x,
                          const void *w, size_t n_y)
{
    double complex *expected = malloc(n_y * sizeof *expected);
    reference_forward(p, expected, x, w);
    for (size_t i = 0; p->activation == PARTITA_RELU && i < n_y; i++)
        expected[i] = fmax(0, creal(expected[i]));
    compare(p, y, expected, n_y);
    free(expected);
}

static void check_channels_last(const struct partita_problem *p, const void *y, const void *x,
                                const void *w, size_t n_x, size_t n_y)
{
    const size_t n_w = taps_of(p);
    double *double_x = doubles(p->signal, x, n_x), *double_w = doubles(p->signal, w, n_w),
           *expected = malloc(n_y * sizeof *expected);
    reference_layer_forward(p, expected, double_x, double_w, NULL);
    compare_doubles(p, y, expected, n_y, (double)n_w);
    free(expected);
    free(double_w);
    free(double_x);
}

static void run_bounded(const struct partita_problem *p, const struct partita_plan *plan,
                        const struct partita_filter *filter, const void *w)
{
    const struct sizes s = sizes_of(p);
    size_t n_x = or_one(p->batch) * or_one(p->in_channels) * s.plane;
    size_t n_y = or_one(p->batch) * or_one(p->out_channels) * s.outputs,
           bytes = partita_type_size(p->signal);
    char *x = malloc(n_x * bytes), *y = malloc(n_y * bytes);
    fill(p->signal, x, n_x, 1);
    if (partita_forward(plan, filter, y, x, NULL) == PARTITA_OK) {
        if (p->channels_last) check_channels_last(p, y, x, w, n_x, n_y);
        else check_forward(p, y, x, w, n_y);
    }
    if (p->signal == PARTITA_F32 || p->signal == PARTITA_F64)
        run_gradients(p, plan, filter, x, w, n_x, n_y);
    free(y);
    free(x);
}

static bool is_small(const struct partita_problem *p)
{
    struct sizes s = {3000, 3000, or_one(p->kernel[0])};
    bool stream = p->size[0] == PARTITA_UNBOUNDED;
    if (!stream) s = sizes_of(p);
    double channels =
        (double)or_one(p->batch) * (double)or_one(p->in_channels) * (double)or_one(p->out_channels);
    double samples = channels * ((double)s.plane + (double)s.outputs);
    double products = channels * (double)s.outputs * (double)s.taps;
    double span = channels * (double)s.taps * (p->rank > 1 ? 1 : (double)or_one(p->dilation[0]));
    return or_one(p->in_channels) <= 8 && or_one(p->out_channels) <= 8 && samples < MAX_SAMPLES &&
           products < MAX_PRODUCTS && span < MAX_SAMPLES && (!stream || p->latency < 100000);
}

void problem_check(const struct partita_problem *problem, const struct partita_options *options,
                   uint64_t seed)
{
    struct partita_options limited = *options;
    limited.allocator = (struct partita_allocator){allocate, release, NULL};
    struct partita_plan *plan;
    struct partita_filter *filter;
    char text[100];
    if (partita_plan_create(problem, &limited, &plan) != PARTITA_OK) return;
    partita_plan_explain(plan, text, sizeof text);
    if (is_small(problem)) {
        size_t n_w = or_one(problem->out_channels) *
                     (or_one(problem->in_channels) / or_one(problem->groups));
        for (int a = 0; a < reference_rank(problem); a++) n_w *= or_one(problem->kernel[a]);
        void *w = malloc(n_w * partita_type_size(reference_taps(problem)));
        fill(reference_taps(problem), w, n_w, 2);
        if (partita_filter_create(plan, w, &filter) == PARTITA_OK) {
            if (problem->size[0] == PARTITA_UNBOUNDED) run_stream(problem, plan, filter, w, seed);
            else run_bounded(problem, plan, filter, w);
            partita_filter_destroy(filter);
        }
        free(w);
    }
    partita_plan_destroy(plan);
}
