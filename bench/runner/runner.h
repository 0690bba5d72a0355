// SPDX-License-Identifier: MIT
// The runner checks every contender against the oracle of a workload, then times them interleaved,
// repetition by repetition, so that drift of the machine affects all of them alike. It prints CSV
// on stdout, everything else on stderr.
#ifndef BENCH_RUNNER_H
#define BENCH_RUNNER_H

#include <stdio.h>

#include "workloads/workload.h"

struct contender;

// Makes the contender ready for a workload: fills state, pass, close, gate. Returns false when it
// cannot run this workload; `reason` then says why if that is worth telling.
typedef bool open_fn(struct contender *contender, const struct workload *w);

// Runs the whole workload once from a fresh state into w->y. Returns the seconds it took, without
// setting up the fresh state and without the first w->warm frames; NAN if it failed. `calls`, when
// not NULL, receives the seconds of each timed process call, w->timed / w->block of them.
typedef double pass_fn(void *state, const struct workload *w, double *calls);

// Copies the last result into w->y. Returns false if that fails.
typedef bool fetch_fn(void *state, struct workload *w);

// Filters the block of frames that begins at `at`.
typedef void call_fn(void *state, const struct workload *w, size_t at);

// An implementation that can run workloads: an engine of ours or a peer.
struct contender {
    const char *name;   // in the CSV
    const char *engine; // ours: the engine to force, NULL for the planner's choice
    const char *device; // ours: NULL for the CPU
    int threads;
    double error_budget; // ours [none]
    open_fn *open;
    // Set by open:
    void *state;
    pass_fn *pass;
    fetch_fn *fetch; // NULL: the last result is in w->y already
    // fetch copies the samples of oracle_positions alone, and open removed the result of others:
    // w->y need not be cleared.
    bool fetches_samples;
    void (*close)(void *state);
    double gate;  // largest relative L2 error of a right answer; 0: produces no samples
    size_t delay; // y[0] is sample -delay of the result
    size_t bytes; // resident outside this program's heap, and workspace; the runner adds the heap
    char reason[160];
};

// What was measured of one contender.
struct result {
    const char *name;
    double min_ns; // an item, over all repetitions
};

// Takes the results of one case.
typedef void report_fn(const struct workload *w, const struct result *results, size_t n);

// What one program measures.
struct suite {
    const char *program;
    const struct workload *cases;
    size_t n_cases;
    const struct contender *contenders; // tried on every case, in this order
    size_t n_contenders;
    void (*prepare)(void); // called before the first case [NULL]
    bool per_call;         // also take the time of every single call:
    bool raw;              // that of the last pass; else the minimum over all passes
    int repetitions;       // rounds; there are more while the medians of a case are unsettled
    // Seconds: a contender is timed by its first passes only, if three took longer, or one took ten
    // times as long [no limit].
    double max_pass;
    double max_behind; // likewise, if it took so many times the fastest contender's [no limit]
    // Seconds of untimed passes, with a second first pass: a device loads code on its first use and
    // raises its clock under load [none].
    double warm_up;
    int thread_counts[2]; // rows of contenders with threads 0; {1, 0}: only one thread
    report_fn *report;    // called after each case [NULL]
};

// What the command line asks for.
struct bench_options {
    const char *cases, *contenders; // patterns (fnmatch) of names [NULL: all]
    const char *calls;              // folder for the times of single calls [NULL: none]
    int threads;
    bool list, all, quick;
};

// Parses --list, --all, --case, --contender, --threads, --quick, --calls. Returns false, with a
// message, for anything else.
bool bench_options_parse(struct bench_options *ret, int argc, char **argv, const char *program);

// Whether a name is meant by a pattern; NULL means all.
bool bench_matches(const char *pattern, const char *name);

// Parses the options and runs the suite. Returns the exit status: 0, 1 if a contender gave a wrong
// answer or could not be run, 2 for usage.
int bench_main(int argc, char **argv, const struct suite *suite);

// The body of a stream's pass: all calls in order, the timed ones timed.
double bench_calls(const struct workload *w, double *calls, call_fn *call, void *state);

// The 99.9th percentile over the mean.
double calls_flatness(const double *calls, size_t n);

// Prints it and the worst call, whose place is the same in every run if the program is the cause.
void calls_report(const struct workload *w, const struct contender *contender, const double *calls);

// Writes the seconds of each call to FOLDER/CASE.CONTENDER.csv. Returns false, with a message, if
// that fails.
bool calls_write(const char *folder, const struct workload *w, const struct contender *contender,
                 const double *calls);

#endif
