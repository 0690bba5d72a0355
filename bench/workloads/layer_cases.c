// SPDX-License-Identifier: MIT
// The layers that published comparisons of convolution algorithms measured, by name. NAME-forward,
// NAME-backward-data and NAME-backward-weight have the number of images given here, which suits two
// cores; NAME-nN has N images, mostly as many as the source had.
#include "workloads/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 2048 };

// The types in which rows of a network with batches are measured besides f32: forward of VGG-E, as
// in table 6 of Lavin & Gray; cases NAME-nN-TYPE-forward.
static const enum partita_type half_types[] = {PARTITA_F16, PARTITA_BF16};

// Square kernels and maps, the same padding on all sides. Values in brackets are the defaults.
struct layer_row {
    const char *name;
    size_t in, out, groups, kernel, stride, size, pad;
    size_t batch;          // of the case NAME [no such case]
    const size_t *batches; // of the cases NAME-nN, 0 at the end [no such cases]
    bool extra;            // of the case NAME
    unsigned depth;        // how often a network has it, and
    const char *network;   // the name of that network [none]
    int rank;              // [2]
    size_t first;          // extent of the first axis, if it differs
    size_t dilation;       // [1]
};

static const size_t lavin[] = {1, 2, 4, 8, 16, 32, 64, 0}, n50[] = {50, 0}, n64[] = {64, 0},
                    n128[] = {128, 0}, n200[] = {200, 0},
                    thesis[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 400, 0};

#define STANDARD(name_, depth_, batch_) .batch = batch_, .depth = depth_, .network = name_
#define EXTRA(name_, depth_, batch_) STANDARD(name_, depth_, batch_), .extra = true
#define RESNET(depth_) EXTRA("resnet-50", depth_, 16)
#define RESNET_STANDARD(depth_) STANDARD("resnet-50", depth_, 16)
#define CONVNEXT(depth_) EXTRA("convnext-t", depth_, 16)
#define REPLKNET(depth_) EXTRA("replknet-31b", depth_, 4)

