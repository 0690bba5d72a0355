// SPDX-License-Identifier: MIT
// Many channels of one signal: a channelizer, the same scheme on FFTW, and for each channel a mixer
// with a stream with a stride, or with liquid-dsp's resampler. A call is one block of inputs; an
// item is an input sample, of all channels. Some outputs are compared with direct sums; those of
// liquid's own filter need only be like them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/instances.h"
#include "runner/runner.h"

enum {
    NOISE_BLOCKS = 4, // of input, which repeat
    CALLS = 40,
    SLOW_CALLS = 4, // of contenders that take longer than a second a call
    CHECKED = 4,    // channels, and outputs of each
};

// A channelizer.
struct ours {
    struct partita_channelizer *channelizer;
    struct partita_channel_filter *filter;
};

static void ours_close(void *state, const struct receivers *receivers)
{
    struct ours *ours = state;
    (void)receivers;
    partita_channel_filter_destroy(ours->filter);
    partita_channelizer_destroy(ours->channelizer);
    free(ours);
}

static void *ours_open(const struct receivers *r)
{
    struct ours *ours = bench_allocate(sizeof *ours);
    const struct partita_channelizer_options options = {.signal =
                                                            r->pairs ? PARTITA_CF32 : PARTITA_F32,
                                                        .channels = r->channels,
                                                        .n_taps = r->taps,
                                                        .stride = r->stride,
                                                        .block = r->block,
                                                        .sample_rate = r->rate,
                                                        .log = {partita_log_stderr, NULL}};
    const struct partita_channel channel = {
        .taps = r->h, .n_taps = r->taps, .stride = r->stride, .bandwidth = r->bandwidth};
    bool good = !partita_channelizer_create(&options, &ours->channelizer) &&
                !partita_channel_filter_create(ours->channelizer, &channel, &ours->filter);
    size_t index;
    for (size_t c = 0; c < r->channels && good; c++)
        good = !partita_channelizer_open(ours->channelizer, ours->filter, r->centres[c], &index) &&
               index == c;
    if (good) return ours;
    ours_close(ours, r);
    return NULL;
}

static void ours_process(void *state, const struct receivers *r, const float *x)
{
    partita_channelizer_process(((struct ours *)state)->channelizer, x, r->block);
}

static const float *ours_output(void *state, const struct receivers *r, size_t channel)
{
    size_t n;
    (void)r;
    return partita_channelizer_output(((struct ours *)state)->channelizer, channel, &n);
}

// A mixer and a stream with a stride for each channel.
struct mixed {
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream **streams;
    float *mixed, *outputs; // [block], [channels][block / stride], complex
    size_t blocks;
};

static void mixed_close(void *state, const struct receivers *r)
{
    struct mixed *m = state;
    for (size_t c = 0; c < r->channels; c++) partita_stream_close(m->streams[c]);
    partita_filter_destroy(m->filter);
    partita_plan_destroy(m->plan);
    free(m->streams);
    free(m->mixed);
    free(m->outputs);
    free(m);
}

static void *mixed_open(const struct receivers *r)
{
    if (!r->pairs) return NULL; // hours a second
    struct mixed *m = bench_allocate(sizeof *m);
    const struct partita_problem problem = {.signal = PARTITA_CF32,
                                            .taps = PARTITA_F32,
                                            .kernel = {r->taps},
                                            .stride = {r->stride},
                                            .size = {PARTITA_UNBOUNDED},
                                            .block = r->block};
    m->streams = bench_allocate(r->channels * sizeof *m->streams);
    m->mixed = bench_allocate(2 * r->block * sizeof *m->mixed);
    m->outputs = bench_allocate(2 * r->channels * (r->block / r->stride) * sizeof *m->outputs);
    bool good = !partita_plan_create(&problem, NULL, &m->plan) &&
                !partita_filter_create(m->plan, r->h, &m->filter);
    for (size_t c = 0; c < r->channels && good; c++)
        good = !partita_stream_open(m->plan, m->filter, &m->streams[c]);
    if (good) return m;
    mixed_close(m, r);
    return NULL;
}

// As `partita convolve --tune` shifts: 1024 samples by a rotation each, from their number.
static void mix(const struct mixed *m, const struct receivers *r, const float *x, double centre)
{
    enum { PART = 1024 };
    double fine[PART][2];
    for (size_t i = 0; i < PART; i++) {
        fine[i][0] = cos(2 * M_PI * centre / r->rate * (double)i);
        fine[i][1] = -sin(2 * M_PI * centre / r->rate * (double)i);
    }
    for (size_t at = 0; at < r->block; at += PART) {
        const double cycles = fmod(centre / r->rate * (double)(m->blocks * r->block + at), 1);
        const double re = cos(2 * M_PI * cycles), im = -sin(2 * M_PI * cycles);
        for (size_t i = 0; i < PART && at + i < r->block; i++) {
            const float a = (float)(re * fine[i][0] - im * fine[i][1]),
                        b = (float)(re * fine[i][1] + im * fine[i][0]);
            const float *from = x + 2 * (at + i);
            m->mixed[2 * (at + i)] = from[0] * a - from[1] * b;
            m->mixed[2 * (at + i) + 1] = from[0] * b + from[1] * a;
        }
    }
}

