// SPDX-License-Identifier: MIT
// `partita pairs`: correlations of pairs of signals, stacked over windows. Memory holds a window,
// or of one long window a part with the lags around it, and the results of a group of pairs in one
// window. Further groups read the inputs again.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/sizes.h"
#include "base/json_values.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "config/words.h"
#include "convolve/shard.h"
#include "convolve/usage.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/npy.h"
#include "signals.h"

enum { PART_SAMPLES = 1 << 24, HILBERT_ROWS = 64 }; // of all signals; transformed at once

// Of a row of OUT.
struct largest {
    uint32_t at;
    float value;
};

struct job {
    struct settings settings;
    const char *out;
    struct signals signals; // the channels of all inputs
    size_t lag, window, part, n_windows;
    uint64_t frames;
    double rate;
    float *scaled; // as the rows of signals
    size_t (*list)[2], n_pairs;
    struct npy_file file;
    struct largest *largest; // of all rows
    struct group {
        size_t n, n_results; // pairs
        struct partita_pairs *pairs;
        float *y; // results, or their sums
        // Phase-weighted: results of a window, their Hilbert transform, sums of cosines and sines.
        float *phases[4];
        struct partita_plan *hilbert;
        struct partita_filter *hilbert_taps;
    } group;
    size_t first; // pair of the group
    struct fault log;
};

static bool succeeded(const struct job *job, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_PAIRS, status, &job->log);
}

static bool check_input(const struct job *job, size_t i, struct fault *fault)
{
    const char *path = job->settings.files[i];
    const struct audio_info *info = audio_reader_info(job->signals.in[i]),
                            *first = audio_reader_info(job->signals.in[0]);
    if (info->encoding.is_complex)
        return fault_set(fault, "%s: has complex samples; those of pairs are real", path);
    if (info->frames == SIZE_UNKNOWN || !info->frames)
        return fault_set(fault, "%s: has no samples, or does not tell how many", path);
    if (info->rate > 0 && first->rate > 0 && !rates_agree(info->rate, first->rate))
        return fault_set(fault, "%s: has a rate of %.12g Hz, but %s one of %.12g Hz; convert one",
                         path, info->rate, job->settings.files[0], first->rate);
    return info->frames == first->frames ||
           fault_set(fault, "%s: has %llu frames, but %s %llu; cut the longer one", path,
                     (unsigned long long)info->frames, job->settings.files[0],
                     (unsigned long long)first->frames);
}

// Once more, to read the inputs again.
static bool open_inputs(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct audio_request request = {
        .max_channels = options_max_channels(s), .rate = s->rate, .wake_fd = -1};
    struct signals *signals = &job->signals;
    const size_t n = signals->n;
    signals->n = 0;
    signals->from = signals->to = 0;
    for (size_t i = 0; i < signals->n_in; i++) {
        const char *path = request.path = s->files[i];
        audio_reader_close(signals->in[i]);
        signals->in[i] = NULL;
        if (!temp_differs(job->out, &path, 1, fault) || !audio_check_regular(path, fault) ||
            !audio_open(&signals->in[i], &request, fault) || !check_input(job, i, fault))
            return false;
        signals->n += audio_reader_info(signals->in[i])->channels;
    }
    const uint64_t frames = audio_reader_info(signals->in[0])->frames;
    if (n && (signals->n != n || frames != job->frames))
        return fault_set(fault, "%s: changed while it was read", s->files[0]);
    job->frames = frames;
    job->rate = audio_reader_info(signals->in[0])->rate;
    return true;
}

static bool choose_windows(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const bool held = s->window || s->normalised; // a window at once
    if (!options_resolve_times(&job->settings, job->rate, fault)) return false;
    job->lag = (size_t)s->max_lag;
    job->window = s->window ? (size_t)s->window : job->frames;
    const char *option = job->lag >= job->window             ? "max-lag"
                         : (size_t)s->overlap >= job->window ? "overlap"
                                                             : NULL;
    if (job->window > job->frames)
        return fault_set(fault, "--window: has %zu frames, and %s only %llu", job->window,
                         s->files[0], (unsigned long long)job->frames);
    if (option)
        return fault_set(fault, "--%s: must be below the window's %zu frames", option, job->window);
    job->n_windows = (job->frames - job->window) / (job->window - (size_t)s->overlap) + 1;
    job->part = PART_SAMPLES / job->signals.n + 8 * job->lag;
    if (held || job->part > job->window) job->part = job->window;
    const size_t pitch = job->part + (held ? 0 : 2 * job->lag);
    if (!signals_reserve(&job->signals, pitch, fault) || !s->normalised) return job->signals.x;
    job->scaled = memory_allocate(job->signals.n * pitch * sizeof *job->scaled);
    return job->scaled || memory_fault(fault, "%zu frames of %zu signals", pitch, job->signals.n);
}

