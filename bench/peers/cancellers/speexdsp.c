// SPDX-License-Identifier: MIT
// SpeexDSP's echo canceller, as its manual says: frames of the block, a tail of the taps, the
// sampling rate set. Its samples are 16 bits; the caller's are rounded, which takes about 1 % of
// the time.
#include "cancellers.h"

#include <math.h>
#include <speex/speex_echo.h>
#include <stdlib.h>

#include "base/basics.h"

struct speexdsp {
    SpeexEchoState *echo;
    size_t block;
    spx_int16_t *near_end, *far_end, *out;
};

static void speexdsp_close(void *state)
{
    struct speexdsp *s = state;
    if (s->echo) speex_echo_state_destroy(s->echo);
    free(s->near_end);
    free(s->far_end);
    free(s->out);
    free(s);
}

static void *speexdsp_open(size_t taps, size_t block)
{
    struct speexdsp *s = bench_allocate(sizeof *s);
    int rate = 48000;
    s->echo = speex_echo_state_init((int)block, (int)taps);
    s->block = block;
    s->near_end = bench_allocate(block * sizeof *s->near_end);
    s->far_end = bench_allocate(block * sizeof *s->far_end);
    s->out = bench_allocate(block * sizeof *s->out);
    if (s->echo && !speex_echo_ctl(s->echo, SPEEX_ECHO_SET_SAMPLING_RATE, &rate)) return s;
    speexdsp_close(s);
    return NULL;
}

static spx_int16_t to_16_bits(float x)
{
    return (spx_int16_t)lrintf(fmaxf(fminf(x, 0.99f), -0.99f) * 32768);
}

static void speexdsp_process(void *state, float *residual, const float *near_end,
                             const float *far_end)
{
    struct speexdsp *s = state;
    for (size_t i = 0; i < s->block; i++) {
        s->near_end[i] = to_16_bits(near_end[i]);
        s->far_end[i] = to_16_bits(far_end[i]);
    }
    speex_echo_cancellation(s->echo, s->near_end, s->far_end, s->out);
    for (size_t i = 0; i < s->block; i++) residual[i] = (float)s->out[i] / 32768;
}

const struct canceller canceller_speexdsp = {"speexdsp", speexdsp_open, speexdsp_process,
                                             speexdsp_close};
