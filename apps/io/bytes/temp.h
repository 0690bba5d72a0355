// SPDX-License-Identifier: MIT
// An output file that appears under its name only when it is complete: it is written to a temporary
// file in the same directory, which is renamed at the end. Pipes, devices and standard output are
// written directly.
#ifndef PARTITA_APPS_TEMP_H
#define PARTITA_APPS_TEMP_H

#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "base/fault.h"

struct temp {
    char *final;     // the name of the complete file; NULL: written directly
    char *temporary; // its name until then
    bool keep;       // temp_discard does not remove the unfinished file
    bool beside;     // its name was derived from that of another file
    bool is_recording;
    int pending; // 1 + its index in the list of unfinished files; 0: none
};

// The name of a file without its folder.
static inline const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Whether a file's name has more than this suffix, whose case does not count, at its end.
static inline bool path_ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcasecmp(path + n - m, suffix) == 0;
}

// Whether `path` is written directly: standard output ("-"), a pipe, a device.
bool temp_is_special(const char *path);

// The file that `path` names, with symbolic links resolved, and its present or future mode. The
// caller frees the name. NULL: it cannot be written. `path` is not special.
char *temp_final(const char *path, mode_t *ret_mode, struct fault *fault);

// Opens `path` for writing ("-" is standard output) and returns the descriptor, or -1. A recording
// cannot be repeated: until it is finished it has a name that users see, that of
// temp_recording_name with the lowest number that is free, and is left there if the process ends.
int temp_open(struct temp *temp, const char *path, bool is_recording, struct fault *fault);

// FINAL.partial, FINAL.2.partial, FINAL.3.partial .., counted from 1; of names of more than 200
// bytes the rest is left out. The caller frees it. NULL: out of memory.
char *temp_recording_name(const char *final, int number);

// Whether this is an unfinished recording of a process that has ended.
bool temp_is_left(const char *recording);

// The same for a file that may already exist in part under the name `partial`, in the folder of
// temp_final, and that temp_discard keeps. `path` is not special.
int temp_resume(struct temp *temp, const char *path, const char *partial, struct fault *fault);

// Writes a whole file of text that belongs to an output but whose name the user did not give: a
// file or symbolic link of this name is replaced, not followed. Only temp_commit makes it visible.
// durable: waits until the text is on the disk. Frees the text; NULL: there was no memory for it.
bool temp_write_beside(struct temp *temp, const char *path, char *text, bool durable,
                       struct fault *fault);

// The same, and makes it visible.
bool temp_write_text(const char *path, char *text, bool durable, struct fault *fault);

// Opens a temporary file without a name, for reading and writing, and returns the descriptor, or
// -1. It is in the folder of `path`, or where `path` is special in $TMPDIR or /var/tmp.
int temp_open_unnamed(const char *path, struct fault *fault);

// Renames the finished file, whose descriptor is closed, to its final name. durable: waits until
// the rename is on the disk.
bool temp_commit(struct temp *temp, bool durable, struct fault *fault);

// Removes the unfinished file. May be called at any time, also twice.
void temp_discard(struct temp *temp);

// The same for signal handlers and the end of the process: removes all files that were not
// committed, except recordings.
void temp_discard_on_signal(void);

// The unfinished file that temp_open created last; NULL: none. Safe in
// signal handlers.
const char *temp_pending(void);

// False, with a fault, if `path` names the same file as one of `inputs` ("-": the standard
// streams).
bool temp_differs(const char *path, const char *const *inputs, int n_inputs, struct fault *fault);

#endif
