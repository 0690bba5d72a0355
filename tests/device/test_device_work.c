// SPDX-License-Identifier: MIT
// The work that `partita plan --table` prints of a device, against the bytes that its kernels read
// of x and write of y, thread blocks and kernels, on the stand-in whose kernels have checks.
#include "core/plan.h" // before the complex numbers of test.h

#include <string.h>

#include "device/arrays.h"
#include "plan/work.h"
#include "support/rig.h"

// With as many signals as a thread block transforms at once none of its threads is idle.
static const struct named_problem problems[] = {
    {"full", {LENGTH(6000), BATCH(8), KERNEL(257), PAD(256)}},
    {"valid", {LENGTH(7001), BATCH(8), KERNEL(301)}},
    {"slice", {LENGTH(9000), BATCH(8), KERNEL(100), PAD_BEGIN(-2001), PAD_END(-3007)}},
    {"channels", {LENGTH(5000), BATCH(8), CHANNELS(3, 1), KERNEL(200), PAD_BEGIN(199)}},
    {"stride", {LENGTH(8000), BATCH(8), KERNEL(60), STRIDE(3), PAD_BEGIN(17)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static const char *const engines[] = {"cuda/overlap-save", "cuda/overlap-add:2-steps",
                                      "cuda/overlap-add:3-steps"};
enum { N_ASKED = sizeof engines / sizeof *engines };

struct work_case {
    const struct partita_problem *problem;
    const char *engine;
};

// What a call reads and writes of an array.
static struct hostdev_accesses observe(const struct rig *rig, void *y, const void *x,
                                       const void *array, size_t samples)
{
    hostdev_observe(array, samples * rig->sample_bytes);
    assert_ok(partita_forward(rig->plan, rig->filter, y, x, NULL));
    const struct hostdev_accesses ret = hostdev_observed();
    hostdev_observe(NULL, 0);
    return (struct hostdev_accesses){ret.read / rig->sample_bytes, ret.written / rig->sample_bytes};
}

static void work_is_counted(void **state)
{
    const struct work_case *c = *state;
    struct partita_problem problem = *c->problem;
    struct random random = random_start("work");
    struct rig rig;
    struct block_work work;
    char text[8192];
    problem.signal = problem.taps = PARTITA_F32;
    rig_open(&rig, &problem, &(struct partita_options){.engine = c->engine, .device = "cuda:0"},
             &random);
    assert_true(partita_plan_explain(rig.plan, text, sizeof text) < sizeof text);
    assert_true(block_work_count(&problem, c->engine, text, &work));
    void *x = device_copy(rig.x, rig.n_x * rig.sample_bytes, 0);
    void *y = device_copy(rig.y, rig.n_y * rig.sample_bytes, 0);
    const size_t kernels = hostdev_work().kernels;
    const struct hostdev_accesses of_x = observe(&rig, y, x, x, rig.n_x);
    const size_t launches = hostdev_work().kernels - kernels;
    const struct hostdev_accesses of_y = observe(&rig, y, x, y, rig.n_y);
    assert_int_equal(of_x.written, 0);
    assert_int_equal((size_t)work.reads, of_x.read);
    const bool adds = strstr(c->engine, "overlap-add") != NULL;
    // y is cleared by the run-time, not by a kernel.
    assert_int_equal((size_t)work.writes, of_y.written + (adds ? rig.n_y : 0));
    assert_int_equal(of_y.read, adds ? of_y.written : 0);
    // Steps without blocks are not launched.
    const size_t blocks = work.groups / problem.batch;
    assert_int_equal(launches, work.steps < blocks ? work.steps : blocks);
    array_release(DEVICE, x);
    array_release(DEVICE, y);
    rig_close(&rig);
}

// Divisions of imposed parts, one after the other: each interval is added once.
static void divisions_are_counted(void **state)
{
    (void)state;
    const struct partita_problem problem = {LENGTH(60), BATCH(8), KERNEL(36), PAD(35)};
    const struct partita_options options = {
        .engine = "cuda/blocks", .device = "cuda:0", .parts = {6, 12, false}};
    struct random random = random_start("divisions");
    struct rig rig;
    struct block_work work;
    char text[8192];
    rig_open(&rig, &problem, &options, &random);
    assert_true(partita_plan_explain(rig.plan, text, sizeof text) < sizeof text);
    assert_true(block_work_count(&problem, options.engine, text, &work));
    void *x = device_copy(rig.x, rig.n_x * rig.sample_bytes, 0);
    void *y = device_copy(rig.y, rig.n_y * rig.sample_bytes, 0);
    const struct hostdev_accesses of_x = observe(&rig, y, x, x, rig.n_x);
    const struct hostdev_accesses of_y = observe(&rig, y, x, y, rig.n_y);
    assert_int_equal(work.groups, 14 * 8);
    assert_int_equal(work.steps, 3);
    assert_true(work.reads <= (double)of_x.read); // short transforms leave threads idle
    assert_int_equal((size_t)work.writes, of_y.written + rig.n_y);
    array_release(DEVICE, x);
    array_release(DEVICE, y);
    rig_close(&rig);
}

int main(void)
{
    static struct work_case cases[N_PROBLEMS][N_ASKED];
    static struct CMUnitTest tests[N_PROBLEMS * N_ASKED + 1];
    size_t n = 0;
    const enum layer_device device = layer_device_check();
    if (device != LAYER_DEVICE_READY) return device == LAYER_DEVICE_MISSING;
    for (size_t p = 0; p < N_PROBLEMS; p++)
        for (size_t e = 0; e < N_ASKED; e++) {
            cases[p][e] = (struct work_case){&problems[p].problem, engines[e]};
            tests[n++] =
                named_test(work_is_counted, &cases[p][e], "%s/%s", engines[e], problems[p].name);
        }
    tests[n++] = named_test(divisions_are_counted, NULL, "cuda/blocks/divisions");
    return run_test_list(tests, n);
}
