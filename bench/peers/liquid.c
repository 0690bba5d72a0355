// SPDX-License-Identifier: MIT
// liquid-dsp as a contender: firfilt_*, firdecim_* and rresamp_* by execute_block, and fftfilt_*
// where the block is at least as long as the filter, as that object requires. Single precision
// only; one channel.
#include "peers/peers.h"

#include <complex.h>
#include <liquid/liquid.h>
#include <stdlib.h>

// The variant of an object: real, real taps on complex signals, complex.
enum liquid_variant { RRRF, CRCF, CCCF };

struct liquid {
    enum liquid_variant variant;
    firfilt_rrrf fir_r;
    firfilt_crcf fir_m;
    firfilt_cccf fir_c;
    firdecim_rrrf decimator;
    rresamp_rrrf resampler;
    fftfilt_rrrf fft_r;
    fftfilt_crcf fft_m;
    fftfilt_cccf fft_c;
};

static void liquid_fir_call(void *state, const struct workload *w, size_t at)
{
    struct liquid *q = state;
    unsigned n = (unsigned)w->block;
    void *x = w->x + at * partita_type_size(w->signal),
         *y = w->y + at * partita_type_size(w->signal);
    if (q->variant == RRRF) firfilt_rrrf_execute_block(q->fir_r, x, n, y);
    else if (q->variant == CRCF) firfilt_crcf_execute_block(q->fir_m, x, n, y);
    else firfilt_cccf_execute_block(q->fir_c, x, n, y);
}

// The length of the block was fixed when the object was made.
static void liquid_fft_call(void *state, const struct workload *w, size_t at)
{
    struct liquid *q = state;
    void *x = w->x + at * partita_type_size(w->signal),
         *y = w->y + at * partita_type_size(w->signal);
    if (q->variant == RRRF) fftfilt_rrrf_execute(q->fft_r, x, y);
    else if (q->variant == CRCF) fftfilt_crcf_execute(q->fft_m, x, y);
    else fftfilt_cccf_execute(q->fft_c, x, y);
}

static void liquid_decimator_call(void *state, const struct workload *w, size_t at)
{
    struct liquid *q = state;
    float *x = (float *)w->x + at, *y = (float *)w->y + at / w->stride;
    firdecim_rrrf_execute_block(q->decimator, x, (unsigned)(w->block / w->stride), y);
}

// Each of the n blocks that it counts has `stride` inputs and `up` outputs.
static void liquid_resampler_call(void *state, const struct workload *w, size_t at)
{
    struct liquid *q = state;
    float *x = (float *)w->x + at, *y = (float *)w->y + at * w->up / w->stride;
    rresamp_rrrf_execute_block(q->resampler, x, (unsigned)(w->block / w->stride), y);
}

static void liquid_reset(struct liquid *q)
{
    if (q->fir_r != NULL) firfilt_rrrf_reset(q->fir_r);
    if (q->fir_m != NULL) firfilt_crcf_reset(q->fir_m);
    if (q->fir_c != NULL) firfilt_cccf_reset(q->fir_c);
    if (q->decimator != NULL) firdecim_rrrf_reset(q->decimator);
    if (q->resampler != NULL) rresamp_rrrf_reset(q->resampler);
    if (q->fft_r != NULL) fftfilt_rrrf_reset(q->fft_r);
    if (q->fft_m != NULL) fftfilt_crcf_reset(q->fft_m);
    if (q->fft_c != NULL) fftfilt_cccf_reset(q->fft_c);
}

static void liquid_close(void *state)
{
    struct liquid *q = state;
    if (q->fir_r != NULL) firfilt_rrrf_destroy(q->fir_r);
    if (q->fir_m != NULL) firfilt_crcf_destroy(q->fir_m);
    if (q->fir_c != NULL) firfilt_cccf_destroy(q->fir_c);
    if (q->decimator != NULL) firdecim_rrrf_destroy(q->decimator);
    if (q->resampler != NULL) rresamp_rrrf_destroy(q->resampler);
    if (q->fft_r != NULL) fftfilt_rrrf_destroy(q->fft_r);
    if (q->fft_m != NULL) fftfilt_crcf_destroy(q->fft_m);
    if (q->fft_c != NULL) fftfilt_cccf_destroy(q->fft_c);
    free(q);
}

static double liquid_fir_pass(void *state, const struct workload *w, double *calls)
{
    liquid_reset(state);
    return bench_calls(w, calls, liquid_fir_call, state);
}

static double liquid_fft_pass(void *state, const struct workload *w, double *calls)
{
    liquid_reset(state);
    return bench_calls(w, calls, liquid_fft_call, state);
}

static double liquid_decimator_pass(void *state, const struct workload *w, double *calls)
{
    liquid_reset(state);
    return bench_calls(w, calls, liquid_decimator_call, state);
}

static double liquid_resampler_pass(void *state, const struct workload *w, double *calls)
{
    liquid_reset(state);
    return bench_calls(w, calls, liquid_resampler_call, state);
}

static bool liquid_applies(const struct workload *w)
{
    return w->block > 0 && w->in_channels == 1 && w->out_channels == 1 && !type_is_f64(w->signal);
}

static struct liquid *liquid_create(struct contender *contender, const struct workload *w)
{
    struct liquid *q = bench_allocate(sizeof *q);
    q->variant = type_is_complex(w->signal) ? CRCF : RRRF;
    if (type_is_complex(w->taps)) q->variant = CCCF;
    contender->state = q;
    contender->close = liquid_close;
    contender->gate = gate_peer(w);
    return q;
}

bool peer_liquid_fir(struct contender *contender, const struct workload *w)
{
    bool resamples = w->up > 1, decimates = w->stride > 1 && !resamples;
    if (!liquid_applies(w) || (decimates && type_is_complex(w->signal))) return false;
    struct liquid *q = liquid_create(contender, w);
    unsigned n_taps = (unsigned)w->n_taps;
    contender->pass = resamples   ? liquid_resampler_pass
                      : decimates ? liquid_decimator_pass
                                  : liquid_fir_pass;
    if (resamples) // its filters have 2 m taps for each frame of the input
        q->resampler = rresamp_rrrf_create((unsigned)w->up, (unsigned)w->stride,
                                           n_taps / (unsigned)(2 * w->up), (float *)w->h);
    else if (decimates)
        q->decimator = firdecim_rrrf_create((unsigned)w->stride, (float *)w->h, n_taps);
    else if (q->variant == RRRF) q->fir_r = firfilt_rrrf_create((float *)w->h, n_taps);
    else if (q->variant == CRCF) q->fir_m = firfilt_crcf_create((float *)w->h, n_taps);
    else q->fir_c = firfilt_cccf_create((float complex *)w->h, n_taps);
    return true;
}

bool peer_liquid_fft(struct contender *contender, const struct workload *w)
{
    if (!liquid_applies(w) || w->stride > 1 || w->block < w->n_taps) return false;
    struct liquid *q = liquid_create(contender, w);
    unsigned n_taps = (unsigned)w->n_taps, n = (unsigned)w->block;
    contender->pass = liquid_fft_pass;
    if (q->variant == RRRF) q->fft_r = fftfilt_rrrf_create((float *)w->h, n_taps, n);
    else if (q->variant == CRCF) q->fft_m = fftfilt_crcf_create((float *)w->h, n_taps, n);
    else q->fft_c = fftfilt_cccf_create((float complex *)w->h, n_taps, n);
    return true;
}
