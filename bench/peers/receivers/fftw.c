// SPDX-License-Identifier: MIT
// The textbook's receiver bank on FFTW, after Borgerding (IEEE Signal Processing Magazine 23,
// 2006): one forward transform, for each channel the nearest bins times a response, a small inverse
// transform, and an oscillator for the rest of the centre. Plans are FFTW_PATIENT where the planner
// takes less than PATIENCE (1 555 200 points take more than 18 minutes), else, and with --quick,
// FFTW_MEASURE.
#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "peers/instances.h"

enum { PATIENCE = 300 }; // seconds

struct textbook {
    size_t small, outputs, blocks; // length of the inverse transform, outputs of a block
    float *window;
    float complex *spectrum, *response, *product, *samples, *result; // result [channels][outputs]
    fftwf_plan forward, inverse;
};

static void *allocate(size_t bytes)
{
    return memset(fftwf_malloc(bytes), 0, bytes);
}

// The response at the bins around 0, those of negative frequencies last.
static void fill_response(struct textbook *t, const struct receivers *r)
{
    double complex *all = allocate(r->length * sizeof *all);
    for (size_t i = 0; i < r->taps; i++) all[i] = (double)r->h[i] / (double)r->length;
    fftw_plan plan = fftw_plan_dft_1d((int)r->length, all, all, FFTW_FORWARD, FFTW_ESTIMATE);
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    for (size_t k = 0; k < t->small; k++) {
        const size_t from = k < t->small / 2 ? k : r->length - t->small + k;
        const double distance = (double)(k < t->small / 2 ? k : t->small - k);
        const double edge = r->bandwidth / 2 / r->rate * (double)r->length;
        t->response[k] = distance <= edge ? (float complex)all[from] : 0;
    }
    fftwf_free(all);
}

static void *textbook_open(const struct receivers *r)
{
    struct textbook *t = bench_allocate(sizeof *t);
    const unsigned flags = r->quick ? FFTW_MEASURE : FFTW_PATIENT;
    const size_t reals = r->length * (r->pairs ? 2 : 1);
    t->small = r->length / r->stride;
    t->outputs = r->block / r->stride;
    t->window = allocate(reals * sizeof *t->window);
    t->spectrum = allocate((r->length + t->small) * sizeof *t->spectrum);
    t->response = allocate(t->small * sizeof *t->response);
    t->product = allocate(t->small * sizeof *t->product);
    t->samples = allocate(t->small * sizeof *t->samples);
    t->result = allocate(r->channels * t->outputs * sizeof *t->result);
    fftwf_set_timelimit(PATIENCE);
    if (r->pairs)
        t->forward = fftwf_plan_dft_1d((int)r->length, (float complex *)t->window, t->spectrum,
                                       FFTW_FORWARD, flags);
    else t->forward = fftwf_plan_dft_r2c_1d((int)r->length, t->window, t->spectrum, flags);
    t->inverse = fftwf_plan_dft_1d((int)t->small, t->product, t->samples, FFTW_BACKWARD, flags);
    memset(t->window, 0, reals * sizeof *t->window);
    fill_response(t, r);
    return t;
}

static void run_channel(struct textbook *t, const struct receivers *r, size_t channel)
{
    const size_t half = t->small / 2, count = r->length;
    const double bins = r->centres[channel] / r->rate * (double)r->length;
    const long long rounded = llround(bins); // below `half`: that of a later period
    const size_t nearest =
        (size_t)(rounded < (long long)half ? rounded + (long long)count : rounded);
    for (size_t k = 0; k < half; k++) t->product[k] = t->spectrum[nearest + k] * t->response[k];
    for (size_t k = half; k < t->small; k++)
        t->product[k] = t->spectrum[nearest + k - t->small] * t->response[k];
    fftwf_execute(t->inverse);
    const double rest = (bins - (double)rounded) / (double)count;        // cycles a sample
    const size_t whole = t->blocks * r->block % count * nearest % count; // exact
    const double start = (double)whole / (double)count + rest * (double)(t->blocks * r->block);
    const double complex step = cexp(-2 * M_PI * I * rest * (double)r->stride);
    double complex at = cexp(-2 * M_PI * I * fmod(start, 1));
    const float complex *from = t->samples + t->small - t->outputs;
    float complex *to = t->result + channel * t->outputs;
    // The window begins length - block samples before the block.
    at *=
        cexp(2 * M_PI * I * fmod((double)nearest * (double)(count - r->block) / (double)count, 1));
    for (size_t i = 0; i < t->outputs; i++, at *= step) to[i] = from[i] * (float complex)at;
}

static void textbook_process(void *state, const struct receivers *r, const float *x)
{
    struct textbook *t = state;
    const size_t width = r->pairs ? 2 : 1, kept = (r->length - r->block) * width;
    memmove(t->window, t->window + r->block * width, kept * sizeof *x);
    memcpy(t->window + kept, x, r->block * width * sizeof *x);
    fftwf_execute(t->forward);
    memcpy(t->spectrum + r->length, t->spectrum, t->small * sizeof *t->spectrum);
    for (size_t c = 0; c < r->channels; c++) run_channel(t, r, c);
    t->blocks++;
}

static const float *textbook_output(void *state, const struct receivers *r, size_t channel)
{
    const struct textbook *t = state;
    (void)r;
    return (const float *)(t->result + channel * t->outputs);
}

static void textbook_close(void *state, const struct receivers *r)
{
    struct textbook *t = state;
    void *arrays[] = {t->window, t->spectrum, t->response, t->product, t->samples, t->result};
    (void)r;
    fftwf_destroy_plan(t->forward);
    fftwf_destroy_plan(t->inverse);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) fftwf_free(arrays[i]);
    free(t);
}

const struct receivers_contender receivers_textbook = {
    "textbook-fftw", textbook_open, textbook_process, textbook_output, textbook_close, false};
