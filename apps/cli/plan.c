// SPDX-License-Identifier: MIT
// `partita plan`: what the planner would do with a filter, and why; and the calibration that all
// later plans use.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "engine_name.h"
#include "option_words.h"
#include "range.h"
#include "report.h"
#include "wisdom_file.h"

static enum partita_type taps_type(const struct settings *s)
{
    enum partita_type signal = (enum partita_type)s->type;
    if (!s->taps_type) return signal;
    return signal == PARTITA_F64 || signal == PARTITA_CF64 ? PARTITA_F64 : PARTITA_F32;
}

static struct partita_problem describe(const struct settings *s)
{
    size_t in = s->channels ? (size_t)s->channels : 1,
           out = s->out_channels ? (size_t)s->out_channels : in;
    struct partita_problem problem = {
        .signal = (enum partita_type)s->type,
        .taps = taps_type(s),
        .op = s->correlate ? PARTITA_CORRELATE : PARTITA_CONVOLVE,
        .in_channels = in,
        .out_channels = out,
        .groups = s->groups   ? (size_t)s->groups
                  : in == out ? in
                              : 1,
        .kernel = {(size_t)s->taps},
        .stride = {(size_t)s->stride},
        .size = {s->size ? (size_t)s->size : PARTITA_UNBOUNDED},
    };
    if (s->size) {
        // Correlation counts lags, of which the first of the full result is -(taps - 1).
        const int64_t zero = s->correlate ? s->taps - 1 : 0;
        const int64_t first = s->first == NOT_GIVEN ? 0 : zero + s->first;
        const int64_t last = s->last == NOT_GIVEN ? s->size + s->taps - 1 : zero + s->last;
        problem.pad_begin[0] = (ptrdiff_t)(s->taps - 1 - first);
        problem.pad_end[0] = (ptrdiff_t)(last - s->size);
    } else {
        problem.block = (size_t)s->block;
        problem.whole_blocks = s->whole_blocks;
        // A call of a given size is a live filter's: what it asks for is no delay at all.
        problem.latency = s->latency != NOT_GIVEN ? (size_t)s->latency
                          : s->block              ? 0
                                                  : PARTITA_UNBOUNDED;
    }
    return problem;
}

static bool remember(const struct partita_wisdom *wisdom, struct fault *fault)
{
    char path[PATH_MAX];
    if (!wisdom_file_save(wisdom, path, fault)) return false;
    printf("remembered in %s\n", path);
    return true;
}

static void keep_line(void *user, const char *text)
{
    fault_set(user, "%s", text);
}

// "TAPS,SIGNAL"
static bool parse_parts(const struct settings *s, struct partita_parts *ret, struct fault *fault)
{
    long long taps, signal;
    char behind;
    if (!s->parts) return true;
    if (sscanf(s->parts, "%lld,%lld%c", &taps, &signal, &behind) != 2 || taps < 1 || signal < 1)
        return fault_set(fault, "--parts %s: is not two sizes such as 6,12", s->parts);
    *ret = (struct partita_parts){.taps = (size_t)taps, .signal = (size_t)signal};
    return true;
}

static bool check(const struct settings *s, struct fault *fault)
{
    struct partita_parts ignored;
    if (!s->size && (s->parts || s->first != NOT_GIVEN || s->last != NOT_GIVEN))
        return fault_set(fault, "--parts, --first and --last are for a signal; say --size too");
    return engine_check(s, fault) && range_check(s, fault) && parse_parts(s, &ignored, fault);
}

static bool print_plan(const struct settings *s, struct partita_wisdom *wisdom, struct fault *fault)
{
    struct partita_problem problem = describe(s);
    char name[ENGINE_NAME_SIZE];
    struct fault detail = {{0}};
    struct partita_options options = {
        .device = s->device,
        .engine = s->parts && !s->engine ? "cpu/blocks" : engine_name(s->engine, name),
        .effort = s->measure ? PARTITA_MEASURE : PARTITA_ESTIMATE,
        .threads = (int)s->threads,
        .directions = PARTITA_FORWARD,
        .wisdom = wisdom,
        .log = {keep_line, &detail},
    };
    struct partita_plan *plan;
    if (!parse_parts(s, &options.parts, fault)) return false;
    enum partita_status status = partita_plan_create(&problem, &options, &plan);
    if (status) {
        fault_set(fault, "%s%s%s%s", partita_status_string(status), *detail.text ? ": " : "",
                  detail.text, engine_needs_bounds(detail.text) && !s->size ? "; say --size" : "");
        return option_words(COMMAND_PLAN, fault);
    }
    char *text = report_plan(plan);
    if (text) fputs(text, stdout);
    free(text);
    partita_plan_destroy(plan);
    return text || fault_set(fault, "out of memory");
}

static bool run(const struct settings *s, struct partita_wisdom *wisdom, struct fault *fault)
{
    if (!wisdom) return fault_set(fault, "out of memory");
    if (s->calibrate) {
        enum partita_status status = partita_wisdom_calibrate(wisdom);
        if (status) return fault_set(fault, "calibration: %s", partita_status_string(status));
    }
    if (!print_plan(s, wisdom, fault)) return false;
    return !(s->calibrate || s->measure) || remember(wisdom, fault);
}

int plan_main(const struct settings *settings)
{
    struct fault fault;
    if (!check(settings, &fault)) return report_usage(COMMAND_PLAN, &fault);
    struct partita_wisdom *wisdom = wisdom_file_load();
    bool good = run(settings, wisdom, &fault);
    partita_wisdom_destroy(wisdom);
    return report_close(COMMAND_PLAN,
                        good ? EXIT_DONE : report_fault(COMMAND_PLAN, &fault, EXIT_FAILED));
}
