// SPDX-License-Identifier: MIT
#include <math.h>

#include "adaptive.h"
#include "kernels/vector.h"

static const double MEANS_KEPT = 0.95, OTHER_KEPT = 0.7, COHERENT = 0.15; // see partita/adaptive.h

// Where the real part of bin k is in a spectrum; its imaginary part is SPECTRUM_LANES behind.
INLINE size_t real_part(size_t k)
{
    return 2 * k - k % SPECTRUM_LANES;
}

INLINE vec vec_at(const void *array, size_t k)
{
    return *(const vec *)((const REAL *)array + k);
}

INLINE void vec_put(void *array, size_t k, vec v)
{
    *(vec *)((REAL *)array + k) = v;
}

INLINE double vec_sum(vec v)
{
    double sum = 0;
    for (size_t i = 0; i < LANES; i++) sum += (double)v[i];
    return sum;
}

INLINE vec vec_root(vec v)
{
    UNROLL
    for (size_t i = 0; i < LANES; i++)
        v[i] = REAL_BYTES == 4 ? (REAL)sqrtf((float)v[i]) : (REAL)sqrt((double)v[i]);
    return v;
}

static void adaptive_step(const struct partita_adaptive *adaptive, size_t part, const void *x)
{
    const struct adaptive_arrays *arrays = &adaptive->arrays;
    const REAL decay = (REAL)(1 - adaptive->options.drift), floor = (REAL)(adaptive->prior / 1000);
    const REAL loss = (REAL)((2 - adaptive->options.step) / 2 * adaptive->share);
    const REAL spread = (REAL)adaptive->state->spread;
    const bool varies = adaptive->options.control == PARTITA_ADAPTIVE_STATE_SPACE;
    char *w = adaptive->weights + part * adaptive->spectrum_bytes;
    char *p = adaptive->variances + part * adaptive->part_bytes;
    for (size_t k = 0; k < adaptive->bins; k += LANES) {
        const size_t re = real_part(k), im = re + SPECTRUM_LANES;
        const vec x_re = vec_at(x, re), x_im = vec_at(x, im), before = vec_at(p, k);
        const vec e_re = vec_at(arrays->error, re), e_im = vec_at(arrays->error, im);
        const vec a = before * vec_at(arrays->gain, k);
        const vec w_re = vec_at(w, re) + a * (x_re * e_re + x_im * e_im);
        const vec w_im = vec_at(w, im) + a * (x_re * e_im - x_im * e_re);
        const vec square = w_re * w_re + w_im * w_im, power = x_re * x_re + x_im * x_im;
        vec_put(w, re, w_re);
        vec_put(w, im, w_im);
        const vec after = decay * (1 - loss * a * power) * before + spread * (square + floor);
        vec_put(p, k, varies ? after : vec_at(arrays->mean, k));
        vec_put(arrays->squares, k, vec_at(arrays->squares, k) + square);
    }
}

static void adaptive_multiply(const struct partita_adaptive *adaptive, size_t part, const void *x)
{
    const struct adaptive_arrays *arrays = &adaptive->arrays;
    const char *w = adaptive->weights + part * adaptive->spectrum_bytes;
    const char *p = adaptive->variances + part * adaptive->part_bytes;
    for (size_t k = 0; k < adaptive->bins; k += LANES) {
        const size_t re = real_part(k), im = re + SPECTRUM_LANES;
        const vec x_re = vec_at(x, re), x_im = vec_at(x, im);
        const vec w_re = vec_at(w, re), w_im = vec_at(w, im);
        const vec power = vec_at(p, k) * (x_re * x_re + x_im * x_im);
        vec_put(arrays->estimate, re, vec_at(arrays->estimate, re) + x_re * w_re - x_im * w_im);
        vec_put(arrays->estimate, im, vec_at(arrays->estimate, im) + x_re * w_im + x_im * w_re);
        vec_put(arrays->power, k, vec_at(arrays->power, k) + power);
    }
}

// Moves a mean over blocks towards a value.
INLINE vec follow(void *array, size_t k, vec value, double kept)
{
    const vec mean = (REAL)kept * vec_at(array, k) + (REAL)(1 - kept) * value;
    vec_put(array, k, mean);
    return mean;
}

static void adaptive_control(const struct partita_adaptive *adaptive)
{
    const struct partita_adaptive_options *options = &adaptive->options;
    const struct adaptive_arrays *arrays = &adaptive->arrays;
    struct adaptive_state *state = adaptive->state;
    const double h = state->coherence, parts = (double)adaptive->tasks;
    const bool fixed = options->control == PARTITA_ADAPTIVE_FIXED;
    state->spread = options->drift + fmax(0, h * h - COHERENT * COHERENT);
    const REAL spread = (REAL)state->spread, step = (REAL)options->step;
    const REAL silence = (REAL)(options->silence * (double)options->block);
    const REAL loss = (REAL)((2 - options->step) / 2 / parts), part_share = (REAL)(1 / parts);
    const REAL decay = (REAL)(1 - options->drift), floor = (REAL)(adaptive->prior / 1000);
    const REAL share = (REAL)adaptive->share;
    vec coherence = {0}, predicted = {0}, echo = {0}, other = {0};
    for (size_t k = 0; k < adaptive->bins; k += LANES) {
        const size_t re = real_part(k), im = re + SPECTRUM_LANES;
        const vec e_re = vec_at(arrays->error, re), e_im = vec_at(arrays->error, im);
        const vec y_re = vec_at(arrays->estimate, re), y_im = vec_at(arrays->estimate, im);
        const vec e_now = e_re * e_re + e_im * e_im, d = share * vec_at(arrays->power, k);
        const vec y_now = share * (y_re * y_re + y_im * y_im), mean = vec_at(arrays->mean, k);
        const vec v = follow(arrays->other, k, vec_positive(e_now - d) + silence, OTHER_KEPT);
        const vec e_mean = follow(arrays->residual, k, e_now, MEANS_KEPT);
        const vec y_mean = follow(arrays->echo, k, y_now, MEANS_KEPT);
        const vec both = follow(arrays->both, k, e_re * y_re + e_im * y_im, MEANS_KEPT);
        const vec rate = step / (d + (fixed ? vec_broadcast(silence) : v));
        const vec growth = spread * (part_share * vec_at(arrays->squares, k) + floor);
        vec_put(arrays->gain, k, rate);
        if (!fixed) vec_put(arrays->mean, k, decay * (1 - loss * rate * d) * mean + growth);
        coherence += both / (vec_root(e_mean) * vec_root(y_mean) + silence);
        predicted += d;
        echo += y_now;
        other += v;
    }
    state->coherence = vec_sum(coherence) / ((double)adaptive->fft->n / 2);
    state->predicted_power = vec_sum(predicted);
    state->echo_power = vec_sum(echo);
    state->other = vec_sum(other);
}

const struct adaptive_loops KERNEL(adaptive) = {adaptive_step, adaptive_multiply, adaptive_control};
