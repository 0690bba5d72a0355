// SPDX-License-Identifier: MIT
#include "measured.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/interleave.h"
#include "base/memory.h"
#include "base/number.h"
#include "cli/option_words.h"
#include "cli/report.h"
#include "convolve/partial/shard_record.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"
#include "io/frames.h"
#include "spectrum.h"

static const double SOFT = 0.01; // of the peak
static const struct encoding FLOATS = {.kind = ENCODING_FLOAT, .bytes = 4};

// Frames that resampling put in front, if the pulses in them are soft. Without them time 0 stays.
static size_t soft_lead(const struct frames *f, size_t lead)
{
    const double *x = f->data;
    const double peak = fabs(x[frames_peak(x, f->n * f->channels)]);
    return fabs(x[frames_peak(x, lead * f->channels)]) <= SOFT * peak ? lead : 0;
}

static bool read_samples(struct measured *ret, struct audio_reader *reader, double rate,
                         const char *name, struct fault *fault)
{
    const struct audio_info *info = audio_reader_info(reader);
    struct frames f;
    size_t lead = 0;
    if (info->encoding.is_complex)
        return fault_set(fault, "%s: complex samples; sound is real", name);
    if (!frames_read(&f, reader, PARTITA_F64, name, fault)) return false;
    ret->rate = info->rate;
    bool good = true;
    if (rate > 0 && ret->rate > 0 && !rates_agree(rate, ret->rate)) {
        good = frames_resample(&f, ret->rate, rate, &lead, name, fault);
        ret->rate = rate;
        if (good) lead = soft_lead(&f, lead);
    }
    ret->channels = f.channels;
    ret->frames = f.n - lead;
    ret->samples = good ? memory_allocate(ret->frames * f.channels * sizeof(double)) : NULL;
    if (good && !ret->samples) good = memory_fault(fault, "%s: %zu frames", name, ret->frames);
    const struct channel_rows rows = {f.channels, sizeof(double), ret->frames};
    if (good)
        frames_deinterleave(ret->samples, (double *)f.data + lead * f.channels, &rows, ret->frames);
    frames_release(&f);
    return good;
}

// The response of minimum phase, or with time 0 after a quarter of its length.
static bool read_points(struct measured *ret, const char *path, double rate, struct fault *fault)
{
    struct points points;
    if (!(rate > 0))
        return fault_usage(fault,
                           "%s: a text of frequencies has no sample rate; add --rate, for example "
                           "--rate 48k",
                           path);
    if (!points_read(&points, path, fault)) return false;
    const size_t n = spectrum_length(&points, rate);
    *ret = (struct measured){.samples = memory_allocate(n * sizeof *ret->samples),
                             .channels = 1,
                             .frames = n,
                             .rate = rate};
    const bool good = (ret->samples || memory_fault(fault, "%s: %zu frames", path, n)) &&
                      spectrum_of_points(&points, rate, ret->samples, n, path, fault);
    points_release(&points);
    return good;
}

bool measured_is_table(const char *path)
{
    return path_ends_with(path, ".frd") || path_ends_with(path, ".csv") ||
           path_ends_with(path, ".txt");
}

bool measured_load(struct measured *ret, const struct settings *s, const char *path,
                   struct fault *fault)
{
    const struct audio_request request = {
        .path = path, .max_channels = options_max_channels(s), .rate = s->rate, .wake_fd = -1};
    struct audio_reader *reader = NULL;
    bool known; // taps, if it is no table
    *ret = (struct measured){.samples = NULL};
    container_of_name(path, &known);
    if (measured_is_table(path) && (!known || points_begin(path)))
        return read_points(ret, path, s->resample > 0 ? s->resample : s->rate, fault);
    if (!audio_open(&reader, &request, fault)) return false;
    const bool good = read_samples(ret, reader, s->resample,
                                   strcmp(path, "-") == 0 ? "standard input" : path, fault);
    if (good && audio_shortfall(reader)) fault_set(&ret->shortfall, "%s", audio_shortfall(reader));
    if (good) fault_set(&ret->note, "%s", audio_reader_info(reader)->note);
    audio_reader_close(reader);
    return good;
}

void measured_warn(const struct measured *measured, const struct settings *settings)
{
    const struct fault *const warnings[] = {&measured->shortfall, &measured->note};
    for (int i = 0; i < 2; i++)
        if (*warnings[i]->text) report_warning(settings, "%s", warnings[i]->text);
}

bool measured_load_all(struct measured *files, size_t *ret_n, const struct settings *s,
                       struct fault *fault)
{
    const char *const out = s->files[s->n_operands - 1];
    for (*ret_n = 0; *ret_n + 1 < (size_t)s->n_operands; ++*ret_n) {
        const char *path = s->files[*ret_n];
        struct measured *m = &files[*ret_n];
        if (!sigmf_differs(out, &path, 1, fault) || !measured_load(m, s, path, fault)) return false;
        if (!(m->rate > 0))
            return fault_usage(fault, "%s: its sample rate is unknown; add --rate", path);
        if (!rates_agree(m->rate, files->rate))
            return fault_set(
                fault,
                "%s: sample rate %.12g Hz differs from the %.12g Hz of %s; use partita "
                "response --resample",
                path, m->rate, files->rate, s->files[0]);
        if (m->channels != files->channels && s->combine != COMBINE_CHANNELS)
            return fault_set(fault, "%s: %zu channels differ from the %zu of %s; all need the same",
                             path, m->channels, files->channels, s->files[0]);
    }
    return s->replace || temp_is_special(out) || access(out, F_OK) != 0 ||
           fault_set(fault, "%s: exists; name the output last, or replace it with --replace", out);
}

