// SPDX-License-Identifier: MIT
// Signals in files and pipes of any format: open, get the shape, read or write interleaved frames
// of one of the library's four sample types, close.
#ifndef PARTITA_APPS_AUDIO_H
#define PARTITA_APPS_AUDIO_H

#include <partita/problem.h>

#include "io/formats/container.h"
#include "io/samples/samples.h"

struct audio_reader;

bool audio_open(struct audio_reader **ret_reader, const struct audio_request *request,
                struct fault *fault);

// False, with a fault, if the signal is in a pipe, a device or a folder, of which the first two may
// keep a reader waiting for ever; true also if there is no such file, which audio_open reports.
bool audio_check_regular(const char *path, struct fault *fault);

// audio_open on bytes in memory, read as from a file or as from a pipe, under the name of the
// request.
bool audio_open_memory(struct audio_reader **ret_reader, const void *bytes, size_t size,
                       bool as_pipe, const struct audio_request *request, struct fault *fault);
const struct audio_info *audio_reader_info(const struct audio_reader *reader);

// Makes one complex channel of I and Q in two channels, before the first frame is read: where that
// is `wanted`, and where the header says that they are. False, with a fault, if it is wanted of
// real samples that are not in two channels of a format with a header.
bool audio_pair_channels(struct audio_reader *reader, bool wanted, struct fault *fault);

// Whether the frames come from a pipe, so that reading may block.
bool audio_reader_is_pipe(const struct audio_reader *reader);

// The file's present size in bytes and the time of its last change in nanoseconds. False for memory
// and on errors.
bool audio_reader_state(const struct audio_reader *reader, uint64_t *ret_bytes, int64_t *ret_time);

// A hash of blocks that are spread over the whole file, the same for each run and machine that
// reads a copy of it; of a small file, of all its bytes. False, with a fault, if they cannot be
// read.
bool audio_reader_fingerprint(const struct audio_reader *reader, uint64_t *ret_hash,
                              struct fault *fault);

struct sigmf;

// The recording that the signal is; NULL: it is none.
const struct sigmf *audio_reader_recording(const struct audio_reader *reader);

// Reads up to n frames as `type`; *ret_n is 0 at the end. From a pipe it returns as soon as one
// frame is there. A complex signal must be read as a complex type.
bool audio_read(struct audio_reader *reader, enum partita_type type, void *frames, size_t n,
                size_t *ret_n, struct fault *fault);

// Skips the next n frames, or those up to the end if there are fewer.
bool audio_skip(struct audio_reader *reader, uint64_t n, struct fault *fault);

// Frames read or skipped so far.
uint64_t audio_position(const struct audio_reader *reader);

// After the end: a sentence on what the file lacks; NULL if it was complete.
const char *audio_shortfall(const struct audio_reader *reader);

// Whether reading ended because the wake descriptor became readable.
bool audio_interrupted(const struct audio_reader *reader);
void audio_reader_close(struct audio_reader *reader);

struct audio_writer;

// Creates `path`. info: container, encoding, channels, rate, rank, and frames where known.
bool audio_create(struct audio_writer **ret_writer, const char *path, const struct audio_info *info,
                  struct fault *fault);

// Makes the header of a file tell the length written so far, so that it can be read if the process
// is killed. Formats without a length, or whose length follows the samples, stay as they are.
bool audio_refresh(struct audio_writer *writer, struct fault *fault);

// An unfinished output of an earlier run.
struct audio_partial {
    const char *path;
    uint64_t frames; // frames to keep; 0: starts it
    bool keep_rest;  // what follows them is kept, too
    struct sample_counts counts;
};

// Continues `path` after the frames of `partial`, whose name the file keeps until it is finished.
// WAV, .npy and raw only; info->frames must be known. NULL: creates the file as audio_create does.
bool audio_resume(struct audio_writer **ret_writer, const char *path,
                  const struct audio_partial *partial, const struct audio_info *info,
                  struct fault *fault);

// Waits until everything written is on the disk, and returns the counts so far.
bool audio_sync(struct audio_writer *writer, struct sample_counts *ret_counts, struct fault *fault);

bool audio_write(struct audio_writer *writer, enum partita_type type, const void *frames, size_t n,
                 struct fault *fault);

// From here on the counts have a digest of the samples as the writer encodes them, which continues
// `digest`; 0: a new one. Samples that it converts neither to integers nor to the bytes of a WAV,
// .npy or raw file do not change it: floats of other formats, and text. Returns the digest of those
// written before.
uint64_t audio_digest_begin(struct audio_writer *writer, uint64_t digest);

// Frames written so far, with those of an earlier run that audio_resume kept.
uint64_t audio_written(const struct audio_writer *writer);

// Completes the header, checks for write errors, and gives the file its final name. durable: of a
// file; returns when first the samples and then the name are on the disk. Frees the writer, also on
// failure.
bool audio_finish(struct audio_writer *writer, bool durable, struct sample_counts *ret_counts,
                  struct fault *fault);

// The same for recordings that cannot be repeated: after a failed write the file is completed with
// the *ret_frames frames that were written (0 for pipes and devices). If it cannot be renamed it
// keeps its temporary name. False if no complete file exists under its name.
bool audio_finish_partial(struct audio_writer *writer, struct sample_counts *ret_counts,
                          uint64_t *ret_frames, struct fault *fault);

// Creates `path`, writes the info->frames frames and finishes it.
bool audio_write_all(const char *path, const struct audio_info *info, enum partita_type type,
                     const void *frames, struct sample_counts *ret_counts, struct fault *fault);

// Writes all that is left in the reader, multiplied by a factor.
bool audio_copy(struct audio_writer *writer, struct audio_reader *reader, enum partita_type type,
                double factor, struct fault *fault);

// A writer of frames of `type` to a temporary file without a name, near the output `path`.
bool audio_spool_create(struct audio_writer **ret_writer, const char *path, enum partita_type type,
                        size_t channels, struct fault *fault);

// audio_copy of what was written to such a file. Frees the spool, also on failure.
bool audio_spool_copy(struct audio_writer *writer, struct audio_writer *spool,
                      enum partita_type type, double factor, struct fault *fault);

// For an output, WAV, .npy or raw, whose samples several processes write: one creates it as usual,
// each writes its samples into the unfinished file, from a byte on, through a writer of its own.
// info: of the output; info->first is the number of the first frame. name: of the output. What was
// written is in the file after audio_sync, and audio_discard only frees this writer.
bool audio_create_part(struct audio_writer **ret_writer, const char *unfinished,
                       uint64_t first_byte, const char *name, const struct audio_info *info,
                       struct fault *fault);

// The file that the output is until it is finished, and the position of its first sample.
const char *audio_unfinished(const struct audio_writer *writer, uint64_t *ret_first_byte);

// Before the output is finished: `frames` frames with these counts have been written to it.
bool audio_complete(struct audio_writer *writer, uint64_t frames,
                    const struct sample_counts *counts, struct fault *fault);

// Removes the unfinished file and frees the writer. NULL is allowed.
void audio_discard(struct audio_writer *writer);

#endif
