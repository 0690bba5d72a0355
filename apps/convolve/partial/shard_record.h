// SPDX-License-Identifier: MIT
// The record of a shard, a small JSON file beside an output: which part of which result the output
// holds, and how much of it is written. Records are replaced atomically.
#ifndef PARTITA_APPS_SHARD_RECORD_H
#define PARTITA_APPS_SHARD_RECORD_H

#include <stdint.h>

#include "base/fault.h"
#include "io/samples/encoding.h"

struct shard_record {
    uint64_t key;              // hash of the command: equal keys mean equal results
    uint64_t first, end;       // samples of the result that belong into the file
    uint64_t total;            // samples of the whole result
    uint64_t done;             // samples written, of end - first
    int64_t input_time;        // time of the input's last change, ns
    uint64_t input;            // audio_reader_fingerprint
    uint64_t digest;           // audio_digest of the samples written
    uint64_t clipped, invalid; // counts of the samples written
    char format[ENCODING_NAME_SIZE];
};

// Writes a temporary file, syncs and renames it.
bool shard_record_write(const char *path, const struct shard_record *record, struct fault *fault);

// Parses digits, without sign or spaces. Returns what follows them, or NULL.
const char *shard_record_digits(const char *text, uint64_t *ret);

// Without the file it succeeds, with *ret_exists false.
bool shard_record_read(const char *path, struct shard_record *ret_record, bool *ret_exists,
                       struct fault *fault);

// Removes the file if it is a record. Any other file of that name stays.
bool shard_record_remove(const char *path, struct fault *fault);

// The name of the record beside a file, which the caller frees. NULL: out of memory.
char *shard_record_path(const char *output, struct fault *fault);

// Before an output gets new contents: removes the record beside it, and beside the file that it
// links to.
bool shard_record_discard(const char *output, struct fault *fault);

#endif
