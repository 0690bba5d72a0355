// SPDX-License-Identifier: MIT
#include "measured.h"

#include <string.h>
#include <strings.h>

#include "base/interleave.h"
#include "base/memory.h"
#include "cli/report.h"
#include "convolve/partial/shard_record.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"
#include "io/frames.h"
#include "spectrum.h"

static bool read_samples(struct measured *ret, struct audio_reader *reader, const char *name,
                         struct fault *fault)
{
    struct frames f;
    if (audio_reader_info(reader)->encoding.is_complex)
        return fault_set(fault, "%s: complex samples; sound is real", name);
    if (!frames_read(&f, reader, PARTITA_F64, name, fault)) return false;
    *ret = (struct measured){.samples = memory_allocate(f.n * f.channels * sizeof *ret->samples),
                             .channels = f.channels,
                             .frames = f.n,
                             .rate = audio_reader_info(reader)->rate};
    for (size_t c = 0; ret->samples && c < f.channels; c++)
        frames_copy_channel(&f, c, ret->samples + c * f.n);
    frames_release(&f);
    return ret->samples || memory_fault(fault, "%s: %zu frames", name, ret->frames);
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

bool measured_load(struct measured *ret, const struct settings *settings, const char *path,
                   struct fault *fault)
{
    const struct audio_request request = {.path = path,
                                          .max_channels = options_max_channels(settings),
                                          .rate = settings->rate,
                                          .wake_fd = -1};
    struct audio_reader *reader = NULL;
    const char *suffix = strrchr(path, '.');
    *ret = (struct measured){.samples = NULL};
    if (suffix && (strcasecmp(suffix, ".frd") == 0 || strcasecmp(suffix, ".csv") == 0 ||
                   (strcasecmp(suffix, ".txt") == 0 && points_begin(path))))
        return read_points(ret, path, settings->rate, fault);
    if (!audio_open(&reader, &request, fault)) return false;
    const bool good =
        read_samples(ret, reader, strcmp(path, "-") == 0 ? "standard input" : path, fault);
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

bool measured_choose_format(struct audio_info *info, const struct settings *s, const char *path,
                            struct fault *fault)
{
    struct encoding wanted = {.kind = ENCODING_FLOAT, .bytes = 4}, named;
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
    container_encoding(info->container, path, wanted, &info->encoding);
    const struct encoding *const got = &info->encoding; // the closest that it can store
    const bool stored = got->kind == wanted.kind && got->bytes == wanted.bytes;
    if (wanted.is_complex || (s->output_format && !stored))
        return fault_set(fault, "%s: cannot store %s samples; use --output-format f32", path,
                         s->output_format ? s->output_format : "complex");
    report_stored_rate(s, path, info);
    return sigmf_check_output(path, fault) && shard_record_discard(path, fault);
}

bool measured_store(const double *rows, const struct audio_info *info, const char *path,
                    struct sample_counts *ret_counts, struct fault *fault)
{
    const struct channel_rows from = {info->channels, sizeof *rows, (size_t)info->frames};
    double *const frames = memory_allocate(from.channels * from.length * sizeof *frames);
    if (!frames) return memory_fault(fault, "%s: %zu frames", path, from.length);
    frames_interleave(frames, rows, &from, from.length);
    const bool good = audio_write_all(path, info, PARTITA_F64, frames, ret_counts, fault);
    memory_free(frames);
    return good;
}

bool measured_write(const struct measured *measured, const struct settings *settings,
                    const char *path, struct fault *fault)
{
    const struct measured *m = measured;
    struct audio_info info = {
        .channels = m->channels, .rate = m->rate, .frames = m->frames, .rank = 2};
    struct sample_counts counts = {0};
    if (!measured_choose_format(&info, settings, path, fault) ||
        !measured_store(m->samples, &info, path, &counts, fault))
        return false;
    if (counts.clipped)
        report_warning(settings, "%s: %llu samples clipped; use --output-format f32", path,
                       (unsigned long long)counts.clipped);
    return true;
}

void measured_release(struct measured *measured)
{
    memory_free(measured->samples);
    measured->samples = NULL;
}