static void mixed_process(void *state, const struct receivers *r, const float *x)
{
    struct mixed *m = state;
    for (size_t c = 0; c < r->channels; c++) {
        mix(m, r, x, r->centres[c]);
        partita_stream_process(m->streams[c],
                               (void *[]){m->outputs + 2 * c * (r->block / r->stride)},
                               (const void *[]){m->mixed}, r->block);
    }
    m->blocks++;
}

static const float *mixed_output(void *state, const struct receivers *r, size_t channel)
{
    return ((struct mixed *)state)->outputs + 2 * channel * (r->block / r->stride);
}

// The output of a channel at sample `time`, as a direct sum in double.
static void direct_sum(const struct receivers *r, const float *noise, size_t channel, size_t time,
                       double ret[2])
{
    const size_t period = NOISE_BLOCKS * r->block;
    ret[0] = ret[1] = 0;
    for (size_t t = 0; t < r->taps && t <= time; t++) {
        const size_t at = (time - t) % period;
        const double cycles = fmod(r->centres[channel] * (double)(time - t), r->rate) / r->rate;
        const double a = cos(2 * M_PI * cycles) * (double)r->h[t],
                     b = -sin(2 * M_PI * cycles) * (double)r->h[t];
        const double x = (double)noise[r->pairs ? 2 * at : at],
                     i = r->pairs ? (double)noise[2 * at + 1] : 0;
        ret[0] += a * x - b * i;
        ret[1] += a * i + b * x;
    }
}

// Relative error of some outputs of block `block`. The response of the taps outside of the
// bandwidth is left out by some contenders.
static double error_of(const struct receivers_contender *contender, void *state,
                       const struct receivers *r, size_t block, const float *noise)
{
    const size_t outputs = r->block / r->stride;
    double error = 0, norm = 0, sum[2];
    for (size_t c = 0; c < CHECKED; c++) {
        const size_t channel = c * (r->channels - 1) / (CHECKED - 1);
        const float *y = contender->output(state, r, channel);
        for (size_t k = 0; k < CHECKED; k++) {
            const size_t m = k * (outputs - 1) / (CHECKED - 1);
            direct_sum(r, noise, channel, block * r->block + m * r->stride, sum);
            error += pow((double)y[2 * m] - sum[0], 2) + pow((double)y[2 * m + 1] - sum[1], 2);
            norm += sum[0] * sum[0] + sum[1] * sum[1];
        }
    }
    return sqrt(error / norm);
}

// How little the outputs of a channel correlate with direct sums of the block's taps, at the delay
// where they do most: filters of one pass band have much in common.
static double unlikeness_of(const struct receivers_contender *contender, void *state,
                            const struct receivers *r, size_t block, const float *noise)
{
    enum { MAX_DELAY = 40 }; // outputs
    const size_t n = r->block / r->stride, channel = r->channels / 3;
    const float *y = contender->output(state, r, channel);
    double(*sums)[2] = bench_allocate((n + MAX_DELAY) * sizeof *sums), best = 0;
    for (size_t m = 0; m < n + MAX_DELAY; m++)
        direct_sum(r, noise, channel, block * r->block + m * r->stride - MAX_DELAY * r->stride,
                   sums[m]);
    for (size_t delay = 0; delay <= MAX_DELAY; delay++) {
        double re = 0, im = 0, ours = 0, theirs = 0;
        for (size_t m = 0; m < n; m++) {
            const double *e = sums[m + MAX_DELAY - delay], a = (double)y[2 * m],
                         b = (double)y[2 * m + 1];
            re += a * e[0] + b * e[1];
            im += b * e[0] - a * e[1];
            ours += e[0] * e[0] + e[1] * e[1];
            theirs += a * a + b * b;
        }
        best = fmax(best, hypot(re, im) / sqrt(ours * theirs));
    }
    free(sums);
    return 1 - best;
}

