// SPDX-License-Identifier: MIT
#include "gpu/cases.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 1100 };

// Layers of layer_cases.c that are not extra here: with the batches that S. Dieleman's comparison (2014) and the thesis
// ran, table 4.6 from r = 9 on.
static const char *const usual[] = {"dieleman-[123]-n*", "dieleman-4-*",      "dieleman-5-n*",
                                    "thesis-4.6-r9-n*",  "thesis-4.6-r15-n*", "thesis-4.6-r31-n*"};

#define MAPS(n_, channels_, size_, kernel_)                                                                            \
    {                                                                                                                  \
        .op = PARTITA_CORRELATE, .rank = 2, .batch = n_, .in_channels = channels_, .out_channels = channels_,          \
        .groups = channels_, .kernel = {kernel_, kernel_}, .size = {size_, size_},                                     \
        .pad_begin = {(kernel_) / 2, (kernel_) / 2}, .pad_end = {                                                      \
            (kernel_) / 2,                                                                                             \
            (kernel_) / 2                                                                                              \
        }                                                                                                              \
    }

// Causal lines with a filter as long as they are, one a channel, as sequence models have them.
#define LINES(n_, channels_, length_)                                                                                  \
    {                                                                                                                  \
        .op = PARTITA_CORRELATE, .rank = 1, .batch = n_, .in_channels = channels_, .out_channels = channels_,          \
        .groups = channels_, .kernel = {length_}, .size = {length_}, .pad_begin = {                                    \
            (length_)-1                                                                                                \
        }                                                                                                              \
    }

static void separable_taps(struct workload *w)
{
    const size_t r = w->layer->problem.kernel[0];
    float *taps = (float *)w->h;
    for (size_t i = 0; i < r * r; i++)
        taps[i] = expf(-0.02f * (float)((i % r) * (i % r))) * (1 + 0.1f * (float)(i / r)) / (float)r;
}

static const struct {
    const char *name;
    struct partita_problem problem;
    unsigned directions;
    bool extra;
    void (*shape)(struct workload *w);
} layers[] = {
    {"depthwise-31-c384-n64", MAPS(64, 384, 56, 31), 7, .extra = false},
    {"causal-1K", LINES(64, 768, 1024), 7, .extra = false},
    {"causal-2K", LINES(64, 768, 2048), PARTITA_FORWARD, .extra = false},
    {"causal-4K", LINES(64, 768, 4096), 7, .extra = false},
    {"causal-8K", LINES(64, 768, 8192), PARTITA_FORWARD, .extra = false},
    {"causal-16K", LINES(64, 768, 16384), PARTITA_FORWARD, .extra = false},
    {"causal-32K", LINES(64, 768, 32768), 7, .extra = false},
    {"causal-1M", LINES(8, 48, 1 << 20), PARTITA_FORWARD, .extra = false}, // as FlashFFTConv's comparison cuts it down
    {"separable-3072-r8", MAPS(1, 1, 3072, 17), PARTITA_FORWARD, .extra = false, .shape = separable_taps},
};

static const struct workload others[] = {
    // After K. Adamek et al., GPU Fast Convolution via the Overlap-and-Save Method in Shared Memory (2020).
    {.name = "overlap-save-2M-c32-t257",
     .signal = PARTITA_CF32,
     .taps = PARTITA_CF32,
     .n_frames = 1 << 21,
     .n_taps = 257,
     .out_channels = 32},
    {.name = "lags-1000-of-2p30", .n_frames = 1 << 30, .n_taps = 1 << 30, .lags = 1000, .repetitions = 3},
    {BENCH_BANK("stream-c128-t96000-b64", 128, 64, 96000, 64 * 20000), .repetitions = 3},
};

static const struct {
    const char *name;
    enum partita_direction direction;
} directions[] = {{"forward", PARTITA_FORWARD},
                  {"backward-data", PARTITA_BACKWARD_DATA},
                  {"backward-weight", PARTITA_BACKWARD_WEIGHT}};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct partita_problem shrunk(const struct partita_problem *problem)
{
    struct partita_problem p = *problem;
    const size_t longest = p.rank == 1 ? 40 : p.in_channels == 1 ? 17 : 5;
    p.batch = 1;
    p.groups = p.groups > 1 ? 2 : p.groups;
    p.in_channels = least(p.in_channels, 2);
    p.out_channels = least(p.out_channels, 2);
    for (int a = 0; a < p.rank; a++) {
        const bool alike = p.kernel[a] == p.size[a];
        p.kernel[a] = least(p.kernel[a], longest);
        p.size[a] = alike ? p.kernel[a] : least(p.size[a], 2 * longest);
        p.pad_begin[a] = (ptrdiff_t)least((size_t)p.pad_begin[a], p.kernel[a] - 1);
        p.pad_end[a] = (ptrdiff_t)least((size_t)p.pad_end[a], p.kernel[a] - 1);
    }
    return p;
}

