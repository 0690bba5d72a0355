// SPDX-License-Identifier: MIT
// The work of a signal in blocks, for `partita plan --table`: by the formulas of docs/theory.md,
// sections 3 and 7, from the sizes that an explanation of the plan names. Tests compare it with
// counters in the library's kernels and with those of a stand-in for a GPU.
#ifndef PARTITA_APPS_WORK_H
#define PARTITA_APPS_WORK_H

#include <partita/partita.h>
#include <stdbool.h>

struct block_work {
    size_t groups; // blocks that are computed alone, of all channels
    size_t size;   // samples of the result of one
    size_t steps;  // rounds of groups that wait for each other
    double reads;  // samples of x, those that blocks share as often as they are read; on a device
                   // idle threads of a last thread block, and those that compute some of many
                   // outputs, read them once more
    double writes; // samples of y, and of sums beside it, each time that they are written
};

// Sets the work of a bounded problem of one axis, with `engine` of the form NAME:VARIANT. Of
// imposed parts the figures are upper bounds if the result is a slice or the last parts are shorter
// than others. False: the explanation names no blocks.
bool block_work_count(const struct partita_problem *problem, const char *engine,
                      const char *explanation, struct block_work *ret);

#endif
