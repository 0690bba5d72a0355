// SPDX-License-Identifier: MIT
// `partita pairs`: correlations of all pairs of signals, summed over windows. Memory holds a
// window, or of one long window a part with the lags around it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/interleave.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "convolve/usage.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/npy.h"

enum { CHUNK = 1 << 14, PART_SAMPLES = 1 << 24 }; // frames read at once; of all signals

struct job {
    struct settings settings;
    const char *out;
    struct audio_reader **in;
    size_t n_inputs, n, max_channels; // n: signals, which are the channels of all inputs
    size_t lag, window, part, pitch, n_windows;
    uint64_t frames;
    double rate;
    float *chunk, *x, *scaled; // x, scaled: [n][pitch]
    uint64_t from, to;         // frames in x
    size_t (*list)[2], n_pairs;
    struct partita_pairs *pairs;
    struct npy_array y;
    struct fault log;
};

static bool fail(const struct job *job, enum partita_status status, struct fault *fault)
{
    return option_words_of_status(fault, COMMAND_PAIRS, status, &job->log);
}

static bool check_input(const struct job *job, const char *path, struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(job->in[job->n_inputs - 1]),
                            *first = audio_reader_info(job->in[0]);
    if (info->encoding.is_complex)
        return fault_set(fault, "%s: has complex samples; those of pairs are real", path);
    if (info->frames == SIZE_UNKNOWN || !info->frames)
        return fault_set(fault, "%s: has no samples, or does not tell how many", path);
    const bool agree = !(info->rate > 0 && first->rate > 0) || rates_agree(info->rate, first->rate);
    if (!agree)
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
    job->in = calloc(n, sizeof(struct audio_reader *));
    if (!job->in) return fault_set(fault, "out of memory");
    for (size_t i = 0; i < n; i++) {
        const char *path = request.path = s->files[i];
        if (!temp_differs(job->out, &path, 1, fault) || !audio_check_regular(path, fault) ||
            !audio_open(&job->in[i], &request, fault))
            return false;
        job->n_inputs++;
        if (!check_input(job, path, fault)) return false;
        const size_t channels = audio_reader_info(job->in[i])->channels;
        job->n += channels;
        job->max_channels = channels > job->max_channels ? channels : job->max_channels;
    }
    job->frames = audio_reader_info(job->in[0])->frames;
    job->rate = audio_reader_info(job->in[0])->rate;
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
    job->part = PART_SAMPLES / job->n + 8 * job->lag;
    if (held || job->part > job->window) job->part = job->window;
    job->pitch = job->part + (held ? 0 : 2 * job->lag);
    const size_t bytes = job->n * job->pitch * sizeof *job->x;
    job->chunk = memory_allocate(CHUNK * job->max_channels * sizeof *job->chunk);
    job->x = memory_allocate(bytes);
    if (s->normalised) job->scaled = memory_allocate(bytes);
    return (job->chunk && job->x && (job->scaled || !s->normalised)) ||
           memory_fault(fault, "%zu frames of %zu signals", job->pitch, job->n);
}

// All pairs (i, j) with i <= j.
static bool make_pairs(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    job->n_pairs = job->n * (job->n + 1) / 2;
    job->list = calloc(job->n_pairs, sizeof *job->list);
    if (!job->list) return fault_set(fault, "out of memory for %zu pairs", job->n_pairs);
    for (size_t i = 0, p = 0; i < job->n; i++)
        for (size_t j = i; j < job->n; j++, p++) job->list[p][0] = i, job->list[p][1] = j;
    const struct partita_pairs_options options = {
        .signals = job->n,
        .max_lag = job->lag,
        .pairs = job->list[0],
        .n_pairs = job->n_pairs,
        .block = job->window < 4 * job->lag ? job->window : 0,
        .threads = (int)s->threads,
        .log = {option_words_log, &job->log},
        .allocator = memory_allocator(),
    };
    const enum partita_status status = partita_pairs_create(&options, &job->pairs);
    job->y =
        (struct npy_array){.name = job->out, .rank = 2, .shape = {job->n_pairs, 2 * job->lag + 1}};
    return status ? fail(job, status, fault) : npy_array_reserve(&job->y, fault);
}

