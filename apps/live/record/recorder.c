// SPDX-License-Identifier: MIT
#include "recorder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ir_name.h"
#include "cli/report.h"
#include "convolve/partial/shard_record.h"
#include "correct/measured.h"
#include "io/bytes/temp.h"
#include "io/formats/sigmf.h"
#include "route/route.h"

// Length of the ring, to bridge pauses of the disk; spinning up takes several seconds.
static const double RING_SECONDS = 10;

// The header is refreshed after each second of sound.
static const double REFRESH_SECONDS = 1;

// Recordings of killed runs are looked for up to this take.
enum { MAX_TAKES_LEFT = 100 };

struct recorder {
    struct audio_writer *file;
    struct ring *ring;
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

static bool choose_format(struct audio_info *ret, const struct settings *s, const char *path,
                          struct fault *fault)
{
    return measured_choose_format(ret, s, path, fault) &&
           (ret->container != CONTAINER_TEXT ||
            fault_set(fault, "%s: text files hold taps only; use .wav", path));
}

// "dir/name.wav" for take 3 -> "dir/name-3.wav"; for take 1 unchanged.
static char *name_take(const char *path, int take)
{
    const char *dot = strrchr(path_base(path), '.');
    int n_stem = (int)(dot ? (size_t)(dot - path) : strlen(path));
    char *name = NULL;
    if (take < 2) return strdup(path);
    return asprintf(&name, "%.*s-%d%s", n_stem, path, take, path + n_stem) < 0 ? NULL : name;
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
        char *path = name_take(settings->record, take);
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
    r->path = name_take(settings->record, take);
    bool good = r->path || fault_set(fault, "out of memory");
    good = good && choose_format(&info, settings, r->path, fault);
    good = good && audio_create(&r->file, r->path, &info, fault) &&
           shard_record_discard(r->path, fault);
    good = good && ring_open(&r->ring, (size_t)(RING_SECONDS * rate), channels * sizeof(float),
                             recorder_write, r, fault);
    if (good) *ret_recorder = r;
    else recorder_close(r);
    return good;
}

struct ring *recorder_ring(struct recorder *recorder)
{
    return recorder->ring;
}

bool recorder_finish(struct recorder *r, struct sample_counts *ret_counts, struct fault *fault)
{
    struct fault why, of_file;
    uint64_t frames;
    bool whole = ring_stop(r->ring, &why),
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
    if (!recorder) return;
    if (recorder->ring) ring_stop(recorder->ring, &ignored);
    audio_discard(recorder->file);
    recorder->file = NULL;
}

void recorder_close(struct recorder *recorder)
{
    if (!recorder) return;
    recorder_discard(recorder);
    ring_close(recorder->ring);
    free(recorder->path);
    free(recorder);
}

// The folder of a file that may not exist yet.
static bool identify_folder(const char *path, struct stat *st)
{
    const char *base = path_base(path);
    char *folder = base > path ? strndup(path, (size_t)(base - path)) : strdup(".");
    bool good = folder && stat(folder, st) == 0;
    free(folder);
    return good;
}

// Whether both paths, of files that may not exist yet, name one file. temp_differs compares
// existing files.
static bool is_same_path(const char *a, const char *b)
{
    struct stat of_a, of_b;
    if (strcmp(path_base(a), path_base(b)) != 0) return false;
    return identify_folder(a, &of_a) && identify_folder(b, &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

// False if an output, which may be NULL, is a file that an IR names. One that cannot be read is
// reported when it is loaded.
static bool differs_from_files(const struct settings *s, const char *out, const char *ir,
                               struct fault *fault)
{
    struct network network;
    struct fault ignored;
    if (!out || !route_read(&network, s, ir, NULL, &ignored)) return true;
    const char **files = calloc((size_t)network_list_files(&network, NULL), sizeof *files);
    const bool good = files ? sigmf_differs(out, files, network_list_files(&network, files), fault)
                            : fault_set(fault, "out of memory");
    free(files);
    network_release(&network);
    return good;
}

bool recorder_check_options(const struct settings *s, int take, struct fault *fault)
{
    struct audio_info ignored = {.channels = 1};
    char *record = s->record ? name_take(s->record, take) : NULL;
    bool good = !s->record || record || fault_set(fault, "out of memory");
    for (int i = 0; good && i < s->irs.n; i++)
        good = differs_from_files(s, record, s->irs.words[i], fault) &&
               differs_from_files(s, s->calls, s->irs.words[i], fault);
    if (good && record && s->calls && !temp_is_special(record) &&
        (!temp_differs(record, &s->calls, 1, fault) || is_same_path(record, s->calls)))
        good =
            fault_set(fault, "%s: both --record and --calls name this file; use two files", record);
    free(record);
    return good && (!s->record || choose_format(&ignored, s, s->record, fault));
}
