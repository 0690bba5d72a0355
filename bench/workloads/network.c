// SPDX-License-Identifier: MIT
#include "workloads/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CASES = 256 };

// He et al. (2015), for images of 224 x 224.
static const struct network_layer resnet18[] = {
    {"stem", 3, 64, 1, 7, 2, 224, 3, 1},         {"2", 64, 64, 1, 3, 1, 56, 1, 4},
    {"3-s2", 64, 128, 1, 3, 2, 56, 1, 1},        {"3-shortcut", 64, 128, 1, 1, 2, 56, 0, 1},
    {"3", 128, 128, 1, 3, 1, 28, 1, 3},          {"4-s2", 128, 256, 1, 3, 2, 28, 1, 1},
    {"4-shortcut", 128, 256, 1, 1, 2, 28, 0, 1}, {"4", 256, 256, 1, 3, 1, 14, 1, 3},
    {"5-s2", 256, 512, 1, 3, 2, 14, 1, 1},       {"5-shortcut", 256, 512, 1, 1, 2, 14, 0, 1},
    {"5", 512, 512, 1, 3, 1, 7, 1, 3},
};
// The same for images of 32 x 32: no stride in the first layer and no pooling after it.
static const struct network_layer resnet18_32[] = {
    {"stem", 3, 64, 1, 3, 1, 32, 1, 1},          {"2", 64, 64, 1, 3, 1, 32, 1, 4},
    {"3-s2", 64, 128, 1, 3, 2, 32, 1, 1},        {"3-shortcut", 64, 128, 1, 1, 2, 32, 0, 1},
    {"3", 128, 128, 1, 3, 1, 16, 1, 3},          {"4-s2", 128, 256, 1, 3, 2, 16, 1, 1},
    {"4-shortcut", 128, 256, 1, 1, 2, 16, 0, 1}, {"4", 256, 256, 1, 3, 1, 8, 1, 3},
    {"5-s2", 256, 512, 1, 3, 2, 8, 1, 1},        {"5-shortcut", 256, 512, 1, 1, 2, 8, 0, 1},
    {"5", 512, 512, 1, 3, 1, 4, 1, 3},
};
// Simonyan & Zisserman (2014), network A.
static const struct network_layer vgg11[] = {
    {"1", 3, 64, 1, 3, 1, 64, 1, 1},      {"2", 64, 128, 1, 3, 1, 32, 1, 1},
    {"3.1", 128, 256, 1, 3, 1, 16, 1, 1}, {"3.2", 256, 256, 1, 3, 1, 16, 1, 1},
    {"4.1", 256, 512, 1, 3, 1, 8, 1, 1},  {"4.2", 512, 512, 1, 3, 1, 8, 1, 1},
    {"5", 512, 512, 1, 3, 1, 4, 1, 2},
};
// The same, network E.
static const struct network_layer vgg_e[] = {
    {"1.1", 3, 64, 1, 3, 1, 224, 1, 1},   {"1.2", 64, 64, 1, 3, 1, 224, 1, 1},
    {"2.1", 64, 128, 1, 3, 1, 112, 1, 1}, {"2.2", 128, 128, 1, 3, 1, 112, 1, 1},
    {"3.1", 128, 256, 1, 3, 1, 56, 1, 1}, {"3.2", 256, 256, 1, 3, 1, 56, 1, 3},
    {"4.1", 256, 512, 1, 3, 1, 28, 1, 1}, {"4.2", 512, 512, 1, 3, 1, 28, 1, 3},
    {"5", 512, 512, 1, 3, 1, 14, 1, 4},
};
// Jia et al., Caffe (2014): the network of Krizhevsky et al. (2012) on one device.
static const struct network_layer caffenet[] = {
    {"1", 3, 96, 1, 11, 4, 227, 0, 1},  {"2", 96, 256, 2, 5, 1, 27, 2, 1},
    {"3", 256, 384, 1, 3, 1, 13, 1, 1}, {"4", 384, 384, 2, 3, 1, 13, 1, 1},
    {"5", 384, 256, 2, 3, 1, 13, 1, 1},
};
// Liu et al. (2022). Its 1 x 1 layers are matrix products of arrays with channels last.
static const struct network_layer convnext_t[] = {
    {"stem", 3, 96, 1, 4, 4, 224, 0, 1},   {"1", 96, 96, 96, 7, 1, 56, 3, 3},
    {"2-s2", 96, 192, 1, 2, 2, 56, 0, 1},  {"2", 192, 192, 192, 7, 1, 28, 3, 3},
    {"3-s2", 192, 384, 1, 2, 2, 28, 0, 1}, {"3", 384, 384, 384, 7, 1, 14, 3, 9},
    {"4-s2", 384, 768, 1, 2, 2, 14, 0, 1}, {"4", 768, 768, 768, 7, 1, 7, 3, 3},
};
static const struct network_layer large_kernels[] = {
    {"r31", 3, 16, 1, 31, 1, 128, 15, 1},
    {"r21", 16, 32, 1, 21, 1, 64, 10, 1},
    {"r13", 32, 64, 1, 13, 1, 32, 6, 1},
    {"depthwise-r31", 64, 64, 64, 31, 1, 32, 15, 1},
};
static const struct network_layer taps_513[] = {
    {"first", 1, 32, 1, 513, 1, 16384, 256, 1},
    {"groups", 32, 32, 4, 513, 1, 16384, 256, 1},
    {"depthwise", 64, 64, 64, 513, 1, 8192, 256, 1},
    {"dense", 32, 64, 1, 513, 1, 4096, 256, 1},
};
// Strides in the 3 x 3 layers.
static const struct network_layer resnet50[] = {
    {"stem", 3, 64, 1, 7, 2, 224, 3, 1},
    {"2-enter", 64, 64, 1, 1, 1, 56, 0, 1},
    {"2", 64, 64, 1, 3, 1, 56, 1, 3},
    {"2-expand", 64, 256, 1, 1, 1, 56, 0, 4},
    {"2-reduce", 256, 64, 1, 1, 1, 56, 0, 2},
    {"3-enter", 256, 128, 1, 1, 1, 56, 0, 1},
    {"3-s2", 128, 128, 1, 3, 2, 56, 1, 1},
    {"3", 128, 128, 1, 3, 1, 28, 1, 3},
    {"3-expand", 128, 512, 1, 1, 1, 28, 0, 4},
    {"3-reduce", 512, 128, 1, 1, 1, 28, 0, 3},
    {"3-shortcut", 256, 512, 1, 1, 2, 56, 0, 1},
    {"4-enter", 512, 256, 1, 1, 1, 28, 0, 1},
    {"4-s2", 256, 256, 1, 3, 2, 28, 1, 1},
    {"4", 256, 256, 1, 3, 1, 14, 1, 5},
    {"4-expand", 256, 1024, 1, 1, 1, 14, 0, 6},
    {"4-reduce", 1024, 256, 1, 1, 1, 14, 0, 5},
    {"4-shortcut", 512, 1024, 1, 1, 2, 28, 0, 1},
    {"5-enter", 1024, 512, 1, 1, 1, 14, 0, 1},
    {"5-s2", 512, 512, 1, 3, 2, 14, 1, 1},
    {"5", 512, 512, 1, 3, 1, 7, 1, 2},
    {"5-expand", 512, 2048, 1, 1, 1, 7, 0, 3},
    {"5-reduce", 2048, 512, 1, 1, 1, 7, 0, 2},
    {"5-shortcut", 1024, 2048, 1, 1, 2, 14, 0, 1},
};
// Howard et al. (2017): dK is a depthwise layer, pK the 1 x 1 layer after it.
static const struct network_layer mobilenet[] = {
    {"stem", 3, 32, 1, 3, 2, 224, 1, 1},  {"d1", 32, 32, 32, 3, 1, 112, 1, 1},
    {"p1", 32, 64, 1, 1, 1, 112, 0, 1},   {"d2", 64, 64, 64, 3, 2, 112, 1, 1},
    {"p2", 64, 128, 1, 1, 1, 56, 0, 1},   {"d3", 128, 128, 128, 3, 1, 56, 1, 1},
    {"p3", 128, 128, 1, 1, 1, 56, 0, 1},  {"d4", 128, 128, 128, 3, 2, 56, 1, 1},
    {"p4", 128, 256, 1, 1, 1, 28, 0, 1},  {"d5", 256, 256, 256, 3, 1, 28, 1, 1},
    {"p5", 256, 256, 1, 1, 1, 28, 0, 1},  {"d6", 256, 256, 256, 3, 2, 28, 1, 1},
    {"p6", 256, 512, 1, 1, 1, 14, 0, 1},  {"d7", 512, 512, 512, 3, 1, 14, 1, 5},
    {"p7", 512, 512, 1, 1, 1, 14, 0, 5},  {"d8", 512, 512, 512, 3, 2, 14, 1, 1},
    {"p8", 512, 1024, 1, 1, 1, 7, 0, 1},  {"d9", 1024, 1024, 1024, 3, 1, 7, 1, 1},
    {"p9", 1024, 1024, 1, 1, 1, 7, 0, 1},
};

