// SPDX-License-Identifier: MIT
// The layers that published comparisons of convolution algorithms measured, by name. NAME-forward, NAME-backward-data
// and NAME-backward-weight run with the number of images given here, which two cores can work through;
// NAME-nN with N images, mostly as many as the source ran.
#include "workloads/layer.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CASES = 1024 };

// Square kernels and maps, padding alike on all sides.
struct row {
    const char *name;
    size_t in, out, groups, kernel, stride, size, pad;
    size_t batch;          // of the case NAME [there is none]
    const size_t *batches; // of cases NAME-nN, 0 at the end [none]
    bool extra;            // the case NAME too
    unsigned depth;        // times that a network has it ..
    const char *network;   // .. of this name [it belongs to none]
    int rank;              // [2]
    size_t first;          // extent of the first axis, if it differs
    size_t dilation;       // [1]
};

static const size_t lavin[] = {1, 2, 4, 8, 16, 32, 64, 0}, n50[] = {50, 0}, n64[] = {64, 0}, n128[] = {128, 0},
                    n200[] = {200, 0}, n400[] = {400, 0};

static const struct row rows[] = {
    // Network E of Simonyan & Zisserman (2014), as A. Lavin & S. Gray, Fast Algorithms for Convolutional Neural
    // Networks (2015), table 3, ran it: batches 1 to 64, depth times each layer.
    {"vgg-1.1", 3, 64, 1, 3, 1, 224, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-1.2", 64, 64, 1, 3, 1, 224, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-2.1", 64, 128, 1, 3, 1, 112, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-2.2", 128, 128, 1, 3, 1, 112, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-3.1", 128, 256, 1, 3, 1, 56, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-3.2", 256, 256, 1, 3, 1, 56, 1, .batches = lavin, .depth = 3, .network = "vgg-e"},
    {"vgg-4.1", 256, 512, 1, 3, 1, 28, 1, .batches = lavin, .depth = 1, .network = "vgg-e"},
    {"vgg-4.2", 512, 512, 1, 3, 1, 28, 1, .batches = lavin, .depth = 3, .network = "vgg-e"},
    {"vgg-5", 512, 512, 1, 3, 1, 14, 1, .batches = lavin, .depth = 4, .network = "vgg-e"},
    // CaffeNet (Krizhevsky, Sutskever & Hinton 2012), with the batch of a thesis on convolution by FFT in Caffe,
    // tables 2.1
    // and 4.1.
    {"caffenet-1", 3, 96, 1, 11, 4, 227, 0, .batch = 32, .batches = n400},
    {"caffenet-2", 96, 256, 2, 5, 1, 27, 2, .batch = 32, .batches = n400},
    {"caffenet-3", 256, 384, 1, 3, 1, 13, 1, .batch = 32, .batches = n400},
    {"caffenet-4", 384, 384, 2, 3, 1, 13, 1, .batch = 32, .batches = n400},
    {"caffenet-5", 384, 256, 2, 3, 1, 13, 1, .batch = 32, .batches = n400},
    // S. Dieleman's comparison of FFT convolution in Theano (2014).
    {"dieleman-1", 3, 128, 1, 16, 1, 96, 0, .batch = 16, .batches = n64},
    {"dieleman-2", 128, 64, 1, 8, 1, 32, 0, .batch = 32, .batches = n64},
    {"dieleman-3", 32, 64, 1, 6, 1, 54, 0, .batch = 32, .batches = n128},
    {"dieleman-4", 128, 128, 1, 8, 1, 16, 0, .batch = 128},
    {"dieleman-5", 1024, 128, 1, 4, 1, 32, 0, .batch = 16, .batches = n128},
    // ResNet-50 (He et al. 2015), strides in the 3x3 layers.
    {"resnet-stem", 3, 64, 1, 7, 2, 224, 3, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-2-enter", 64, 64, 1, 1, 1, 56, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-2-3x3", 64, 64, 1, 3, 1, 56, 1, .batch = 16, .depth = 3, .network = "resnet-50", .extra = true},
    {"resnet-2-expand", 64, 256, 1, 1, 1, 56, 0, .batch = 16, .depth = 4, .network = "resnet-50", .extra = true},
    {"resnet-2-reduce", 256, 64, 1, 1, 1, 56, 0, .batch = 16, .depth = 2, .network = "resnet-50", .extra = true},
    {"resnet-3-enter", 256, 128, 1, 1, 1, 56, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-3-3x3-s2", 128, 128, 1, 3, 2, 56, 1, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-3-3x3", 128, 128, 1, 3, 1, 28, 1, .batch = 16, .depth = 3, .network = "resnet-50", .extra = true},
    {"resnet-3-expand", 128, 512, 1, 1, 1, 28, 0, .batch = 16, .depth = 4, .network = "resnet-50", .extra = true},
    {"resnet-3-reduce", 512, 128, 1, 1, 1, 28, 0, .batch = 16, .depth = 3, .network = "resnet-50", .extra = true},
    {"resnet-3-shortcut", 256, 512, 1, 1, 2, 56, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-4-enter", 512, 256, 1, 1, 1, 28, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-4-3x3-s2", 256, 256, 1, 3, 2, 28, 1, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-4-3x3", 256, 256, 1, 3, 1, 14, 1, .batch = 16, .depth = 5, .network = "resnet-50", .extra = true},
    {"resnet-4-expand", 256, 1024, 1, 1, 1, 14, 0, .batch = 16, .depth = 6, .network = "resnet-50", .extra = true},
    {"resnet-4-reduce", 1024, 256, 1, 1, 1, 14, 0, .batch = 16, .depth = 5, .network = "resnet-50", .extra = true},
    {"resnet-4-shortcut", 512, 1024, 1, 1, 2, 28, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-5-enter", 1024, 512, 1, 1, 1, 14, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-5-3x3-s2", 512, 512, 1, 3, 2, 14, 1, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    {"resnet-5-3x3", 512, 512, 1, 3, 1, 7, 1, .batch = 16, .depth = 2, .network = "resnet-50", .extra = true},
    {"resnet-5-expand", 512, 2048, 1, 1, 1, 7, 0, .batch = 16, .depth = 3, .network = "resnet-50", .extra = true},
    {"resnet-5-reduce", 2048, 512, 1, 1, 1, 7, 0, .batch = 16, .depth = 2, .network = "resnet-50", .extra = true},
    {"resnet-5-shortcut", 1024, 2048, 1, 1, 2, 14, 0, .batch = 16, .depth = 1, .network = "resnet-50", .extra = true},
    // Depthwise layers: of one shape; of ConvNeXt-T (Liu et al. 2022); of RepLKNet-31B (Ding et al. 2022).
    {"depthwise-3", 256, 256, 256, 3, 1, 56, 1, .batch = 4, .extra = true},
    {"depthwise-7", 256, 256, 256, 7, 1, 56, 3, .batch = 4},
    {"depthwise-15", 256, 256, 256, 15, 1, 56, 7, .batch = 4},
    {"depthwise-31", 256, 256, 256, 31, 1, 56, 15, .batch = 4},
    {"convnext-1", 96, 96, 96, 7, 1, 56, 3, .batch = 16, .depth = 3, .network = "convnext-t", .extra = true},
    {"convnext-2", 192, 192, 192, 7, 1, 28, 3, .batch = 16, .depth = 3, .network = "convnext-t", .extra = true},
    {"convnext-3", 384, 384, 384, 7, 1, 14, 3, .batch = 16, .depth = 9, .network = "convnext-t", .extra = true},
    {"convnext-4", 768, 768, 768, 7, 1, 7, 3, .batch = 16, .depth = 3, .network = "convnext-t", .extra = true},
    {"replknet-1", 128, 128, 128, 31, 1, 56, 15, .batch = 4, .depth = 2, .network = "replknet-31b", .extra = true},
    {"replknet-2", 256, 256, 256, 29, 1, 28, 14, .batch = 4, .depth = 2, .network = "replknet-31b", .extra = true},
    {"replknet-3", 512, 512, 512, 27, 1, 14, 13, .batch = 4, .depth = 18, .network = "replknet-31b", .extra = true},
    {"replknet-4", 1024, 1024, 1024, 13, 1, 7, 6, .batch = 4, .depth = 2, .network = "replknet-31b", .extra = true},
    // One axis and three.
    {"conv1d-1024", 64, 64, 1, 1024, 1, 64000, 0, .batch = 1, .rank = 1},
    {"conv1d-2048", 64, 64, 1, 2048, 1, 64000, 0, .batch = 1, .rank = 1, .extra = true},
    {"conv1d-dilated-51", 15, 15, 1, 51, 1, 60400, 0, .batch = 1, .rank = 1, .extra = true, .dilation = 8},
    {"conv3d-3", 64, 64, 1, 3, 1, 28, 1, .batch = 2, .rank = 3, .extra = true, .first = 16},
};

// The thesis's sweeps of the kernel's size, tables 4.5 and 4.6: the first layer of CaffeNet with stride 1, the second
// without padding, which no longer names its output channels; 256 are CaffeNet's.
static const struct sweep {
    struct row row;
    size_t from, to;
    size_t usual[3]; // kernels that are not extra
} sweeps[] = {
    {{"thesis-4.5", 3, 96, 1, 0, 1, 227, 0, .batch = 2, .batches = n50}, 11, 29, {11, 19, 29}},
    {{"thesis-4.6", 96, 256, 1, 0, 1, 55, 0, .batch = 4, .batches = n200}, 1, 39, {9, 15, 31}},
    {{"thesis-4.6-k96", 96, 96, 1, 0, 1, 55, 0, .batch = 4}, 1, 39, {0}},
};

static struct partita_problem problem_of(const struct row *row, size_t batch)
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

static const struct {
    const char *name;
    enum partita_direction direction;
} directions[] = {{"forward", PARTITA_FORWARD},
                  {"backward-data", PARTITA_BACKWARD_DATA},
                  {"backward-weight", PARTITA_BACKWARD_WEIGHT}};

// The three directions of one row and number of images; `suffix` says the number, or nothing.
static void cases_add(struct layer_case *cases, size_t *n, const struct row *row, size_t batch, const char *suffix,
                      bool extra)
{
    for (size_t i = 0; i < 3; i++) {
        struct layer_case *c = &cases[(*n)++];
        if (*n > MOST_CASES) abort();
        c->layer = (struct layer){problem_of(row, batch), directions[i].direction};
        c->depth = row->depth;
        snprintf(c->name, sizeof c->name, "%s%s-%s", row->name, suffix, directions[i].name);
        if (row->network) snprintf(c->network, sizeof c->network, "%s%s-%s", row->network, suffix, directions[i].name);
        const struct layer_sizes s = layer_sizes(&c->layer.problem);
        c->workload = (struct workload){
            .name = c->name, .layer = &c->layer, .extra = extra, .repetitions = layer_terms(&s) > (size_t)3e9 ? 3 : 5};
    }
}

// Of the VGG layers the batches of the floors are not extra.
static void row_add(struct layer_case *cases, size_t *n, const struct row *row)
{
    if (row->batch) cases_add(cases, n, row, row->batch, "", row->extra);
    for (const size_t *batch = row->batches; batch && *batch; batch++) {
        char suffix[24];
        snprintf(suffix, sizeof suffix, "-n%zu", *batch);
        cases_add(cases, n, row, *batch, suffix, row->batch || (*batch != 1 && *batch != 16));
    }
}

static void sweep_add(struct layer_case *cases, size_t *n, const struct sweep *sweep)
{
    for (size_t r = sweep->from; r <= sweep->to; r += 2) {
        char name[32];
        struct row row = sweep->row;
        snprintf(name, sizeof name, "%s-r%zu", sweep->row.name, r);
        row.name = name;
        row.kernel = r;
        row.extra = true;
        for (size_t i = 0; i < 3; i++) row.extra &= sweep->usual[i] != r;
        row_add(cases, n, &row);
    }
}

struct layer_case *layer_cases(size_t *ret_n)
{
    struct layer_case *cases = bench_allocate(MOST_CASES * sizeof *cases);
    *ret_n = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) row_add(cases, ret_n, &rows[i]);
    for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) sweep_add(cases, ret_n, &sweeps[i]);
    return cases;
}
