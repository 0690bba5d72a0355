// SPDX-License-Identifier: MIT
// Echo cancellers: ours with each control and constraint, and SpeexDSP's, by turns of 50 blocks, so
// that drift of the machine affects them alike. A call is a block, an item a sample. The check is
// the amplitude of the echo that is left in the last quarter of the run, which has noise 40 dB
// below the echo; an answer is wrong if it is not below a tenth.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/basics.h"
#include "peers/cancellers/cancellers.h"
#include "runner/runner.h"

#define NAME "adaptive-t16384-b256"
enum { TAPS = 16384, BLOCK = 256, RUN = 50, BLOCKS = 30 * RUN, FRAMES = BLOCKS * BLOCK };

static void *open_ours(size_t taps, size_t block, enum partita_adaptive_control control,
                       enum partita_adaptive_constraint constraint)
{
    const struct partita_adaptive_options options = {.taps = taps,
                                                     .block = block,
                                                     .whole_blocks = true,
                                                     .control = control,
                                                     .constraint = constraint,
                                                     .log = {partita_log_stderr, NULL}};
    struct partita_adaptive *adaptive;
    return partita_adaptive_create(&options, &adaptive) ? NULL : adaptive;
}

static void *open_state_space(size_t taps, size_t block)
{
    return open_ours(taps, block, PARTITA_ADAPTIVE_STATE_SPACE, PARTITA_ADAPTIVE_ROTATING);
}

static void *open_every(size_t taps, size_t block)
{
    return open_ours(taps, block, PARTITA_ADAPTIVE_STATE_SPACE, PARTITA_ADAPTIVE_EVERY);
}

static void *open_nlms(size_t taps, size_t block)
{
    return open_ours(taps, block, PARTITA_ADAPTIVE_NLMS, PARTITA_ADAPTIVE_ROTATING);
}

static void process_ours(void *state, float *residual, const float *near_end, const float *far_end)
{
    partita_adaptive_process(state, residual, near_end, &far_end, BLOCK);
}

static void close_ours(void *state)
{
    partita_adaptive_destroy(state);
}

static const struct canceller state_space = {"adaptive", open_state_space, process_ours,
                                             close_ours};
static const struct canceller every = {"adaptive-every", open_every, process_ours, close_ours};
static const struct canceller nlms = {"adaptive-nlms", open_nlms, process_ours, close_ours};
static const struct canceller *const cancellers[] = {
    &state_space,
    &every,
    &nlms,
#ifdef HAVE_SPEEXDSP
    &canceller_speexdsp,
#endif
};
enum { CANCELLERS = sizeof cancellers / sizeof *cancellers };

// Noise, its echo in a room that decays by 60 dB within the taps, and the echo with noise.
struct signals {
    float *far_end, *echo, *near_end;
};

static struct signals make_signals(void)
{
    struct signals s = {bench_allocate(FRAMES * sizeof(float)),
                        bench_allocate((FRAMES + TAPS) * sizeof(float)),
                        bench_allocate(FRAMES * sizeof(float))};
    float *room = bench_allocate(TAPS * sizeof *room);
    double energy = 0, gain;
    bench_noise(s.far_end, FRAMES, false, 3);
    bench_noise(room, TAPS, false, 4);
    for (size_t i = 0; i < TAPS; i++) {
        room[i] *= (float)pow(10, -3 * (double)i / TAPS);
        energy += (double)room[i] * (double)room[i];
    }
    gain = sqrt(0.25 / energy);
    for (size_t i = 0; i < TAPS; i++) room[i] *= (float)gain;
    if (partita_convolve(PARTITA_F32, s.echo, s.far_end, FRAMES, room, TAPS, NULL, NULL)) abort();
    bench_noise(s.near_end, FRAMES, false, 5);
    for (size_t i = 0; i < FRAMES; i++) s.near_end[i] = 0.005f * s.near_end[i] + s.echo[i];
    free(room);
    return s;
}

struct measured {
    void *state;
    double seconds[BLOCKS], left, echo;
    size_t bytes;
};

static void measure(const struct canceller *canceller, struct measured *m, const struct signals *s,
                    size_t block)
{
    float residual[BLOCK];
    const size_t at = block * BLOCK;
    const double begin = bench_now();
    canceller->process(m->state, residual, s->near_end + at, s->far_end + at);
    m->seconds[block] = bench_now() - begin;
    for (size_t i = 0; i < BLOCK && block >= BLOCKS - BLOCKS / 4; i++) {
        const double echo = (double)s->echo[at + i];
        m->left += pow((double)residual[i] - (double)s->near_end[at + i] + echo, 2);
        m->echo += echo * echo;
    }
}

// Returns whether the echo was removed.
static bool report(const struct canceller *canceller, struct measured *m)
{
    const double check = sqrt(m->left / m->echo), flat = calls_flatness(m->seconds, BLOCKS);
    qsort(m->seconds, BLOCKS, sizeof *m->seconds, bench_compare);
    const double median = m->seconds[BLOCKS / 2];
    printf("%s,%s,1,%.5g,%.3f,%.3f,%zu,%.3g\n", NAME, canceller->name, 1e9 * median / BLOCK,
           (m->seconds[3 * BLOCKS / 4] - m->seconds[BLOCKS / 4]) / median, flat, m->bytes, check);
    fprintf(stderr, "# %s: %.1f dB of the echo removed\n", canceller->name, -20 * log10(check));
    if (check < 0.1) return true;
    fprintf(stderr, "%s is WRONG: the echo is not removed\n", canceller->name);
    return false;
}

int main(int argc, char **argv)
{
    static struct measured measured[CANCELLERS];
    struct bench_options options;
    bool right = true;
    if (!bench_options_parse(&options, argc, argv, "bench_adaptive")) return 2;
    if (options.calls || options.threads > 1) {
        fprintf(stderr, "bench_adaptive: runs on one thread and writes no times of calls\n");
        return 2;
    }
    if (options.list) return puts(NAME) < 0;
    printf("case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check\n");
    if (!bench_matches(options.cases, NAME)) return 0;
    const struct signals signals = make_signals();
    const struct canceller *chosen[CANCELLERS];
    size_t n = 0;
    for (size_t i = 0; i < CANCELLERS; i++)
        if (bench_matches(options.contenders, cancellers[i]->name)) chosen[n++] = cancellers[i];
    for (size_t i = 0; i < n; i++) {
        const size_t before = bench_heap_bytes();
        measured[i].state = chosen[i]->open(TAPS, BLOCK);
        measured[i].bytes = bench_heap_bytes() - before;
        if (!measured[i].state) return 1;
    }
    for (size_t first = 0; first < BLOCKS; first += RUN)
        for (size_t i = 0; i < n; i++)
            for (size_t block = first; block < first + RUN; block++)
                measure(chosen[i], &measured[i], &signals, block);
    for (size_t i = 0; i < n; i++) {
        right &= report(chosen[i], &measured[i]);
        chosen[i]->close(measured[i].state);
    }
    free(signals.far_end);
    free(signals.echo);
    free(signals.near_end);
    return right ? 0 : 1;
}
