// SPDX-License-Identifier: MIT
// The work that `partita plan --table` prints against counters in the library: transforms, samples
// that they read, samples that are added to results, and parallel loops.
#include <string.h>

#include "base/thread.h"
#include "core/plan.h"
#include "fft/fft.h"
#include "kernels/kernels.h"
#include "plan/work.h"
#include "support/rig.h"

static struct counted {
    size_t inverses, loops, reads, added;
} counted, result;
static const char *array; // x, and its end
static const char *array_end;
static bool imposed; // cpu/blocks runs
static size_t spectrum_reals;
static add_fn *library_add;
static enum partita_status (*library_run)(const struct partita_plan *plan,
                                          const struct partita_filter *filter,
                                          const struct operands *operands, void *workspace);

void __real_fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch);
void __wrap_fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch);
void __wrap_fft_forward(const struct fft *fft, void *spectrum, const void *x, void *scratch)
{
    const char *at = x;
    spectrum_reals = fft->spectrum_bytes / sizeof(float);
    if (at >= array && at < array_end) counted.reads += fft->n;
    __real_fft_forward(fft, spectrum, x, scratch);
}

void __real_fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                              struct fft_steps steps);
void __wrap_fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                              struct fft_steps steps);
void __wrap_fft_forward_steps(const struct fft *fft, void *spectrum, const void *x, void *scratch,
                              struct fft_steps steps)
{
    const char *at = x;
    if (at >= array && at < array_end && !steps.first) counted.reads += fft->n;
    __real_fft_forward_steps(fft, spectrum, x, scratch, steps);
}

void __real_fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch);
void __wrap_fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch);
void __wrap_fft_inverse(const struct fft *fft, void *x, void *spectrum, void *scratch)
{
    counted.inverses++;
    __real_fft_inverse(fft, x, spectrum, scratch);
}

// A window of x is copied.
static void count_inside(const void *x, size_t size, ptrdiff_t first, size_t n)
{
    const char *at = x;
    const ptrdiff_t low = first > 0 ? first : 0, end = first + (ptrdiff_t)n;
    const ptrdiff_t high = end < (ptrdiff_t)size ? end : (ptrdiff_t)size;
    if (at >= array && at < array_end && high > low) counted.reads += (size_t)(high - low);
}

void __real_samples_window(void *to, const void *x, size_t size, ptrdiff_t first, size_t stride,
                           size_t n, size_t bytes);
void __wrap_samples_window(void *to, const void *x, size_t size, ptrdiff_t first, size_t stride,
                           size_t n, size_t bytes);
void __wrap_samples_window(void *to, const void *x, size_t size, ptrdiff_t first, size_t stride,
                           size_t n, size_t bytes)
{
    count_inside(x, size, first, n);
    __real_samples_window(to, x, size, first, stride, n, bytes);
}

const void *__real_samples_at(void *to, const void *x, size_t size, ptrdiff_t first, size_t n,
                              size_t bytes);
const void *__wrap_samples_at(void *to, const void *x, size_t size, ptrdiff_t first, size_t n,
                              size_t bytes);
const void *__wrap_samples_at(void *to, const void *x, size_t size, ptrdiff_t first, size_t n,
                              size_t bytes)
{
    const void *at = __real_samples_at(to, x, size, first, n, bytes);
    if (at == to) count_inside(x, size, first, n);
    return at;
}

void __real_thread_loop(int threads, size_t n_tasks, task_fn *run, void *context);
void __wrap_thread_loop(int threads, size_t n_tasks, task_fn *run, void *context);
void __wrap_thread_loop(int threads, size_t n_tasks, task_fn *run, void *context)
{
    counted.loops += n_tasks > 0;
    __real_thread_loop(threads, n_tasks, run, context);
}

// Sums of spectra are not counted; overlap-add has none.
static void count_add(void *y, const void *x, size_t n)
{
    if (!imposed || n != spectrum_reals) counted.added += n;
    library_add(y, x, n);
}

// Counts what the engine does, not what is done around it.
static enum partita_status run_engine(const struct partita_plan *plan,
                                      const struct partita_filter *filter,
                                      const struct operands *operands, void *workspace)
{
    counted = (struct counted){0};
    const enum partita_status status = library_run(plan, filter, operands, workspace);
    result = counted;
    return status;
}

// Runs a problem of f32 once with counters, and the work that the program prints of it.
static struct block_work run_counted(const struct partita_problem *problem,
                                     const struct partita_options *options)
{
    struct random random = random_start("work");
    struct partita_problem typed = *problem;
    struct rig rig;
    struct block_work work;
    char text[8192];
    typed.signal = typed.taps = PARTITA_F32;
    rig_open(&rig, &typed, options, &random);
    assert_true(partita_plan_explain(rig.plan, text, sizeof text) < sizeof text);
    assert_true(block_work_count(&typed, options->engine, text, &work));
    struct kernels kernels = *rig.plan->kernels;
    imposed = options->parts.taps > 0;
    library_add = kernels.add;
    kernels.add = count_add;
    rig.plan->kernels = &kernels;
    const struct engine *library_engine = rig.plan->engine;
    struct engine engine = *library_engine;
    library_run = engine.bounded.run;
    engine.bounded.run = run_engine;
    rig.plan->engine = &engine;
    array = rig.x, array_end = array + rig.n_x * rig.sample_bytes;
    rig_forward(&rig);
    rig.plan->engine = library_engine;
    rig_close(&rig);
    return work;
}

