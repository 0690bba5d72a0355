// SPDX-License-Identifier: MIT
// Which engine the planner chooses where that follows from the estimates: with the share of
// preparing a filter, and where it does not ask the engines for layers.

#include "support/rig.h"

#include <stdio.h>

static const struct partita_problem live = {STREAM(256), KERNEL(4096), LATENCY(4096)};

static double seconds_of(const struct partita_plan *plan, double uses)
{
    return plan->choice.seconds + plan->choice.filter_seconds / uses;
}

// Of block sizes that cost about as little as the cheapest, searches take the smallest: cpu/blocks
// one that costs up to 1 / 0.9 times as much, the other engines less.
static const double MARGIN = 1 / 0.9;

// The engine that is chosen costs least with its share of preparing the filter, and so does the
// decision of each engine but for the margin of its search: few uses of a filter change both for
// some of these layers. Streams have no such option.
static void filter_uses_count(void **state)
{
    (void)state;
    static const struct partita_problem layers[] = {
        {SIZE(7, 7), KERNEL(3, 3), CHANNELS(256, 256), .op = PARTITA_CORRELATE},
        {SIZE(28, 28), KERNEL(5, 5), CHANNELS(128, 128), .op = PARTITA_CORRELATE},
        {SIZE(64, 64), KERNEL(13, 13), CHANNELS(32, 32), .op = PARTITA_CORRELATE},
        {SIZE(14, 14), KERNEL(7, 7), CHANNELS(64, 64), GROUPS(64), .op = PARTITA_CORRELATE},
        {LENGTH(4000), KERNEL(500), CHANNELS(8, 8), .op = PARTITA_CORRELATE},
    };
    static const char *const names[] = {"cpu/direct", "cpu/gemm",      "cpu/winograd",
                                        "cpu/tiles",  "cpu/depthwise", "cpu/overlap-save",
                                        "cpu/blocks"};
    int changed = 0, decisions = 0;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct partita_plan *usual, *once, *other;
        struct partita_options options = {.directions = PARTITA_FORWARD};
        assert_ok(partita_plan_create(&layers[i], &options, &usual));
        options.filter_uses = 1;
        assert_ok(partita_plan_create(&layers[i], &options, &once));
        changed += strcmp(partita_plan_engine(usual, PARTITA_FORWARD),
                          partita_plan_engine(once, PARTITA_FORWARD)) != 0;
        assert_true(once->choice.filter_seconds > 0);
        for (size_t e = 0; e < sizeof names / sizeof *names; e++) {
            options.engine = names[e];
            if (partita_plan_create(&layers[i], &options, &other) != PARTITA_OK) continue;
            assert_true(seconds_of(once, 1) <= seconds_of(other, 1));
            assert_true(usual->choice.seconds <= MARGIN * other->choice.seconds);
            const struct partita_options forever = {.directions = PARTITA_FORWARD,
                                                    .engine = names[e]};
            struct partita_plan *kept;
            assert_ok(partita_plan_create(&layers[i], &forever, &kept));
            assert_true(seconds_of(other, 1) <= MARGIN * seconds_of(kept, 1));
            assert_true(kept->choice.seconds <= MARGIN * other->choice.seconds);
            decisions += seconds_of(other, 1) < seconds_of(kept, 1);
            partita_plan_destroy(kept);
            partita_plan_destroy(other);
        }
        partita_plan_destroy(usual);
        partita_plan_destroy(once);
    }
    assert_true(changed > 0);
    assert_true(decisions > 0);
    struct log_lines lines = {0};
    const struct partita_options options = {.filter_uses = 1, .log = log_into(&lines)};
    struct partita_plan *plan;
    assert_int_equal(partita_plan_create(&live, &options, &plan), PARTITA_ERR_ARG);
    assert_non_null(strstr(lines.text, "options.filter_uses"));
}

// A lone signal is planned for one call, which pays for the taps and for new memory, unless the
// options say that its filter is used more often. Both change which transform is cheapest, unless
// transforms by plain C take so long that they cost little beside them.
static void lone_signals_count_uses(void **state)
{
    (void)state;
    static const struct partita_problem segment = {LENGTH((1 << 20) + 65535), KERNEL(65536)};
    for (const char *const *engine = (const char *const[]){"cpu/overlap-save", "cpu/blocks", NULL};
         *engine; engine++) {
        struct partita_plan *plans[3];
        for (unsigned i = 0; i < 3; i++) {
            const struct partita_options options = {.engine = *engine,
                                                    .filter_uses = (unsigned[]){0, 1, 16}[i]};
            assert_ok(partita_plan_create(&segment, &options, &plans[i]));
        }
        const struct estimate *usual = &plans[0]->choice, *once = &plans[1]->choice,
                              *often = &plans[2]->choice;
        assert_true(usual->seconds == once->seconds && usual->transform == once->transform);
        assert_true(once->filter_seconds == 0 && often->filter_seconds > 0);
        assert_true(seconds_of(plans[2], 16) < once->seconds);
        assert_true(often->transform > once->transform || plans[0]->isa == CPU_C);
        for (unsigned i = 0; i < 3; i++) partita_plan_destroy(plans[i]);
    }
}

// Engines for layers, which are not asked about one signal with adjacent taps, cost more than the
// choice.
static void layer_engines_are_dearer(void **state)
{
    (void)state;
    struct random random = random_start("layer-engines");
    int compared = 0;
    for (int i = 0; i < 300; i++) {
        const enum partita_op op = (enum partita_op)random_below(&random, 2);
        const enum partita_type type = random_below(&random, 2) ? PARTITA_F32 : PARTITA_F64;
        const size_t n = 1 + random_below(&random, (size_t)1 << random_below(&random, 20));
        const size_t m = 1 + random_below(&random, (size_t)1 << random_below(&random, 11));
        const struct partita_slice slice = {.mode = (enum partita_mode)random_below(&random, 3)};
        struct partita_problem problem;
        struct partita_plan *plan, *other;
        assert_ok(partita_slice_problem(op, type, n, m, &slice, &problem));
        assert_ok(partita_plan_create(&problem, NULL, &plan));
        for (size_t e = 0; plan->engines[e]; e++) {
            const struct partita_options options = {.engine = plan->engines[e]->name,
                                                    .directions = PARTITA_FORWARD};
            if (!plan->engines[e]->layers) continue;
            assert_false(plan->estimates[e].applicable);
            if (partita_plan_create(&problem, &options, &other) != PARTITA_OK) continue;
            if (!(other->choice.seconds >= plan->choice.seconds))
                fail_msg("%s %zu x %zu: %s takes %g s, the choice %g s", partita_type_name(type), n,
                         m, options.engine, other->choice.seconds, plan->choice.seconds);
            compared++;
            partita_plan_destroy(other);
        }
        partita_plan_destroy(plan);
    }
    assert_true(compared > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        named_test(filter_uses_count, NULL, "filter-uses"),
        named_test(lone_signals_count_uses, NULL, "lone-signals-count-uses"),
        named_test(layer_engines_are_dearer, NULL, "layer-engines-are-dearer"),
    };
    return run_test_list(tests, sizeof tests / sizeof *tests);
}
