// SPDX-License-Identifier: MIT
// Parts of two sizes that a caller imposes, on any device: which pairs of parts begin at which
// output. Pair (i, j) covers the taps_part + signal_part - 1 outputs from i * taps_part + j *
// signal_part on, which is a multiple of `unit`. Division k holds the intervals that begin at k *
// unit + r * apart, r = 0, 1, ..; within a division no two intervals overlap. (theory.md, section
// 7; parts.md)
#ifndef PARTITA_PART_SCHEDULE_H
#define PARTITA_PART_SCHEDULE_H

#include "signal_blocks.h"

struct part_schedule {
    size_t taps_part, signal_part, unit; // sizes of parts; their greatest common divisor
    size_t inverse;                      // of taps_part / unit modulo signal_part / unit
    size_t apart, count;                 // sum of both sizes; number of divisions: apart/unit
    size_t taps, signals;                // number of parts of the taps and of the signal
    ptrdiff_t first, end;                // range of outputs of the full result that is wanted
};
struct part_schedule part_schedule_of(const struct shape *shape, size_t taps_part,
                                      size_t signal_part);

// The parts of the signal that belong to any pair of an interval with wanted outputs.
struct range part_schedule_signals(const struct part_schedule *schedule);

// The intervals of division k that contain wanted outputs, numbered from 0: their number, and the
// output at which one begins.
size_t part_schedule_intervals(const struct part_schedule *schedule, size_t k);
size_t part_schedule_begin(const struct part_schedule *schedule, size_t k, size_t interval);

// The pairs (part of the taps, part of the signal) of the interval that begins at an output: the
// first pair, their number, and the steps from one to the next, upwards in the taps and downwards
// in the signal.
struct part_schedule_pairs {
    size_t taps, taps_step, signal, signal_step, count;
};
struct part_schedule_pairs part_schedule_pairs(const struct part_schedule *schedule, size_t begin);

// Appends the schedule: for each division, the output at which each interval begins and its pairs.
void part_schedule_explain(const struct part_schedule *schedule, struct text *text);

#endif
