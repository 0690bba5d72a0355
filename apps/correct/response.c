// SPDX-License-Identifier: MIT
// `partita response`: measured responses are cut, windowed, smoothed, combined and converted.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "chart.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "io/frames.h"
#include "spectrum.h"

enum { FADED_PART = 4 }; // of what --gate keeps, the last quarter fades out

struct job {
    struct settings settings;
    struct measured *files;
    size_t n_files;
    struct measured out;
    struct fault log;
};

// The largest sample of all channels, and its frame.
static double level_of(const struct measured *m, size_t *ret_frame)
{
    const size_t at = frames_peak(m->samples, m->channels * m->frames);
    *ret_frame = at % m->frames;
    return fabs(m->samples[at]);
}

// Takes other samples in place of those of `m`.
static bool take(struct measured *m, double *samples, size_t frames, struct fault *fault)
{
    if (!samples) return memory_fault(fault, "%zu channels of %zu frames", m->channels, frames);
    memory_free(m->samples);
    m->samples = samples;
    m->frames = frames;
    return true;
}

// The frames from *first to *end - 1 in which a channel reaches a level.
static void trim(const struct measured *m, double level, ptrdiff_t *first, ptrdiff_t *end)
{
    *first = (ptrdiff_t)m->frames;
    *end = 0;
    for (size_t i = 0; i < m->channels * m->frames; i++) {
        const ptrdiff_t at = (ptrdiff_t)(i % m->frames);
        if (fabs(m->samples[i]) < level) continue;
        if (at < *first) *first = at;
        if (at >= *end) *end = at + 1;
    }
}

static bool cut(struct measured *m, const struct settings *s, const char *path, struct fault *fault)
{
    ptrdiff_t first = 0, end = (ptrdiff_t)m->frames;
    size_t peak;
    const double level = level_of(m, &peak);
    if (!isnan(s->trim)) trim(m, level * pow(10, s->trim / 20), &first, &end);
    if (s->align != NOT_GIVEN) first = (ptrdiff_t)peak - (ptrdiff_t)s->align;
    if (s->first != NOT_GIVEN) first += (ptrdiff_t)s->first;
    if (s->ir_length) end = first + (ptrdiff_t)s->ir_length;
    if (end <= first)
        return fault_set(fault, "--first %lld: nothing of %s is left", (long long)s->first, path);
    const size_t frames = (size_t)(end - first);
    double *const x = memory_allocate_zeros(m->channels * frames * sizeof *x);
    for (size_t i = 0; x && i < m->channels * frames; i++) {
        const ptrdiff_t from = (ptrdiff_t)(i % frames) + first;
        if (from >= 0 && from < (ptrdiff_t)m->frames)
            x[i] = m->samples[i / frames * m->frames + (size_t)from];
    }
    return take(m, x, frames, fault);
}

// The frames from `begin` to `end` fall as half a period of a cosine; what follows is silent.
static void fade(double *x, size_t n, size_t begin, size_t end)
{
    for (size_t i = begin; i < n; i++) {
        const double phase = (double)(i - begin + 1) / (double)(end - begin + 1);
        x[i] *= i < end ? 0.5 + 0.5 * cos(M_PI * phase) : 0;
    }
}

static void window(struct measured *m, const struct settings *s)
{
    const size_t n = m->frames, faded = (size_t)s->ir_fade < n ? (size_t)s->ir_fade : n;
    for (size_t c = 0; c < m->channels; c++) {
        double *const x = m->samples + c * n;
        const size_t gate = (size_t)s->gate, end = frames_peak(x, n) + gate;
        if (gate && end < n) fade(x, n, end - gate / FADED_PART, end);
        fade(x, n, n - faded, n);
    }
}

// The mean of n files from number `first` on, with --window and --smoothing, replaces `ret`.
static bool average(struct job *job, struct measured *ret, size_t first, size_t n,
                    struct fault *fault)
{
    struct partita_correction c = job->settings.correction;
    const struct measured *files = job->files + first;
    c.positions = n;
    c.rate = files->rate;
    c.low = fmin(20, c.rate / 100); // the range of equal power
    c.log = (struct partita_log){option_words_log, &job->log};
    c.allocator = memory_allocator();
    double *const rows = measured_rows(files, n, &c.frames);
    const size_t channels = ret->channels = files->channels;
    double *const x = memory_allocate(channels * c.frames * sizeof *x);
    enum partita_status status = rows && x ? PARTITA_OK : PARTITA_ERR_NOMEM;
    size_t done = 0;
    for (; status == PARTITA_OK && done < channels; done++)
        status = partita_correction_average(&c, rows + done * n * c.frames, x + done * c.frames);
    memory_free(rows);
    if (status == PARTITA_OK) return take(ret, x, c.frames, fault);
    memory_free(x);
    return measured_fail(&job->settings, status, &job->log,
                         first + (done ? done - 1 : 0) * job->n_files, fault);
}

static bool sum(const struct job *job, struct measured *ret, struct fault *fault)
{
    size_t frames, channels = ret->channels = job->files->channels;
    double *const rows = measured_rows(job->files, job->n_files, &frames);
    for (size_t i = 0; rows && i < channels * frames; i++) {
        const size_t c = i / frames, at = c * job->n_files * frames + i % frames;
        double total = 0;
        for (size_t f = 0; f < job->n_files; f++) total += rows[at + f * frames];
        rows[i] = total; // not behind what is still to be read
    }
    return take(ret, rows, frames, fault);
}

