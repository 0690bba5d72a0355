// SPDX-License-Identifier: MIT
// Layers that more than one subject of devices runs, as initializers.
#ifndef HOSTDEV_PROBLEMS_H
#define HOSTDEV_PROBLEMS_H

// Every parameter is something else than 1.
#define STRIDED                                                                                    \
    {                                                                                              \
        .rank = 2, .batch = 2, .in_channels = 4, .out_channels = 10, .groups = 2,                  \
        .kernel = {3, 2}, .size = {21, 11}, .stride = {2, 3}, .pad_begin = {1, 1},                 \
        .pad_end = {1, 1}, .activation = PARTITA_RELU                                              \
    }

// One input channel a group.
#define PLANES                                                                                     \
    {                                                                                              \
        .rank = 2, .batch = 3, .in_channels = 2, .out_channels = 4, .groups = 2, .kernel = {5, 4}, \
        .size = {11, 9}, .stride = {1, 2}, .pad_begin = {2, 2}, .pad_end = {2, 1},                 \
        .activation = PARTITA_RELU                                                                 \
    }

#endif
