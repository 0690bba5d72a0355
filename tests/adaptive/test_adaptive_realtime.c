// SPDX-License-Identifier: MIT
// What partita/adaptive.h calls real-time safe does not allocate, lock, make system calls or access
// files (interpose.h), whatever the filter does: steps, copies, returns, rests, starts anew.
#include "rig.h"

#include <stdio.h>

#include "support/interpose.h"

static void makes_no_forbidden_call(void **state)
{
    (void)state;
    for (size_t round = 0; round < 24; round++) {
        char name[32];
        snprintf(name, sizeof name, "watch %zu", round);
        struct random random = random_start(name);
        const enum partita_type type = round % 2 ? PARTITA_F64 : PARTITA_F32;
        struct run run = {.options = random_options(&random, type)};
        struct partita_adaptive_stats stats;
        run_open(&run, &random, MAX_FRAMES);
        for (size_t i = 0; i < 20; i++) {
            const size_t at = random_below(&random, MAX_FRAMES);
            sample_put(type, i % 2 ? run.near_samples : run.far_samples[0], at,
                       i % 3 ? (double)NAN : 1e11);
        }
        for (size_t at = 0, n; at < MAX_FRAMES; at += n) {
            n = 1 + random_below(&random, 500);
            if (n > MAX_FRAMES - at) n = MAX_FRAMES - at;
            watch_this_thread(true);
            process(&run, &random, at, at + n, 0);
            partita_adaptive_stats(run.adaptive, &stats);
            partita_adaptive_latency(run.adaptive);
            partita_adaptive_freeze(run.adaptive, at % 5 == 0);
            if (at > MAX_FRAMES / 2 && at % 50 == 0) partita_adaptive_reset(run.adaptive);
            watch_this_thread(false);
        }
        run_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(makes_no_forbidden_call)};
    return run_all(tests);
}
