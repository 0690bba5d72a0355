// SPDX-License-Identifier: MIT
#include "rounds.h"

#include "base/thread.h"

// A stage of a step whose tasks threads share.
struct shared_stage {
    const struct rounds *rounds;
    size_t round, step;
    enum round_stage stage;
};

static void run_shared(void *context, size_t task, int worker)
{
    const struct shared_stage *at = context;
    at->rounds->run[at->stage](at->rounds->call, at->round, at->step, task, worker);
}

static void run_alone(void *context, size_t round, int worker)
{
    const struct rounds *rounds = context;
    for (size_t step = 0; step < rounds->steps; step++)
        for (unsigned stage = 0; stage < ROUND_STAGES; stage++) {
            const size_t n = rounds->tasks(rounds->call, round, step, stage);
            for (size_t task = 0; task < n; task++)
                rounds->run[stage](rounds->call, round, step, task, worker);
        }
}

void rounds_run(const struct rounds *rounds)
{
    if (!rounds->shared) {
        thread_loop(rounds->threads, rounds->rounds, run_alone, (void *)rounds);
        return;
    }
    for (size_t i = 0; i < rounds->rounds * rounds->steps; i++)
        for (unsigned stage = 0; stage < ROUND_STAGES; stage++) {
            struct shared_stage at = {rounds, i / rounds->steps, i % rounds->steps, stage};
            thread_loop(rounds->threads, rounds->tasks(rounds->call, at.round, at.step, at.stage),
                        run_shared, &at);
        }
}
