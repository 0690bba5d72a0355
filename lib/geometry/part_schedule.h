// SPDX-License-Identifier: MIT
// Parts of two sizes that a caller imposes, whatever the device: which pairs of parts begin at
// which output. Pair (i, j) covers the taps_part + signal_part - 1 outputs from i * taps_part + j *
// signal_part on, a multiple of what divides both. Division k holds the intervals that begin at k
// units and every `apart` outputs on: within a division none overlaps another. (theory.md, section
// 7; parts.md)
#ifndef PARTITA_PART_SCHEDULE_H
#define PARTITA_PART_SCHEDULE_H

#include "segments.h"

struct part_schedule {
    size_t taps_part, signal_part, unit; // sizes; their greatest common divisor
    size_t apart, count;                 // both sizes together; divisions: apart/unit
    size_t taps, signals;                // parts of either
    ptrdiff_t first, end;                // outputs of the full result that are wanted
};
struct part_schedule part_schedule_of(const struct shape *shape, size_t taps_part,
                                      size_t signal_part);

// Parts of the signal that meet any pair of an interval with wanted outputs.
struct segment_range part_schedule_signals(const struct part_schedule *schedule);

// Intervals of division k that reach wanted outputs, numbered from 0: how many, and the output that
// one begins at.
size_t part_schedule_intervals(const struct part_schedule *schedule, size_t k);
size_t part_schedule_begin(const struct part_schedule *schedule, size_t k, size_t interval);

// Pairs (taps' part, signal's part) of the interval that begins at an output: the first one, and
// how far it is from each to the next, up in the taps, down in the signal.
struct part_schedule_pairs {
    size_t taps, taps_step, signal, signal_step, count;
};
struct part_schedule_pairs part_schedule_pairs(const struct part_schedule *schedule, size_t begin);

// The schedule in words: division by division the output that each interval begins at and its
// pairs.
void part_schedule_explain(const struct part_schedule *schedule, struct text *text);

#endif
