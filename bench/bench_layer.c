// SPDX-License-Identifier: MIT
// Layers in all three directions: what published comparisons of convolution algorithms measured, by name. The item is
// a multiply-add of the direct sums, whatever an algorithm does instead: effective GFLOP/s are 2 / ns_per_item.
#include "bench.h"

#include <string.h>

#define LAYER(name_, n, c, k, g, r, s, size_, pad_)                                                                    \
    {                                                                                                                  \
        name_,                                                                                                         \
        {                                                                                                              \
            .op = PARTITA_CORRELATE, .rank = 2, .batch = n, .in_channels = c, .out_channels = k, .groups = g,          \
            .kernel = {r, r}, .size = {size_, size_}, .stride = {s, s}, .pad_begin = {pad_, pad_}, .pad_end = {        \
                pad_,                                                                                                  \
                pad_                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

// The layers of VGG network E (Simonyan & Zisserman 2014), as Lavin & Gray (2015) list them.
#define VGG(n)                                                                                                         \
    LAYER("vgg-1.1-n" #n, n, 3, 64, 1, 3, 1, 224, 1), LAYER("vgg-1.2-n" #n, n, 64, 64, 1, 3, 1, 224, 1),               \
        LAYER("vgg-2.1-n" #n, n, 64, 128, 1, 3, 1, 112, 1), LAYER("vgg-2.2-n" #n, n, 128, 128, 1, 3, 1, 112, 1),       \
        LAYER("vgg-3.1-n" #n, n, 128, 256, 1, 3, 1, 56, 1), LAYER("vgg-3.2-n" #n, n, 256, 256, 1, 3, 1, 56, 1),        \
        LAYER("vgg-4.1-n" #n, n, 256, 512, 1, 3, 1, 28, 1), LAYER("vgg-4.2-n" #n, n, 512, 512, 1, 3, 1, 28, 1),        \
        LAYER("vgg-5-n" #n, n, 512, 512, 1, 3, 1, 14, 1)

static const struct {
    const char *name;
    struct partita_problem problem;
} layers[] = {
    VGG(1),
    VGG(2),
    VGG(4),
    VGG(8),
    VGG(16),
    VGG(32),
    VGG(64),
    // CaffeNet (Krizhevsky, Sutskever & Hinton 2012).
    LAYER("caffenet-1", 32, 3, 96, 1, 11, 4, 227, 0),
    LAYER("caffenet-2", 32, 96, 256, 2, 5, 1, 27, 2),
    LAYER("caffenet-3", 32, 256, 384, 1, 3, 1, 13, 1),
    LAYER("caffenet-4", 32, 384, 384, 2, 3, 1, 13, 1),
    LAYER("caffenet-5", 32, 384, 256, 2, 3, 1, 13, 1),
    // S. Dieleman's comparison of FFT convolution in Theano (2014).
    LAYER("dieleman-1", 64, 3, 128, 1, 16, 1, 96, 0),
    LAYER("dieleman-2", 64, 128, 64, 1, 8, 1, 32, 0),
    LAYER("dieleman-3", 128, 32, 64, 1, 6, 1, 54, 0),
    LAYER("dieleman-4", 128, 128, 128, 1, 8, 1, 16, 0),
    LAYER("dieleman-5", 128, 1024, 128, 1, 4, 1, 32, 0),
    // Sweeps of the kernel's size: first layer of CaffeNet with stride 1, second without padding.
    LAYER("thesis-4.5-r11", 2, 3, 96, 1, 11, 1, 227, 0),
    LAYER("thesis-4.5-r19", 2, 3, 96, 1, 19, 1, 227, 0),
    LAYER("thesis-4.5-r29", 2, 3, 96, 1, 29, 1, 227, 0),
    LAYER("thesis-4.6-r3", 4, 96, 256, 1, 3, 1, 55, 0),
    LAYER("thesis-4.6-r9", 4, 96, 256, 1, 9, 1, 55, 0),
    LAYER("thesis-4.6-r15", 4, 96, 256, 1, 15, 1, 55, 0),
    LAYER("thesis-4.6-r31", 4, 96, 256, 1, 31, 1, 55, 0),
    // ResNet-50 (He et al. 2015): what is not 3x3 with stride 1.
    LAYER("resnet-stem", 16, 3, 64, 1, 7, 2, 224, 3),
    LAYER("resnet-1x1-56", 16, 64, 256, 1, 1, 1, 56, 0),
    LAYER("resnet-1x1-7", 16, 2048, 512, 1, 1, 1, 7, 0),
    LAYER("resnet-3x3-s2", 16, 256, 256, 1, 3, 2, 28, 1),
    LAYER("resnet-3x3-7", 16, 512, 512, 1, 3, 1, 7, 1),
    LAYER("depthwise-3", 4, 256, 256, 256, 3, 1, 56, 1),
    LAYER("depthwise-7", 4, 256, 256, 256, 7, 1, 56, 3),
    LAYER("depthwise-15", 4, 256, 256, 256, 15, 1, 56, 7),
    LAYER("depthwise-31", 4, 256, 256, 256, 31, 1, 56, 15),
    {"conv1d-1024",
     {.op = PARTITA_CORRELATE, .rank = 1, .in_channels = 64, .out_channels = 64, .kernel = {1024}, .size = {64000}}},
    {"conv3d-3",
     {.op = PARTITA_CORRELATE,
      .rank = 3,
      .batch = 2,
      .in_channels = 64,
      .out_channels = 64,
      .kernel = {3, 3, 3},
      .size = {16, 28, 28},
      .pad_begin = {1, 1, 1},
      .pad_end = {1, 1, 1}}},
};
enum { N_LAYERS = sizeof layers / sizeof *layers };

static const struct contender contenders[] = {
    {.name = "cpu/direct", .engine = "cpu/direct", .open = ours_layer},
    {.name = "auto", .open = ours_layer},
    {.name = "cuda/direct", .engine = "cuda/direct", .threads = 1, .open = ours_layer_cuda},
    {.name = "cuda/direct-plain", .engine = "cuda/direct-plain", .threads = 1, .open = ours_layer_cuda},
    {.name = "cuda/direct-constant", .engine = "cuda/direct-constant", .threads = 1, .open = ours_layer_cuda},
    {.name = "cuda/direct-halo", .engine = "cuda/direct-halo", .threads = 1, .open = ours_layer_cuda},
    {.name = "cuda/direct-cached", .engine = "cuda/direct-cached", .threads = 1, .open = ours_layer_cuda},
    {.name = "fma-peak", .threads = 1, .open = peer_fma_peak},
};

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        enum partita_direction direction;
    } directions[] = {{"forward", PARTITA_FORWARD},
                      {"backward-data", PARTITA_BACKWARD_DATA},
                      {"backward-weight", PARTITA_BACKWARD_WEIGHT}};
    static struct workload cases[3 * N_LAYERS];
    static struct layer case_layers[3 * N_LAYERS];
    static char names[3 * N_LAYERS][48];
    for (size_t i = 0; i < 3 * N_LAYERS; i++) {
        snprintf(names[i], sizeof names[i], "%s-%s", layers[i / 3].name, directions[i % 3].name);
        case_layers[i] = (struct layer){layers[i / 3].problem, directions[i % 3].direction};
        cases[i] = (struct workload){.name = names[i], .layer = &case_layers[i]};
    }
    const struct suite suite = {
        .program = "bench_layer",
        .cases = cases,
        .n_cases = 3 * N_LAYERS,
        .contenders = contenders,
        .n_contenders = sizeof contenders / sizeof *contenders,
        .repetitions = 5,
        .thread_counts = {1, 2},
    };
    return bench_main(argc, argv, &suite);
}