// Makes x hold the frames from .. to - 1, none of which is before those that it holds.
static bool hold(struct job *job, uint64_t from, uint64_t to, struct fault *fault)
{
    float *row = job->x;
    for (size_t k = 0; k < job->n_inputs; k++) {
        const struct channel_rows rows = {.channels = audio_reader_info(job->in[k])->channels,
                                          .bytes = sizeof *row,
                                          .length = job->pitch};
        for (size_t c = 0; c < rows.channels; c++)
            memmove(row + c * job->pitch, row + c * job->pitch + (from - job->from),
                    (job->to - from) * sizeof *row);
        for (uint64_t at = job->to; at < to;) {
            size_t n = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
            if (!audio_read(job->in[k], PARTITA_F32, job->chunk, n, &n, fault)) return false;
            if (!n) return fault_set(fault, "%s", audio_shortfall(job->in[k]));
            frames_deinterleave(row + (at - from), job->chunk, &rows, n);
            at += n;
        }
        row += rows.channels * job->pitch;
    }
    job->from = from;
    job->to = to;
    return true;
}

// The window in x with the energy 1 for each signal; silence stays.
static const float *scale(struct job *job)
{
    const bool zero_mean = job->settings.normalised == NORMALISED_ZERO_MEAN;
    for (size_t i = 0; i < job->n; i++) {
        const float *x = job->x + i * job->pitch;
        double mean = 0, energy = 0;
        for (size_t k = 0; zero_mean && k < job->window; k++)
            mean += (double)x[k] / (double)job->window;
        for (size_t k = 0; k < job->window; k++)
            energy += ((double)x[k] - mean) * ((double)x[k] - mean);
        const double factor = energy > 0 ? 1 / sqrt(energy) : 1;
        for (size_t k = 0; k < job->window; k++)
            job->scaled[i * job->pitch + k] = (float)(((double)x[k] - mean) * factor);
    }
    return job->scaled;
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
            if (!hold(job, at - before, next + after, fault)) return false;
            const float *x = job->scaled ? scale(job) : job->x;
            const enum partita_status status =
                partita_pairs_add(job->pairs, x + before, job->pitch, before, next - at, after);
            if (status) return fail(job, status, fault);
        }
    }
    return true;
}

// A line for each row of OUT: its signals, and the lag of its largest result.
static void print_pairs(const struct job *job, FILE *to)
{
    const size_t lags = 2 * job->lag + 1;
    fprintf(to, "#  first   second          lag         seconds       value\n");
    for (size_t p = 0; p < job->n_pairs; p++) {
        const float *y = (const float *)job->y.samples + p * lags;
        size_t largest = 0;
        for (size_t k = 1; k < lags; k++)
            if (fabsf(y[k]) > fabsf(y[largest])) largest = k;
        const double lag = (double)largest - (double)job->lag;
        char seconds[32] = "-";
        if (job->rate > 0) snprintf(seconds, sizeof seconds, "%.9f", lag / job->rate);
        fprintf(to, "%8zu %8zu %12.0f %15s %11.6g\n", job->list[p][0], job->list[p][1], lag,
                seconds, (double)y[largest]);
    }
}

static bool run(struct job *job, struct fault *fault)
{
    if (!open_inputs(job, fault) || !choose_windows(job, fault) || !make_pairs(job, fault) ||
        !add_windows(job, fault))
        return false;
    const enum partita_status status =
        partita_pairs_read(job->pairs, job->y.samples, 1 / (double)job->n_windows);
    if (status) return fail(job, status, fault);
    if (!job->settings.quiet) print_pairs(job, is_standard(job->out) ? stderr : stdout);
    return npy_array_save(&job->y, job->out, fault);
}

int pairs_main(const struct settings *settings)
{
    struct job job = {.settings = *settings, .out = settings->files[settings->n_operands - 1]};
    struct fault fault;
    bool known, good = settings->max_lag != NOT_GIVEN;
    if (!good) fault_set(&fault, "needs --max-lag, for example --max-lag 500");
    else if (!temp_is_special(job.out) && container_of_name(job.out, &known) != CONTAINER_NPY)
        good = fault_set(&fault, "%s: results are an .npy array; its name ends in .npy", job.out);
    if (!good) return report_usage(COMMAND_PAIRS, &fault);
    interrupt_install();
    const bool done = run(&job, &fault);
    int status = done ? EXIT_DONE : report_fault(COMMAND_PAIRS, &fault, EXIT_FAILED);
    for (size_t i = 0; i < job.n_inputs; i++) {
        if (done && report_input(settings, job.in[i])) status = EXIT_DEGRADED;
        audio_reader_close(job.in[i]);
    }
    partita_pairs_destroy(job.pairs);
    npy_array_release(&job.y);
    memory_free(job.chunk);
    memory_free(job.x);
    memory_free(job.scaled);
    free(job.list);
    free(job.in);
    return report_close(COMMAND_PAIRS, status);
}
