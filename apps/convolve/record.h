// SPDX-License-Identifier: MIT
// What a small JSON file beside an output says of it: which part of which result it holds, and how
// much of that is there. Written whole or not at all.
#ifndef PARTITA_APPS_RECORD_H
#define PARTITA_APPS_RECORD_H

#include <stdint.h>

#include "base/fault.h"
#include "io/samples/encoding.h"

struct record {
    uint64_t key;              // of the command: equal keys, equal results
    uint64_t first, end;       // samples of the wanted result that the file is to hold,
    uint64_t total;            // of so many
    uint64_t done;             // of end - first
    int64_t input_time;        // nanoseconds: when the input was last changed
    uint64_t clipped, invalid; // of the samples written
    char format[ENCODING_NAME_SIZE];
};

// Through a temporary file that is synchronised and renamed.
bool record_write(const char *path, const struct record *record, struct fault *fault);

// *ret_exists is false, without a fault, if there is no such file.
bool record_read(const char *path, struct record *ret_record, bool *ret_exists,
                 struct fault *fault);

// Removes it if it is a record; another file of that name, which is no record to `partita join`
// either, stays.
bool record_remove(const char *path, struct fault *fault);

// The name of the record beside a file; to be freed. NULL: out of memory.
char *record_path(const char *of, struct fault *fault);

// Before the output gets new contents: what the record beside it, or beside what it is a symbolic
// link to, says is no longer true then.
bool record_forget(const char *output, struct fault *fault);

#endif
