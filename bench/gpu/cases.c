// SPDX-License-Identifier: MIT
#include "gpu/cases.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_CASES = 1100,
    ALL_DIRECTIONS = PARTITA_FORWARD | PARTITA_BACKWARD_DATA | PARTITA_BACKWARD_WEIGHT
};

// Cases that are not extra, in the order in which they run. A run may have a limit of time, so what
// is asked about most comes first.
static const char *const standard[] = {
    "causal-4K-forward", "vgg-1.2-n64-forward", "vgg-3.2-n64-forward", "vgg-5-n64-forward",
    "thesis-4.6-r15-n200-forward", "caffenet-2-n400-forward", "depthwise-31-c384-n64-forward",
    "resnet-2-reduce-forward", "vgg-5-n1-forward", "stream-i16-o16-t480000-b64",
    "stream-c128-t96000-b64", "causal-8K-*", "causal-16K-*", "causal-32K-forward",
    "causal-1K-forward",
    // The batches of S. Dieleman's comparison (2014), and the thesis, table 4.6 from r = 9 on.
    "dieleman-[123]-n*-forward", "dieleman-4-forward", "dieleman-5-n*-forward",
    "thesis-4.6-r9-n*-forward", "thesis-4.6-r31-n*-forward", "separable-*", "overlap-save-*",
    "lags-*", "causal-2K-*", "causal-64K-*", "causal-1M-*", "stream-bank-*",
    // The gradients.
    "vgg-3.2-n64-*", "causal-*-backward-*", "depthwise-31-c384-*", "dieleman-[123]-n*",
    "dieleman-4-*", "dieleman-5-n*", "thesis-4.6-r15-n*", "thesis-4.6-r31-n*", "thesis-4.6-r9-n*"};
enum { N_STANDARD = sizeof standard / sizeof *standard };

#define MAPS(n_, channels_, size_, kernel_)                                                        \
    {                                                                                              \
        .op = PARTITA_CORRELATE, .rank = 2, .batch = n_, .in_channels = channels_,                 \
        .out_channels = channels_, .groups = channels_, .kernel = {kernel_, kernel_},              \
        .size = {size_, size_}, .pad_begin = {(kernel_) / 2, (kernel_) / 2}, .pad_end = {          \
            (kernel_) / 2,                                                                         \
            (kernel_) / 2                                                                          \
        }                                                                                          \
    }

// Causal sequences with a filter of the same length for each channel, as in sequence models.
#define SEQUENCES(n_, channels_, length_)                                                          \
    {                                                                                              \
        .op = PARTITA_CORRELATE, .rank = 1, .batch = n_, .in_channels = channels_,                 \
        .out_channels = channels_, .groups = channels_, .kernel = {length_}, .size = {length_},    \
        .pad_begin = {                                                                             \
            (length_)-1                                                                            \
        }                                                                                          \
    }

static void separable_taps(struct workload *w)
{
    const size_t r = w->layer->problem.kernel[0];
    float *taps = (float *)w->h;
    for (size_t i = 0; i < r * r; i++)
        taps[i] =
            expf(-0.02f * (float)((i % r) * (i % r))) * (1 + 0.1f * (float)(i / r)) / (float)r;
}

static const struct {
    const char *name;
    struct partita_problem problem;
    unsigned directions;
    void (*shape)(struct workload *w);
} own_layers[] = {
    {"depthwise-31-c384-n64", MAPS(64, 384, 56, 31), .directions = ALL_DIRECTIONS},
    {"causal-1K", SEQUENCES(64, 768, 1024), .directions = ALL_DIRECTIONS},
    {"causal-2K", SEQUENCES(64, 768, 2048), .directions = PARTITA_FORWARD},
    {"causal-4K", SEQUENCES(64, 768, 4096), .directions = ALL_DIRECTIONS},
    {"causal-8K", SEQUENCES(64, 768, 8192), .directions = PARTITA_FORWARD},
    {"causal-16K", SEQUENCES(64, 768, 16384), .directions = PARTITA_FORWARD},
    {"causal-32K", SEQUENCES(64, 768, 32768), .directions = ALL_DIRECTIONS},
    {"causal-64K", SEQUENCES(16, 768, 65536), .directions = PARTITA_FORWARD},
    // The reduced size of FlashFFTConv's comparison.
    {"causal-1M", SEQUENCES(8, 48, 1 << 20), .directions = PARTITA_FORWARD},
    {"separable-3072-r8", MAPS(1, 1, 3072, 17), .directions = PARTITA_FORWARD,
     .shape = separable_taps},
};

