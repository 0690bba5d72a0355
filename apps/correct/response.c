// SPDX-License-Identifier: MIT
// `partita response`: measured responses are cut, windowed, smoothed, combined and converted.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_values.h"
#include "base/memory.h"
#include "chart.h"
#include "cli/commands.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "io/frames.h"
#include "spectrum.h"

enum { FADED_PART = 4 }; // of what --gate keeps, the last quarter fades out

// Bands of a third of an octave around 10^(k / 10) Hz, 20 Hz to 20 kHz (IEC 61260). A second,
// within MAX_RESOLVED frames, has frequencies in all of them.
enum { FIRST_BAND = 13, LAST_BAND = 43, MAX_RESOLVED = 1 << 17 };

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

// The sum of all files, or their channels one file after the other.
static bool add(const struct job *job, struct measured *ret, bool side_by_side, struct fault *fault)
{
    size_t frames = 0, row = 0;
    for (size_t f = 0; f < job->n_files; f++) {
        const struct measured *m = &job->files[f];
        if (m->frames > frames) frames = m->frames;
        ret->channels = side_by_side ? ret->channels + m->channels : m->channels;
    }
    double *const x = memory_allocate_zeros(ret->channels * frames * sizeof *x);
    for (const struct measured *m = job->files; x && m < job->files + job->n_files; m++)
        for (size_t c = 0; c < m->channels; c++) {
            double *const to = x + (side_by_side ? row++ : c) * frames;
            for (size_t i = 0; i < m->frames; i++) to[i] += m->samples[c * m->frames + i];
        }
    return take(ret, x, frames, fault);
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
    return add(job, &job->out, s->combine == COMBINE_CHANNELS, fault);
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
    const bool good = spectrum_points(&points, m->rate, m->samples, m->frames, 0, fault) &&
                      points_write(&points, out, fault);
    points_release(&points);
    return good;
}

// Peak, level, delay and the mean power within each band below half the rate.
static bool list_channel(json_t *list, const struct measured *m, const double *x,
                         struct fault *fault)
{
    const size_t peak = frames_peak(x, m->frames), second = (size_t)fmin(m->rate, MAX_RESOLVED);
    struct points points;
    if (!spectrum_points(&points, m->rate, x, m->frames, second, fault)) {
        points_release(&points);
        return false;
    }
    json_t *const bands = json_array();
    const struct partita_design_point *p = points.list, *const last = p + points.n - 1;
    while (p < last && p->frequency < pow(10, (FIRST_BAND - 0.5) / 10)) p++;
    for (int k = FIRST_BAND; k <= LAST_BAND && pow(10, (k + 0.5) / 10) < m->rate / 2; k++) {
        double power = 0, n = 0;
        for (; p < last && p->frequency < pow(10, (k + 0.5) / 10); p++, n++)
            power += pow(10, p->decibels / 10);
        json_array_append_new(bands, json_finite(10 * log10(power / n)));
    }
    points_release(&points);
    json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:f, s:o}", "peak",
                                          json_finite(fabs(x[peak])), "level_db",
                                          json_finite(10 * log10(frames_energy(x, m->frames))),
                                          "delay_frames", (json_int_t)peak, "delay_seconds",
                                          (double)peak / m->rate, "bands_db", bands));
    return true;
}

static bool print_json(const struct job *job, FILE *to, struct fault *fault)
{
    const struct measured *m = &job->out;
    json_t *j = json_report("partita-response/1", command_rows[COMMAND_RESPONSE].name);
    json_t *list = json_array();
    bool good = true;
    for (size_t c = 0; good && c < m->channels; c++)
        good = list_channel(list, m, m->samples + c * m->frames, fault);
    json_object_update_new(j, json_pack("{s:o, s:o, s:I, s:I, s:o}", "out",
                                        json_text(job->settings.files[job->n_files]), "rate_hz",
                                        json_rate(m->rate), "frames", (json_int_t)m->frames,
                                        "files", (json_int_t)job->n_files, "channels", list));
    if (good) return json_print(j, to) || fault_set(fault, "standard output: cannot write");
    json_decref(j);
    return false;
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
    if (s->json && !print_json(job, to, fault)) return false;
    if (!s->json && !s->quiet)
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