static bool add_pair(struct job *job, size_t i, size_t j, size_t *capacity, struct fault *fault)
{
    size_t(*grown)[2] = memory_append(job->list, job->n_pairs, capacity, sizeof *grown);
    if (!grown) return fault_set(fault, "out of memory for %zu pairs", job->n_pairs);
    job->list = grown;
    grown[job->n_pairs][0] = i;
    grown[job->n_pairs++][1] = j;
    return true;
}

// All pairs (i, j) with i <= j, or those of --list.
static bool list_pairs(struct job *job, struct fault *fault)
{
    const char *path = job->settings.list;
    size_t capacity = 0, i, j;
    struct lines lines = {.rest = path ? regular_read_text(path, fault) : NULL};
    char *text = lines.rest;
    bool good = text || !path;
    for (i = 0; !path && i < job->signals.n; i++)
        for (j = i; good && j < job->signals.n; j++) good = add_pair(job, i, j, &capacity, fault);
    for (char *line; good && (line = lines_next(&lines));) {
        int end = 0;
        line[strcspn(line, "#\r")] = 0;
        if (!line[strspn(line, " \t")]) continue;
        if (sscanf(line, "%zu%*[ \t,;]%zu %n", &i, &j, &end) < 2 || line[end] ||
            i >= job->signals.n || j >= job->signals.n)
            good = fault_set(fault, "%s: line %d: '%.40s' is not two numbers of signals, 0 to %zu",
                             path, lines.number, line, job->signals.n - 1);
        else good = add_pair(job, i, j, &capacity, fault);
    }
    free(text);
    if (!good || job->n_pairs) return good;
    return fault_set(fault, "%s: has no pairs; a line has two numbers", path);
}

// Leaves the pairs of --range, and reserves what is reported about them.
static bool choose_pairs(struct job *job, struct fault *fault)
{
    const char *range = job->settings.range;
    uint64_t k = 1, n = 1;
    if (range && (fault->usage = !shard_parse(range, &k, &n, fault))) return false;
    if (n > job->n_pairs)
        return fault_set(fault, "--range %s: there are only %zu pairs", range, job->n_pairs);
    const size_t first = job->n_pairs * (k - 1) / n, end = job->n_pairs * k / n;
    memmove(job->list, job->list + first, (end - first) * sizeof *job->list);
    job->n_pairs = end - first;
    const size_t rows = job->n_pairs * (job->settings.stack == STACK_NONE ? job->n_windows : 1);
    job->largest = memory_allocate(rows * sizeof *job->largest);
    return job->largest || memory_fault(fault, "the report of %zu rows", rows);
}

// The Hilbert transform of the results of each pair, which are taken as a period. The spectrum of
// these taps, an odd number, is -i at frequencies above 0, i below, and 0 at 0.
static bool make_hilbert(struct job *job, struct fault *fault)
{
    const size_t n = 2 * job->lag + 1;
    const struct partita_problem problem = {.batch = HILBERT_ROWS,
                                            .kernel = {n},
                                            .size = {n},
                                            .pad_begin = {(ptrdiff_t)n - 1},
                                            .boundary = PARTITA_BOUNDARY_WRAP};
    const struct partita_options options = {.threads = (int)job->settings.threads,
                                            .directions = PARTITA_FORWARD,
                                            .log = {option_words_log, &job->log},
                                            .allocator = memory_allocator()};
    struct group *g = &job->group;
    float *taps = g->phases[0]; // for a moment
    for (size_t i = 0; i < n; i++) {
        const double angle = M_PI * (double)i / (double)n;
        taps[i] = i ? (float)((cos(angle) - (i % 2 ? -1 : 1)) / ((double)n * sin(angle))) : 0;
    }
    return succeeded(job, partita_plan_create(&problem, &options, &g->hilbert), fault) &&
           succeeded(job, partita_filter_create(g->hilbert, taps, &g->hilbert_taps), fault);
}

static bool make_group(struct job *job, size_t n, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const struct partita_pairs_options options = {
        .signals = job->signals.n,
        .max_lag = job->lag,
        .pairs = job->list[job->first],
        .n_pairs = n,
        .block = job->window < 4 * job->lag ? job->window : 0,
        .threads = (int)s->threads,
        .log = {option_words_log, &job->log},
        .allocator = memory_allocator(),
    };
    // The Hilbert transform is one plan for any group, so that results have the same bits.
    const bool phases = s->stack == STACK_PHASE_WEIGHTED;
    const size_t lags = 2 * job->lag + 1, rows = size_round_up(n, phases ? HILBERT_ROWS : 1);
    struct group *g = &job->group;
    g->n = n;
    g->n_results = n * lags;
    if (!succeeded(job, partita_pairs_create(&options, &g->pairs), fault)) return false;
    g->y = memory_allocate_zeros((phases ? 5 : 1) * rows * lags * sizeof *g->y);
    for (size_t i = 0; g->y && phases && i < 4; i++) g->phases[i] = g->y + (i + 1) * rows * lags;
    if (!g->y) return memory_fault(fault, "results of %zu pairs", n);
    return !phases || make_hilbert(job, fault);
}