static const struct named_problem problems[] = {
    {"full", {LENGTH(100000), KERNEL(1025), PAD(1024)}},
    {"valid", {LENGTH(70001), KERNEL(301)}},
    {"slice", {LENGTH(90000), KERNEL(500), PAD_BEGIN(-20001), PAD_END(-30007)}},
    {"wide", {LENGTH(60000), KERNEL(700), PAD_BEGIN(9000), PAD_END(5000)}},
    {"channels", {LENGTH(50000), CHANNELS(2, 3), KERNEL(400), PAD_BEGIN(399)}},
    {"groups", {LENGTH(50000), CHANNELS(4, 6), GROUPS(2), KERNEL(400), PAD_END(399)}},
    {"stride", {LENGTH(80000), KERNEL(600), STRIDE(3), PAD_BEGIN(17)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

static const char *const engines[] = {"cpu/overlap-save", "cpu/overlap-add:steps",
                                      "cpu/overlap-add:3-steps", "cpu/overlap-add:8-steps"};
enum { N_ASKED = sizeof engines / sizeof *engines };

struct work_case {
    const struct partita_problem *problem;
    const char *engine;
    size_t reach; // error_reach; 0: none
};

static void blocks_of_one_signal(void **state)
{
    const struct work_case *c = *state;
    const struct partita_problem *p = c->problem;
    const struct partita_options options = {
        .engine = c->engine, .threads = 1, .error_reach = c->reach};
    const struct block_work work = run_counted(p, &options);
    const size_t outputs = p->out_channels ? p->out_channels : 1,
                 groups = p->groups ? p->groups : 1;
    assert_int_equal(work.groups * (outputs / groups), result.inverses);
    assert_int_equal(work.steps, result.loops);
    assert_int_equal((size_t)work.reads, result.reads);
    size_t size[PARTITA_MAX_RANK];
    struct partita_problem typed = *p;
    typed.signal = typed.taps = PARTITA_F32;
    assert_ok(partita_problem_output_size(&typed, size));
    assert_int_equal((size_t)work.writes, result.added + outputs * size[0]);
}

// Whole results of whole parts, whose figures are exact: of slices they are bounds.
static void imposed_parts(void **state)
{
    (void)state;
    static const struct {
        size_t n, m;
        struct partita_parts parts;
        ptrdiff_t first, end;
        size_t divisions;
    } cases[] = {
        {60, 36, {6, 12, false}, 0, 95, 3},           {36, 60, {12, 6, false}, 0, 95, 3},
        {12464, 6232, {19, 152, false}, 0, 18695, 9}, {1000, 700, {70, 40, false}, 0, 1699, 11},
        {640, 320, {64, 64, false}, 0, 959, 2},       {12464, 6232, {19, 152, false}, 511, 3283, 9},
        {101, 67, {8, 24, false}, 0, 167, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int private_rows = 0; private_rows < 2; private_rows++) {
            const ptrdiff_t n = (ptrdiff_t)cases[i].n, m = (ptrdiff_t)cases[i].m;
            const size_t out = (size_t)(cases[i].end - cases[i].first);
            const struct partita_problem problem = {LENGTH(cases[i].n), KERNEL(cases[i].m),
                                                    PAD_BEGIN(m - 1 - cases[i].first),
                                                    PAD_END(cases[i].end - n)};
            const struct partita_options options = {
                .engine = private_rows ? "cpu/blocks:private-divisions" : "cpu/blocks:divisions",
                .parts = cases[i].parts,
                .threads = 1};
            const struct block_work work = run_counted(&problem, &options);
            const bool exact = i < 5;
            assert_int_equal(work.steps, result.loops - 2); // others are transforms and zeros
            assert_int_equal(work.steps, private_rows ? 2 : cases[i].divisions);
            const size_t cleared = out * (private_rows ? cases[i].divisions : 1);
            if (exact) {
                assert_int_equal(work.groups, result.inverses);
                assert_int_equal((size_t)work.reads, result.reads);
                assert_int_equal((size_t)work.writes, result.added + cleared);
            } else {
                assert_in_range(work.groups, result.inverses, 2 * result.inverses);
                assert_true(work.reads >= (double)result.reads);
                assert_true(work.writes >= (double)(result.added + cleared));
            }
        }
}

int main(void)
{
    static struct work_case cases[N_PROBLEMS][N_ASKED][2];
    static struct CMUnitTest tests[N_PROBLEMS * N_ASKED * 2 + 1];
    size_t n = 0;
    for (size_t p = 0; p < N_PROBLEMS; p++)
        for (size_t e = 0; e < N_ASKED; e++)
            for (size_t r = 0; r < 2; r++) {
                // A short transform, whose results overlap those of several neighbours.
                const size_t span = problems[p].problem.kernel[0];
                const size_t reach = strstr(engines[e], ":8") ? 2 * span : span + span / 3;
                if (r && strstr(engines[e], ":3")) continue;
                cases[p][e][r] =
                    (struct work_case){&problems[p].problem, engines[e], r ? reach : 0};
                tests[n++] = named_test(blocks_of_one_signal, &cases[p][e][r], "%s/%s%s",
                                        engines[e], problems[p].name, r ? "-short" : "");
            }
    tests[n++] = named_test(imposed_parts, NULL, "imposed-parts");
    return run_test_list(tests, n);
}
