// SPDX-License-Identifier: MIT
// `partita pairs`: correlations of pairs of signals, stacked over windows. Memory holds a window,
// or of one long window a part with the lags around it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "config/words.h"
#include "convolve/usage.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/npy.h"
#include "signals.h"

enum { PART_SAMPLES = 1 << 24 }; // of all signals

struct job {
    struct settings settings;
    const char *out;
    struct signals signals; // the channels of all inputs
    size_t lag, window, part, n_windows;
    uint64_t frames;
    double rate;
    float *scaled; // as the rows of signals
    size_t (*list)[2], n_pairs, n_results;
    struct partita_pairs *pairs;
    struct npy_array y;
    // Phase-weighted: results of a window, their Hilbert transform, sums of cosines and sines.
    float *phases[4];
    struct partita_plan *hilbert;
    struct partita_filter *hilbert_taps;
    struct fault log;
};

static bool succeeded(const struct job *job, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_PAIRS, status, &job->log);
}

static bool check_input(const struct job *job, const char *path, struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(job->signals.in[job->signals.n_in - 1]),
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

static bool open_inputs(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const size_t n = (size_t)s->n_operands - 1;
    struct audio_request request = {
        .max_channels = options_max_channels(s), .rate = s->rate, .wake_fd = -1};
    struct signals *signals = &job->signals;
    signals->in = calloc(n, sizeof(struct audio_reader *));
    if (!signals->in) return fault_set(fault, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const char *path = request.path = s->files[i];
        if (!temp_differs(job->out, &path, 1, fault) || !audio_check_regular(path, fault) ||
            !audio_open(&signals->in[i], &request, fault))
            return false;
        signals->n_in++;
        if (!check_input(job, path, fault)) return false;
        signals->n += audio_reader_info(signals->in[i])->channels;
    }
    job->frames = audio_reader_info(signals->in[0])->frames;
    job->rate = audio_reader_info(signals->in[0])->rate;
    return options_resolve_times(&job->settings, job->rate, fault);
}

static bool choose_windows(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const bool held = s->window || s->normalised; // a window at once
    job->lag = (size_t)s->max_lag;
    job->window = s->window ? (size_t)s->window : job->frames;
    const char *option = job->window > job->frames           ? "window"
                         : job->lag >= job->window           ? "max-lag"
                         : (size_t)s->overlap >= job->window ? "overlap"
                                                             : NULL;
    if (option)
        return fault_set(fault, "--%s: must be below the %zu frames of a window; %s has %llu",
                         option, job->window, s->files[0], (unsigned long long)job->frames);
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

// The Hilbert transform of the results of each pair, which are taken as a period. The spectrum of
// these taps, an odd number, is -i at frequencies above 0, i below, and 0 at 0.
static bool make_hilbert(struct job *job, struct fault *fault)
{
    const size_t n = 2 * job->lag + 1;
    const struct partita_problem problem = {.batch = job->n_pairs,
                                            .kernel = {n},
                                            .size = {n},
                                            .pad_begin = {(ptrdiff_t)n - 1},
                                            .boundary = PARTITA_BOUNDARY_WRAP};
    const struct partita_options options = {.threads = (int)job->settings.threads,
                                            .directions = PARTITA_FORWARD,
                                            .log = {option_words_log, &job->log},
                                            .allocator = memory_allocator()};
    float *taps = job->phases[0]; // for a moment
    for (size_t i = 0; i < n; i++) {
        const double angle = M_PI * (double)i / (double)n;
        taps[i] = i ? (float)((cos(angle) - (i % 2 ? -1 : 1)) / ((double)n * sin(angle))) : 0;
    }
    return succeeded(job, partita_plan_create(&problem, &options, &job->hilbert), fault) &&
           succeeded(job, partita_filter_create(job->hilbert, taps, &job->hilbert_taps), fault);
}

static bool make_pairs(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    if (!list_pairs(job, fault)) return false;
    const struct partita_pairs_options options = {
        .signals = job->signals.n,
        .max_lag = job->lag,
        .pairs = job->list[0],
        .n_pairs = job->n_pairs,
        .block = job->window < 4 * job->lag ? job->window : 0,
        .threads = (int)s->threads,
        .log = {option_words_log, &job->log},
        .allocator = memory_allocator(),
    };
    const size_t lags = 2 * job->lag + 1, step = job->window - (size_t)s->overlap;
    job->n_results = job->n_pairs * lags;
    job->y = (struct npy_array){.name = job->out, .rank = 2, .shape = {job->n_pairs, lags, lags}};
    if (s->stack == STACK_NONE) { // [windows][pairs][lags]
        job->y.rank = 3;
        job->y.shape[0] = (job->frames - job->window) / step + 1;
        job->y.shape[1] = job->n_pairs;
    }
    if (!succeeded(job, partita_pairs_create(&options, &job->pairs), fault)) return false;
    if (!npy_array_reserve(&job->y, fault) || s->stack != STACK_PHASE_WEIGHTED)
        return job->y.samples;
    const size_t bytes = job->n_results * sizeof(float);
    memset(job->y.samples, 0, bytes);
    for (int i = 0; i < 4; i++)
        if (!(job->phases[i] = memory_allocate_zeros(bytes)))
            return memory_fault(fault, "phases of %zu pairs", job->n_pairs);
    return make_hilbert(job, fault);
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

// Adds the results of a window to OUT, and the phases of their analytic signals.
static bool add_phases(struct job *job, struct fault *fault)
{
    float *const *p = job->phases, *y = job->y.samples;
    if (!succeeded(job, partita_pairs_read(job->pairs, p[0], 1), fault) ||
        !succeeded(job, partita_forward(job->hilbert, job->hilbert_taps, p[1], p[0], NULL), fault))
        return false;
    for (size_t i = 0; i < job->n_results; i++) {
        const float size = hypotf(p[0][i], p[1][i]);
        y[i] += p[0][i];
        p[2][i] += size > 0 ? p[0][i] / size : 0;
        p[3][i] += size > 0 ? p[1][i] / size : 0;
    }
    return true;
}

// OUT: the mean of windows, times the square of that of their phases.
static bool read_results(struct job *job, struct fault *fault)
{
    float *const *p = job->phases, *y = job->y.samples, share = 1 / (float)job->n_windows;
    if (job->settings.stack == STACK_LINEAR)
        return succeeded(job, partita_pairs_read(job->pairs, y, 1 / (double)job->n_windows), fault);
    for (size_t i = 0; p[0] && i < job->n_results; i++)
        y[i] *= share * share * share * (p[2][i] * p[2][i] + p[3][i] * p[3][i]);
    return true;
}

static bool add_windows(struct job *job, struct fault *fault)
{
    const size_t step = job->window - (size_t)job->settings.overlap;
    for (uint64_t start = 0; start + job->window <= job->frames; start += step, job->n_windows++) {
        const uint64_t end = start + job->window;
        for (uint64_t at = start, next; at < end; at = next) {
            next = end - at < job->part ? end : at + job->part;
            const size_t before = at - start < job->lag ? at - start : job->lag,
                         after = end - next < job->lag ? end - next : job->lag;
            if (!signals_hold(&job->signals, at - before, next + after, fault)) return false;
            const float *x = job->scaled ? scale(job) : job->signals.x;
            if (!succeeded(job,
                           partita_pairs_add(job->pairs, x + before, job->signals.pitch, before,
                                             next - at, after),
                           fault))
                return false;
        }
        if (job->phases[0] && !add_phases(job, fault)) return false;
        if (job->settings.stack != STACK_NONE) continue;
        float *y = (float *)job->y.samples + job->n_windows * job->n_results;
        if (!succeeded(job, partita_pairs_read(job->pairs, y, 1), fault)) return false;
    }
    return true;
}

// For each row of OUT: its signals, and the lag of its largest result.
static bool print_pairs(const struct job *job, FILE *to)
{
    const size_t lags = 2 * job->lag + 1,
                 n = job->n_pairs * (job->settings.stack == STACK_NONE ? job->n_windows : 1);
    json_t *rows = job->settings.json ? json_array() : NULL;
    if (!rows) fprintf(to, "#  first   second          lag         seconds       value\n");
    for (size_t row = 0; row < n; row++) {
        const float *y = (const float *)job->y.samples + row * lags;
        const size_t *pair = job->list[row % job->n_pairs];
        size_t largest = 0;
        for (size_t k = 1; k < lags; k++)
            if (fabsf(y[k]) > fabsf(y[largest])) largest = k;
        const double lag = (double)largest - (double)job->lag;
        char seconds[32] = "-";
        if (job->rate > 0) snprintf(seconds, sizeof seconds, "%.9f", lag / job->rate);
        if (rows)
            json_array_append_new(
                rows, json_pack("{s:I, s:I, s:I, s:o, s:o}", "first", (json_int_t)pair[0], "second",
                                (json_int_t)pair[1], "lag", (json_int_t)lag, "seconds",
                                job->rate > 0 ? json_real(lag / job->rate) : json_null(), "value",
                                json_finite((double)y[largest])));
        else
            fprintf(to, "%8zu %8zu %12.0f %15s %11.6g\n", pair[0], pair[1], lag, seconds,
                    (double)y[largest]);
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
    bool known;
    if (s->max_lag == NOT_GIVEN)
        return fault_usage(fault, "needs --max-lag, for example --max-lag 500");
    if (!temp_is_special(job->out) && container_of_name(job->out, &known) != CONTAINER_NPY)
        return fault_usage(fault, "%s: results are an .npy array; its name ends in .npy", job->out);
    if (!open_inputs(job, fault) || !choose_windows(job, fault) || !make_pairs(job, fault) ||
        !add_windows(job, fault) || !read_results(job, fault))
        return false;
    if ((s->json || !s->quiet) && !print_pairs(job, is_standard(job->out) ? stderr : stdout))
        return fault_set(fault, "cannot write the JSON");
    return npy_array_save(&job->y, job->out, fault);
}

int pairs_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings, .out = settings->files[settings->n_operands - 1]};
    const bool done = run(&job, fault);
    int status = done ? EXIT_DONE : EXIT_FAILED;
    for (size_t i = 0; done && i < job.signals.n_in; i++)
        if (report_input(settings, job.signals.in[i])) status = EXIT_DEGRADED;
    signals_release(&job.signals);
    partita_pairs_destroy(job.pairs);
    partita_filter_destroy(job.hilbert_taps);
    partita_plan_destroy(job.hilbert);
    for (int i = 0; i < 4; i++) memory_free(job.phases[i]);
    npy_array_release(&job.y);
    memory_free(job.scaled);
    free(job.list);
    return status;
}
