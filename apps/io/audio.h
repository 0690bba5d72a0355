// SPDX-License-Identifier: MIT
// Sampled signals in files and pipes, whatever the format: open, learn the shape, read or write
// interleaved frames of one of the library's four sample types, close.
#ifndef PARTITA_APPS_AUDIO_H
#define PARTITA_APPS_AUDIO_H

#include <partita/common.h>

#include "io/formats/container.h"
#include "io/samples/samples.h"

struct audio_reader;

bool audio_open(struct audio_reader **ret_reader, const struct audio_request *request,
                struct fault *fault);

// The same of bytes in memory, that can be seeked or come as through a pipe: for tests and fuzz
// targets.
bool audio_open_memory(struct audio_reader **ret_reader, const void *bytes, size_t size,
                       bool as_pipe, const struct audio_request *request, struct fault *fault);
const struct audio_info *audio_reader_info(const struct audio_reader *reader);

// Whether frames may come slowly or never: a pipe, not a file.
bool audio_reader_is_pipe(const struct audio_reader *reader);

// Bytes of the file as it is now, and when it was last changed in nanoseconds; false for memory and
// on errors.
bool audio_reader_state(const struct audio_reader *reader, uint64_t *ret_bytes, int64_t *ret_time);

// Reads up to n frames as `type`; *ret_n is 0 at the end. From a pipe, as soon as there is one
// frame. A complex signal read as a real type is an error of the caller's.
bool audio_read(struct audio_reader *reader, enum partita_type type, void *frames, size_t n,
                size_t *ret_n, struct fault *fault);

// Leaves out the next n frames; going beyond the end is not an error and stops there.
bool audio_skip(struct audio_reader *reader, uint64_t n, struct fault *fault);

// Frames read or skipped so far.
uint64_t audio_position(const struct audio_reader *reader);

// After the end: what was missing, as a sentence; NULL if the file was whole.
const char *audio_shortfall(const struct audio_reader *reader);

// Whether reading stopped because the wake descriptor asked for it.
bool audio_interrupted(const struct audio_reader *reader);
void audio_reader_close(struct audio_reader *reader);

struct audio_writer;

// Creates `path`. info: container, encoding, channels, rate, rank, and frames where known.
bool audio_create(struct audio_writer **ret_writer, const char *path, const struct audio_info *info,
                  struct fault *fault);

// Goes on with `path`, of which `partial` holds `frames` frames already and maybe more, with these
// counts; 0: begins it. What is unfinished stays under the name `partial`. WAV, .npy and raw only,
// and info->frames known.
bool audio_resume(struct audio_writer **ret_writer, const char *path, const char *partial,
                  const struct audio_info *info, uint64_t frames,
                  const struct sample_counts *counts, struct fault *fault);

// Waits until all that was written is on the disk; the counts so far.
bool audio_sync(struct audio_writer *writer, struct sample_counts *ret_counts, struct fault *fault);

bool audio_write(struct audio_writer *writer, enum partita_type type, const void *frames, size_t n,
                 struct fault *fault);

// Completes the headers, checks that every byte arrived, and gives the file its name. The writer is
// gone afterwards, also on failure.
bool audio_finish(struct audio_writer *writer, struct sample_counts *ret_counts,
                  struct fault *fault);

// The same of a file; returns when its samples and its name are on the disk, in this order.
bool audio_finish_durably(struct audio_writer *writer, struct sample_counts *ret_counts,
                          struct fault *fault);

// The same for sound that cannot be had again: after a failed write the file is completed with the
// frames that arrived, as many as *ret_frames (0 for pipes and devices, where there is nothing to
// complete), and where it cannot be given its name it stays under its temporary one. False only if
// there is no such file then.
bool audio_save(struct audio_writer *writer, struct sample_counts *ret_counts, uint64_t *ret_frames,
                struct fault *fault);

// Removes what was written. NULL is allowed.
void audio_discard(struct audio_writer *writer);

#endif
