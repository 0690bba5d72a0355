// SPDX-License-Identifier: MIT
// Creates, writes and finishes an output of any format: a file under a name, a temporary file of
// frames as they are in memory (a spool), or a part of a file that several processes write.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "audio.h"
#include "base/memory.h"
#include "base/sample_type.h"
#include "io/formats/formats.h"
#include "io/formats/sigmf.h"

static bool audio_begin(struct audio_writer *writer, struct fault *fault)
{
    static const struct writer_ops *const writers[] = {[CONTAINER_WAV] = &wav_writer,
                                                       [CONTAINER_NPY] = &npy_writer,
                                                       [CONTAINER_RAW] = &raw_writer,
                                                       [CONTAINER_SNDFILE] = &sndfile_writer,
                                                       [CONTAINER_TEXT] = &text_writer};
    if (writer->info.tags) tags_copy(&writer->tags, writer->info.tags);
    writer->info.tags = NULL; // the caller's
    writer->ops = writers[writer->info.container];
    return !writer->ops->begin || writer->ops->begin(writer, fault);
}

// False, with a fault, for samples that the disk cannot hold, before they fill it.
static bool check_space(int fd, const char *path, const struct audio_info *info,
                        struct fault *fault)
{
    const bool any_size = info->container == CONTAINER_TEXT ||
                          (info->container == CONTAINER_SNDFILE && sndfile_is_compressed(path));
    struct stat st;
    struct statvfs disk;
    if (!info->certain || any_size || fstat(fd, &st) || !S_ISREG(st.st_mode) || fstatvfs(fd, &disk))
        return true;
    const double needed =
        (double)info->frames * (double)info->channels * (double)encoding_size(info->encoding);
    const double free_bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    char needs[MEMORY_SIZE_TEXT], has[MEMORY_SIZE_TEXT];
    return needed <= free_bytes ||
           fault_set(fault,
                     "%s: %llu frames need %s; its disk has %s free: shorten the result with "
                     "--last, or name an output on another disk",
                     strcmp(path, "-") == 0 ? "standard output" : path,
                     (unsigned long long)info->frames, memory_size(needed, needs),
                     memory_size(free_bytes, has));
}

// Continues after the frames that the file is known to hold; what follows them is cut off.
static bool continue_after(struct audio_writer *w, const struct audio_partial *partial,
                           struct fault *fault)
{
    const uint64_t at =
        w->info.offset + partial->frames * w->info.channels * encoding_size(w->info.encoding);
    struct stat st;
    if (fstat(w->sink.fd, &st) || (uint64_t)st.st_size < at)
        return fault_set(fault,
                         "%s: is shorter than its progress record says; remove it to start again",
                         partial->path);
    if ((!partial->keep_rest && ftruncate(w->sink.fd, (off_t)at)) || !sink_seek(&w->sink, at))
        return fault_set(fault, "%s: cannot write: %s", partial->path, strerror(errno));
    w->frames = partial->frames;
    return true;
}

bool audio_resume(struct audio_writer **ret_writer, const char *path,
                  const struct audio_partial *partial, const struct audio_info *info,
                  struct fault *fault)
{
    if (partial && (info->container == CONTAINER_SNDFILE || info->container == CONTAINER_TEXT))
        return fault_set(fault, "%s: --resume writes .wav, .npy and raw samples only", path);
    struct audio_writer *w = calloc(1, sizeof *w);
    if (!w) return fault_set(fault, "out of memory");
    w->info = *info;
    if (partial) w->counts = partial->counts;
    const int fd = partial ? temp_resume(&w->temp, path, partial->path, fault)
                           : temp_open(&w->temp, path, info->is_recording, fault);
    if (fd < 0) {
        free(w);
        return false;
    }
    sink_from_fd(&w->sink, fd, strcmp(path, "-") == 0 ? "standard output" : path);
    const bool continues = partial && partial->frames;
    bool good = (continues || check_space(fd, path, info, fault)) && audio_begin(w, fault);
    w->info.offset = w->sink.position;
    good = good && (!partial || continue_after(w, partial, fault));
    if (good) *ret_writer = w;
    else audio_discard(w);
    return good;
}

bool audio_create(struct audio_writer **ret_writer, const char *path, const struct audio_info *info,
                  struct fault *fault)
{
    return audio_resume(ret_writer, path, NULL, info, fault);
}

bool audio_refresh(struct audio_writer *writer, struct fault *fault)
{
    return !writer->ops->refresh || writer->ops->refresh(writer, fault);
}

