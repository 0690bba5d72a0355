// SPDX-License-Identifier: MIT
// Figures of a layout of partitions: its operations, and the choice that makes it again.
#include <math.h>

#include "partition_search.h"

double partition_flops(const struct shape *shape, const struct partition_layout *layout)
{
    const double paths = (double)shape_path_count(shape);
    const double complex = shape->complex_signal ? 2 : 1;
    const double channels = (double)(shape->in_channels + shape->out_channels);
    double flops = paths * (double)layout->head * 2 * complex * (shape->complex_taps ? 2 : 1);
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        const double n = (double)segment->n;
        flops += (channels * complex * 2.5 * n * log2(n) +
                  paths * complex * 4 * n * (double)segment->partitions) /
                 (double)segment->hop;
    }
    return flops;
}

void partition_choice_of(const struct partition_layout *layout, struct partition_choice *ret)
{
    *ret = (struct partition_choice){.latency = layout->latency,
                                     .head = layout->head,
                                     .seconds = layout->seconds,
                                     .quantum = (uint16_t)layout->quantum,
                                     .whole = layout->whole,
                                     .n_segments = (uint8_t)layout->n_segments};
    for (size_t i = 0; i < layout->n_segments; i++) {
        const struct partition_segment *segment = &layout->segment[i];
        ret->partitions[i] = segment->partitions;
        ret->quanta_log2[i] = (uint8_t)__builtin_ctzll(segment->quanta);
        ret->multiple[i] = (uint8_t)segment->multiple;
    }
}
