// SPDX-License-Identifier: MIT
// A chain of the audio thread with its filter, its input and its output, called as by a device.
#ifndef PARTITA_TESTS_CHAIN_RIG_H
#define PARTITA_TESTS_CHAIN_RIG_H

#include "support/interpose.h"
#include "support/test.h"

#include <math.h>

#include "live/chain/chain.h"

enum { FRAMES = 6000, EXTRA_FRAMES = 100, MAX_CHANNELS = 8 };

struct chain_case {
    const char *name, *engine;
    size_t in, out, groups, taps, block; // block 0: random sizes
};

// A filter with its stream, input and output.
struct rig {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter, *other; // other: to swap to
    struct partita_stream *stream;
    struct chain *chain;
    struct chain_request request;
    float *taps, *x, *y; // [out][in/groups][taps], [in][FRAMES], [out][FRAMES]
};

static void rig_open(struct rig *rig, const struct chain_case *c, struct random *random)
{
    struct fault fault;
    struct partita_options options = {.engine = c->engine};
    *rig = (struct rig){.problem = {.in_channels = c->in,
                                    .out_channels = c->out,
                                    .groups = c->groups,
                                    .kernel = {c->taps},
                                    .size = {PARTITA_UNBOUNDED},
                                    .block = c->block ? c->block : 64}};
    size_t n_taps = c->out * (c->in / c->groups) * c->taps;
    rig->taps = malloc(n_taps * sizeof(float));
    rig->x = calloc(c->in * FRAMES + EXTRA_FRAMES, sizeof(float));
    rig->y = malloc((c->out * FRAMES + EXTRA_FRAMES) *
                    sizeof(float)); // the last call may exceed the end
    random_samples(random, PARTITA_F32, rig->taps, n_taps);
    random_samples(random, PARTITA_F32, rig->x, c->in * FRAMES);
    for (size_t i = 0; i < n_taps; i++)
        rig->taps[i] *= 0.5f / sqrtf((float)c->taps); // mostly below full scale
    assert_ok(partita_plan_create(&rig->problem, &options, &rig->plan));
    assert_ok(partita_filter_create(rig->plan, rig->taps, &rig->filter));
    assert_ok(partita_stream_open(rig->plan, rig->filter, &rig->stream));
    if (rig->request.rate == 0)
        rig->request = (struct chain_request){.stream = rig->stream,
                                              .in_channels = c->in,
                                              .out_channels = c->out,
                                              .rate = 48000,
                                              .duration = UINT64_MAX,
                                              .levels = {.input = 1, .wet = 1}};
    assert_true(chain_open(&rig->chain, &rig->request, &fault));
}

// The same chain with other options.
static void rig_reopen(struct rig *rig)
{
    struct fault fault;
    chain_close(rig->chain);
    partita_stream_reset(rig->stream);
    assert_true(chain_open(&rig->chain, &rig->request, &fault));
}

static void rig_close(struct rig *rig)
{
    chain_close(rig->chain);
    partita_stream_close(rig->stream);
    partita_filter_destroy(rig->filter);
    partita_filter_destroy(rig->other);
    partita_plan_destroy(rig->plan);
    free(rig->taps);
    free(rig->x);
    free(rig->y);
}

// One call as by a device, under interpose.h.
static bool call(struct rig *rig, size_t at, size_t n, unsigned losses)
{
    const float *in[MAX_CHANNELS];
    float *out[MAX_CHANNELS];
    for (size_t c = 0; c < rig->request.in_channels; c++) in[c] = rig->x + c * FRAMES + at;
    for (size_t c = 0; c < rig->request.out_channels; c++) out[c] = rig->y + c * FRAMES + at;
    watch_this_thread(true);
    bool more = chain_process(rig->chain, out, in, n, losses);
    watch_this_thread(false);
    return more;
}

#endif