static const struct workload signals[] = {
    // K. Adamek et al., GPU Fast Convolution via the Overlap-and-Save Method in Shared Memory
    // (2020)
    {.name = "overlap-save-2M-c32-t257",
     .signal = PARTITA_CF32,
     .taps = PARTITA_CF32,
     .n_frames = 1 << 21,
     .n_taps = 257,
     .out_channels = 32},
    {.name = "lags-1000-of-2p30",
     .n_frames = 1 << 30,
     .n_taps = 1 << 30,
     .lags = 1000,
     .repetitions = 3},
    {BENCH_BANK("stream-c128-t96000-b64", 128, 64, 96000, 64 * 20000), .repetitions = 3},
    // 16 sources to each of 16 outputs, filters of 10 s.
    {.name = "stream-i16-o16-t480000-b64",
     .in_channels = 16,
     .out_channels = 16,
     .block = 64,
     .n_taps = 480000,
     .warm = 480000,
     .n_frames = 480000 + 64 * 2000,
     .repetitions = 3},
    // 4000 reverbs of 1 s.
    {BENCH_BANK("stream-bank-c4000-t48000-b64", 4000, 64, 48000, 64 * 250), .repetitions = 3},
};

static size_t min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct partita_problem problem_shrink(const struct partita_problem *problem)
{
    struct partita_problem p = *problem;
    size_t max_kernel = 5;
    if (p.rank == 1) max_kernel = 40;
    else if (p.in_channels == 1) max_kernel = 17;
    p.batch = 1;
    p.groups = p.groups > 1 ? 2 : p.groups;
    p.in_channels = min(p.in_channels, 2);
    p.out_channels = min(p.out_channels, 2);
    for (int a = 0; a < p.rank; a++) {
        const bool same = p.kernel[a] == p.size[a];
        p.kernel[a] = min(p.kernel[a], max_kernel);
        p.size[a] = same ? p.kernel[a] : min(p.size[a], 2 * max_kernel);
        p.pad_begin[a] = (ptrdiff_t)min((size_t)p.pad_begin[a], p.kernel[a] - 1);
        p.pad_end[a] = (ptrdiff_t)min((size_t)p.pad_end[a], p.kernel[a] - 1);
    }
    return p;
}

static struct workload signal_shrink(const struct workload *workload)
{
    struct workload w = *workload;
    w.in_channels = min(w.in_channels, 2);
    w.out_channels = min(w.out_channels, 2);
    w.groups = min(w.groups, 2);
    w.n_taps = w.lags > 0 ? 600 : 50;
    w.n_frames = 640;
    w.lags = min(w.lags, 9);
    w.warm = w.block > 0 ? 128 : 0;
    return w;
}

static void add_layer(struct workload *cases, size_t *n, const char *name,
                      const struct layer *layer, bool tiny)
{
    if (*n == MAX_CASES) abort();
    struct layer *copy = bench_allocate(sizeof *copy);
    *copy = *layer;
    if (tiny) copy->problem = problem_shrink(&layer->problem);
    const struct layer_sizes s = layer_sizes(&copy->problem);
    const int repetitions = layer_terms(&s) > (size_t)1e12 ? 3 : 7;
    cases[(*n)++] = (struct workload){.name = name, .layer = copy, .repetitions = repetitions};
}