// One file after the other, from the first one on, which it takes.
static bool cascade(const struct job *job, struct measured *ret, struct fault *fault)
{
    const struct partita_options options = {.threads = 1, .allocator = memory_allocator()};
    *ret = *job->files;
    job->files->samples = NULL;
    for (size_t f = 1; f < job->n_files; f++) {
        const struct measured *m = &job->files[f];
        const size_t frames = ret->frames + m->frames - 1;
        double *x = memory_allocate(ret->channels * frames * sizeof *x);
        for (size_t c = 0; x && c < ret->channels; c++) {
            if (!partita_convolve(PARTITA_F64, x + c * frames, ret->samples + c * ret->frames,
                                  ret->frames, m->samples + c * m->frames, m->frames, NULL,
                                  &options))
                continue;
            memory_free(x);
            x = NULL;
        }
        if (!take(ret, x, frames, fault)) return false;
    }
    return true;
}

// The channels of all files, one file after the other.
static bool stack(const struct job *job, struct measured *ret, struct fault *fault)
{
    size_t frames = 0;
    for (size_t f = 0; f < job->n_files; f++) {
        ret->channels += job->files[f].channels;
        if (job->files[f].frames > frames) frames = job->files[f].frames;
    }
    double *const x = memory_allocate_zeros(ret->channels * frames * sizeof *x);
    double *to = x;
    for (size_t f = 0; x && f < job->n_files; f++)
        for (size_t c = 0; c < job->files[f].channels; c++, to += frames)
            memcpy(to, job->files[f].samples + c * job->files[f].frames,
                   job->files[f].frames * sizeof *x);
    return take(ret, x, frames, fault);
}

static bool combine(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const bool smooths = s->correction.window > 0 || s->correction.smoothing > 0;
    job->out.rate = job->files->rate;
    if (s->combine == COMBINE_AVERAGE && (smooths || job->n_files > 1))
        return average(job, &job->out, 0, job->n_files, fault);
    for (size_t f = 0; smooths && f < job->n_files; f++)
        if (!average(job, &job->files[f], f, 1, fault)) return false;
    if (s->combine == COMBINE_CASCADE) return cascade(job, &job->out, fault);
    if (s->combine == COMBINE_CHANNELS) return stack(job, &job->out, fault);
    return sum(job, &job->out, fault);
}

static bool change(struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    struct measured *m = &job->out;
    for (size_t c = 0; s->minimum_phase && c < m->channels; c++)
        if (!spectrum_minimum_phase(m->samples + c * m->frames, m->frames, fault)) return false;
    size_t peak;
    const double level = level_of(m, &peak);
    if (!(level > 0)) return fault_set(fault, "%s: the response is silent", s->files[0]);
    if (!isnan(s->normalize))
        samples_scale(m->samples, m->channels * m->frames, true,
                      pow(10, s->normalize / 20) / level);
    return true;
}

static bool write_response(const struct job *job, struct fault *fault)
{
    const struct measured *m = &job->out;
    const char *out = job->settings.files[job->n_files];
    struct points points;
    if (!measured_is_table(out)) return measured_write(m, &job->settings, out, fault);
    if (m->channels > 1)
        return fault_set(fault, "%s: a text has one channel, and the response %zu; use .wav", out,
                         m->channels);
    const bool good = spectrum_points(&points, m->rate, m->samples, m->frames,
                                      frames_peak(m->samples, m->frames), fault) &&
                      points_write(&points, out, fault);
    points_release(&points);
    return good;
}

static bool finish(const struct job *job, struct fault *fault)
{
    const struct settings *s = &job->settings;
    const struct measured *m = &job->out;
    size_t peak;
    const double level = level_of(m, &peak);
    FILE *to = strcmp(s->files[job->n_files], "-") == 0 ? stderr : stdout;
    const struct chart chart = {
        .taps = m->samples, .channels = m->channels, .n = m->frames, .rate = m->rate};
    if (s->plot && !chart_write(&chart, s->plot, fault)) return false;
    if (!s->quiet)
        fprintf(to, "%zu channel%s of %zu frame%s, peak %.4g at frame %zu, %.3f ms\n", m->channels,
                m->channels == 1 ? "" : "s", m->frames, m->frames == 1 ? "" : "s", level, peak,
                1e3 * (double)peak / m->rate);
    for (size_t i = 0; i < job->n_files; i++) measured_warn(&job->files[i], s);
    if (ferror(to)) return fault_set(fault, "standard output: cannot write");
    return write_response(job, fault);
}

int response_main(const struct settings *settings, struct fault *fault)
{
    struct job job = {.settings = *settings};
    struct settings *s = &job.settings;
    job.files = calloc((size_t)s->n_operands, sizeof *job.files);
    bool good = (job.files || fault_set(fault, "out of memory")) &&
                measured_load_all(job.files, &job.n_files, s, fault) &&
                options_resolve_times(s, job.files->rate, fault);
    for (size_t i = 0; good && i < job.n_files; i++) {
        good = cut(&job.files[i], s, s->files[i], fault);
        if (good) window(&job.files[i], s);
    }
    good = good && combine(&job, fault) && change(&job, fault) && finish(&job, fault);
    for (size_t i = 0; job.files && i <= job.n_files; i++) measured_release(&job.files[i]);
    free(job.files);
    measured_release(&job.out);
    return good ? EXIT_DONE : EXIT_FAILED;
}