#define LAYERS(rows) .layers = rows, .n_layers = sizeof rows / sizeof *rows
static const struct {
    const char *name;
    struct network network;
} networks[] = {
    {"resnet18-224-train", {.training = true, .rank = 2, .batch = 8, LAYERS(resnet18)}},
    {"resnet18-32-train", {.training = true, .rank = 2, .batch = 32, LAYERS(resnet18_32)}},
    {"vgg11-64-train", {.training = true, .rank = 2, .batch = 16, LAYERS(vgg11)}},
    {"vgg-e-train", {.training = true, .rank = 2, .batch = 1, LAYERS(vgg_e)}},
    {"vgg-e-infer-n1", {.rank = 2, .batch = 1, LAYERS(vgg_e)}},
    {"caffenet-train", {.training = true, .rank = 2, .batch = 16, LAYERS(caffenet)}},
    {"caffenet-infer-n16", {.rank = 2, .batch = 16, LAYERS(caffenet)}},
    {"resnet50-train", {.training = true, .rank = 2, .batch = 2, LAYERS(resnet50)}},
    {"convnext-t-infer-n16", {.rank = 2, .batch = 16, LAYERS(convnext_t)}},
    {"convnext-t-train", {.training = true, .rank = 2, .batch = 4, LAYERS(convnext_t)}},
    {"large-kernels-train", {.training = true, .rank = 2, .batch = 4, LAYERS(large_kernels)}},
    {"taps-513-train", {.training = true, .rank = 1, .batch = 4, LAYERS(taps_513)}},
    {"resnet50-infer-n1", {.rank = 2, .batch = 1, LAYERS(resnet50)}},
    {"resnet50-infer-n16", {.rank = 2, .batch = 16, LAYERS(resnet50)}},
    {"mobilenet-infer-n1", {.rank = 2, .batch = 1, LAYERS(mobilenet)}},
    {"mobilenet-infer-n16", {.rank = 2, .batch = 16, LAYERS(mobilenet)}},
};

