// SPDX-License-Identifier: MIT
// How an engine computes a layer by products: in rounds of steps. A step loads operands, that is,
// transforms samples to matrices, and multiplies these; sums go from step to step, and the products
// of the last step also store results. Tasks of a stage do not depend on each other. Either all
// threads compute the tasks of one round after another, and share its operands, or each round is
// one thread's.
#ifndef PARTITA_ROUNDS_H
#define PARTITA_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

enum round_stage { ROUND_LOAD, ROUND_MULTIPLY, ROUND_STAGES };

struct rounds {
    void *call; // the engine's
    // The tasks of a stage; 0: the round has no such step.
    size_t (*tasks)(void *call, size_t round, size_t step, enum round_stage stage);
    // Runs one. Steps and tasks that see the same `worker` follow each other.
    void (*run[ROUND_STAGES])(void *call, size_t round, size_t step, size_t task, int worker);
    size_t rounds, steps;
    bool shared; // the threads share each round
    int threads;
};

void rounds_run(const struct rounds *rounds);

#endif
