// SPDX-License-Identifier: MIT
// PARTITA_MEASURE on a device, on the stand-in: the rates that are measured are those of a process,
// and affect the plans that measure alone; a measurement that fails leaves nothing behind.
#include "core/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "hostdev/hostdev.h"
#include "support/test.h"

static const struct partita_problem problem = {SIZE(20, 30), BATCH(2), CHANNELS(8, 8),
                                               KERNEL(3, 3)};

enum { TEXT = 1 << 14 };

static enum partita_status explain(enum partita_effort effort, char text[TEXT])
{
    const struct partita_options options = {.device = "cuda:0", .effort = effort};
    struct partita_plan *plan;
    const enum partita_status status = partita_plan_create(&problem, &options, &plan);
    if (status != PARTITA_OK) return status;
    assert_true(partita_plan_explain(plan, text, TEXT) < TEXT);
    partita_plan_destroy(plan);
    return status;
}

static const char *rates_line(const char *text)
{
    const char *line = strstr(text, "\nrates: ");
    assert_non_null(line);
    return line + 1;
}

// The first test of the program, since a process measures once. A device that fails is lost to the
// plan; without memory the assumed rates stay.
static void fails(void **state)
{
    enum { CALLS = 60 };
    char text[TEXT];
    const size_t kept = hostdev_allocations();
    (void)state;
    for (size_t k = 1; k < CALLS; k++) {
        hostdev_fail(k, cudaErrorIllegalAddress);
        assert_int_equal(explain(PARTITA_MEASURE, text), PARTITA_ERR_DEVICE);
        hostdev_fail(0, cudaSuccess);
        assert_int_equal(hostdev_allocations(), kept);
    }
    size_t without = 0;
    for (size_t k = 1; k < CALLS; k++) {
        hostdev_fail(k, cudaErrorMemoryAllocation);
        const enum partita_status status = explain(PARTITA_MEASURE, text);
        hostdev_fail(0, cudaSuccess);
        assert_true(status == PARTITA_OK || status == PARTITA_ERR_NOMEM ||
                    status == PARTITA_ERR_DEVICE); // if no device was found
        assert_int_equal(hostdev_allocations(), kept);
        if (status == PARTITA_OK && strstr(rates_line(text), "assumed")) without++;
    }
    assert_true(without > 0);
}

static void are_of_the_process(void **state)
{
    char before[TEXT], after[TEXT], first[TEXT], second[TEXT];
    static const char *const names[] = {"launch", "host_graph", "graph", "pass", "bytes", "fma"};
    (void)state;
    assert_ok(explain(PARTITA_ESTIMATE, before));
    assert_non_null(strstr(rates_line(before), "assumed"));
    assert_ok(explain(PARTITA_MEASURE, first));
    assert_ok(explain(PARTITA_MEASURE, second));
    assert_ok(explain(PARTITA_ESTIMATE, after));
    assert_string_equal(before, after);
    assert_string_equal(first, second);
    assert_non_null(strstr(rates_line(first), "; measured\n"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[32];
        snprintf(name, sizeof name, " %s ", names[i]);
        const char *at = strstr(rates_line(first), name);
        assert_non_null(at);
        const double value = strtod(at + strlen(name), NULL);
        assert_true(value > 0 && value < 1e18);
    }
    // Tensor cores are measured where they are in use.
    const bool used = !strstr(rates_line(before), "tf32 0;");
    assert_int_equal(used, !strstr(rates_line(first), "tf32 0;"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {named_test(fails, NULL, "fails"),
                                       named_test(are_of_the_process, NULL, "are-of-the-process")};
    return run_all(tests);
}