static bool sink_sync(struct sink *sink, struct fault *fault)
{
    if (fdatasync(sink->fd) == 0) return true;
    sink->error = errno;
    return sink_fault(sink, fault);
}

bool audio_sync(struct audio_writer *writer, struct sample_counts *ret_counts, struct fault *fault)
{
    *ret_counts = writer->counts;
    return sink_sync(&writer->sink, fault);
}

bool audio_write(struct audio_writer *w, enum partita_type type, const void *frames, size_t n,
                 struct fault *fault)
{
    const bool as_double = type_is_double(type);
    if (!w->info.dither || w->info.encoding.kind == ENCODING_FLOAT)
        return w->ops->write(w, as_double, frames, n, fault);
    const size_t scalars = w->info.channels * (w->info.encoding.is_complex ? 2 : 1);
    if (!raw_reserve(&w->dithered, &w->dithered_capacity, n * scalars * sizeof(double)))
        return fault_set(fault, "out of memory for %zu frames", n);
    double *dithered = (double *)(void *)w->dithered;
    samples_dither(dithered, frames, as_double, n * scalars, 8 * w->info.encoding.bytes,
                   (w->info.first + w->frames) * scalars);
    return w->ops->write(w, true, dithered, n, fault);
}

uint64_t audio_digest_begin(struct audio_writer *writer, uint64_t digest)
{
    const uint64_t before = writer->counts.digest;
    writer->digested = true;
    writer->counts.digest = digest;
    return before;
}

uint64_t audio_written(const struct audio_writer *writer)
{
    return writer->frames;
}

bool audio_finish(struct audio_writer *writer, bool durable, struct sample_counts *ret_counts,
                  struct fault *fault)
{
    struct temp meta = {0};
    bool good = (!writer->ops->finish || writer->ops->finish(writer, fault)) &&
                (!durable || sink_sync(&writer->sink, fault));
    if (good && !sink_close(&writer->sink)) good = sink_fault(&writer->sink, fault);
    // The samples do not appear if their metadata cannot be written.
    good = good && sigmf_write(&meta, writer->sink.name, &writer->info, writer->frames, fault) &&
           temp_commit(&writer->temp, durable, fault) && temp_commit(&meta, durable, fault);
    temp_discard(&meta);
    *ret_counts = writer->counts;
    audio_discard(writer);
    return good;
}

// Truncates the file after the last complete frame.
static void truncate_to_frames(struct audio_writer *w)
{
    const size_t frame_bytes = w->info.channels * encoding_size(w->info.encoding);
    w->sink.error = 0;
    if (!w->sink.seekable || w->info.container == CONTAINER_SNDFILE) return;
    w->frames = (w->sink.position - w->info.offset) / frame_bytes;
    const uint64_t end = w->info.offset + w->frames * frame_bytes;
    if (ftruncate(w->sink.fd, (off_t)(w->sink.base + end)) == 0) sink_seek(&w->sink, end);
}

// A recording that does not get its name is not thrown away; the message says where it is.
static bool name_kept(const char *kept, struct fault *fault)
{
    const struct fault said = *fault;
    if (*kept && access(kept, F_OK) == 0)
        fault_set(fault, "%.300s; the samples are in %s", said.text, kept);
    return false;
}

bool audio_finish_partial(struct audio_writer *w, struct sample_counts *ret_counts,
                          uint64_t *ret_frames, struct fault *fault)
{
    struct fault ignored;
    const bool failed = w->sink.error != 0;
    char kept[PATH_MAX] = "";
    bool good = false;
    if (failed) truncate_to_frames(w);
    *ret_frames = w->temp.final ? w->frames : 0;
    w->temp.keep = w->frames > 0;
    if (w->temp.keep && w->temp.temporary) snprintf(kept, sizeof kept, "%s", w->temp.temporary);
    if (!failed) {
        good = audio_finish(w, false, ret_counts, fault);
        return good || name_kept(kept, fault);
    }
    if (*ret_frames) {
        // If the header cannot be rewritten, it says "up to the end", which is true.
        if (w->ops->finish) w->ops->finish(w, &ignored);
        sink_close(&w->sink);
        good = temp_commit(&w->temp, false, fault);
    } else {
        sink_fault(&w->sink, fault);
    }
    *ret_counts = w->counts;
    audio_discard(w);
    return good || name_kept(kept, fault);
}

