// SPDX-License-Identifier: MIT
// Many streams in one process: a bank against as many streams of the same plan, all started
// together, and as many instances of zita-convolver. Filters of 48000 taps, one for each slot or
// one for all. A call is one block of every slot on one thread, the copy of its input included.
// Contenders run one after the other, since memory does not hold all of them. The answers of some
// slots are compared with direct sums. All cases together take about two minutes.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/instances.h"
#include "runner/runner.h"

enum {
    TAPS = 48000,
    BLOCK = 64,
    NOISE = 1 << 16,  // samples of input, which slots read from different places on
    MAX_CALLS = 1024, // of a pass, fewer with many slots, and
    MIN_CALLS = 128,  // those after which the work of every contender repeats
    PASSES = 3,       // a call's time is the minimum over so many of these
    CHECKED = 4,      // slots
};

static float *noise;

static size_t noise_at(size_t slot, size_t call)
{
    return (slot * 977 + call) % (NOISE / BLOCK) * BLOCK;
}

void instances_taps(const struct instances *instances, size_t slot, float *taps)
{
    bench_noise(taps, instances->taps, false, instances->shared ? 1 : 1 + slot);
}

// A bank.
struct own_bank {
    struct partita_bank *bank;
    struct partita_filter **filters;
    size_t *slots;
};

static void own_bank_close(void *state, const struct instances *instances)
{
    struct own_bank *ours = state;
    for (size_t i = 0; i < instances->slots; i++) partita_filter_destroy(ours->filters[i]);
    partita_bank_destroy(ours->bank);
    free(ours->filters);
    free(ours->slots);
    free(ours);
}

static void *own_bank_open(const struct instances *instances)
{
    struct own_bank *ours = bench_allocate(sizeof *ours);
    float *taps = bench_allocate(instances->taps * sizeof *taps);
    ours->filters = bench_allocate(instances->slots * sizeof *ours->filters);
    ours->slots = bench_allocate(instances->slots * sizeof *ours->slots);
    const struct partita_bank_options options = {
        .slots = instances->slots, .n_taps = instances->taps, .block = instances->block};
    enum partita_status status = partita_bank_create(&options, &ours->bank);
    for (size_t i = 0; i < instances->slots && status == PARTITA_OK; i++) {
        const size_t filter = instances->shared ? 0 : i;
        instances_taps(instances, i, taps);
        if (filter == i)
            status =
                partita_bank_filter_create(ours->bank, taps, instances->taps, &ours->filters[i]);
        if (status == PARTITA_OK)
            status = partita_bank_open(ours->bank, ours->filters[filter], &ours->slots[i]);
    }
    free(taps);
    if (status == PARTITA_OK) return ours;
    fprintf(stderr, "%s: %s\n", instances->name, partita_status_string(status));
    own_bank_close(ours, instances);
    return NULL;
}

static float *own_bank_input(void *state, const struct instances *instances, size_t slot)
{
    const struct own_bank *ours = state;
    (void)instances;
    return partita_bank_input(ours->bank, ours->slots[slot]);
}

static const float *own_bank_output(void *state, const struct instances *instances, size_t slot)
{
    const struct own_bank *ours = state;
    (void)instances;
    return partita_bank_output(ours->bank, ours->slots[slot]);
}

static void own_bank_process(void *state, const struct instances *instances)
{
    (void)instances;
    partita_bank_process(((struct own_bank *)state)->bank);
}

// As many streams.
struct own_streams {
    struct partita_plan *plan;
    struct partita_filter **filters;
    struct partita_stream **streams;
    float *x, *y; // [slots][block]
};

static void own_streams_close(void *state, const struct instances *instances)
{
    struct own_streams *ours = state;
    for (size_t i = 0; i < instances->slots; i++) partita_stream_close(ours->streams[i]);
    for (size_t i = 0; i < instances->slots; i++) partita_filter_destroy(ours->filters[i]);
    partita_plan_destroy(ours->plan);
    free(ours->filters);
    free(ours->streams);
    free(ours->x);
    free(ours->y);
    free(ours);
}

static void *own_streams_open(const struct instances *instances)
{
    struct own_streams *ours = bench_allocate(sizeof *ours);
    float *taps = bench_allocate(instances->taps * sizeof *taps);
    ours->filters = bench_allocate(instances->slots * sizeof *ours->filters);
    ours->streams = bench_allocate(instances->slots * sizeof *ours->streams);
    ours->x = bench_allocate(instances->slots * instances->block * sizeof *ours->x);
    ours->y = bench_allocate(instances->slots * instances->block * sizeof *ours->y);
    const struct partita_problem problem = {.kernel = {instances->taps},
                                            .size = {PARTITA_UNBOUNDED},
                                            .block = instances->block,
                                            .whole_blocks = true};
    enum partita_status status = partita_plan_create(&problem, NULL, &ours->plan);
    for (size_t i = 0; i < instances->slots && status == PARTITA_OK; i++) {
        const size_t filter = instances->shared ? 0 : i;
        instances_taps(instances, i, taps);
        if (filter == i) status = partita_filter_create(ours->plan, taps, &ours->filters[i]);
        if (status == PARTITA_OK)
            status = partita_stream_open(ours->plan, ours->filters[filter], &ours->streams[i]);
    }
    free(taps);
    if (status == PARTITA_OK) return ours;
    fprintf(stderr, "%s: %s\n", instances->name, partita_status_string(status));
    own_streams_close(ours, instances);
    return NULL;
}

static float *own_streams_input(void *state, const struct instances *instances, size_t slot)
{
    return ((struct own_streams *)state)->x + slot * instances->block;
}

static const float *own_streams_output(void *state, const struct instances *instances, size_t slot)
{
    return ((struct own_streams *)state)->y + slot * instances->block;
}