static void add_own_layer(struct workload *cases, size_t *n, size_t i, bool tiny)
{
    for (size_t d = 0; d < N_DIRECTIONS; d++) {
        if (!(own_layers[i].directions & direction_names[d].direction)) continue;
        char *name = bench_allocate(64);
        snprintf(name, 64, "%s-%s", own_layers[i].name, direction_names[d].name);
        struct partita_problem problem = own_layers[i].problem;
        problem.separable = own_layers[i].shape == separable_taps;
        add_layer(cases, n, name, &(struct layer){problem, direction_names[d].direction}, tiny);
        cases[*n - 1].shape = own_layers[i].shape;
    }
}

// The first pattern of `standard` that fits; N_STANDARD: none.
static size_t rank_of(const struct workload *w)
{
    size_t u = 0;
    while (u < N_STANDARD && fnmatch(standard[u], w->name, 0) != 0) u++;
    return u;
}

// Keeps the order of cases of one rank.
static struct workload *order_by_rank(const struct workload *cases, size_t n)
{
    struct workload *ordered = bench_allocate(n * sizeof *ordered);
    size_t done = 0;
    for (size_t u = 0; u <= N_STANDARD; u++)
        for (size_t i = 0; i < n; i++) {
            if (rank_of(&cases[i]) != u) continue;
            ordered[done] = cases[i];
            ordered[done++].extra = u == N_STANDARD;
        }
    return ordered;
}

struct workload *gpu_cases(bool tiny, size_t *ret_n)
{
    struct workload *cases = bench_allocate(MAX_CASES * sizeof *cases);
    size_t n_published, n = 0;
    const struct layer_case *published = layer_cases(&n_published);
    for (size_t i = 0; i < n_published; i++)
        add_layer(cases, &n, published[i].name, &published[i].layer, tiny);
    for (size_t i = 0; i < sizeof own_layers / sizeof *own_layers; i++)
        add_own_layer(cases, &n, i, tiny);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        cases[n++] = tiny ? signal_shrink(&signals[i]) : signals[i];
    struct workload *ordered = order_by_rank(cases, n);
    free(cases);
    *ret_n = n;
    return ordered;
}

static void print_extents(const size_t *values, int rank)
{
    for (int a = 0; a < rank; a++) printf("%s%zu", a ? "x" : "", or_one(values[a]));
    putchar(',');
}

static void print_layer(const struct workload *w)
{
    const struct partita_problem *p = &w->layer->problem;
    const struct layer_sizes s = layer_sizes(p);
    size_t d = 0;
    while (direction_names[d].direction != w->layer->direction) d++;
    printf("layer,%s,%s,%zu,%zu,%zu,%zu,", direction_names[d].name, partita_type_name(w->signal),
           s.batch, s.in, s.out, or_one(p->groups));
    print_extents(p->kernel, p->rank);
    print_extents(p->size, p->rank);
    for (int a = 0; a < p->rank; a++)
        printf("%s%td:%td", a ? "x" : "", p->pad_begin[a], p->pad_end[a]);
    putchar(',');
    print_extents(p->stride, p->rank);
    print_extents(p->dilation, p->rank);
    printf("0,0,%zu\n", layer_terms(&s));
}

void gpu_cases_print(const struct workload *cases, size_t n)
{
    printf("case,extra,kind,direction,type,batch,in,out,groups,kernel,size,pad,stride,dilation,"
           "lags,block,items\n");
    for (size_t i = 0; i < n; i++) {
        const struct workload *w = &cases[i];
        printf("%s,%d,", w->name, w->extra);
        if (w->layer != NULL) print_layer(w);
        else
            printf("%s,forward,%s,1,%zu,%zu,%zu,%zu,%zu,0:0,1,1,%zu,%zu,%zu\n",
                   w->block > 0 ? "stream" : "signal", partita_type_name(w->signal),
                   or_one(w->in_channels), or_one(w->out_channels), or_one(w->groups), w->n_taps,
                   w->n_frames, w->lags, w->block,
                   (w->n_frames - w->warm) * or_one(w->in_channels));
    }
}