bool audio_write_all(const char *path, const struct audio_info *info, enum partita_type type,
                     const void *frames, struct sample_counts *ret_counts, struct fault *fault)
{
    struct audio_writer *writer;
    if (!audio_create(&writer, path, info, fault)) return false;
    if (audio_write(writer, type, frames, (size_t)info->frames, fault))
        return audio_finish(writer, false, ret_counts, fault);
    audio_discard(writer);
    return false;
}

bool audio_copy(struct audio_writer *writer, struct audio_reader *reader, enum partita_type type,
                double factor, struct fault *fault)
{
    enum { CHUNK_SAMPLES = 1 << 16 };
    const size_t channels = audio_reader_info(reader)->channels,
                 chunk = CHUNK_SAMPLES / channels + 1,
                 scalars = channels * (type_is_complex(type) ? 2 : 1);
    void *frames = memory_allocate(chunk * channels * partita_type_size(type));
    bool good = frames || memory_fault(fault, "%zu frames of %zu channels", chunk, channels);
    for (size_t n = 1; good && n;) {
        good = audio_read(reader, type, frames, chunk, &n, fault);
        if (!good || !n) break;
        if (factor != 1) samples_scale(frames, n * scalars, type_is_double(type), factor);
        good = audio_write(writer, type, frames, n, fault);
    }
    memory_free(frames);
    return good;
}

void audio_discard(struct audio_writer *writer)
{
    if (!writer) return;
    if (writer->ops && writer->ops->close) writer->ops->close(writer);
    free(writer->raw);
    sink_close(&writer->sink);
    temp_discard(&writer->temp);
    tags_release(&writer->tags);
    free(writer->dithered);
    free(writer);
}

// A writer of samples alone into an open file, which it closes, also on failure.
static bool create_on_fd(struct audio_writer **ret_writer, int fd, const char *name,
                         const struct audio_info *info, struct fault *fault)
{
    struct audio_writer *w = calloc(1, sizeof *w);
    if (!w) {
        close(fd);
        return fault_set(fault, "out of memory");
    }
    sink_from_fd(&w->sink, fd, name);
    w->ops = &raw_writer;
    w->info = *info;
    *ret_writer = w;
    return true;
}

bool audio_spool_create(struct audio_writer **ret_writer, const char *path, enum partita_type type,
                        size_t channels, struct fault *fault)
{
    const int fd = temp_open_unnamed(path, fault);
    const struct audio_info info = {
        .container = CONTAINER_RAW,
        .encoding = {.kind = ENCODING_FLOAT,
                     .bytes = type_is_double(type) ? 8 : 4,
                     .is_complex = type_is_complex(type)},
        .channels = channels,
        .frames = SIZE_UNKNOWN,
        .rank = 2,
    };
    return fd >= 0 &&
           create_on_fd(ret_writer, fd, "the temporary file of the result", &info, fault);
}

bool audio_spool_copy(struct audio_writer *writer, struct audio_writer *spool,
                      enum partita_type type, double factor, struct fault *fault)
{
    struct audio_reader reader = {.ops = &flat_reader, .info = spool->info};
    reader.info.frames = spool->frames;
    reader.source = (struct source){.name = spool->sink.name,
                                    .fd = spool->sink.fd,
                                    .wake_fd = -1,
                                    .size = spool->sink.end,
                                    .seekable = true};
    const bool good =
        lseek(spool->sink.fd, 0, SEEK_SET) == 0
            ? audio_copy(writer, &reader, type, factor, fault)
            : fault_set(fault, "%s: cannot read: %s", spool->sink.name, strerror(errno));
    free(reader.raw);
    audio_discard(spool);
    return good;
}

bool audio_create_part(struct audio_writer **ret_writer, const char *unfinished,
                       uint64_t first_byte, const char *name, const struct audio_info *info,
                       struct fault *fault)
{
    const int fd = open(unfinished, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return fault_set(fault, "%s: cannot open for writing: %s", name, strerror(errno));
    if (!create_on_fd(ret_writer, fd, name, info, fault)) return false;
    struct sink *sink = &(*ret_writer)->sink;
    return sink_seek(sink, first_byte) || sink_fault(sink, fault);
}

const char *audio_unfinished(const struct audio_writer *writer, uint64_t *ret_first_byte)
{
    *ret_first_byte = writer->sink.base + writer->info.offset;
    return writer->temp.temporary;
}

bool audio_complete(struct audio_writer *w, uint64_t frames, const struct sample_counts *counts,
                    struct fault *fault)
{
    w->frames = frames;
    w->counts = *counts;
    return sink_seek(&w->sink, w->info.offset +
                                   frames * w->info.channels * encoding_size(w->info.encoding)) ||
           sink_fault(&w->sink, fault);
}
