// SPDX-License-Identifier: MIT
// Bytes in and bytes out, below every file format: descriptors of files, pipes and terminals, or
// plain memory (for the fuzz targets). Short reads and writes, EINTR and EAGAIN end here; the first
// error is kept and never forgotten.
#ifndef PARTITA_APPS_BYTES_H
#define PARTITA_APPS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

#define SIZE_UNKNOWN UINT64_MAX

enum { SOURCE_AHEAD = 64 };

struct source {
    const char *name; // for messages
    int fd;           // -1: memory
    int wake_fd;      // readable: stop as if at the end; -1: none
    const unsigned char *memory;
    uint64_t base;     // where in the file this source starts
    uint64_t size;     // bytes in all, or SIZE_UNKNOWN
    uint64_t position; // of the next byte
    bool seekable;
    bool interrupted;                  // wake_fd ended it
    int error;                         // errno of the read that failed, 0 without
    unsigned char ahead[SOURCE_AHEAD]; // peeked and not yet taken
    size_t n_ahead;
};

// Opens a file by name; "-" is standard input. wake_fd: see above.
bool source_open(struct source *source, const char *path, int wake_fd, struct fault *fault);
void source_from_memory(struct source *source, const void *memory, size_t size);
void source_close(struct source *source);

// Reads n bytes, fewer only at the end or on an error (source->error).
size_t source_read(struct source *source, void *to, size_t n);

// Reads between 1 and n bytes, as soon as there are any; 0 at the end.
size_t source_read_some(struct source *source, void *to, size_t n);

// Looks at the next n <= SOURCE_AHEAD bytes; returns how many there are.
size_t source_peek(struct source *source, size_t n, const unsigned char **ret_bytes);

// Moves to a position: any of a seekable source, a later one of any other (the bytes between are
// read). False at an early end.
bool source_seek(struct source *source, uint64_t position);

struct sink {
    const char *name;
    int fd;
    uint64_t base;     // file offset of position 0
    uint64_t position; // of the next byte
    uint64_t end;      // the furthest position so far
    uint64_t given;    // to the disk: what lies before this position
    bool seekable;     // earlier bytes can be patched
    int error;         // errno of the write that failed, 0 without
};

// Takes over an open descriptor.
void sink_from_fd(struct sink *sink, int fd, const char *name);

bool sink_write(struct sink *sink, const void *data, size_t n);

// Overwrites bytes already written, of a seekable sink; the position stays.
bool sink_patch(struct sink *sink, uint64_t at, const void *data, size_t n);

// Moves the position of a seekable sink.
bool sink_seek(struct sink *sink, uint64_t position);

// Closes the descriptor and tells whether everything arrived; safe to call twice.
bool sink_close(struct sink *sink);

// The sentence for a failed sink; returns false.
bool sink_fault(const struct sink *sink, struct fault *fault);

#endif