double *measured_rows(const struct measured *files, size_t n, size_t *ret_frames)
{
    const size_t rows = n * files->channels;
    *ret_frames = 0;
    for (size_t i = 0; i < n; i++)
        if (files[i].frames > *ret_frames) *ret_frames = files[i].frames;
    double *const x = memory_allocate_zeros(rows * *ret_frames * sizeof *x);
    for (size_t i = 0; x && i < rows; i++) {
        const struct measured *m = &files[i % n];
        memcpy(x + i * *ret_frames, m->samples + i / n * m->frames, m->frames * sizeof *x);
    }
    return x;
}

bool measured_fault(const struct settings *settings, size_t row, const char *text,
                    struct fault *fault)
{
    const size_t n = (size_t)settings->n_operands - 1;
    return fault_set(fault, "%s: channel %zu%s", settings->files[row % n], 1 + row / n, text);
}

bool measured_fail(const struct settings *settings, enum partita_status status,
                   const struct fault *log, size_t row, struct fault *fault)
{
    enum { MAX_POSITIONS = 4096 };
    struct fault said = *log;
    size_t i, positions;
    int length = 0;
    char *const call = strstr(said.text, "partita_deconvolve");
    if (call) call[strlen("partita")] = ' ';
    if (sscanf(said.text, "responses[%zu]%n", &i, &length) == 1 && length)
        return measured_fault(settings, row + i, said.text + length, fault);
    if (sscanf(said.text, "correction.frames = %zu, positions = %zu", &i, &positions) == 2 &&
        positions <= MAX_POSITIONS)
        return fault_set(
            fault,
            "a response has %zu frames, which are too many; cut it off, for example by "
            "partita response --ir-length 2s",
            i);
    option_words_of_status(fault, settings->command, status, &said);
    fault->usage = false; // it may be the file's rate that is wrong
    return false;
}

bool measured_choose_format(struct audio_info *info, const struct settings *s, const char *path,
                            struct fault *fault)
{
    struct encoding wanted = FLOATS, named;
    char closest[ENCODING_NAME_SIZE];
    bool known;
    info->container = container_of_name(path, &known);
    if (!known && !temp_is_special(path))
        return fault_set(
            fault, "%s: the name does not imply a format; use .wav, .npy, .txt or .raw", path);
    if (!known) // design writes raw samples of a type that is stated
        info->container =
            s->output_format && s->command == COMMAND_DESIGN ? CONTAINER_RAW : CONTAINER_WAV;
    if (info->container == CONTAINER_TEXT && info->channels > 1)
        return fault_set(fault, "%s: a text has one channel; use .wav", path);
    if (s->output_format) encoding_parse(s->output_format, &wanted);
    else if (container_raw_type(path, &named)) wanted = named;
    const bool is_complex = wanted.is_complex;
    wanted.is_complex = false;
    container_encoding(info->container, path, wanted, &info->encoding);
    const struct encoding *const got = &info->encoding; // the closest that it can store
    const bool stored = got->kind == wanted.kind && got->bytes == wanted.bytes;
    if (is_complex || (s->output_format && !stored))
        return fault_set(fault, "%s: cannot store %s samples; use --output-format %s", path,
                         s->output_format ? s->output_format : "complex",
                         encoding_short_name(*got, closest));
    report_stored_rate(s, path, info);
    return sigmf_check_output(path, fault);
}

bool measured_store(const double *rows, const struct audio_info *info, const char *path,
                    const struct settings *settings, uint64_t clipped, struct fault *fault)
{
    struct sample_counts counts = {0};
    struct encoding held;
    const struct channel_rows from = {info->channels, sizeof *rows, (size_t)info->frames};
    const bool floats = info->encoding.kind == ENCODING_FLOAT && info->encoding.bytes == 4;
    for (size_t i = 0; i < from.channels * from.length; i++)
        if (!(fabs(rows[i]) <= (floats ? (double)FLT_MAX : DBL_MAX)))
            return fault_set(fault,
                             "%s: a sample is beyond the largest number; use a lower level%s", path,
                             floats ? ", or --output-format f64" : "");
    if (!shard_record_discard(path, fault)) return false;
    double *const frames = memory_allocate(from.channels * from.length * sizeof *frames);
    if (!frames) return memory_fault(fault, "%s: %zu frames", path, from.length);
    frames_interleave(frames, rows, &from, from.length);
    const bool good = audio_write_all(path, info, PARTITA_F64, frames, &counts, fault);
    memory_free(frames);
    clipped += counts.clipped;
    if (!good || !clipped) return good;
    container_encoding(info->container, path, FLOATS, &held);
    report_warning(settings, "%s: %llu sample%s clipped; use %s", path, (unsigned long long)clipped,
                   clipped == 1 ? "" : "s",
                   held.kind == ENCODING_FLOAT ? "--output-format f32" : "a .wav");
    return true;
}

bool measured_write(const struct measured *m, const struct settings *settings, const char *path,
                    struct fault *fault)
{
    struct audio_info info = {
        .channels = m->channels, .rate = m->rate, .frames = m->frames, .rank = 2};
    return measured_choose_format(&info, settings, path, fault) &&
           measured_store(m->samples, &info, path, settings, 0, fault);
}

void measured_release(struct measured *measured)
{
    memory_free(measured->samples);
    measured->samples = NULL;
}