static void release_group(struct group *group)
{
    partita_pairs_destroy(group->pairs);
    partita_filter_destroy(group->hilbert_taps);
    partita_plan_destroy(group->hilbert);
    memory_free(group->y);
    *group = (struct group){0};
}

static bool create_output(struct job *job, struct fault *fault)
{
    const size_t lags = 2 * job->lag + 1, windows = job->n_windows;
    const bool kept = job->settings.stack == STACK_NONE;
    const struct npy_array stacked = {job->out, .rank = 2, .shape = {job->n_pairs, lags}},
                           all = {job->out, .rank = 3, .shape = {windows, job->n_pairs, lags}};
    if (kept && job->group.n < job->n_pairs && temp_is_special(job->out))
        return fault_set(fault,
                         "%s: memory holds the windows of %zu of %zu pairs, whose results only a "
                         "file takes; name one, or raise --max-memory",
                         job->out, job->group.n, job->n_pairs);
    return npy_file_create(&job->file, kept ? &all : &stacked, job->out, fault);
}

// The window in x with the energy 1 for each signal; silence stays.
static const float *scale(struct job *job)
{
    const bool zero_mean = job->settings.normalised == NORMALISED_ZERO_MEAN;
    const size_t pitch = job->signals.pitch;
    for (size_t i = 0; i < job->signals.n; i++) {
        const float *x = job->signals.x + i * pitch;
        double mean = 0, energy = 0;
        for (size_t k = 0; zero_mean && k < job->window; k++)
            mean += (double)x[k] / (double)job->window;
        for (size_t k = 0; k < job->window; k++)
            energy += ((double)x[k] - mean) * ((double)x[k] - mean);
        const double factor = energy > 0 ? 1 / sqrt(energy) : 1;
        for (size_t k = 0; k < job->window; k++)
            job->scaled[i * pitch + k] = (float)(((double)x[k] - mean) * factor);
    }
    return job->scaled;
}

// Adds the results of a window, and the phases of their analytic signals.
static bool add_phases(struct job *job, struct fault *fault)
{
    const struct group *g = &job->group;
    float *const *p = g->phases;
    const size_t step = HILBERT_ROWS * (2 * job->lag + 1);
    if (!succeeded(job, partita_pairs_read(g->pairs, p[0], 1), fault)) return false;
    for (size_t i = 0; i < g->n_results; i += step)
        if (!succeeded(job, partita_forward(g->hilbert, g->hilbert_taps, p[1] + i, p[0] + i, NULL),
                       fault))
            return false;
    for (size_t i = 0; i < g->n_results; i++) {
        const float size = hypotf(p[0][i], p[1][i]);
        g->y[i] += p[0][i];
        p[2][i] += size > 0 ? p[0][i] / size : 0;
        p[3][i] += size > 0 ? p[1][i] / size : 0;
    }
    return true;
}

// Of a window, or of the stack of all: the mean, or this times the square of that of their phases.
static bool write_results(struct job *job, size_t window, struct fault *fault)
{
    const struct group *g = &job->group;
    float *const *p = g->phases;
    const bool stacked = job->settings.stack != STACK_NONE;
    const double share = stacked ? 1 / (double)job->n_windows : 1;
    if (!p[0] && !succeeded(job, partita_pairs_read(g->pairs, g->y, share), fault)) return false;
    for (size_t i = 0; p[0] && i < g->n_results; i++)
        g->y[i] *= (float)(share * share * share) * (p[2][i] * p[2][i] + p[3][i] * p[3][i]);
    const size_t lags = 2 * job->lag + 1, row = window * job->n_pairs + job->first;
    for (size_t i = 0; i < g->n; i++) {
        const float *y = g->y + i * lags;
        size_t at = 0;
        for (size_t k = 1; k < lags; k++)
            if (fabsf(y[k]) > fabsf(y[at])) at = k;
        job->largest[row + i] = (struct largest){(uint32_t)at, y[at]};
    }
    return npy_file_write(&job->file, row * lags, g->y, g->n_results, fault);
}

