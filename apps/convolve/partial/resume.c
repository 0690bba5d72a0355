// SPDX-License-Identifier: MIT
#include "resume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../lib/base/clock.h"
#include "io/bytes/temp.h"

static const double PROGRESS_SECONDS = 1;

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
        .counts = {.clipped = record->clipped, .nonfinite = record->invalid},
    };
    return audio_resume(ret_writer, out, &partial, info, fault);
}

bool resume_is_due(const struct resume *resume)
{
    return resume->partial_path && clock_seconds() - resume->progress_time >= PROGRESS_SECONDS;
}

bool resume_record(struct resume *resume, const struct shard_record *progress, struct fault *fault)
{
    resume->progress_time = clock_seconds();
    return shard_record_write(resume->progress_path, progress, fault);
}

bool resume_save(struct resume *resume, const struct shard_record *record,
                 struct audio_writer *writer, uint64_t written, struct fault *fault)
{
    if (!resume_is_due(resume)) return true;
    struct shard_record progress = *record;
    struct sample_counts counts;
    if (!audio_sync(writer, &counts, fault)) return false;
    progress.digest = audio_digest(writer);
    progress.done += written;
    progress.clipped = counts.clipped;
    progress.invalid = counts.nonfinite;
    return resume_record(resume, &progress, fault);
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
