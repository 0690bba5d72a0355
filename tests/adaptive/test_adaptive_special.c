// SPDX-License-Identifier: MIT
// Adaptive filters: samples that are not finite or hardly so, silence, bad options, lack of memory.
#include "rig.h"

#include <stdio.h>

#include "support/allocators.h"

// The residual stays finite, and once bad samples have passed the echo is removed as before.
static void bad_samples_pass(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1e30, -3e38};
    (void)state;
    for (size_t round = 0; round < 20; round++) {
        char name[64];
        snprintf(name, sizeof name, "bad %zu", round);
        struct random random = random_start(name);
        struct run run = {.options = {.taps = 300, .block = 64, .channels = 1 + round % 2}};
        run_open(&run, &random, MAX_FRAMES);
        for (size_t i = 0; i < 6; i++) {
            char *in = random_below(&random, 2) ? run.near_samples : run.far_samples[0];
            ((float *)in)[3000 + random_below(&random, 3000)] =
                (float)bad[random_below(&random, sizeof bad / sizeof *bad)];
        }
        process(&run, &random, 0, MAX_FRAMES, 200);
        for (size_t i = 0; i < MAX_FRAMES; i++)
            assert_true(isfinite(sample_at(&run, run.residual, i)));
        struct partita_adaptive_stats stats;
        assert_ok(partita_adaptive_stats(run.adaptive, &stats));
        assert_int_equal(stats.blocks, MAX_FRAMES / 64);
        assert_true(stats.rested > 0 && stats.restarted == 0);
        run_close(&run);
    }
}

// Numbers that are finite, but whose products are not: a far end that can hardly be seen with a
// near end as loud as may be, and the other way round, in turn.
static void extremes_stay_finite(void **state)
{
    (void)state;
    for (size_t round = 0; round < 24; round++) {
        char name[64];
        snprintf(name, sizeof name, "extremes %zu", round);
        struct random random = random_start(name);
        struct run run = {.options =
                              random_options(&random, round % 2 ? PARTITA_F64 : PARTITA_F32)};
        const double largest = round % 2 ? 1e120 : 1e12;
        run_open(&run, &random, MAX_FRAMES);
        for (size_t i = 0; i < MAX_FRAMES; i++) {
            const bool loud = i / 3000 % 2 == 0;
            sample_put(run.options.type, run.near_samples, i,
                       normal(&random) * (loud ? largest : 1e-9) / 8);
            for (size_t c = 0; c < run.options.channels; c++)
                sample_put(run.options.type, run.far_samples[c], i,
                           normal(&random) * (loud ? 1e-9 : largest) / 8);
        }
        process(&run, &random, 0, MAX_FRAMES, 200);
        for (size_t i = 0; i < MAX_FRAMES; i++)
            assert_true(isfinite(sample_at(&run, run.residual, i)));
        // Then an ordinary echo.
        samples_from(run.options.type, run.near_samples, run.near_end, MAX_FRAMES);
        for (size_t c = 0; c < run.options.channels; c++)
            samples_from(run.options.type, run.far_samples[c], run.far_end[c], MAX_FRAMES);
        for (int i = 0; i < 4; i++) process(&run, &random, 0, MAX_FRAMES, 200);
        struct partita_adaptive_stats stats;
        assert_ok(partita_adaptive_stats(run.adaptive, &stats));
        assert_true(stats.erle >= -10 * log10(4.1)); // or the filter has diverged
        run_close(&run);
    }
}

static void silence_changes_nothing(void **state)
{
    struct random random = random_start("silence");
    struct run run = {.options = {.taps = 500, .block = 64, .channels = 1}};
    float before[500], after[500];
    (void)state;
    run_open(&run, &random, MAX_FRAMES); // the last block is half complete
    memset(run.near_samples + (MAX_FRAMES - 64) * run.scalar, 0, 64 * run.scalar);
    process(&run, &random, 0, MAX_FRAMES, 0);
    assert_ok(partita_adaptive_taps(run.adaptive, 0, before));
    // The microphone is switched off.
    memset(run.near_samples, 0, MAX_FRAMES * run.scalar);
    process(&run, &random, 0, MAX_FRAMES, 0);
    // Then the far end is silent too, given as zeros or as NULL.
    partita_adaptive_process(run.adaptive, run.residual, run.near_samples, NULL, MAX_FRAMES);
    for (size_t i = 1000; i < MAX_FRAMES; i++) assert_true(sample_at(&run, run.residual, i) == 0);
    assert_ok(partita_adaptive_taps(run.adaptive, 0, after));
    assert_memory_equal(before, after, sizeof before);
    // And frozen taps rest.
    samples_from(PARTITA_F32, run.near_samples, run.near_end, MAX_FRAMES);
    partita_adaptive_freeze(run.adaptive, true);
    process(&run, &random, 0, MAX_FRAMES, 0);
    assert_ok(partita_adaptive_taps(run.adaptive, 0, after));
    assert_memory_equal(before, after, sizeof before);
    run_close(&run);
}

