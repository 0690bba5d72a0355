// SPDX-License-Identifier: MIT
// Variants of cpu/blocks for imposed sizes of partitions: divisions one after the other and all at
// once.
#include "parts_cases.h"

#include "support/layer_rig.h"

// All divisions at once, each with a row of its own, have the bits of one division after the other,
// with any number of threads and with a workspace for fewer rows; rows are counted.
static void private_divisions(void **state)
{
    const struct typed_case *c = *state;
    struct partita_problem problem = parts_problem(c);
    struct partita_options options = {
        .engine = "cpu/blocks:divisions",
        .parts = {c->parts->taps, c->parts->signal, c->parts->in_time},
        .threads = 1};
    struct random random = random_start(c->parts->name);
    struct rig rig;
    rig_open(&rig, &problem, &options, &random);
    rig_forward(&rig);
    rig_check(&rig);
    size_t unit = c->parts->taps;
    for (size_t b = c->parts->signal; b;) {
        const size_t rest = unit % b;
        unit = b, b = rest;
    }
    const size_t divisions = (c->parts->taps + c->parts->signal) / unit;
    const size_t row = (rig.n_y * rig.sample_bytes + 63) / 64 * 64;
    const size_t before = partita_plan_workspace(rig.plan, PARTITA_FORWARD);
    options.engine = "cpu/blocks:private-divisions";
    for (options.threads = 1; options.threads < 4; options.threads++)
        rig_check_copy(&rig, &options);
    options.threads = 1;
    struct partita_plan *plan;
    assert_ok(partita_plan_create(&problem, &options, &plan));
    const size_t all = partita_plan_workspace(plan, PARTITA_FORWARD);
    assert_int_equal(all - before, (divisions - 1) * row);
    partita_plan_destroy(plan);
    size_t last = 0;
    for (options.workspace_limit = 4 * before; last < all;
         options.workspace_limit += 2 * row + before) {
        assert_ok(partita_plan_create(&problem, &options, &plan));
        const size_t bytes = partita_plan_workspace(plan, PARTITA_FORWARD);
        assert_true(bytes <= options.workspace_limit && bytes >= last);
        last = bytes;
        partita_plan_destroy(plan);
        rig_check_copy(&rig, &options);
    }
    rig_close(&rig);
}

// Variants that do not fit the options are refused, with a reason.
static void variants_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *engine, *reason;
        struct partita_parts parts;
        enum partita_status status;
    } cases[] = {
        {"cpu/blocks:divisions", "options.parts", {0}, PARTITA_ERR_UNSUPPORTED},
        {"cpu/blocks:private-divisions", "options.parts", {0}, PARTITA_ERR_UNSUPPORTED},
        {"cpu/blocks:pairs", "options.parts", {6, 12, false}, PARTITA_ERR_UNSUPPORTED},
        {"cpu/blocks:lags", "options.parts", {64, 64, false}, PARTITA_ERR_UNSUPPORTED},
        {"cpu/blocks:division", "options.engine", {6, 12, false}, PARTITA_ERR_ARG},
    };
    const struct partita_problem problem = {LENGTH(60), KERNEL(36), PAD(35)};
    struct partita_plan *plan = (struct partita_plan *)1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct log_lines lines;
        const struct partita_options options = {
            .engine = cases[i].engine, .parts = cases[i].parts, .log = log_into(&lines)};
        assert_int_equal(partita_plan_create(&problem, &options, &plan), cases[i].status);
        assert_non_null(strstr(lines.text, cases[i].reason));
        assert_ptr_equal(plan, (struct partita_plan *)1);
    }
}

int main(void)
{
    static struct typed_case cases[N_TYPE_PAIRS][2][N_PARTS_CASES];
    static struct CMUnitTest tests[N_TYPE_PAIRS * 2 * N_PARTS_CASES + 1];
    size_t n = 0;
    for (size_t t = 0; t < (layer_is_brief() ? 1 : N_TYPE_PAIRS); t++)
        for (int op = 0; op < 2; op++)
            for (size_t i = 0; i < N_PARTS_CASES; i++) {
                struct typed_case *c = &cases[t][op][i];
                *c = (struct typed_case){&parts_cases[i], &type_pairs[t], (enum partita_op)op};
                tests[n++] =
                    named_test(private_divisions, c, "private/%s-%s-%s",
                               op ? "correlate" : "convolve", parts_cases[i].name, c->types->name);
            }
    tests[n++] = named_test(variants_are_refused, NULL, "variants-are-refused");
    return run_test_list(tests, n);
}
