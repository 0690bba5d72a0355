// SPDX-License-Identifier: MIT
// A plan with filters, requests for the weights of their sum, what these ask for at each frame, and
// the weights that a stream has, measured with impulses.
#ifndef PARTITA_TESTS_MORPH_RIG_H
#define PARTITA_TESTS_MORPH_RIG_H

#include "support/stream_rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILTERS = 3, FRAMES = 12288 };

struct ask {
    size_t at, frames;
    double weights[FILTERS];
};

// The weights are asked for at frames that every quantum divides (PARTITION_MAX_QUANTUM).
static const struct ask requests[] = {
    {0, 0, {0.5, -0.25, 0.75}},
    {1024, 0, {-1, 0.5, 1}},
    {2048, 1500, {1, 0, 0.25}},
    {3072, 5000, {0, 1, 0}}, // replaces the rest of the one before
};
enum { N_REQUESTS = sizeof requests / sizeof *requests };

struct morph_rig {
    struct stream_rig rig;
    void *taps[FILTERS];
    struct partita_filter *filters[FILTERS];
};

// Filters with random taps. Of the second a path is missing, of the third the first half.
static void rig_open_morph(struct morph_rig *m, const struct stream_case *c,
                           const struct partita_problem *problem,
                           const struct partita_options *options, size_t n_frames,
                           struct random *random)
{
    stream_rig_open_exactly(&m->rig, c, problem, options, n_frames, random);
    const enum partita_type type = m->rig.problem.taps;
    const size_t bytes = partita_type_size(type), kernel = m->rig.problem.kernel[0];
    for (size_t k = 0; k < FILTERS; k++) {
        m->taps[k] = malloc(m->rig.n_taps * bytes);
        random_samples(random, type, m->taps[k], m->rig.n_taps);
        if (k == 1 && m->rig.n_taps > kernel)
            for (size_t i = 0; i < kernel; i++) sample_put(type, m->taps[k], kernel + i, 0);
        for (size_t i = 0; k == 2 && i < m->rig.n_taps; i++)
            if (i % kernel < kernel / 2) sample_put(type, m->taps[k], i, 0);
        assert_ok(partita_filter_create(m->rig.plan, m->taps[k], &m->filters[k]));
    }
}

static void rig_close_morph(struct morph_rig *m)
{
    for (size_t k = 0; k < FILTERS; k++) {
        partita_filter_destroy(m->filters[k]);
        free(m->taps[k]);
    }
    stream_rig_close(&m->rig);
}

// A stream with the first weights; `pair`: of two filters, with weights s and 1 - s, where s is the
// first weight of a request.
static struct partita_stream *open_filters(const struct morph_rig *m,
                                           struct partita_filter *const *filters, bool pair)
{
    const double *weights = requests[0].weights, two[] = {weights[0], 1 - weights[0]};
    struct partita_stream *stream;
    assert_ok(partita_stream_open_morph(m->rig.plan, (const void *)filters, pair ? 2 : FILTERS,
                                        pair ? two : weights, &stream));
    return stream;
}

static struct partita_stream *open_stream(const struct morph_rig *m)
{
    return open_filters(m, m->filters, false);
}

struct feed {
    const struct call_split *split;
    struct random *random;
    bool pair;
};

// Feeds frames [first, end), with the requests among them.
static void feed(const struct morph_rig *m, struct partita_stream *stream, void *y, size_t first,
                 size_t end, const struct feed *how)
{
    for (size_t i = 1; i <= N_REQUESTS; i++) {
        const size_t until = i < N_REQUESTS && requests[i].at < end ? requests[i].at : end;
        if (until < first) continue;
        stream_rig_feed_span(&m->rig, stream, y, first, until, how->split, how->random);
        first = until;
        if (i == N_REQUESTS || until < requests[i].at || until == end) continue;
        const double *weights = requests[i].weights, two[] = {weights[0], 1 - weights[0]};
        assert_ok(partita_stream_morph(stream, how->pair ? two : weights, requests[i].frames));
    }
}

// What the requests ask for at a frame.
static double asked(size_t k, size_t frame)
{
    double from = requests[0].weights[k], now = from;
    for (size_t i = 1; i < N_REQUESTS; i++) {
        const struct ask *r = &requests[i];
        if (frame < r->at) break;
        // Where the one before had come to when this one replaced it.
        const size_t end =
            i + 1 < N_REQUESTS && frame >= requests[i + 1].at ? requests[i + 1].at : frame;
        const double share =
            end - r->at < r->frames ? (double)(end - r->at) / (double)r->frames : 1;
        now = from + (r->weights[k] - from) * share;
        from = now;
    }
    return now;
}

// Smallest and largest weight that is asked for in the last `lag` frames up to each one.
struct range {
    double low, high;
};
static struct range *ranges_of(size_t k, size_t lag, size_t n)
{
    struct range *ranges = malloc(n * sizeof *ranges);
    double *weights = malloc(n * sizeof *weights);
    for (size_t t = 0; t < n; t++) weights[t] = asked(k, t);
    for (size_t t = 0; t < n; t++) {
        struct range range = {weights[t], weights[t]};
        for (size_t s = t > lag ? t - lag : 0; s < t; s++) {
            range.low = fmin(range.low, weights[s]);
            range.high = fmax(range.high, weights[s]);
        }
        ranges[t] = range;
    }
    free(weights);
    return ranges;
}

static size_t quantum_of(const struct partita_plan *plan)
{
    char text[8192];
    assert_true(partita_plan_explain(plan, text, sizeof text) < sizeof text);
    const char *found = strstr(text, "quanta of ");
    assert_non_null(found);
    return strtoul(found + strlen("quanta of "), NULL, 10);
}

// The weight of every tap of the first of two filters at every frame, [tap][frame]: the first has
// taps of 1 and the second has zeros, so that the response to an impulse is the weight. The first
// weights of the requests are s, those of the second filter 1 - s. Impulses are as far apart as
// there are taps. With `every` above 3 some weights are not measured, which are then NaN: of every
// so many taps at a frame only three, so that there are differences of differences.
static double *measure_weights(const struct morph_rig *m, struct partita_filter *const *filters,
                               size_t every, struct random *random)
{
    const struct stream_rig *rig = &m->rig;
    const size_t taps = rig->problem.kernel[0];
    const enum partita_type type = rig->problem.signal;
    double *weights = malloc(taps * FRAMES * sizeof *weights);
    for (size_t i = 0; i < taps * FRAMES; i++) weights[i] = NAN;
    void *y = stream_rig_alloc_output(rig);
    const struct feed how = {&split_whole, random, true};
    for (size_t phase = 0; phase < taps; phase++) {
        if (phase % every >= 3) continue;
        for (size_t t = 0; t < FRAMES; t++) sample_put(type, rig->x, t, t % taps == phase ? 1 : 0);
        struct partita_stream *stream = open_filters(m, filters, true);
        feed(m, stream, y, 0, FRAMES, &how);
        partita_stream_close(stream);
        for (size_t t = phase; t < FRAMES; t++)
            weights[(t - phase) % taps * FRAMES + t] = creal(reference_sample(type, y, t));
    }
    guarded_free(y);
    return weights;
}

#endif
