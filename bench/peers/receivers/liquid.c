// SPDX-License-Identifier: MIT
// A receiver for each channel as users of liquid-dsp write it: an oscillator (nco) shifts a block
// to 0, and msresamp, half bands and a polyphase filter, takes it to the rate of the output, with
// side lobes below -60 dB as in its examples. The filter is liquid's own.
#include <complex.h>
#include <liquid/liquid.h>
#include <math.h>
#include <stdlib.h>

#include "peers/instances.h"

struct receiver {
    nco_crcf oscillator;
    msresamp_crcf resampler;
    float complex *outputs; // msresamp may make one more or less than the rate says
};

struct liquid_receivers {
    struct receiver *receivers;
    float complex *shifted;
};

static void *liquid_open(const struct receivers *r)
{
    if (!r->pairs) return NULL; // hours a second
    const float attenuation = 60, rate = 1 / (float)r->stride;
    struct liquid_receivers *q = bench_allocate(sizeof *q);
    q->receivers = bench_allocate(r->channels * sizeof *q->receivers);
    q->shifted = bench_allocate(r->block * sizeof *q->shifted);
    for (size_t c = 0; c < r->channels; c++) {
        struct receiver *receiver = &q->receivers[c];
        receiver->oscillator = nco_crcf_create(LIQUID_NCO);
        nco_crcf_set_frequency(receiver->oscillator, (float)(2 * M_PI * r->centres[c] / r->rate));
        receiver->resampler = msresamp_crcf_create(rate, attenuation);
        receiver->outputs =
            bench_allocate((2 * (r->block / r->stride) + 2) * sizeof *receiver->outputs);
    }
    return q;
}

static void liquid_process(void *state, const struct receivers *r, const float *x)
{
    const struct liquid_receivers *q = state;
    float complex *block = (float complex *)(uintptr_t)x; // which is only read
    for (size_t c = 0; c < r->channels; c++) {
        const struct receiver *receiver = &q->receivers[c];
        unsigned made;
        nco_crcf_mix_block_down(receiver->oscillator, block, q->shifted, (unsigned)r->block);
        msresamp_crcf_execute(receiver->resampler, q->shifted, (unsigned)r->block,
                              receiver->outputs, &made);
    }
}

static const float *liquid_output(void *state, const struct receivers *r, size_t channel)
{
    (void)r;
    return (const float *)((struct liquid_receivers *)state)->receivers[channel].outputs;
}

static void liquid_close(void *state, const struct receivers *r)
{
    struct liquid_receivers *q = state;
    for (size_t c = 0; c < r->channels; c++) {
        nco_crcf_destroy(q->receivers[c].oscillator);
        msresamp_crcf_destroy(q->receivers[c].resampler);
        free(q->receivers[c].outputs);
    }
    free(q->receivers);
    free(q->shifted);
    free(q);
}

const struct receivers_contender receivers_liquid = {
    "liquid-nco-msresamp", liquid_open, liquid_process, liquid_output, liquid_close, true};
