// SPDX-License-Identifier: MIT
// Partitioned convolution as textbooks have it, written for this comparison: uniform partitions of
// the call's length (overlap-save, a ring of input spectra, one inverse transform an output), and
// the same with a second stage of longer partitions for all taps but the first ones, which is
// computed in the call that completes its block (Gardner 1995). FFTW's real transforms with
// measured plans; spectra are split into real and imaginary parts, so that the compiler vectorizes
// the products for the machine it runs on. The length of the second stage's blocks is the one that
// is fastest here.
#include "peers/peers.h"

#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// A uniformly partitioned filter bank of one block length. A packed spectrum holds `block` real
// parts (the first one is the bin at zero) and `block` imaginary parts (the first one is the bin at
// half the sample rate, which is real).
struct stage {
    size_t block, partitions, in, out;
    size_t filled;       // frames of the current block
    size_t newest;       // partition of `x` that holds the last block's spectrum
    float *h, *x;        // packed spectra: h [out][in][partitions], x [in][partitions]
    float *window;       // [in][2 * block]: the previous and the current block
    float *sum;          // packed
    float *time;         // [2 * block]
    float *y;            // [out][block]: result of the last complete block
    fftwf_complex *bins; // [block + 1]
    fftwf_plan forward, inverse;
};

struct textbook {
    struct stage *head, *tail; // tail NULL: all taps are in the head
};

static void stage_close(struct stage *s)
{
    if (s == NULL) return;
    fftwf_destroy_plan(s->forward);
    fftwf_destroy_plan(s->inverse);
    float *const arrays[] = {s->h, s->x, s->window, s->sum, s->time, s->y, (float *)s->bins};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
    free(s);
}

static float *stage_reals(size_t n)
{
    return bench_allocate(n * sizeof(float));
}

// Transforms s->time into a packed spectrum.
static void stage_transform(struct stage *s, float *restrict packed)
{
    size_t n = s->block;
    fftwf_execute(s->forward);
    const float *restrict bins = (const float *)s->bins;
    for (size_t k = 0; k < n; k++) {
        packed[k] = bins[2 * k];
        packed[n + k] = bins[2 * k + 1];
    }
    packed[n] = bins[2 * n];
}

// Computes the spectra of taps first, first + 1, ... in partitions. They include the factor that
// FFTW's inverse omits.
static void stage_taps(struct stage *s, const struct workload *w, size_t first, size_t n_taps)
{
    const float *taps = (const float *)w->h;
    for (size_t path = 0; path < s->out * s->in; path++)
        for (size_t p = 0; p < s->partitions; p++) {
            size_t at = p * s->block, left = n_taps - at, n = left < s->block ? left : s->block;
            memset(s->time, 0, 2 * s->block * sizeof(float));
            for (size_t i = 0; i < n; i++)
                s->time[i] = taps[path * w->n_taps + first + at + i] / (float)(2 * s->block);
            stage_transform(s, s->h + (path * s->partitions + p) * 2 * s->block);
        }
}

static void stage_reset(struct stage *s)
{
    memset(s->x, 0, s->in * s->partitions * 2 * s->block * sizeof(float));
    memset(s->window, 0, s->in * 2 * s->block * sizeof(float));
    memset(s->y, 0, s->out * s->block * sizeof(float));
    s->filled = s->newest = 0;
}

static struct stage *stage_open(const struct workload *w, size_t block, size_t first, size_t n_taps)
{
    struct stage *s = bench_allocate(sizeof *s);
    s->block = block;
    s->partitions = (n_taps + block - 1) / block;
    s->in = w->in_channels;
    s->out = w->out_channels;
    s->h = stage_reals(s->out * s->in * s->partitions * 2 * block);
    s->x = stage_reals(s->in * s->partitions * 2 * block);
    s->window = stage_reals(s->in * 2 * block);
    s->sum = stage_reals(2 * block);
    s->time = stage_reals(2 * block);
    s->y = stage_reals(s->out * block);
    s->bins = bench_allocate((block + 1) * sizeof(fftwf_complex));
    s->forward = fftwf_plan_dft_r2c_1d((int)(2 * block), s->time, s->bins,
                                       FFTW_MEASURE | FFTW_DESTROY_INPUT);
    s->inverse = fftwf_plan_dft_c2r_1d((int)(2 * block), s->bins, s->time,
                                       FFTW_MEASURE | FFTW_DESTROY_INPUT);
    stage_taps(s, w, first, n_taps);
    stage_reset(s);
    return s;
}

// sum += x h, bin by bin.
static void stage_multiply(float *restrict sum, const float *restrict x, const float *restrict h,
                           size_t n)
{
    float *restrict re = sum, *restrict im = sum + n;
    float zero = re[0] + x[0] * h[0], half = im[0] + x[n] * h[n];
    for (size_t k = 0; k < n; k++) {
        re[k] += x[k] * h[k] - x[n + k] * h[n + k];
        im[k] += x[k] * h[n + k] + x[n + k] * h[k];
    }
    re[0] = zero;
    im[0] = half;
}