static const struct layer_row layer_rows[] = {
    // Network E of Simonyan & Zisserman (2014), as in table 3 of A. Lavin & S. Gray, Fast
    // Algorithms for Convolutional Neural Networks (2015), in batches of 1 to 64.
    {"vgg-1.1", 3, 64, 1, 3, 1, 224, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-1.2", 64, 64, 1, 3, 1, 224, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-2.1", 64, 128, 1, 3, 1, 112, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-2.2", 128, 128, 1, 3, 1, 112, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-3.1", 128, 256, 1, 3, 1, 56, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-3.2", 256, 256, 1, 3, 1, 56, 1, .batches = lavin, .depth = 3, .network = "vgg-e"},
    {"vgg-4.1", 256, 512, 1, 3, 1, 28, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-4.2", 512, 512, 1, 3, 1, 28, 1, .batches = lavin, .depth = 3, .network = "vgg-e"},
    {"vgg-5", 512, 512, 1, 3, 1, 14, 1, .batches = lavin, .depth = 4, .network = "vgg-e"},
    // CaffeNet (Krizhevsky, Sutskever & Hinton 2012), with the batches of a thesis on convolution
    // by FFT in Caffe: tables 2.1 and 4.1 to 4.4 (400 images), figures 4.4 and 4.5.
    {"caffenet-1", 3, 96, 1, 11, 4, 227, 0, .batch = 32, .batches = thesis},
    {"caffenet-2", 96, 256, 2, 5, 1, 27, 2, .batch = 32, .batches = thesis},
    {"caffenet-3", 256, 384, 1, 3, 1, 13, 1, .batch = 32, .batches = thesis},
    {"caffenet-4", 384, 384, 2, 3, 1, 13, 1, .batch = 32, .batches = thesis},
    {"caffenet-5", 384, 256, 2, 3, 1, 13, 1, .batch = 32, .batches = thesis},
    // S. Dieleman's comparison of FFT convolution in Theano (2014).
    {"dieleman-1", 3, 128, 1, 16, 1, 96, 0, .batch = 16, .batches = n64},
    {"dieleman-2", 128, 64, 1, 8, 1, 32, 0, .batch = 32, .batches = n64},
    {"dieleman-3", 32, 64, 1, 6, 1, 54, 0, .batch = 32, .batches = n128},
    {"dieleman-4", 128, 128, 1, 8, 1, 16, 0, .batch = 128},
    {"dieleman-5", 1024, 128, 1, 4, 1, 32, 0, .batch = 16, .batches = n128},
    // ResNet-50 (He et al. 2015), strides in the 3x3 layers. One 1x1 layer of each size is
    // standard.
    {"resnet-stem", 3, 64, 1, 7, 2, 224, 3, RESNET(1)},
    {"resnet-2-enter", 64, 64, 1, 1, 1, 56, 0, RESNET(1)},
    {"resnet-2-3x3", 64, 64, 1, 3, 1, 56, 1, RESNET(3)},
    {"resnet-2-expand", 64, 256, 1, 1, 1, 56, 0, RESNET_STANDARD(4)},
    {"resnet-2-reduce", 256, 64, 1, 1, 1, 56, 0, RESNET(2)},
    {"resnet-3-enter", 256, 128, 1, 1, 1, 56, 0, RESNET(1)},
    {"resnet-3-3x3-s2", 128, 128, 1, 3, 2, 56, 1, RESNET(1)},
    {"resnet-3-3x3", 128, 128, 1, 3, 1, 28, 1, RESNET(3)},
    {"resnet-3-expand", 128, 512, 1, 1, 1, 28, 0, RESNET(4)},
    {"resnet-3-reduce", 512, 128, 1, 1, 1, 28, 0, RESNET_STANDARD(3)},
    {"resnet-3-shortcut", 256, 512, 1, 1, 2, 56, 0, RESNET(1)},
    {"resnet-4-enter", 512, 256, 1, 1, 1, 28, 0, RESNET(1)},
    {"resnet-4-3x3-s2", 256, 256, 1, 3, 2, 28, 1, RESNET(1)},
    {"resnet-4-3x3", 256, 256, 1, 3, 1, 14, 1, RESNET(5)},
    {"resnet-4-expand", 256, 1024, 1, 1, 1, 14, 0, RESNET_STANDARD(6)},
    {"resnet-4-reduce", 1024, 256, 1, 1, 1, 14, 0, RESNET(5)},
    {"resnet-4-shortcut", 512, 1024, 1, 1, 2, 28, 0, RESNET(1)},
    {"resnet-5-enter", 1024, 512, 1, 1, 1, 14, 0, RESNET(1)},
    {"resnet-5-3x3-s2", 512, 512, 1, 3, 2, 14, 1, RESNET(1)},
    {"resnet-5-3x3", 512, 512, 1, 3, 1, 7, 1, RESNET(2)},
    {"resnet-5-expand", 512, 2048, 1, 1, 1, 7, 0, RESNET(3)},
    {"resnet-5-reduce", 2048, 512, 1, 1, 1, 7, 0, RESNET_STANDARD(2)},
    {"resnet-5-shortcut", 1024, 2048, 1, 1, 2, 14, 0, RESNET(1)},
    // Depthwise layers: one shape; ConvNeXt-T (Liu et al. 2022); RepLKNet-31B (Ding et al. 2022).
    {"depthwise-3", 256, 256, 256, 3, 1, 56, 1, .batch = 4},
    {"depthwise-7", 256, 256, 256, 7, 1, 56, 3, .batch = 4},
    {"depthwise-15", 256, 256, 256, 15, 1, 56, 7, .batch = 4},
    {"depthwise-31", 256, 256, 256, 31, 1, 56, 15, .batch = 4},
    {"convnext-1", 96, 96, 96, 7, 1, 56, 3, CONVNEXT(3)},
    {"convnext-2", 192, 192, 192, 7, 1, 28, 3, CONVNEXT(3)},
    {"convnext-3", 384, 384, 384, 7, 1, 14, 3, CONVNEXT(9)},
    {"convnext-4", 768, 768, 768, 7, 1, 7, 3, CONVNEXT(3)},
    {"replknet-1", 128, 128, 128, 31, 1, 56, 15, REPLKNET(2)},
    {"replknet-2", 256, 256, 256, 29, 1, 28, 14, REPLKNET(2)},
    {"replknet-3", 512, 512, 512, 27, 1, 14, 13, REPLKNET(18)},
    {"replknet-4", 1024, 1024, 1024, 13, 1, 7, 6, REPLKNET(2)},
    // One axis and three.
    {"conv1d-1024", 64, 64, 1, 1024, 1, 64000, 0, .batch = 1, .rank = 1},
    {"conv1d-2048", 64, 64, 1, 2048, 1, 64000, 0, .batch = 1, .rank = 1, .extra = true},
    {"conv1d-dilated-51", 15, 15, 1, 51, 1, 60400, 0, .batch = 1, .rank = 1, .extra = true,
     .dilation = 8},
    {"conv3d-3", 64, 64, 1, 3, 1, 28, 1, .batch = 2, .rank = 3, .extra = true, .first = 16},
};

// The thesis's sweeps of the kernel's size, tables 4.5 and 4.6: CaffeNet's first layer with stride
// 1, and its second without padding. The thesis does not say the output channels of the latter; 256
// are CaffeNet's.
static const struct layer_sweep {
    struct layer_row row;
    size_t from, to;
    size_t standard[3]; // kernels that are not extra
} sweeps[] = {
    {{"thesis-4.5", 3, 96, 1, 0, 1, 227, 0, .batch = 2, .batches = n50}, 11, 29, {11, 19, 29}},
    {{"thesis-4.6", 96, 256, 1, 0, 1, 55, 0, .batch = 4, .batches = n200}, 1, 39, {9, 15, 31}},
    {{"thesis-4.6-k96", 96, 96, 1, 0, 1, 55, 0, .batch = 4}, 1, 39, {0}},
};

static struct partita_problem row_problem(const struct layer_row *row, size_t batch)
{
    struct partita_problem p = {.op = PARTITA_CORRELATE,
                                .rank = row->rank ? row->rank : 2,
                                .batch = batch,
                                .in_channels = row->in,
                                .out_channels = row->out,
                                .groups = row->groups};
    for (int a = 0; a < p.rank; a++) {
        p.kernel[a] = row->kernel;
        p.stride[a] = row->stride;
        p.dilation[a] = row->dilation;
        p.size[a] = a == 0 && row->first ? row->first : row->size;
        p.pad_begin[a] = p.pad_end[a] = (ptrdiff_t)row->pad;
    }
    return p;
}

const struct direction_name direction_names[N_DIRECTIONS] = {
    {"forward", PARTITA_FORWARD},
    {"backward-data", PARTITA_BACKWARD_DATA},
    {"backward-weight", PARTITA_BACKWARD_WEIGHT}};

// Adds the three directions of a row with a number of images; `suffix` is that number in names, or
// "".
static void cases_add(struct layer_case *cases, size_t *n, const struct layer_row *row,
                      size_t batch, const char *suffix, bool extra)
{
    for (size_t i = 0; i < N_DIRECTIONS; i++) {
        struct layer_case *c = &cases[(*n)++];
        if (*n > MAX_CASES) abort();
        c->layer = (struct layer){row_problem(row, batch), direction_names[i].direction};
        c->depth = row->depth;
        snprintf(c->name, sizeof c->name, "%s%s-%s", row->name, suffix, direction_names[i].name);
        if (row->network)
            snprintf(c->network, sizeof c->network, "%s%s-%s", row->network, suffix,
                     direction_names[i].name);
        const struct layer_sizes s = layer_sizes(&c->layer.problem);
        c->workload = (struct workload){.name = c->name,
                                        .layer = &c->layer,
                                        .extra = extra,
                                        .repetitions = layer_terms(&s) > (size_t)3e9 ? 3 : 5};
    }
}

static void half_add(struct layer_case *cases, size_t *n, const struct layer_row *row, size_t batch)
{
    for (size_t i = 0; i < sizeof half_types / sizeof *half_types; i++) {
        char suffix[32];
        struct layer_case *c = &cases[*n];
        snprintf(suffix, sizeof suffix, "-n%zu-%s", batch, partita_type_name(half_types[i]));
        cases_add(cases, n, row, batch, suffix, true);
        *n -= N_DIRECTIONS - 1; // forward alone
        c->workload.signal = c->workload.taps = half_types[i];
    }
}

// Of the VGG layers the batches that have target figures (1 and 16) are not extra.
static void row_add(struct layer_case *cases, size_t *n, const struct layer_row *row)
{
    if (row->batch) cases_add(cases, n, row, row->batch, "", row->extra);
    for (const size_t *batch = row->batches; batch && *batch; batch++) {
        char suffix[24];
        snprintf(suffix, sizeof suffix, "-n%zu", *batch);
        cases_add(cases, n, row, *batch, suffix, row->batch || (*batch != 1 && *batch != 16));
        if (row->batches == lavin) half_add(cases, n, row, *batch);
    }
}

static void sweep_add(struct layer_case *cases, size_t *n, const struct layer_sweep *sweep)
{
    for (size_t r = sweep->from; r <= sweep->to; r += 2) {
        char name[32];
        struct layer_row row = sweep->row;
        snprintf(name, sizeof name, "%s-r%zu", sweep->row.name, r);
        row.name = name;
        row.kernel = r;
        row.extra = true;
        for (size_t i = 0; i < 3; i++) row.extra &= sweep->standard[i] != r;
        row_add(cases, n, &row);
    }
}

struct layer_case *layer_cases(size_t *ret_n)
{
    struct layer_case *cases = bench_allocate(MAX_CASES * sizeof *cases);
    *ret_n = 0;
    for (size_t i = 0; i < sizeof layer_rows / sizeof *layer_rows; i++)
        row_add(cases, ret_n, &layer_rows[i]);
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) sweep_add(cases, ret_n, &sweeps[i]);
    return cases;
}

// The cases NAME-nN-DIRECTION and NAME-nN-last-DIRECTION of a row.
static void pick_add(struct layer_case *cases, size_t *n, const struct layer_row *row)
{
    static const size_t batches[] = {1, 16, 64};
    for (size_t i = 0; i < 2 * sizeof batches / sizeof *batches; i++) {
        const bool last = i % 2;
        char suffix[32];
        size_t first = *n;
        snprintf(suffix, sizeof suffix, "-n%zu%s", batches[i / 2], last ? "-last" : "");
        cases_add(cases, n, row, batches[i / 2], suffix, false);
        for (; first < *n; first++) cases[first].layer.problem.channels_last = last;
    }
}

struct layer_case *layer_pick_cases(size_t *ret_n)
{
    struct layer_case *cases = bench_allocate(MAX_CASES * sizeof *cases);
    *ret_n = 0;
    for (size_t i = 0; i < sizeof layer_rows / sizeof *layer_rows; i++)
        pick_add(cases, ret_n, &layer_rows[i]);
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
        for (size_t k = 0; k < 3 && sweeps[i].standard[k]; k++) {
            struct layer_row row = sweeps[i].row;
            char name[32];
            snprintf(name, sizeof name, "%s-r%zu", row.name, sweeps[i].standard[k]);
            row.name = name;
            row.kernel = sweeps[i].standard[k];
            pick_add(cases, ret_n, &row);
        }
    return cases;
}
