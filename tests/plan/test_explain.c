// SPDX-License-Identifier: MIT
// The explanation of cpu/partitioned: its table covers every tap once, its shares add up to 100 %,
// its figures are those of partita_plan_load, its timeline has the stated width and reaches the
// worst call.

#include "support/test.h"

#include <stdio.h>

enum { MAX_LINES = 64, COLUMNS = 64 };

struct lines {
    char text[8192];
    const char *line[MAX_LINES];
    size_t n;
};

static void explain_into(struct lines *lines, const struct partita_plan *plan)
{
    assert_true(partita_plan_explain(plan, lines->text, sizeof lines->text) < sizeof lines->text);
    lines->n = 0;
    for (char *line = strtok(lines->text, "\n"); line; line = strtok(NULL, "\n"))
        lines->line[lines->n++] = line;
}

static struct partita_plan *plan_of(const struct partita_problem *problem)
{
    struct partita_plan *plan;
    assert_ok(partita_plan_create(problem, &(struct partita_options){.engine = "cpu/partitioned"},
                                  &plan));
    return plan;
}

static size_t find(const struct lines *lines, const char *words)
{
    size_t i = 0;
    while (i < lines->n && !strstr(lines->line[i], words)) i++;
    assert_true(i < lines->n);
    return i;
}

static double share_of(const char *line)
{
    double share;
    const char *place = line + strlen(line);
    assert_int_equal(place[-1], '%');
    for (place -= 2; place[-1] != ' ';) place--;
    assert_int_equal(sscanf(place, "%lf", &share), 1);
    return share;
}

static void table_covers_all_taps(void **state)
{
    const struct partita_problem *problem = *state;
    struct partita_plan *plan = plan_of(problem);
    struct lines lines;
    explain_into(&lines, plan);
    size_t at = find(&lines, "quanta of"), segment = 0, next = 0, quantum, latency;
    assert_int_equal(sscanf(lines.line[at], " quanta of %zu frames; latency %zu; %zu taps",
                            &quantum, &latency, &next),
                     3);
    assert_int_equal(latency, partita_plan_latency(plan));
    double shares = share_of(lines.line[at + 2]);
    for (at += 3; strstr(lines.line[at], " us"); at++, segment++) {
        size_t number, first, last, parts, taps, hop, transform, batch, quanta;
        if (sscanf(lines.line[at], "%zu %zu .. %zu %zu x %zu %zu %zu %zu %zu", &number, &first,
                   &last, &parts, &taps, &hop, &transform, &batch, &quanta) != 9)
            break;
        assert_int_equal(number, segment);
        assert_int_equal(first, next);
        next = last + 1;
        assert_int_equal(hop, quanta * quantum);
        assert_int_equal(transform, taps + hop);
        assert_true(batch == 1 || batch == 2 || batch == 4);
        assert_true(first + parts * taps >= next && first + (parts - 1) * taps < next);
        shares += share_of(lines.line[at]);
    }
    assert_true(segment > 0);
    assert_int_equal(next, problem->kernel[0]);
    assert_true(shares > 100 - 0.1 * (double)(segment + 1) &&
                shares < 100 + 0.1 * (double)(segment + 1)); // rounded
    partita_plan_destroy(plan);
}

static void load_is_that_of_the_plan(void **state)
{
    struct partita_plan *plan = plan_of(*state);
    struct partita_load load;
    struct lines lines;
    assert_ok(partita_plan_load(plan, &load));
    explain_into(&lines, plan);
    char words[128];
    snprintf(words, sizeof words, "call of %zu frames takes %.3g us in the mean, %.3g us at worst",
             load.frames, load.mean * 1e6, load.worst * 1e6);
    find(&lines, words);
    snprintf(words, sizeof words, "within %zu frames", load.swap_delay);
    find(&lines, words);
    partita_plan_destroy(plan);
}

// The timeline has rows of one width: the head, each segment and the total, which reaches the
// highest mark.
static void timeline_reaches_the_worst_call(void **state)
{
    const struct partita_problem *problem = *state;
    struct partita_plan *plan = plan_of(problem);
    struct lines lines;
    explain_into(&lines, plan);
    const size_t first = find(&lines, "head |"), total = find(&lines, "total |");
    size_t segments;
    const char *line = strstr(lines.line[find(&lines, "segments:")], "segments:");
    assert_int_equal(sscanf(line, "segments: %zu", &segments), 1);
    assert_int_equal(total - first, segments + 1);
    assert_int_equal(total + 1, lines.n);
    const size_t width = strlen(lines.line[first]);
    assert_true(width <= COLUMNS + strlen("  total ||"));
    for (size_t i = first; i <= total; i++) {
        assert_int_equal(strlen(lines.line[i]), width);
        assert_int_equal(lines.line[i][width - 1], '|');
    }
    assert_non_null(strchr(lines.line[total], '@'));
    partita_plan_destroy(plan);
}