static void own_streams_process(void *state, const struct instances *instances)
{
    const struct own_streams *ours = state;
    for (size_t i = 0; i < instances->slots; i++)
        partita_stream_process(ours->streams[i], (void *[]){ours->y + i * instances->block},
                               (const void *[]){ours->x + i * instances->block}, instances->block);
}

static const struct instances_contender contenders[] = {
    {"bank", own_bank_open, own_bank_input, own_bank_process, own_bank_output, own_bank_close},
    {"streams", own_streams_open, own_streams_input, own_streams_process, own_streams_output,
     own_streams_close},
};

// One block of every slot; returns its seconds.
static double one_call(const struct instances_contender *contender, void *state,
                       const struct instances *instances, size_t call)
{
    const double begin = bench_now();
    for (size_t i = 0; i < instances->slots; i++)
        memcpy(contender->input(state, instances, i), noise + noise_at(i, call),
               BLOCK * sizeof *noise);
    contender->process(state, instances);
    return bench_now() - begin;
}

// Relative error of the outputs of call `call` against direct sums in float64.
static double error_of(const struct instances_contender *contender, void *state,
                       const struct instances *instances, size_t call)
{
    float *taps = bench_allocate(instances->taps * sizeof *taps);
    double error = 0, norm = 0;
    for (size_t check = 0; check < CHECKED; check++) {
        const size_t slot = check * (instances->slots - 1) / (CHECKED - 1);
        const float *y = contender->output(state, instances, slot);
        instances_taps(instances, slot, taps);
        for (size_t i = 0; i < BLOCK; i++) {
            double sum = 0;
            for (size_t k = 0; k < instances->taps; k++) {
                const size_t back = BLOCK + k - i - 1, offset = BLOCK - 1 - back % BLOCK;
                sum += (double)taps[k] * noise[noise_at(slot, call - back / BLOCK) + offset];
            }
            error += (y[i] - sum) * (y[i] - sum);
            norm += sum * sum;
        }
    }
    free(taps);
    return sqrt(error / norm);
}

static size_t calls_of(const struct instances *instances, bool quick)
{
    const size_t max_calls = (MAX_CALLS << 10) / instances->slots;
    if (quick || max_calls < MIN_CALLS) return MIN_CALLS;
    return max_calls < MAX_CALLS ? max_calls : MAX_CALLS;
}

// Returns whether the answers were right.
static bool run(const struct instances_contender *contender, const struct instances *instances,
                bool quick)
{
    const double gate = 1000 * 0x1p-24; // finds wrong answers, not less exact ones
    const size_t calls = calls_of(instances, quick), passes = quick ? 1 : PASSES;
    const size_t warm = (instances->taps + BLOCK - 1) / BLOCK;
    double *seconds = bench_allocate(calls * sizeof *seconds), pass[PASSES] = {0};
    const size_t before = bench_heap_bytes();
    void *state = contender->open(instances);
    const size_t bytes = bench_heap_bytes() - before;
    if (!state) {
        free(seconds);
        return true;
    }
    size_t call = 0;
    while (call < warm) one_call(contender, state, instances, call++);
    for (size_t p = 0; p < passes; p++)
        for (size_t i = 0; i < calls; i++) {
            const double elapsed = one_call(contender, state, instances, call++);
            pass[p] += elapsed;
            seconds[i] = p ? fmin(seconds[i], elapsed) : elapsed;
        }
    const double error = error_of(contender, state, instances, call - 1);
    contender->close(state, instances);
    qsort(pass, passes, sizeof *pass, bench_compare);
    const double median = pass[passes / 2];
    printf("%s,%s,1,%.5g,%.3f,%.3f,%zu,%.3g\n", instances->name, contender->name,
           1e9 * median / (double)(calls * BLOCK * instances->slots),
           (pass[passes - 1] - pass[0]) / median, calls_flatness(seconds, calls), bytes, error);
    fflush(stdout);
    free(seconds);
    if (error <= gate) return true;
    fprintf(stderr, "%s: %s is WRONG: error %.3g, allowed %.3g\n", instances->name, contender->name,
            error, gate);
    return false;
}

int main(int argc, char **argv)
{
    static const struct instances cases[] = {
        {"bank-own-64", 64, TAPS, BLOCK, false},     {"bank-shared-64", 64, TAPS, BLOCK, true},
        {"bank-own-512", 512, TAPS, BLOCK, false},   {"bank-shared-512", 512, TAPS, BLOCK, true},
        {"bank-own-4096", 4096, TAPS, BLOCK, false}, {"bank-shared-4096", 4096, TAPS, BLOCK, true},
    };
    struct bench_options options;
    bool right = true;
    if (!bench_options_parse(&options, argc, argv, "bench_bank")) return 2;
    if (options.calls || options.threads > 1) {
        fprintf(stderr, "bench_bank: runs on one thread and writes no times of single calls\n");
        return 2;
    }
    noise = bench_allocate(NOISE * sizeof *noise);
    bench_noise(noise, NOISE, false, 7);
    if (!options.list)
        printf("case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check\n");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        if (!bench_matches(options.cases, cases[c].name)) continue;
        if (options.list) puts(cases[c].name);
        for (size_t i = 0; i < sizeof contenders / sizeof *contenders && !options.list; i++)
            if (bench_matches(options.contenders, contenders[i].name))
                right &= run(&contenders[i], &cases[c], options.quick);
#ifdef HAVE_ZITA
        if (!options.list && bench_matches(options.contenders, instances_zita.name))
            right &= run(&instances_zita, &cases[c], options.quick);
#endif
    }
    free(noise);
    return right ? 0 : 1;
}
