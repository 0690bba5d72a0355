// SPDX-License-Identifier: MIT
// Any problem, valid or not: a plan, and if it is small its results in all directions against the
// reference. Shared by the fuzz target of problems and by random problems.
#ifndef PARTITA_FUZZ_PROBLEM_CHECK_H
#define PARTITA_FUZZ_PROBLEM_CHECK_H

#include <stdint.h>

#include <partita/partita.h>

// Aborts where a result is wrong. The allocator of `options` is replaced by one that limits memory,
// so that valid but huge problems return PARTITA_ERR_NOMEM. seed: how a stream is split into calls.
void problem_check(const struct partita_problem *problem, const struct partita_options *options,
                   uint64_t seed);

#endif