// Returns whether the answers were right.
static bool run(const struct receivers_contender *contender, const struct receivers *r,
                const float *noise)
{
    // The response outside of the bandwidth; of other filters what their edges differ in.
    const double gate = contender->own_filter ? 0.3 : 1e-4;
    const size_t width = r->pairs ? 2 : 1, before = bench_heap_bytes();
    void *state = contender->open(r);
    const size_t bytes = bench_heap_bytes() - before;
    if (!state) return true;
    double seconds[CALLS];
    size_t call = 0, calls = r->quick ? CALLS / 4 : CALLS;
    for (size_t i = 0; i < calls + 1; i++, call++) { // the first one is not counted
        const double begin = bench_now();
        contender->process(state, r, noise + call % NOISE_BLOCKS * r->block * width);
        const double elapsed = bench_now() - begin;
        if (i) seconds[i - 1] = elapsed;
        else if (elapsed > 1) calls = SLOW_CALLS;
    }
    const double error =
        (contender->own_filter ? unlikeness_of : error_of)(contender, state, r, call - 1, noise);
    contender->close(state, r);
    qsort(seconds, calls, sizeof *seconds, bench_compare);
    const double median = seconds[calls / 2], block = (double)r->block;
    printf("%s,%s,1,%.5g,%.3f,%.3f,%zu,%.3g\n", r->name, contender->name, 1e9 * median / block,
           (seconds[calls - 1] - seconds[0]) / median, seconds[calls - 1] / median, bytes, error);
    fprintf(stderr, "# %s, %s: %.1f %% of real time\n", r->name, contender->name,
            100 * median * r->rate / block);
    fflush(stdout);
    if (error <= gate) return true;
    fprintf(stderr, "%s: %s is WRONG: error %.3g, allowed %.3g\n", r->name, contender->name, error,
            gate);
    return false;
}

// A low pass with Blackman and Harris' window of four terms, whose side lobes are below -92 dB, and
// centres all over the band.
static void prepare(struct receivers *r, float *h)
{
    const double low = r->pairs ? -0.4 : 0.05, high = r->pairs ? 0.4 : 0.45;
    const double middle = (double)(r->taps - 1) / 2, lobe = 4 / (double)r->taps;
    const double cutoff = r->bandwidth / r->rate - 2 * lobe;
    for (size_t i = 0; i < r->taps; i++) {
        const double t = (double)i - middle, w = M_PI * t / middle;
        const double window =
            0.35875 + 0.48829 * cos(w) + 0.14128 * cos(2 * w) + 0.01168 * cos(3 * w);
        h[i] = (float)((t == 0 ? cutoff : sin(M_PI * cutoff * t) / (M_PI * t)) * window);
    }
    for (size_t c = 0; c < r->channels; c++) {
        const double share = (double)c / (double)(r->channels - 1);
        const double bins = round((low + (high - low) * share) * (double)r->length);
        r->centres[c] = bins / (double)r->length * r->rate;
    }
    r->h = h;
}

int main(int argc, char **argv)
{
    struct receivers cases[] = {
        {.name = "channels-f32-r64800k-1000",
         .rate = 64.8e6,
         .bandwidth = 12e3,
         .channels = 1000,
         .taps = 259201,
         .stride = 5400,
         .block = 1296000,
         .length = 1555200},
        {.name = "channels-cf32-r2400k-50",
         .rate = 2.4e6,
         .bandwidth = 25e3,
         .pairs = true,
         .channels = 50,
         .taps = 2401,
         .stride = 96,
         .block = 9600,
         .length = 12000},
    };
    static const struct receivers_contender ours = {"channelizer", ours_open,  ours_process,
                                                    ours_output,   ours_close, false},
                                            mixed = {"streams",    mixed_open,  mixed_process,
                                                     mixed_output, mixed_close, false};
    const struct receivers_contender *const contenders[] = {
        &ours,
        &mixed,
#ifdef HAVE_TEXTBOOK
        &receivers_textbook,
#endif
#ifdef HAVE_LIQUID
        &receivers_liquid,
#endif
    };
    struct bench_options options;
    bool right = true;
    if (!bench_options_parse(&options, argc, argv, "bench_channelizer")) return 2;
    if (options.calls || options.threads > 1) {
        fprintf(stderr, "bench_channelizer: runs on one thread and writes no times of calls\n");
        return 2;
    }
    if (!options.list)
        printf("case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check\n");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct receivers *r = &cases[c];
        if (!bench_matches(options.cases, r->name)) continue;
        if (options.list) {
            puts(r->name);
            continue;
        }
        const size_t reals = NOISE_BLOCKS * r->block * (r->pairs ? 2 : 1);
        float *noise = bench_allocate(reals * sizeof *noise),
              *h = bench_allocate(r->taps * sizeof *h);
        r->centres = bench_allocate(r->channels * sizeof *r->centres);
        r->quick = options.quick;
        bench_noise(noise, reals, false, 7);
        prepare(r, h);
        for (size_t i = 0; i < sizeof contenders / sizeof *contenders; i++)
            if (bench_matches(options.contenders, contenders[i]->name))
                right &= run(contenders[i], r, noise);
        free(noise);
        free(h);
        free(r->centres);
    }
    return right ? 0 : 1;
}
