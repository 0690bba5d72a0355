// SPDX-License-Identifier: MIT
// Byte input and output below every file format: descriptors of files and pipes, or plain memory
// (for the fuzz targets). Short reads and writes, EINTR and EAGAIN are handled here. The first
// error is stored and ends all later input or output.
#ifndef PARTITA_APPS_BYTES_H
#define PARTITA_APPS_BYTES_H

#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fault.h"

#define SIZE_UNKNOWN UINT64_MAX

enum { SOURCE_MAX_PEEK = 64 };

// Bytes of the file that are not part of the source, before its byte `at`.
struct source_gap {
    uint64_t at, bytes;
};

struct source {
    const char *name; // for messages
    int fd;           // -1: memory
    int wake_fd;      // when readable, input ends here; -1: none
    const unsigned char *memory;
    uint64_t base;     // file offset of position 0
    uint64_t size;     // in bytes, or SIZE_UNKNOWN
    uint64_t position; // of the next byte
    bool seekable;
    bool interrupted;                      // wake_fd ended the input
    int error;                             // errno of the read that failed, else 0
    unsigned char peeked[SOURCE_MAX_PEEK]; // peeked at and not yet read
    size_t n_peeked;
    SHA2_CTX *digest; // SHA-512 of all bytes so far; NULL: not wanted, or bytes were skipped
    const struct source_gap *gaps; // by position; see source_restrict
    size_t n_gaps, next_gap;
    bool bounded;      // it may end before its file does
    uint64_t trailing; // bytes after it that belong to the digest
};

// Opens a file by name; "-" is standard input. wake_fd: see struct source.
bool source_open(struct source *source, const char *path, int wake_fd, struct fault *fault);
void source_from_memory(struct source *source, const void *memory, size_t size);
void source_close(struct source *source);

// Opens a small file for reading, which must be a regular one: anything else fails at once, where
// reading a pipe might wait without end. NULL, with a fault and errno.
FILE *regular_open(const char *path, struct fault *fault);

// Such a file as a text, without the mark of the order of bytes that some editors write in front,
// and with newlines in place of the carriage returns of old files, for free; NULL, with a fault.
char *regular_read_text(const char *path, struct fault *fault);

// Restricts a source at position 0 to the `size` bytes from `offset` on (SIZE_UNKNOWN: up to its
// end), without `trailing` bytes at their end and without the gaps, which the caller keeps. False,
// with a fault, if the file is too short.
struct source_part {
    uint64_t offset, size, trailing;
    const struct source_gap *gaps;
    size_t n_gaps;
};
bool source_restrict(struct source *source, const struct source_part *part, struct fault *fault);

// At the end of a restricted source: adds the bytes after it to the digest.
void source_digest_rest(struct source *source);

// Reads n bytes; fewer only at the end of the input or on an error (source->error).
size_t source_read(struct source *source, void *to, size_t n);

// Waits until at least one byte is available and reads up to n; 0 at the end of the input.
size_t source_read_some(struct source *source, void *to, size_t n);

// Looks at the next n <= SOURCE_MAX_PEEK bytes without consuming them; returns how many are
// available.
size_t source_peek(struct source *source, size_t n, const unsigned char **ret_bytes);

// Copies up to n of the next bytes that a pipe has within a moment; another reader of the pipe can
// still read them. Returns how many: 0 also for what is no pipe.
size_t source_glimpse(struct source *source, void *to, size_t n);

// Moves to a position. A source that cannot seek moves forward only, by reading the bytes in
// between. False if the input ends before.
bool source_seek(struct source *source, uint64_t position);

struct sink {
    const char *name;
    int fd;
    uint64_t base;     // file offset of position 0
    uint64_t position; // of the next byte
    uint64_t end;      // the largest position so far
    bool seekable;     // earlier bytes can be overwritten
    int error;         // errno of the write that failed, else 0
};

// Takes ownership of an open descriptor.
void sink_from_fd(struct sink *sink, int fd, const char *name);

bool sink_write(struct sink *sink, const void *data, size_t n);

// Overwrites bytes of a seekable sink that are already written; the position does not change.
bool sink_patch(struct sink *sink, uint64_t at, const void *data, size_t n);

// Moves the position of a seekable sink.
bool sink_seek(struct sink *sink, uint64_t position);

// Closes the descriptor. False if any write failed. May be called twice.
bool sink_close(struct sink *sink);

// Writes the error message of a failed sink; returns false.
bool sink_fault(const struct sink *sink, struct fault *fault);

#endif