static struct partita_problem layer_of_network(const struct network *network,
                                               const struct network_layer *layer)
{
    struct partita_problem p = {.op = PARTITA_CORRELATE,
                                .rank = network->rank,
                                .batch = network->batch,
                                .in_channels = layer->in,
                                .out_channels = layer->out,
                                .groups = layer->groups};
    for (int a = 0; a < p.rank; a++) {
        p.kernel[a] = layer->kernel;
        p.stride[a] = layer->stride;
        p.size[a] = layer->size;
        p.pad_begin[a] = p.pad_end[a] = (ptrdiff_t)layer->pad;
    }
    return p;
}

// Parts of a row follow one another: forward, then the gradients of the taps and of the input.
static void network_add_row(struct workload *w, size_t i, bool quick)
{
    static const enum partita_direction order[] = {PARTITA_FORWARD, PARTITA_BACKWARD_WEIGHT,
                                                   PARTITA_BACKWARD_DATA};
    const struct network *network = w->network;
    const struct network_layer *layer = &network->layers[i];
    size_t directions = !network->training ? 1 : network->first && i == 0 ? 2 : 3;
    for (size_t d = 0; d < directions; d++) {
        struct network_part *part = &w->parts[w->n_parts++];
        *part = (struct network_part){.layer = {layer_of_network(network, layer), order[d]},
                                      .depth = layer->depth};
        part->workload = (struct workload){
            .name = layer->name, .signal = w->signal, .taps = w->taps, .layer = &part->layer};
        layer_measure(&part->workload, quick);
    }
}