static struct workload shrunk_signal(const struct workload *workload)
{
    struct workload w = *workload;
    w.in_channels = least(w.in_channels, 2);
    w.out_channels = least(w.out_channels, 2);
    w.groups = least(w.groups, 2);
    w.n_taps = w.lags > 0 ? 600 : 50;
    w.n_frames = 640;
    w.lags = least(w.lags, 9);
    w.warm = w.block > 0 ? 128 : 0;
    return w;
}

static void add_layer(struct workload *cases, size_t *n, const char *name, const struct layer *layer, bool tiny)
{
    if (*n == MOST_CASES) abort();
    struct layer *copy = bench_allocate(sizeof *copy);
    *copy = *layer;
    if (tiny) copy->problem = shrunk(&layer->problem);
    const struct layer_sizes s = layer_sizes(&copy->problem);
    const int repetitions = layer_terms(&s) > (size_t)1e12 ? 3 : 7;
    cases[(*n)++] = (struct workload){.name = name, .layer = copy, .repetitions = repetitions};
}

static void add_own(struct workload *cases, size_t *n, size_t i, bool tiny)
{
    for (size_t d = 0; d < 3; d++) {
        if (!(layers[i].directions & directions[d].direction)) continue;
        char *name = bench_allocate(64);
        snprintf(name, 64, "%s-%s", layers[i].name, directions[d].name);
        struct partita_problem problem = layers[i].problem;
        problem.separable = layers[i].shape == separable_taps;
        add_layer(cases, n, name, &(struct layer){problem, directions[d].direction}, tiny);
        cases[*n - 1].extra = layers[i].extra;
        cases[*n - 1].shape = layers[i].shape;
    }
}

struct workload *gpu_cases(bool tiny, size_t *ret_n)
{
    struct workload *cases = bench_allocate(MOST_CASES * sizeof *cases);
    size_t n_published, n = 0;
    const struct layer_case *published = layer_cases(&n_published);
    for (size_t i = 0; i < n_published; i++) {
        add_layer(cases, &n, published[i].name, &published[i].layer, tiny);
        cases[n - 1].extra = true;
        for (size_t u = 0; u < sizeof usual / sizeof *usual; u++)
            if (fnmatch(usual[u], published[i].name, 0) == 0) cases[n - 1].extra = false;
    }
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) add_own(cases, &n, i, tiny);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cases[n++] = tiny ? shrunk_signal(&others[i]) : others[i];
    *ret_n = n;
    return cases;
}

static size_t or_one(size_t value)
{
    return value ? value : 1;
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
    while (directions[d].direction != w->layer->direction) d++;
    printf("layer,%s,%s,%zu,%zu,%zu,%zu,", directions[d].name, partita_type_name(w->signal), s.batch, s.in, s.out,
           or_one(p->groups));
    print_extents(p->kernel, p->rank);
    print_extents(p->size, p->rank);
    for (int a = 0; a < p->rank; a++) printf("%s%td:%td", a ? "x" : "", p->pad_begin[a], p->pad_end[a]);
    putchar(',');
    print_extents(p->stride, p->rank);
    print_extents(p->dilation, p->rank);
    printf("0,0,%zu\n", layer_terms(&s));
}

void gpu_cases_print(const struct workload *cases, size_t n)
{
    printf("case,extra,kind,direction,type,batch,in,out,groups,kernel,size,pad,stride,dilation,lags,block,items\n");
    for (size_t i = 0; i < n; i++) {
        const struct workload *w = &cases[i];
        printf("%s,%d,", w->name, w->extra);
        if (w->layer != NULL) print_layer(w);
        else
            printf("%s,forward,%s,1,%zu,%zu,%zu,%zu,%zu,0:0,1,1,%zu,%zu,%zu\n", w->block > 0 ? "stream" : "signal",
                   partita_type_name(w->signal), or_one(w->in_channels), or_one(w->out_channels), or_one(w->groups),
                   w->n_taps, w->n_frames, w->lags, w->block, (w->n_frames - w->warm) * or_one(w->in_channels));
    }
}
