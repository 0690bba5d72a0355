// SPDX-License-Identifier: MIT
// Fields of a problem as short items of an initialiser, {SIZE(14, 14), CHANNELS(5, 9)}, and
// problems that several tests have.
#ifndef PARTITA_TEST_PROBLEMS_H
#define PARTITA_TEST_PROBLEMS_H

#include <partita/problem.h>

// The extents and, by their number, the rank. LENGTH leaves the rank at its default.
#define SIZE(...) .rank = sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t), .size = {__VA_ARGS__}
#define LENGTH(n) .size = {n}
#define STREAM(n) .size = {PARTITA_UNBOUNDED}, .block = n

#define TYPES(signal_, taps_) .signal = PARTITA_##signal_, .taps = PARTITA_##taps_
#define TYPE_PAIR(types) .signal = (types)->signal, .taps = (types)->taps
#define TYPE(type) .signal = type, .taps = type
#define CORRELATE .op = PARTITA_CORRELATE
#define RELU .activation = PARTITA_RELU
#define BATCH(n) .batch = n
#define INPUTS(n) .in_channels = n
#define OUTPUTS(n) .out_channels = n
#define CHANNELS(in, out) .in_channels = in, .out_channels = out
#define GROUPS(n) .groups = n
#define KERNEL(...) .kernel = {__VA_ARGS__}
#define STRIDE(...) .stride = {__VA_ARGS__}
#define DILATION(...) .dilation = {__VA_ARGS__}
#define PAD_BEGIN(...) .pad_begin = {__VA_ARGS__}
#define PAD_END(...) .pad_end = {__VA_ARGS__}
#define PAD(...) .pad_begin = {__VA_ARGS__}, .pad_end = {__VA_ARGS__}
#define LATENCY(n) .latency = n
#define UP(n) .up = n
#define BOUNDARY(name) .boundary = PARTITA_BOUNDARY_##name

// One tap, samples and outputs without gaps, terms enough for two chunks.
#define POINTWISE_LAYER                                                                            \
    {                                                                                              \
        SIZE(2, 6), BATCH(2), CHANNELS(520, 9), RELU                                               \
    }
// Every parameter differs from 1.
#define STRIDED_LAYER                                                                              \
    {                                                                                              \
        SIZE(21, 11), BATCH(2), CHANNELS(4, 10), GROUPS(2), KERNEL(3, 2), STRIDE(2, 3), PAD(1, 1), \
            RELU                                                                                   \
    }

// Each group has one input channel.
#define DEPTHWISE_LAYER                                                                            \
    {                                                                                              \
        SIZE(11, 9), BATCH(3), CHANNELS(2, 4), GROUPS(2), KERNEL(5, 4), STRIDE(1, 2),              \
            PAD_BEGIN(2, 2), PAD_END(2, 1), RELU                                                   \
    }

#endif
