// SPDX-License-Identifier: MIT
// `partita plan`: explains the planner's choice for a filter, and calibrates the cost model for
// later runs.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "base/sample_type.h"
#include "commands.h"
#include "engine_name.h"
#include "option_words.h"
#include "plan/work.h"
#include "range.h"
#include "report.h"
#include "wisdom_file.h"

static struct partita_problem plan_problem(const struct settings *s)
{
    // In the order of the words of --type.
    static const enum partita_type types[] = {PARTITA_F32, PARTITA_F64, PARTITA_CF32, PARTITA_CF64};
    size_t in = s->channels ? (size_t)s->channels : 1,
           out = s->out_channels ? (size_t)s->out_channels : in;
    const size_t default_groups = in == out ? in : 1;
    const enum partita_type signal = types[s->type],
                            real = type_is_double(signal) ? PARTITA_F64 : PARTITA_F32;
    struct partita_problem problem = {
        .signal = signal,
        .taps = s->taps_type ? real : signal,
        .in_channels = in,
        .out_channels = out,
        .groups = s->groups ? (size_t)s->groups : default_groups,
        .kernel = {(size_t)s->taps},
        .stride = {(size_t)s->stride},
        .up = (size_t)s->up,
        .size = {s->size ? (size_t)s->size : PARTITA_UNBOUNDED},
    };
    if (s->size) {
        const struct range range = range_of(s, s->taps, s->size);
        const int64_t after = range.end_counts_from_n ? 0 : s->size * s->up;
        problem.pad_begin[0] = (ptrdiff_t)(s->taps - 1 - range.begin);
        problem.pad_end[0] = (ptrdiff_t)(range.end - after);
    } else {
        problem.block = (size_t)s->block;
        problem.whole_blocks = s->whole_blocks;
        // --block alone means a live filter, which must not add latency.
        problem.latency = s->block ? 0 : PARTITA_UNBOUNDED;
        if (s->latency != NOT_GIVEN) problem.latency = (size_t)s->latency;
    }
    return problem;
}

// "TAPS,SIGNAL"
static bool parse_parts(const struct settings *s, struct partita_parts *ret, struct fault *fault)
{
    long long taps, signal;
    char rest;
    if (!s->parts) return true;
    if (sscanf(s->parts, "%lld,%lld%c", &taps, &signal, &rest) != 2 || taps < 1 || signal < 1)
        return fault_set(fault, "--parts %s: is not two sizes such as 6,12", s->parts);
    *ret = (struct partita_parts){.taps = (size_t)taps, .signal = (size_t)signal};
    return true;
}

static bool plan_check_usage(const struct settings *s, struct fault *fault)
{
    struct partita_parts ignored;
    if (!s->size && (s->parts || s->first != NOT_GIVEN || s->last != NOT_GIVEN))
        return fault_set(fault,
                         "--parts, --first and --last need the length of the signal; add --size");
    if (s->table && (!s->size || s->up > 1 || s->json || s->engine))
        return fault_set(fault,
                         "--table needs --size, and does not go with --engine, --up or --json");
    if (s->parts && s->engine && !strstr(s->engine, "blocks"))
        return fault_set(fault, "--parts: of cpu/blocks and cuda/blocks, not of --engine %.80s",
                         s->engine);
    return engine_check(s, fault) && range_check(s, fault) && parse_parts(s, &ignored, fault);
}

// The result in one sentence.
static void print_summary(const struct settings *s, const struct partita_plan *plan)
{
    struct partita_load load;
    printf("%s: ", partita_plan_engine(plan, PARTITA_FORWARD));
    if (partita_plan_load(plan, &load) != PARTITA_OK) {
        printf("the whole signal in one call\n");
        return;
    }
    const size_t latency = partita_plan_latency(plan);
    if (s->block)
        printf("a call of %zu frames takes about %.3g us on average and %.3g us at most",
               load.frames, load.mean * 1e6, load.worst * 1e6);
    else printf("a frame takes about %.3g ns", load.mean * 1e9 / (double)load.frames);
    if (latency) printf("; the output is delayed by %zu frames\n", latency);
    else printf("; the output is not delayed\n");
}

// The explanation. Engines that cannot be used are only counted, unless --verbose.
static void print_explanation(const struct settings *s, char *text)
{
    int n_unusable = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const bool unusable = strstr(line, " no: ") != NULL;
        n_unusable += unusable;
        if (!unusable || s->verbose) printf("%s\n", line);
    }
    if (n_unusable && !s->verbose)
        printf("  %d more engines cannot be used; --verbose says why\n", n_unusable);
}

// Times are null for a plan of a whole signal.
static bool print_json(const struct partita_plan *plan, char *text)
{
    struct partita_load load;
    json_t *j = json_report("partita-plan/1", command_rows[COMMAND_PLAN].name);
    json_t *lines = json_array(), *call = json_null();
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        json_array_append_new(lines, json_text(line));
    if (partita_plan_load(plan, &load) == PARTITA_OK)
        call = json_pack("{s:I, s:f, s:f}", "frames", (json_int_t)load.frames, "mean", load.mean,
                         "worst", load.worst);
    json_object_set_new(j, "engine", json_text(partita_plan_engine(plan, PARTITA_FORWARD)));
    json_object_set_new(j, "latency_frames", json_integer((json_int_t)partita_plan_latency(plan)));
    json_object_set_new(j, "workspace_bytes",
                        json_integer((json_int_t)partita_plan_workspace(plan, PARTITA_FORWARD)));
    json_object_set_new(j, "call", call);
    json_object_set_new(j, "explanation", lines);
    return json_print(j, stdout);
}

