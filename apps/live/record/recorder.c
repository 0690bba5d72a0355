// SPDX-License-Identifier: MIT
#include "recorder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"
#include "convolve/partial/shard_record.h"
#include "io/audio.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"
#include "output_names.h"
#include "ring_writer.h"

// Length of the ring, to bridge pauses of the disk; spinning up takes several seconds.
static const double RING_SECONDS = 10;

// The header is refreshed after each second of sound.
static const double REFRESH_SECONDS = 1;

// Recordings of killed runs are looked for up to this take.
enum { MAX_TAKES_LEFT = 100 };

struct recorder {
    struct audio_writer *file;
    struct ring_writer *writer;
    char *path;
    double rate;                // Hz
    uint64_t frames, refreshed; // written, and told by the header
};

static bool recorder_write(void *user, const void *frames, size_t n, struct fault *fault)
{
    struct recorder *r = user;
    if (!audio_write(r->file, PARTITA_F32, frames, n, fault)) return false;
    r->frames += n;
    if (r->refreshed && (double)(r->frames - r->refreshed) < REFRESH_SECONDS * r->rate) return true;
    r->refreshed = r->frames;
    return audio_refresh(r->file, fault);
}

static bool recorder_choose_format(struct audio_info *ret, const struct settings *s,
                                   const char *path, struct fault *fault)
{
    struct encoding requested = {.kind = ENCODING_FLOAT, .bytes = 4};
    bool known;
    if (!sigmf_check_output(path, fault)) return false;
    ret->container = container_of_name(path, &known);
    if (!known && strncmp(path, "/dev/", 5) != 0)
        return fault_set(
            fault, "%s: the name does not imply a format; use .wav, .flac, .npy, .raw and the like",
            path);
    if (ret->container == CONTAINER_TEXT)
        return fault_set(fault, "%s: text files hold taps only; write to .wav, .npy or .raw", path);
    if (s->output_format) encoding_parse(s->output_format, &requested); // checked by options.c
    if (requested.is_complex)
        return fault_set(fault, "--output-format %s: audio samples are real", s->output_format);
    container_encoding(ret->container, path, requested, &ret->encoding);
    bool exact = ret->encoding.kind == requested.kind && ret->encoding.bytes == requested.bytes;
    return exact || !s->output_format ||
           fault_set(fault, "%s: cannot store %s samples", path, s->output_format);
}

bool recorder_check_format(const struct settings *settings, struct fault *fault)
{
    struct audio_info ignored;
    return !settings->record || recorder_choose_format(&ignored, settings, settings->record, fault);
}

static void report_left(const struct settings *s, const char *path)
{
    struct fault ignored;
    mode_t mode;
    char *final = temp_is_special(path) ? NULL : temp_final(path, &mode, &ignored);
    bool exists = final;
    for (int i = 1; exists; i++) {
        char *name = temp_recording_name(final, i);
        exists = name && access(name, F_OK) == 0;
        if (exists && temp_is_left(name))
            report_warning(s,
                           "%s: is the recording of a run that was killed; it stays until you "
                           "rename or remove it",
                           name);
        free(name);
    }
    free(final);
}

void recorder_report_left(const struct settings *settings)
{
    for (int take = 1; settings->record && take <= MAX_TAKES_LEFT; take++) {
        char *path = output_names_take(settings->record, take);
        if (path) report_left(settings, path);
        free(path);
    }
}

bool recorder_open(struct recorder **ret_recorder, const struct settings *settings, size_t channels,
                   double rate, int take, struct fault *fault)
{
    struct audio_info info = {.channels = channels,
                              .rate = (uint32_t)lrint(rate),
                              .frames = SIZE_UNKNOWN,
                              .rank = channels > 1 ? 2 : 1,
                              .is_recording = true};
    struct recorder *r = calloc(1, sizeof *r);
    if (!r) return fault_set(fault, "out of memory");
    r->rate = rate;
    r->path = output_names_take(settings->record, take);
    bool good = r->path || fault_set(fault, "out of memory");
    good = good && recorder_choose_format(&info, settings, r->path, fault);
    good = good && audio_create(&r->file, r->path, &info, fault) &&
           shard_record_discard(r->path, fault);
    good = good && ring_writer_open(&r->writer, (size_t)(RING_SECONDS * rate),
                                    channels * sizeof(float), recorder_write, r, fault);
    if (good) *ret_recorder = r;
    else recorder_close(r);
    return good;
}

struct ring *recorder_ring(struct recorder *recorder)
{
    return ring_writer_ring(recorder->writer);
}

bool recorder_check(const struct recorder *recorder, struct fault *fault)
{
    return ring_writer_check(recorder->writer, fault);
}

bool recorder_finish(struct recorder *recorder, struct sample_counts *ret_counts,
                     struct fault *fault)
{
    struct recorder *r = recorder;
    struct fault why, of_file;
    uint64_t frames;
    bool whole = ring_writer_stop(r->writer, &why),
         saved = audio_finish_partial(r->file, ret_counts, &frames, &of_file);
    r->file = NULL;
    if (whole && saved) return true;
    if (whole) *fault = of_file;
    else if (saved)
        fault_set(fault, "%.500s; it holds the first %.1f s", why.text, (double)frames / r->rate);
    else fault_set(fault, "%.300s; %.300s", why.text, of_file.text);
    return false;
}

void recorder_discard(struct recorder *recorder)
{
    struct fault ignored;
    if (recorder->writer) ring_writer_stop(recorder->writer, &ignored);
    audio_discard(recorder->file);
    recorder->file = NULL;
}

void recorder_close(struct recorder *recorder)
{
    if (!recorder) return;
    recorder_discard(recorder);
    ring_writer_close(recorder->writer);
    free(recorder->path);
    free(recorder);
}
