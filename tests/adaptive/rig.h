// SPDX-License-Identifier: MIT
// An adaptive filter with random options, and the signals of an echo.
#ifndef PARTITA_TEST_ADAPTIVE_RIG_H
#define PARTITA_TEST_ADAPTIVE_RIG_H

#include "echo.h"

enum { MAX_CHANNELS = 3, MAX_FRAMES = 12000 };

// A filter with all signals of its run.
struct run {
    struct partita_adaptive_options options;
    struct partita_adaptive *adaptive;
    size_t frames, scalar;
    double *far_end[MAX_CHANNELS], *near_end;
    char *far_samples[MAX_CHANNELS], *near_samples, *residual;
};

static inline void samples_from(enum partita_type type, char *to, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) sample_put(type, to, i, x[i]);
}

static inline double sample_at(const struct run *run, const char *x, size_t i)
{
    return run->options.type == PARTITA_F64 ? ((const double *)x)[i]
                                            : (double)((const float *)x)[i];
}

// Signals of an echo with noise and a voice at the near end, which comes and goes.
static inline void run_open(struct run *run, struct random *random, size_t frames)
{
    const struct partita_adaptive_options *o = &run->options;
    double *h = malloc(o->taps * sizeof *h), *voice = malloc(frames * sizeof *voice);
    run->frames = frames;
    run->scalar = partita_type_size(o->type);
    run->near_end = calloc(frames, sizeof(double));
    run->near_samples = malloc(frames * run->scalar);
    run->residual = malloc(frames * run->scalar);
    for (size_t c = 0; c < o->channels; c++) {
        run->far_end[c] = malloc(frames * sizeof(double));
        run->far_samples[c] = malloc(frames * run->scalar);
        if (random_below(random, 2)) make_noise(random, run->far_end[c], frames, 0.1);
        else make_speech(random, run->far_end[c], frames, 0.1);
        make_room(random, h, o->taps, (double)o->taps, 0.2);
        samples_from(o->type, run->far_samples[c], run->far_end[c], frames);
        for (size_t i = 0; i < frames; i++)
            run->far_end[c][i] = sample_at(run, run->far_samples[c], i);
        add_echo(run->near_end, run->far_end[c], h, o->taps, 0, frames);
    }
    make_speech(random, voice, frames, 0.05);
    for (size_t i = 0; i < frames; i++)
        run->near_end[i] += 1e-3 * normal(random) + (i / 2000 % 2 ? voice[i] : 0);
    samples_from(o->type, run->near_samples, run->near_end, frames);
    for (size_t i = 0; i < frames; i++) run->near_end[i] = sample_at(run, run->near_samples, i);
    assert_ok(partita_adaptive_create(o, &run->adaptive));
    free(h);
    free(voice);
}

static inline void run_close(struct run *run)
{
    for (size_t c = 0; c < run->options.channels; c++) free(run->far_end[c]);
    for (size_t c = 0; c < run->options.channels; c++) free(run->far_samples[c]);
    free(run->near_end);
    free(run->near_samples);
    free(run->residual);
    partita_adaptive_destroy(run->adaptive);
}

// Frames first .. end-1 in calls of up to `largest` frames, 0: one call.
static inline void process(struct run *run, struct random *random, size_t first, size_t end,
                           size_t largest)
{
    const void *far_end[MAX_CHANNELS];
    for (size_t n; first < end; first += n) {
        n = largest ? 1 + random_below(random, largest) : end - first;
        if (n > end - first) n = end - first;
        for (size_t c = 0; c < run->options.channels; c++)
            far_end[c] = run->far_samples[c] + first * run->scalar;
        partita_adaptive_process(run->adaptive, run->residual + first * run->scalar,
                                 run->near_samples + first * run->scalar, far_end, n);
    }
}

static inline struct partita_adaptive_options random_options(struct random *random,
                                                             enum partita_type type)
{
    static const size_t blocks[] = {16, 64, 96, 100, 128, 192};
    struct partita_adaptive_options options = {
        .type = type,
        .control = (enum partita_adaptive_control)random_below(random, 3),
        .constraint = (enum partita_adaptive_constraint)random_below(random, 3),
        .channels = 1 + random_below(random, MAX_CHANNELS),
        .block = blocks[random_below(random, sizeof blocks / sizeof *blocks)],
        .gain = random_below(random, 2) ? 1 : 4,
        .drift = random_below(random, 2) ? 1e-6 : 1e-3,
        .step = 0.1 + 0.6 * uniform(random),
        .silence = 1e-10,
    };
    options.taps = 1 + random_below(random, 8 * options.block);
    return options;
}

#endif
