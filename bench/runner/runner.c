// SPDX-License-Identifier: MIT
// Options, the check before timing, interleaved repetitions, medians, CSV.
#include "runner/runner.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROWS = 64, MAX_REPETITIONS = 64 };

// Rounds beyond a case's repetitions, while a median is far above the least time: other programs of
// a shared machine only add time, and more rounds find the times without them.
static const double SETTLED = 1.05, MORE_SECONDS = 2;

// One row of the CSV while it is measured.
struct row {
    struct contender contender;
    double error;
    double seconds[MAX_REPETITIONS];
    double *calls; // each call's minimum over identical passes; NULL: not requested
    int passes;    // of the workload in one repetition
    bool ready, once;
};

// Runs an opened contender once and checks the answer.
static bool row_check(struct row *row, struct workload *w, double *ret_seconds)
{
    struct contender *c = &row->contender;
    // NaN, so that another contender's answer does not count.
    if (!c->fetches_samples)
        memset(w->y, 0xff, w->out_channels * w->n_out * partita_type_size(w->signal));
    *ret_seconds = c->pass(c->state, w, NULL);
    if (isnan(*ret_seconds) || (c->fetch != NULL && !c->fetch(c->state, w))) {
        fprintf(stderr, "%s: %s failed\n", w->name, c->name);
        return false;
    }
    if (c->gate == 0) return true;
    row->error = oracle_error(w, c->delay);
    if (row->error <= c->gate) return true;
    fprintf(stderr, "%s: %s is WRONG: error %.3g, allowed %.3g; not timed\n", w->name, c->name,
            row->error, c->gate);
    return false;
}

// The seconds of a first pass, or the least of three passes if it exceeds the limit: a pass that is
// disturbed by another program, or by memory that has not been used yet, took forty times as long.
static double row_first(struct row *row, const struct workload *w, double seconds,
                        const struct suite *suite)
{
    const double limit = suite->max_pass;
    const struct contender *c = &row->contender;
    if (limit == 0) return seconds;
    if (suite->warm_up > 0 && seconds < 10 * limit) seconds = c->pass(c->state, w, NULL);
    for (int k = 0; k < 2 && seconds > limit && seconds < 10 * limit; k++)
        seconds = fmin(seconds, c->pass(c->state, w, NULL));
    return seconds;
}

// Opens a contender and makes it ready for timing. Returns false if it fails or its answer is
// wrong.
static bool row_open(struct row *row, struct workload *w, bool quick, const struct suite *suite)
{
    struct contender *c = &row->contender;
    size_t before = bench_heap_bytes();
    double seconds, min_seconds = quick ? 1e-3 : 5e-3;
    c->reason[0] = '\0';
    if (!c->open(c, w)) {
        if (c->reason[0] != '\0')
            fprintf(stderr, "%s: %s left out: %s\n", w->name, c->name, c->reason);
        return true;
    }
    if (c->gate > 0) c->bytes += bench_heap_bytes() - before;
    if (!row_check(row, w, &seconds)) {
        c->close(c->state);
        return false;
    }
    seconds = row_first(row, w, seconds, suite);
    row->passes = seconds < min_seconds ? (int)ceil(min_seconds / fmax(seconds, 1e-6)) : 1;
    row->once = suite->max_pass > 0 && seconds > suite->max_pass;
    row->seconds[0] = seconds;
    row->ready = true;
    return true;
}

// Contenders that are far behind the fastest one twice have had their only passes.
static void rows_drop_slow(struct row *rows, size_t n_rows, const struct workload *w,
                           double max_behind)
{
    double least = INFINITY;
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].ready) least = fmin(least, rows[i].seconds[0]);
    for (size_t i = 0; i < n_rows; i++) {
        struct row *row = &rows[i];
        if (!row->ready || row->seconds[0] <= max_behind * least) continue;
        row->seconds[0] = fmin(row->seconds[0], row->contender.pass(row->contender.state, w, NULL));
        row->once |= row->seconds[0] > max_behind * least;
    }
}

static double row_time(struct row *row, const struct workload *w)
{
    double sum = 0;
    for (int k = 0; k < row->passes; k++) sum += row->contender.pass(row->contender.state, w, NULL);
    return sum / row->passes;
}