// Where the parts' operands are: x and gy in w->x, one behind the other, taps in w->h.
static void network_share(struct workload *w, size_t gy)
{
    size_t y = 0;
    for (size_t i = 0; i < w->n_parts; i++) {
        struct workload *part = &w->parts[i].workload;
        const enum partita_direction direction = part->layer->direction;
        part->x = w->x + (direction == PARTITA_BACKWARD_DATA ? gy : 0);
        part->h = direction == PARTITA_BACKWARD_WEIGHT ? w->x + gy : w->h;
        part->y = w->y + y;
        y += part->y_bytes;
    }
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

void network_list(struct workload *w, bool quick)
{
    w->parts = bench_allocate(N_DIRECTIONS * w->network->n_layers * sizeof *w->parts);
    for (size_t i = 0; i < w->network->n_layers; i++) network_add_row(w, i, quick);
}

void network_create(struct workload *w, bool quick)
{
    size_t x = 0, gy = 0;
    network_list(w, quick);
    for (size_t i = 0; i < w->n_parts; i++) {
        const struct workload *part = &w->parts[i].workload;
        const enum partita_direction direction = part->layer->direction;
        if (direction == PARTITA_BACKWARD_DATA) gy = larger(gy, part->x_bytes);
        else x = larger(x, part->x_bytes);
        if (direction == PARTITA_BACKWARD_WEIGHT) gy = larger(gy, part->h_bytes);
        else w->h_bytes = larger(w->h_bytes, part->h_bytes);
        w->y_bytes += part->y_bytes;
    }
    w->x_bytes = x + gy;
    w->in_channels = w->out_channels = w->groups = w->up = w->stride = w->n_taps = 1;
    w->timed = w->n_frames = 1;
    w->n_out = w->y_bytes / partita_type_size(w->signal);
    w->x = bench_allocate(w->x_bytes);
    w->h = bench_allocate(w->h_bytes);
    w->y = bench_allocate(w->y_bytes);
    bench_noise(w->x, w->x_bytes / partita_type_size(w->signal), type_is_f64(w->signal), 1);
    bench_noise(w->h, w->h_bytes / partita_type_size(w->signal), type_is_f64(w->signal), 2);
    network_share(w, x);
}

void network_destroy(struct workload *w)
{
    for (size_t i = 0; i < w->n_parts; i++) free(w->parts[i].workload.expected);
    free(w->parts);
}

double network_error(struct workload *w)
{
    double error = 0;
    for (size_t i = 0; i < w->n_parts; i++) {
        const double part = layer_error(&w->parts[i].workload);
        if (!(part <= error)) error = part; // NaN too
    }
    return error;
}

double gate_network(const struct workload *w)
{
    double gate = 0;
    for (size_t i = 0; i < w->n_parts; i++) gate = fmax(gate, gate_layer(&w->parts[i].workload));
    return gate;
}

static void network_add_case(struct workload *cases, size_t *n, const char *name,
                             const struct network *network, bool extra)
{
    if (*n == MAX_CASES) abort();
    struct network *copy = bench_allocate(sizeof *copy);
    *copy = *network;
    cases[(*n)++] = (struct workload){.name = name, .network = copy, .extra = extra};
}

const struct workload *network_cases(size_t *ret_n)
{
    struct workload *cases = bench_allocate(MAX_CASES * sizeof *cases);
    *ret_n = 0;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        struct network network = networks[i].network;
        network.first = true;
        network_add_case(cases, ret_n, networks[i].name, &network, false);
        for (size_t k = 0; k < networks[i].network.n_layers; k++) {
            const size_t capacity = 64;
            char *name = bench_allocate(capacity);
            snprintf(name, capacity, "%s:%s", networks[i].name, network.layers->name);
            network.n_layers = 1;
            network.first = k == 0;
            network_add_case(cases, ret_n, name, &network, true);
            network.layers++;
        }
    }
    return cases;
}