static void bad_options_are_refused(void **state)
{
    const struct partita_adaptive_options good = {.taps = 10};
    struct partita_adaptive *adaptive;
    struct log_lines lines = {.n_lines = 0};
    (void)state;
#define REFUSED_WITH(field_, value_, text_)                                                        \
    do {                                                                                           \
        struct partita_adaptive_options bad = good;                                                \
        lines = (struct log_lines){.n_lines = 0};                                                  \
        bad.log = log_into(&lines);                                                                \
        bad.field_ = value_;                                                                       \
        assert_int_equal(partita_adaptive_create(&bad, &adaptive), PARTITA_ERR_ARG);               \
        assert_int_equal(lines.n_lines, 1);                                                        \
        assert_non_null(strstr(lines.text, text_));                                                \
    } while (0)
    REFUSED_WITH(taps, 0, "taps = 0: from 1");
    REFUSED_WITH(taps, SIZE_MAX, "taps");
    REFUSED_WITH(type, PARTITA_CF32, "type = 3");
    REFUSED_WITH(control, (enum partita_adaptive_control)3, "control = 3");
    REFUSED_WITH(constraint, (enum partita_adaptive_constraint) - 1, "constraint");
    REFUSED_WITH(channels, 1025, "channels = 1025");
    REFUSED_WITH(block, (size_t)1 << 21, "block = 2097152");
    REFUSED_WITH(step, -0.5, "step = -0.5");
    REFUSED_WITH(step, (double)NAN, "step");
    REFUSED_WITH(gain, (double)INFINITY, "gain");
    REFUSED_WITH(drift, 0.6, "drift = 0.6");
    REFUSED_WITH(silence, -1, "silence = -1");
    REFUSED_WITH(allocator.allocate, meter_allocate, "allocator");
    struct partita_adaptive_options logged = good;
    float taps[10];
    lines = (struct log_lines){.n_lines = 0};
    logged.log = log_into(&lines);
    assert_int_equal(partita_adaptive_create(&logged, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_adaptive_create_sized(NULL, 0, &adaptive), PARTITA_ERR_ARG);
    assert_ok(partita_adaptive_create(&logged, &adaptive));
    assert_int_equal(partita_adaptive_taps(adaptive, 1, taps), PARTITA_ERR_ARG);
    assert_int_equal(partita_adaptive_taps(adaptive, 0, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_adaptive_save(adaptive, NULL), PARTITA_ERR_ARG);
    assert_int_equal(partita_adaptive_restore(adaptive, NULL, 8), PARTITA_ERR_ARG);
    assert_int_equal(partita_adaptive_stats(adaptive, NULL), PARTITA_ERR_ARG);
    assert_int_equal(lines.n_lines, 5);
    partita_adaptive_destroy(adaptive);
    partita_adaptive_destroy(NULL);
}

// Every allocation fails once; nothing is lost.
static void lack_of_memory_is_reported(void **state)
{
    (void)state;
    for (size_t fail_at = 1;; fail_at++) {
        struct meter meter = {.fail_at = fail_at};
        struct partita_adaptive_options options = {.taps = 100,
                                                   .allocator = meter_allocator(&meter)};
        struct partita_adaptive *adaptive;
        const enum partita_status status = partita_adaptive_create(&options, &adaptive);
        if (status == PARTITA_OK) partita_adaptive_destroy(adaptive);
        else assert_int_equal(status, PARTITA_ERR_NOMEM);
        assert_int_equal(meter.n_live, 0);
        if (status == PARTITA_OK) break;
        assert_true(fail_at < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_samples_pass),           cmocka_unit_test(extremes_stay_finite),
        cmocka_unit_test(silence_changes_nothing),    cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(lack_of_memory_is_reported),
    };
    return run_all(tests);
}
