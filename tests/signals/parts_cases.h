// SPDX-License-Identifier: MIT
// Problems with imposed sizes of partitions, for the tests of cpu/blocks and of its divisions.
#ifndef PARTITA_TEST_PARTS_CASES_H
#define PARTITA_TEST_PARTS_CASES_H

#include "support/rig.h"

struct parts_case {
    const char *name;
    size_t n, m, taps,
        signal;            // samples of signal and taps; sizes of the partitions of taps and signal
    ptrdiff_t first, last; // of the full result; 0, 0: all
    bool in_time;
};

// Equal partitions have half of a transform's size; others have the schedule of divisions. Among
// them are the published examples of that schedule: 60 x 36 with 12 and 6, 12464 x 6232 with 152
// and 19, 144 x 100 with 12 and 10.
static const struct parts_case parts_cases[] = {
    {"equal-one-part", 500, 300, 512, 512, 0, 0, false},
    {"equal-both-whole", 512, 512, 128, 128, 0, 0, false},
    {"equal-rest", 1000, 700, 128, 128, 0, 0, false},
    {"equal-prime", 1009, 997, 64, 64, 0, 0, false},
    {"equal-one-sample", 1, 700, 128, 128, 0, 0, false},
    {"equal-one-tap", 700, 1, 128, 128, 0, 0, false},
    {"equal-more-taps", 300, 3001, 128, 128, 0, 0, false},
    {"equal-one-more", 257, 257, 128, 128, 0, 0, false},
    {"equal-slice", 3000, 2000, 128, 128, 1111, 2222, false},
    {"equal-slice-in-block", 3000, 2000, 256, 256, 2570, 2575, false},
    {"equal-slice-beyond", 900, 800, 64, 64, -100, 1900, false},
    {"equal-slice-outside", 900, 800, 64, 64, 1800, 1900, false},
    {"equal-slice-before", 900, 800, 64, 64, -300, -20, false},
    {"equal-many-parts", 9000, 9000, 64, 64, 8000, 9000, false},
    {"equal-long-transform", 50000, 40000, 16384, 16384, 32700, 32900, false},
    {"equal-odd-transform", 2000, 1500, 192, 192, 0, 0, false},
    {"divisions-60-36", 60, 36, 6, 12, 0, 0, false},
    {"divisions-60-36-swapped", 60, 36, 12, 6, 0, 0, false},
    {"divisions-60-36-in-time", 60, 36, 6, 12, 0, 0, true},
    {"divisions-12464-6232", 12464, 6232, 19, 152, 511, 3283, false},
    {"divisions-12464-6232-in-time", 12464, 6232, 19, 152, 511, 3283, true},
    {"divisions-144-100", 144, 100, 10, 12, 0, 0, false},
    {"divisions-144-100-in-time", 144, 100, 10, 12, 0, 0, true},
    {"divisions-rest", 101, 67, 8, 24, 0, 0, false},
    {"divisions-rest-in-time", 101, 67, 8, 24, 0, 0, true},
    {"divisions-prime", 103, 59, 7, 5, 0, 0, false},
    {"divisions-slice-beyond", 101, 67, 8, 24, -40, 300, false},
    {"divisions-slice-outside", 101, 67, 8, 24, 167, 300, false},
    {"divisions-slice-before", 101, 67, 8, 24, -67, -1, false},
    {"divisions-parts-beyond", 30, 20, 64, 32, 0, 0, false},
    {"divisions-one-each", 20, 10, 1, 1, 0, 0, true},
    {"divisions-many-pairs", 2000, 2000, 3, 6, 1900, 2100, false},
};
enum { N_PARTS_CASES = sizeof parts_cases / sizeof *parts_cases };

struct typed_case {
    const struct parts_case *parts;
    const struct type_pair *types;
    enum partita_op op;
};

static inline struct partita_problem parts_problem(const struct typed_case *c)
{
    const struct parts_case *p = c->parts;
    ptrdiff_t first = p->first, last = p->last;
    if (first == 0 && last == 0) last = (ptrdiff_t)(p->n + p->m - 1);
    return (struct partita_problem){.signal = c->types->signal,
                                    .taps = c->types->taps,
                                    .op = c->op,
                                    .kernel = {p->m},
                                    .size = {p->n},
                                    .pad_begin = {(ptrdiff_t)p->m - 1 - first},
                                    .pad_end = {last - (ptrdiff_t)p->n}};
}

#endif
