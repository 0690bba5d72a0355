// SPDX-License-Identifier: MIT
// See shard_record.h. Numbers are stored as strings: many JSON readers use doubles, and keys have
// 64 bits.
#include "shard_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../lib/base/clock.h"
#include "io/formats/sigmf.h"

static const char KIND[] = "partita part 2";
static const double PROGRESS_SECONDS = 1;

// NULL: out of memory. Written without jansson, which without memory returns damaged text.
static char *shard_record_compose(const struct shard_record *r)
{
    char *text;
    const int n = asprintf(
        &text,
        "{\n \"kind\": \"%s\",\n \"key\": \"%" PRIu64 "\",\n \"first\": \"%" PRIu64
        "\",\n \"end\": \"%" PRIu64 "\",\n \"total\": \"%" PRIu64 "\",\n \"done\": \"%" PRIu64
        "\",\n \"input_time\": \"%" PRIu64 "\",\n \"input\": \"%" PRIu64
        "\",\n \"digest\": \"%" PRIu64 "\",\n \"clipped\": \"%" PRIu64
        "\",\n \"invalid\": \"%" PRIu64 "\",\n \"format\": \"%s\"\n}",
        KIND, r->key, r->first, r->end, r->total, r->done, (uint64_t)r->input_time, r->input,
        r->counts.digest, r->counts.clipped, r->counts.nonfinite, r->format);
    return n >= 0 ? text : NULL;
}

bool shard_record_write(const char *path, const struct shard_record *record, struct fault *fault)
{
    return temp_write_text(path, shard_record_compose(record), true, fault);
}

const char *shard_record_digits(const char *text, uint64_t *ret)
{
    char *end;
    if (*text < '0' || *text > '9') return NULL;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno ? NULL : end;
}

static bool get_number(const json_t *object, const char *name, uint64_t *ret)
{
    const char *text = json_string_value(json_object_get(object, name));
    const char *end = text ? shard_record_digits(text, ret) : NULL;
    return end && !*end;
}

static bool shard_record_parse(const json_t *object, struct shard_record *r)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));
    const char *format = json_string_value(json_object_get(object, "format"));
    uint64_t time;
    r->counts = (struct sample_counts){0};
    if (!kind || strcmp(kind, KIND) != 0 || !format || strlen(format) >= sizeof r->format)
        return false;
    strcpy(r->format, format);
    bool good = get_number(object, "key", &r->key) && get_number(object, "first", &r->first) &&
                get_number(object, "end", &r->end) && get_number(object, "total", &r->total) &&
                get_number(object, "done", &r->done) && get_number(object, "input_time", &time) &&
                get_number(object, "input", &r->input) &&
                get_number(object, "digest", &r->counts.digest) &&
                get_number(object, "clipped", &r->counts.clipped) &&
                get_number(object, "invalid", &r->counts.nonfinite);
    if (!good) return false;
    r->input_time = (int64_t)time;
    return r->first <= r->end && r->end <= r->total && r->done <= r->end - r->first;
}

bool shard_record_read(const char *path, struct shard_record *ret_record, bool *ret_exists,
                       struct fault *fault)
{
    json_error_t error;
    *ret_exists = false;
    FILE *file = regular_open(path, fault);
    if (!file) return errno == ENOENT;
    json_t *object = json_loadf(file, 0, &error);
    fclose(file);
    *ret_exists = object && shard_record_parse(object, ret_record);
    json_decref(object);
    return *ret_exists || fault_set(fault, "%s: is not the record of a shard", path);
}

bool shard_record_open(const struct shard_record *record, const char *path, int64_t channels,
                       const struct settings *settings, struct audio_reader **ret,
                       struct fault *fault)
{
    struct encoding encoding;
    bool known;
    struct audio_request request = {.path = path,
                                    .channels = (size_t)channels,
                                    .max_channels = options_max_channels(settings),
                                    .wake_fd = -1};
    if (container_of_name(path, &known) == CONTAINER_RAW && !sigmf_is_recording(path) &&
        encoding_parse(record->format, &encoding))
        request.raw = &encoding;
    if (!audio_open(ret, &request, fault)) return false;
    const uint64_t frames = audio_reader_info(*ret)->frames, wanted = record->end - record->first;
    if (frames == wanted) return true;
    audio_reader_close(*ret);
    *ret = NULL;
    return fault_set(fault, "%s: has %" PRIu64 " frames instead of %" PRIu64, path, frames, wanted);
}

// Removes the file if it is a record. Any other file of that name stays.
static bool shard_record_remove(const char *path, struct fault *fault)
{
    struct shard_record record;
    struct fault ignored;
    bool exists;
    if (!shard_record_read(path, &record, &exists, &ignored) || !exists) return true;
    return unlink(path) == 0 || errno == ENOENT ||
           fault_set(fault, "%s: cannot remove: %s", path, strerror(errno));
}

char *shard_record_path(const char *output, struct fault *fault)
{
    char *path;
    if (asprintf(&path, "%s.range", output) >= 0) return path;
    fault_set(fault, "out of memory");
    return NULL;
}