static void stage_output(struct stage *s, size_t out)
{
    size_t n = s->block;
    memset(s->sum, 0, 2 * n * sizeof(float));
    for (size_t in = 0; in < s->in; in++) {
        const float *h = s->h + (out * s->in + in) * s->partitions * 2 * n,
                    *x = s->x + in * s->partitions * 2 * n;
        for (size_t p = 0; p < s->partitions; p++) {
            size_t from = s->newest >= p ? s->newest - p : s->newest + s->partitions - p;
            stage_multiply(s->sum, x + from * 2 * n, h + p * 2 * n, n);
        }
    }
    float *restrict bins = (float *)s->bins;
    for (size_t k = 0; k < n; k++) {
        bins[2 * k] = s->sum[k];
        bins[2 * k + 1] = s->sum[n + k];
    }
    bins[2 * n] = s->sum[n];
    bins[1] = bins[2 * n + 1] = 0;
    fftwf_execute(s->inverse);
    memcpy(s->y + out * n, s->time + n, n * sizeof(float));
}

// Stores one call's frames; when they complete a block, computes its result.
static void stage_process(struct stage *s, const struct workload *w, size_t at)
{
    size_t n = s->block;
    for (size_t in = 0; in < s->in; in++)
        memcpy(s->window + in * 2 * n + n + s->filled, (const float *)w->x + in * w->n_frames + at,
               w->block * sizeof(float));
    s->filled += w->block;
    if (s->filled < n) return;
    s->filled = 0;
    s->newest = (s->newest + 1) % s->partitions;
    for (size_t in = 0; in < s->in; in++) {
        float *window = s->window + in * 2 * n;
        memcpy(s->time, window, 2 * n * sizeof(float));
        memcpy(window, window + n, n * sizeof(float));
        stage_transform(s, s->x + (in * s->partitions + s->newest) * 2 * n);
    }
    for (size_t out = 0; out < s->out; out++) stage_output(s, out);
}

// The tail's taps begin one of its blocks late, so a block's result is due during the next block.
static void textbook_call(void *state, const struct workload *w, size_t at)
{
    struct textbook *t = state;
    stage_process(t->head, w, at);
    for (size_t out = 0; out < w->out_channels; out++) {
        float *y = (float *)w->y + out * w->n_out + at;
        memcpy(y, t->head->y + out * w->block, w->block * sizeof(float));
        if (t->tail == NULL) continue;
        const float *tail = t->tail->y + out * t->tail->block + t->tail->filled;
        for (size_t i = 0; i < w->block; i++) y[i] += tail[i];
    }
    if (t->tail != NULL) stage_process(t->tail, w, at);
}

static double textbook_pass(void *state, const struct workload *w, double *calls)
{
    struct textbook *t = state;
    stage_reset(t->head);
    if (t->tail != NULL) stage_reset(t->tail);
    return bench_calls(w, calls, textbook_call, t);
}

static void textbook_close(void *state)
{
    struct textbook *t = state;
    stage_close(t->head);
    stage_close(t->tail);
    free(t);
}

// The tail in blocks of `length`, after as many taps in the head; 0: no tail.
static struct textbook *textbook_open(const struct workload *w, size_t length)
{
    struct textbook *t = bench_allocate(sizeof *t);
    t->head = stage_open(w, w->block, 0, length > 0 ? length : w->n_taps);
    if (length > 0) t->tail = stage_open(w, length, length, w->n_taps - length);
    return t;
}

static bool textbook_ready(struct contender *contender, const struct workload *w,
                           struct textbook *t)
{
    contender->state = t;
    contender->pass = textbook_pass;
    contender->close = textbook_close;
    contender->gate = gate_peer(w);
    return true;
}

static bool textbook_applies(const struct workload *w)
{
    return w->block > 0 && w->stride == 1 && w->groups == 1 && w->signal == PARTITA_F32 &&
           w->taps == PARTITA_F32;
}

bool peer_textbook_uniform(struct contender *contender, const struct workload *w)
{
    if (!textbook_applies(w)) return false;
    // A product of two bins takes about a fifth of a nanosecond.
    double bins =
        (double)(w->n_frames * w->in_channels * w->out_channels) * (double)(w->n_taps / w->block);
    if (bins * 0.2e-9 < 5) return textbook_ready(contender, w, textbook_open(w, 0));
    snprintf(contender->reason, sizeof contender->reason, "a pass would take more than 5 s");
    return false;
}

// Seconds a frame with a tail in blocks of `length`, measured over whole blocks.
static double textbook_trial(const struct workload *w, size_t length)
{
    struct textbook *t = textbook_open(w, length);
    size_t min_frames = 2 * length > 16384 ? 2 * length : 16384;
    size_t frames = (min_frames + length - 1) / length * length;
    double start = bench_now();
    for (size_t at = 0; at < frames; at += w->block) textbook_call(t, w, at % w->n_frames);
    double seconds = bench_now() - start;
    textbook_close(t);
    return seconds / (double)frames;
}

bool peer_textbook_two_stage(struct contender *contender, const struct workload *w)
{
    if (!textbook_applies(w) || w->n_taps < 8 * w->block) return false;
    // By operation counts the best length is about the square root of taps times block; trials
    // decide around it.
    double about = sqrt((double)w->n_taps * (double)w->block), best = INFINITY;
    size_t length = 0;
    for (size_t n = 2 * w->block; n < w->n_taps && (double)n < 8 * about; n *= 2) {
        if ((double)n < about / 4) continue;
        double seconds = textbook_trial(w, n);
        if (seconds < best) length = n;
        best = fmin(best, seconds);
    }
    return textbook_ready(contender, w, textbook_open(w, length));
}