static void lines_are_short(void **state)
{
    struct partita_plan *plan = plan_of(*state);
    struct lines lines;
    explain_into(&lines, plan);
    for (size_t i = find(&lines, "quanta of"); i < lines.n; i++)
        assert_true(strlen(lines.line[i]) <= 100);
    partita_plan_destroy(plan);
}

// The spectra of a filter have at most 2.2 times the size of its taps.
static void spectra_are_small(void **state)
{
    (void)state;
    const struct partita_problem problem = {STREAM(64), KERNEL(480000)};
    struct partita_plan *plan = plan_of(&problem);
    struct lines lines;
    explain_into(&lines, plan);
    size_t samples = 0, at = find(&lines, "quanta of") + 3;
    for (size_t partitions, size;
         sscanf(lines.line[at], "%*u %*u .. %*u %zu x %*u %*u %zu", &partitions, &size) == 2; at++)
        samples += partitions * size; // a real signal has as many as its spectrum has reals
    assert_true(samples >= 2 * 470000 && (double)samples <= 2.2 * 480000);
    partita_plan_destroy(plan);
}

// If all calls do the same work there is no timeline.
static void no_timeline_without_a_period(void **state)
{
    (void)state;
    struct partita_plan *plan = plan_of(&(struct partita_problem){STREAM(64), KERNEL(40)});
    struct lines lines;
    explain_into(&lines, plan);
    for (size_t i = 0; i < lines.n; i++) assert_null(strstr(lines.line[i], "total"));
    partita_plan_destroy(plan);
}

static bool transforms_stop_midway(void)
{
#ifdef HAVE_NATIVE_FFT
    const char *provider = getenv("PARTITA_FFT");
    return !provider || strcmp(provider, "fftw") != 0;
#else
    return false;
#endif
}

static void says_when_transforms_run_in_one_piece(void **state)
{
    struct partita_plan *plan = plan_of(*state);
    struct partita_load load;
    struct lines lines;
    assert_ok(partita_plan_load(plan, &load));
    explain_into(&lines, plan);
    size_t n = 0;
    for (size_t i = 0; i < lines.n; i++) n += strstr(lines.line[i], "in one piece") != NULL;
    assert_int_equal(n, transforms_stop_midway() ? 0 : 1);
    if (n) assert_true(load.worst > 2 * load.mean);
    partita_plan_destroy(plan);
}

int main(void)
{
    static const struct partita_problem room = {STREAM(64), KERNEL(480000)},
                                        delayed = {STREAM(256), KERNEL(65536), CHANNELS(2, 2),
                                                   TYPES(CF32, CF32), LATENCY(256)},
                                        odd = {STREAM(100), KERNEL(20001), STRIDE(3)};
    static const struct {
        const char *name;
        const struct partita_problem *problem;
    } cases[] = {{"room", &room}, {"delayed", &delayed}, {"odd", &odd}};
    struct CMUnitTest tests[24];
    size_t n = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct partita_problem *problem = cases[i].problem;
        tests[n++] =
            named_test(table_covers_all_taps, problem, "%s/table-covers-all-taps", cases[i].name);
        tests[n++] = named_test(load_is_that_of_the_plan, problem, "%s/load-is-that-of-the-plan",
                                cases[i].name);
        tests[n++] = named_test(timeline_reaches_the_worst_call, problem,
                                "%s/timeline-reaches-the-worst-call", cases[i].name);
        tests[n++] = named_test(lines_are_short, problem, "%s/lines-are-short", cases[i].name);
    }
    tests[n++] = named_test(spectra_are_small, NULL, "spectra-are-small");
    tests[n++] = named_test(no_timeline_without_a_period, NULL, "no-timeline-without-a-period");
    tests[n++] = named_test(says_when_transforms_run_in_one_piece, &room,
                            "says-when-transforms-run-in-one-piece");
    return run_test_list(tests, n);
}