static bool discard_beside(const char *output, struct fault *fault)
{
    char *path = shard_record_path(output, fault);
    bool good = path && shard_record_remove(path, fault);
    free(path);
    return good;
}

bool shard_record_discard(const char *output, struct fault *fault)
{
    char *target = realpath(output, NULL); // NULL: there is no such file yet
    bool good = discard_beside(output, fault) && (!target || discard_beside(target, fault));
    free(target);
    return good;
}

// OUT.partial is in the folder of the file that OUT links to, since a file is renamed within one
// folder.
bool resume_begin(struct resume *resume, const char *out, struct fault *fault)
{
    mode_t mode;
    char *final = temp_final(out, &mode, fault);
    if (!final) return false;
    if (asprintf(&resume->partial_path, "%s.partial", final) < 0) resume->partial_path = NULL;
    free(final);
    if (!resume->partial_path) return fault_set(fault, "out of memory");
    resume->progress_path = shard_record_path(resume->partial_path, fault);
    return resume->progress_path;
}

// If the file was renamed between open and flock, it has become the OUT of another run.
static bool try_lock(int fd, const char *partial, struct fault *fault)
{
    struct stat ours, there;
    if (fstat(fd, &ours) || !S_ISREG(ours.st_mode))
        return fault_set(fault, "%s: is not a regular file; remove it or name another output",
                         partial);
    int failed = flock(fd, LOCK_EX | LOCK_NB);
    if (failed && errno != EWOULDBLOCK)
        return fault_set(fault, "%s: cannot lock: %s", partial, strerror(errno));
    if (!failed && stat(partial, &there) == 0 && there.st_dev == ours.st_dev &&
        there.st_ino == ours.st_ino)
        return true;
    return fault_set(fault, "%s: another run is writing this file", partial);
}

// Locks OUT.partial until resume_release, also after it is renamed.
static bool lock_partial(struct resume *resume, struct fault *fault)
{
    const char *partial = resume->partial_path;
    int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool created = fd >= 0;
    if (!created && errno == EEXIST)
        fd = open(partial, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fault_set(fault, "%s: cannot open for writing: %s", partial, strerror(errno));
    if (!try_lock(fd, partial, fault)) {
        close(fd);
        return false;
    }
    resume->lock = fd;
    resume->created = created;
    return true;
}

static bool partial_is_empty(const struct resume *resume)
{
    struct stat st;
    return fstat(resume->lock, &st) == 0 && st.st_size == 0;
}

bool resume_load(struct resume *resume, struct shard_record *record, const char *in,
                 struct fault *fault)
{
    struct shard_record earlier;
    bool exists;
    if (!lock_partial(resume, fault) ||
        !shard_record_read(resume->progress_path, &earlier, &exists, fault))
        return false;
    // A progress file without OUT.partial is left over from a complete OUT.
    if (resume->created || (!exists && partial_is_empty(resume))) return true;
    if (!exists)
        return fault_set(
            fault,
            "%s: is not empty, but its progress file %s is missing; remove it or move it away",
            resume->partial_path, resume->progress_path);
    if (earlier.key != record->key || earlier.first != record->first || earlier.end != record->end)
        return fault_set(fault,
                         "%s: was started by another command, with other taps or with another "
                         "plan%s; remove it to start again",
                         resume->partial_path, resume->shared ? " or number of processes" : "");
    if (earlier.input_time != record->input_time || earlier.input != record->input)
        return fault_set(fault,
                         "%s: has changed since %s was started; remove the latter to start again",
                         in, resume->partial_path);
    *record = earlier;
    return true;
}

bool resume_create(const struct resume *resume, const struct shard_record *record,
                   struct audio_writer **ret_writer, const char *out, const struct audio_info *info,
                   struct fault *fault)
{
    if (!shard_record_write(resume->progress_path, record, fault)) return false;
    const struct audio_partial partial = {
        .path = resume->partial_path,
        .frames = resume->shared ? resume->held : record->done,
        .keep_rest = resume->shared,
        .counts = record->counts,
    };
    return audio_resume(ret_writer, out, &partial, info, fault);
}

bool resume_is_due(const struct resume *resume)
{
    return resume->partial_path && clock_seconds() - resume->progress_time >= PROGRESS_SECONDS;
}

bool resume_save(struct resume *resume, const struct shard_record *record, uint64_t done,
                 const struct sample_counts *counts, struct fault *fault)
{
    struct shard_record progress = *record;
    progress.done = done;
    progress.counts = *counts;
    resume->progress_time = clock_seconds();
    return shard_record_write(resume->progress_path, &progress, fault);
}

void resume_release(struct resume *resume)
{
    struct fault ignored;
    if (resume->created && partial_is_empty(resume)) {
        unlink(resume->partial_path);
        shard_record_remove(resume->progress_path, &ignored);
    }
    if (resume->partial_path && resume->lock >= 0) close(resume->lock);
    free(resume->partial_path);
    free(resume->progress_path);
}