static bool add_windows(struct job *job, struct fault *fault)
{
    const size_t step = job->window - (size_t)job->settings.overlap;
    const bool stacked = job->settings.stack != STACK_NONE;
    for (size_t i = 0; i < job->n_windows; i++) {
        const uint64_t start = i * step, end = start + job->window;
        for (uint64_t at = start, next; at < end; at = next) {
            next = end - at < job->part ? end : at + job->part;
            const size_t before = at - start < job->lag ? at - start : job->lag,
                         after = end - next < job->lag ? end - next : job->lag;
            if (!signals_hold(&job->signals, at - before, next + after, fault)) return false;
            const float *x = job->scaled ? scale(job) : job->signals.x;
            if (!succeeded(job,
                           partita_pairs_add(job->group.pairs, x + before, job->signals.pitch,
                                             before, next - at, after),
                           fault))
                return false;
        }
        if (job->group.phases[0] && !add_phases(job, fault)) return false;
        if (!stacked && !write_results(job, i, fault)) return false;
    }
    return !stacked || write_results(job, 0, fault);
}

// In groups of pairs that memory holds. Inputs of which the first frames are still held are not
// read again.
static bool correlate_groups(struct job *job, struct fault *fault)
{
    for (size_t max = job->n_pairs, n; job->first < job->n_pairs; job->first += n) {
        n = size_min(max, job->n_pairs - job->first);
        while (!make_group(job, n, fault)) {
            release_group(&job->group);
            if (n == 1) return false;
            *fault->text = 0;
            max = n = ceil_div(n, 2);
        }
        if (job->first == 0 && !create_output(job, fault)) return false;
        if (job->signals.from > 0 && !open_inputs(job, fault)) return false;
        if (!add_windows(job, fault)) return false;
        release_group(&job->group);
    }
    return true;
}

// For each row of OUT: its signals, and the lag of its largest result.
static bool print_pairs(const struct job *job, FILE *to)
{
    const size_t n = job->n_pairs * (job->settings.stack == STACK_NONE ? job->n_windows : 1);
    json_t *rows = job->settings.json ? json_array() : NULL;
    if (!rows) fprintf(to, "#  first   second          lag         seconds       value\n");
    for (size_t row = 0; row < n; row++) {
        const size_t *pair = job->list[row % job->n_pairs];
        const double lag = (double)job->largest[row].at - (double)job->lag,
                     value = (double)job->largest[row].value;
        char seconds[32] = "-";
        if (job->rate > 0) snprintf(seconds, sizeof seconds, "%.9f", lag / job->rate);
        if (rows)
            json_array_append_new(
                rows, json_pack("{s:I, s:I, s:I, s:o, s:o}", "first", (json_int_t)pair[0], "second",
                                (json_int_t)pair[1], "lag", (json_int_t)lag, "seconds",
                                job->rate > 0 ? json_real(lag / job->rate) : json_null(), "value",
                                json_finite(value)));
        else fprintf(to, "%8zu %8zu %12.0f %15s %11.6g\n", pair[0], pair[1], lag, seconds, value);
    }
    if (!rows) return true;
    json_t *report = json_report("partita-pairs/1", command_rows[COMMAND_PAIRS].name);
    json_object_set_new(report, "out", json_text(job->out));
    json_object_set_new(report, "windows", json_integer((json_int_t)job->n_windows));
    json_object_set_new(report, "pairs", rows);
    return json_print(report, to);
}

static bool run(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const size_t n_in = (size_t)s->n_operands - 1;
    bool known;
    if (s->max_lag == NOT_GIVEN)
        return fault_usage(fault, "needs --max-lag, for example --max-lag 500");
    if (!temp_is_special(job->out) && container_of_name(job->out, &known) != CONTAINER_NPY)
        return fault_usage(fault, "%s: results are an .npy array; its name ends in .npy", job->out);
    job->signals.in = calloc(n_in, sizeof(struct audio_reader *));
    if (!job->signals.in) return fault_set(fault, "out of memory");
    job->signals.n_in = n_in;
    if (!open_inputs(job, fault) || !choose_windows(job, fault) || !list_pairs(job, fault) ||
        !choose_pairs(job, fault) || !correlate_groups(job, fault))
        return false;
    if ((s->json || !s->quiet) && !print_pairs(job, is_standard(job->out) ? stderr : stdout))
        return fault_set(fault, "cannot write the JSON");
    return npy_file_finish(&job->file, fault);
}

int pairs_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings, .out = settings->files[settings->n_operands - 1]};
    const bool done = run(&job, fault);
    int status = done ? EXIT_DONE : EXIT_FAILED;
    for (size_t i = 0; done && i < job.signals.n_in; i++)
        if (report_input(settings, job.signals.in[i])) status = EXIT_DEGRADED;
    signals_release(&job.signals);
    release_group(&job.group);
    npy_file_discard(&job.file);
    memory_free(job.largest);
    memory_free(job.scaled);
    free(job.list);
    return status;
}
