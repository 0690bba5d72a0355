// SPDX-License-Identifier: MIT
// A stream whose weights move, and all calls about it on audio threads, make no forbidden call
// (interpose.h), but for the one that wakes the stream's threads after a pause.

#include "support/interpose.h"
#include "support/stream_rig.h"

static void morph_makes_no_forbidden_call(void **state)
{
    enum { CALLS = 1500, BLOCK = 64 };
    static const struct stream_case c = {"cpu/partitioned", &type_pairs[0], NULL};
    const struct partita_problem problem = {STREAM(BLOCK), CHANNELS(2, 2), KERNEL(2500)};
    const struct partita_options options = {.threads = *(const int *)*state};
    struct random random = random_start("morph");
    struct stream_rig rig;
    struct partita_filter *other;
    stream_rig_open_exactly(&rig, &c, &problem, &options, BLOCK, &random);
    random_samples(&random, rig.problem.taps, rig.w, rig.n_taps);
    assert_ok(partita_filter_create(rig.plan, rig.w, &other));
    partita_stream_close(rig.stream);
    assert_ok(partita_stream_open_morph(rig.plan,
                                        (const struct partita_filter *[]){rig.filter, other}, 2,
                                        (const double[]){1, 0}, &rig.stream));
    float *y = stream_rig_alloc_output(&rig), *x = rig.x;
    for (int call = 0; call < CALLS; call++) {
        const double weight = (double)random_below(&random, 9) / 8;
        watch_permit_wakes(1);
        watch_this_thread(true);
        if (call % 3 == 0)
            partita_stream_morph(rig.stream, (const double[]){weight, 1 - weight},
                                 (size_t)call % 700);
        partita_stream_morph_lag(rig.stream, (size_t)call);
        if (call % 500 == 499) partita_stream_reset(rig.stream);
        partita_stream_process(rig.stream, (void *[]){y, y + BLOCK}, (const void *[]){x, x + BLOCK},
                               BLOCK);
        watch_this_thread(false);
        watch_permit_wakes(0);
    }
    partita_stream_close(rig.stream);
    rig.stream = NULL;
    partita_filter_destroy(other);
    guarded_free(y);
    stream_rig_close(&rig);
}

int main(void)
{
    static int threads[] = {1, 3};
    const struct CMUnitTest tests[] = {
        named_test(morph_makes_no_forbidden_call, &threads[0], "one-thread"),
        named_test(morph_makes_no_forbidden_call, &threads[1], "three-threads"),
    };
    return run_all(tests);
}
