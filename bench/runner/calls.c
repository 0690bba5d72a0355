// SPDX-License-Identifier: MIT
// Single calls of a stream: their times, how flat these are, and the files of --calls that
// tools/load_plot.sh plots.
#include "runner/runner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

double bench_calls(const struct workload *w, double *calls, call_fn *call, void *state)
{
    for (size_t at = 0; at < w->warm; at += w->block) call(state, w, at);
    double start = bench_now(), before = start;
    for (size_t at = w->warm; at < w->n_frames; at += w->block) {
        call(state, w, at);
        if (calls == NULL) continue;
        double now = bench_now();
        *calls++ = now - before;
        before = now;
    }
    return bench_now() - start;
}

double calls_flatness(const double *calls, size_t n)
{
    double *sorted = bench_allocate(n * sizeof(double)), sum = 0;
    memcpy(sorted, calls, n * sizeof(double));
    qsort(sorted, n, sizeof(double), bench_compare);
    for (size_t i = 0; i < n; i++) sum += sorted[i];
    // Nearest rank, rounded up: with fewer than a thousand calls it is the slowest one.
    double p999 = sorted[(999 * n + 999) / 1000 - 1];
    free(sorted);
    return p999 * (double)n / sum;
}

void calls_report(const struct workload *w, const struct contender *contender, const double *calls)
{
    const size_t n = w->timed / w->block;
    size_t worst = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += calls[i];
        if (calls[i] > calls[worst]) worst = i;
    }
    fprintf(stderr, "%s: %s: p99.9 %.2f times the mean call, worst %.2f times, at frame %zu\n",
            w->name, contender->name, calls_flatness(calls, n), calls[worst] * (double)n / sum,
            worst * w->block);
}

bool calls_write(const char *folder, const struct workload *w, const struct contender *contender,
                 const double *calls)
{
    char name[64], path[512];
    snprintf(name, sizeof name, contender->threads > 1 ? "%s-%d-threads" : "%s", contender->name,
             contender->threads);
    for (char *slash = name; (slash = strchr(slash, '/')) != NULL;) *slash = '-';
    snprintf(path, sizeof path, "%s/%s.%s.csv", folder, w->name, name);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        fprintf(stderr, "%s: %s\n", folder, strerror(errno));
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return false;
    }
    fprintf(file, "frame,seconds\n");
    for (size_t i = 0; i < w->timed / w->block; i++)
        fprintf(file, "%zu,%.4g\n", i * w->block, calls[i]);
    bool written = !ferror(file);
    if ((fclose(file) == 0) & written) return true;
    fprintf(stderr, "%s: write failed\n", path);
    return false;
}