// Runs one more pass and takes the minimum of each call's time: what the machine adds differs from
// pass to pass, the work does not. raw: the times of this pass as they are.
static void row_time_calls(struct row *row, const struct workload *w, bool raw)
{
    size_t n = w->timed / w->block;
    double *calls = bench_allocate(n * sizeof(double));
    bool first = row->calls == NULL;
    if (first) row->calls = bench_allocate(n * sizeof(double));
    row->contender.pass(row->contender.state, w, calls);
    for (size_t i = 0; i < n; i++)
        row->calls[i] = first || raw ? calls[i] : fmin(row->calls[i], calls[i]);
    free(calls);
}

static double median_of(const double *sorted, int n)
{
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static bool row_settled(const struct row *row, int repetitions)
{
    double sorted[MAX_REPETITIONS];
    if (!row->ready || row->once) return true;
    memcpy(sorted, row->seconds, (size_t)repetitions * sizeof *sorted);
    qsort(sorted, (size_t)repetitions, sizeof *sorted, bench_compare);
    return !(median_of(sorted, repetitions) > SETTLED * sorted[0]); // NaN: settled
}

// Returns whether all passes ran; otherwise there is no figure to print.
static bool row_print(struct row *row, const struct workload *w, int repetitions,
                      struct result *ret)
{
    double *s = row->seconds, items = (double)(w->timed * w->in_channels);
    if (row->once) repetitions = 1;
    for (int r = 0; r < repetitions; r++)
        if (isnan(s[r])) {
            fprintf(stderr, "%s: %s failed\n", w->name, row->contender.name);
            return false;
        }
    qsort(s, (size_t)repetitions, sizeof(double), bench_compare);
    const double median = median_of(s, repetitions);
    printf("%s,%s,%d,%.5g,%.3f,", w->name, row->contender.name, row->contender.threads,
           1e9 * median / items, (s[repetitions - 1] - s[0]) / median);
    if (row->calls != NULL) printf("%.3f", calls_flatness(row->calls, w->timed / w->block));
    printf(",%zu,%.3g\n", row->contender.bytes, row->error);
    fflush(stdout);
    *ret = (struct result){row->contender.name, 1e9 * s[0] / items};
    return true;
}

// The wanted contenders of a suite; those without a fixed thread count once for each requested
// count.
static size_t rows_list(struct row rows[MAX_ROWS], const struct suite *suite,
                        const struct bench_options *options)
{
    const int threads = options->threads;
    size_t n = 0;
    for (size_t i = 0; i < suite->n_contenders; i++) {
        const struct contender *c = &suite->contenders[i];
        if (!bench_matches(options->contenders, c->name)) continue;
        int counts[2] = {threads, 0};
        if (c->threads != 0) counts[0] = c->threads;
        else if (threads == 0) memcpy(counts, suite->thread_counts, sizeof counts);
        for (int k = 0; k < 2 && counts[k] != 0 && n < MAX_ROWS; k++) {
            rows[n] = (struct row){.contender = *c};
            rows[n++].contender.threads = counts[k];
        }
    }
    return n;
}

// Untimed passes of all rows, interleaved.
static void rows_warm_up(struct row *rows, size_t n_rows, const struct workload *w, double seconds)
{
    bool any = true;
    for (const double start = bench_now(); any && bench_now() - start < seconds;) {
        any = false;
        for (size_t i = 0; i < n_rows; i++) {
            if (!rows[i].ready || rows[i].once) continue;
            rows[i].contender.pass(rows[i].contender.state, w, NULL);
            any = true;
        }
    }
}

// Times the rows once more. Slow ones have had their only pass, except that single calls need one
// more.
static void rows_time(struct row *rows, size_t n_rows, const struct workload *w, int r,
                      const struct suite *suite)
{
    for (size_t i = 0; i < n_rows; i++) {
        if (!rows[i].ready || (rows[i].once && r > 0)) continue;
        if (!rows[i].once) rows[i].seconds[r] = row_time(&rows[i], w);
        if (suite->per_call && w->block > 0 && rows[i].contender.gate > 0)
            row_time_calls(&rows[i], w, suite->raw);
    }
}

static bool rows_settled(const struct row *rows, size_t n_rows, int repetitions)
{
    bool settled = true;
    for (size_t i = 0; i < n_rows; i++) settled &= row_settled(&rows[i], repetitions);
    return settled;
}

// Times the rows in rounds; returns how many there were.
static int rows_repeat(struct row *rows, size_t n_rows, const struct workload *w, int repetitions,
                       bool quick, const struct suite *suite)
{
    int done = 0;
    while (done < repetitions) rows_time(rows, n_rows, w, done++, suite);
    const double end = bench_now() + (quick ? 0 : MORE_SECONDS);
    while (done < MAX_REPETITIONS && bench_now() < end && !rows_settled(rows, n_rows, done))
        rows_time(rows, n_rows, w, done++, suite);
    return done;
}

static bool case_run(const struct suite *suite, const struct workload *description,
                     const struct bench_options *options)
{
    static struct row rows[MAX_ROWS];
    struct workload w = *description;
    workload_create(&w, options->quick);
    size_t n_rows = rows_list(rows, suite, options);
    int repetitions = options->quick ? 3 : w.repetitions > 0 ? w.repetitions : suite->repetitions;
    bool ok = true;
    struct result results[MAX_ROWS];
    size_t n_results = 0;
    for (size_t i = 0; i < n_rows; i++) ok &= row_open(&rows[i], &w, options->quick, suite);
    if (suite->max_behind > 0) rows_drop_slow(rows, n_rows, &w, suite->max_behind);
    rows_warm_up(rows, n_rows, &w, suite->warm_up);
    repetitions = rows_repeat(rows, n_rows, &w, repetitions, options->quick, suite);
    for (size_t i = 0; i < n_rows; i++) {
        if (!rows[i].ready) continue;
        const bool printed = row_print(&rows[i], &w, repetitions, &results[n_results]);
        n_results += printed;
        ok &= printed;
        if (rows[i].calls != NULL) calls_report(&w, &rows[i].contender, rows[i].calls);
        if (options->calls != NULL && rows[i].calls != NULL)
            ok &= calls_write(options->calls, &w, &rows[i].contender, rows[i].calls);
        rows[i].contender.close(rows[i].contender.state);
        free(rows[i].calls);
    }
    if (suite->report != NULL) suite->report(&w, results, n_results);
    workload_destroy(&w);
    return ok;
}

bool bench_options_parse(struct bench_options *ret, int argc, char **argv, const char *program)
{
    *ret = (struct bench_options){0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0) ret->list = true;
        else if (strcmp(argv[i], "--all") == 0) ret->all = true;
        else if (strcmp(argv[i], "--quick") == 0) ret->quick = true;
        else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc) ret->cases = argv[++i];
        else if (strcmp(argv[i], "--contender") == 0 && i + 1 < argc) ret->contenders = argv[++i];
        else if (strcmp(argv[i], "--calls") == 0 && i + 1 < argc) ret->calls = argv[++i];
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc && atoi(argv[i + 1]) > 0)
            ret->threads = atoi(argv[++i]);
        else {
            fprintf(stderr,
                    "usage: %s [--list] [--all] [--case PATTERN] [--contender PATTERN] "
                    "[--threads N] [--quick] [--calls FOLDER]\n",
                    program);
            return false;
        }
    }
    return true;
}

bool bench_matches(const char *pattern, const char *name)
{
    return pattern == NULL || fnmatch(pattern, name, 0) == 0;
}

// Cases that take long run only on request.
static bool case_wanted(const struct workload *w, const struct bench_options *options)
{
    if (options->cases == NULL) return options->all || !w->extra;
    return bench_matches(options->cases, w->name);
}

int bench_main(int argc, char **argv, const struct suite *suite)
{
    struct bench_options options;
    if (!bench_options_parse(&options, argc, argv, suite->program)) return 2;
    bool ok = true;
    size_t n_run = 0;
    if (!options.list && suite->prepare != NULL) suite->prepare();
    if (!options.list)
        printf("case,contender,threads,ns_per_item,spread,p999_over_mean,bytes,check\n");
    for (size_t i = 0; i < suite->n_cases; i++) {
        const struct workload *w = &suite->cases[i];
        if (!case_wanted(w, &options)) continue;
        n_run++;
        if (options.list) puts(w->name);
        else ok &= case_run(suite, w, &options);
    }
    if (n_run == 0) fprintf(stderr, "%s: no case matches '%s'\n", suite->program, options.cases);
    if (n_run == 0) return 2;
    return ok ? 0 : 1;
}