static bool print_plan(const struct settings *s, struct partita_wisdom *wisdom, struct fault *fault)
{
    struct partita_problem problem = plan_problem(s);
    char name[ENGINE_NAME_SIZE];
    struct fault log = {.text = ""};
    struct partita_options options = {
        .device = s->device,
        .engine = s->parts && !s->engine ? "cpu/blocks" : engine_name(s->engine, name),
        .effort = s->measure ? PARTITA_MEASURE : PARTITA_ESTIMATE,
        .threads = (int)s->threads,
        .directions = PARTITA_FORWARD,
        .wisdom = wisdom,
        .allocator = memory_allocator(),
        .log = {option_words_log, &log},
    };
    struct partita_plan *plan;
    if (!parse_parts(s, &options.parts, fault)) return false;
    enum partita_status status = partita_plan_create(&problem, &options, &plan);
    if (status) {
        const struct fault said = log;
        if (engine_needs_bounds(log.text) && !s->size) fault_set(&log, "%s; add --size", said.text);
        return option_words_of_status(fault, COMMAND_PLAN, status, &log);
    }
    char *text = report_plan(plan);
    bool good = text || fault_set(fault, "out of memory");
    if (good && s->json) {
        good = print_json(plan, text) || fault_set(fault, "cannot write the JSON");
    } else if (good) {
        print_summary(s, plan);
        print_explanation(s, text);
    }
    free(text);
    partita_plan_destroy(plan);
    return good;
}

// One row: an engine's work on one thread, or why it does not compute the problem.
static bool print_work(const struct settings *s, const char *engine, struct fault *fault)
{
    const struct partita_problem problem = plan_problem(s);
    struct fault log = {.text = ""};
    struct partita_options options = {.device = s->device,
                                      .engine = engine,
                                      .threads = 1,
                                      .directions = PARTITA_FORWARD,
                                      .allocator = memory_allocator(),
                                      .log = {option_words_log, &log}};
    struct partita_plan *plan = NULL;
    struct block_work work;
    if (strstr(engine, "blocks") && !parse_parts(s, &options.parts, fault)) return false;
    if (partita_plan_create(&problem, &options, &plan) != PARTITA_OK) {
        printf("%-28s no: %s\n", engine, log.text);
        return true;
    }
    char *text = report_plan(plan);
    const bool good = text && block_work_count(&problem, engine, text, &work);
    if (good)
        printf("%-28s %9zu %9zu %5zu %11zu %13.0f %13.0f\n", engine, work.groups, work.size,
               work.steps, partita_plan_workspace(plan, PARTITA_FORWARD), work.reads, work.writes);
    free(text);
    partita_plan_destroy(plan);
    return good || fault_set(fault, text ? "%s: has no blocks" : "out of memory", engine);
}

static bool print_table(const struct settings *s, struct fault *fault)
{
    static const char *const engines[2][4] = {
        {"cpu/overlap-save", "cpu/overlap-add:steps", "cpu/overlap-add:3-steps",
         "cpu/overlap-add:4-steps"},
        {"cuda/overlap-save", "cuda/overlap-add:2-steps", "cuda/overlap-add:3-steps"}};
    static const char *const imposed[2][2] = {
        {"cpu/blocks:divisions", "cpu/blocks:private-divisions"}, {"cuda/blocks"}};
    const bool cuda = s->device && strncmp(s->device, "cuda", 4) == 0;
    printf("%-28s %9s %9s %5s %11s %13s %13s\n", "engine", "groups", "samples", "steps",
           "workspace", "reads", "writes");
    for (int i = 0; i < 4 && engines[cuda][i]; i++)
        if (!print_work(s, engines[cuda][i], fault)) return false;
    for (int i = 0; i < 2 && s->parts && imposed[cuda][i]; i++)
        if (!print_work(s, imposed[cuda][i], fault)) return false;
    return true;
}

static bool plan_run(const struct settings *s, struct partita_wisdom *wisdom, struct fault *fault)
{
    if (!wisdom) return fault_set(fault, "out of memory");
    if (s->calibrate) {
        enum partita_status status = partita_wisdom_calibrate(wisdom);
        if (status) return fault_set(fault, "calibration: %s", partita_status_string(status));
    }
    if (s->table) return print_table(s, fault);
    if (!print_plan(s, wisdom, fault)) return false;
    if (!s->calibrate && !s->measure) return true;
    char path[PATH_MAX];
    if (!wisdom_file_save(wisdom, path, fault)) return false;
    printf("stored in %s\n", path);
    return true;
}

int plan_main(const struct settings *settings, struct fault *fault)
{
    struct settings s = *settings;
    if (!options_resolve_times(&s, s.rate, fault) || !plan_check_usage(&s, fault))
        return EXIT_USAGE;
    struct partita_wisdom *wisdom = wisdom_file_load();
    bool good = plan_run(&s, wisdom, fault);
    partita_wisdom_destroy(wisdom);
    return good ? EXIT_DONE : EXIT_FAILED;
}
