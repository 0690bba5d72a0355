// SPDX-License-Identifier: MIT
// An output that appears under its name only when it is complete: written to a temporary file in
// the same directory and renamed at the end. Pipes, devices and standard output are written
// directly.
#ifndef PARTITA_APPS_TEMP_H
#define PARTITA_APPS_TEMP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/fault.h"

struct temp {
    char *final;     // the name to appear; NULL: written directly
    char *temporary; // the name it has until then
    bool keep;       // what is unfinished stays for a later run
};

// Whether `path` is written directly: standard output ("-"), a pipe, a device.
bool temp_is_special(const char *path);

// The name of the file that `path` stands for, behind a symbolic link, and the mode it has or will
// have; to be freed. NULL: it cannot be written. `path` is not special.
char *temp_final(const char *path, mode_t *ret_mode, struct fault *fault);

// Opens `path` for writing ("-" is standard output) and returns the descriptor, or -1.
int temp_open(struct temp *temp, const char *path, struct fault *fault);

// The same for a file that may exist in part, under a name of its own in the folder of temp_final,
// and that stays there until it is complete. `path` is not special.
int temp_resume(struct temp *temp, const char *path, const char *partial, struct fault *fault);

// Gives the finished file its name. The descriptor is closed already. durable: waits until the name
// is on the disk.
bool temp_commit(struct temp *temp, bool durable, struct fault *fault);

// Removes the unfinished file. Safe to call at any time and twice.
void temp_discard(struct temp *temp);

// The same for a signal handler: removes what temp_open made last and nobody has committed.
void temp_discard_on_signal(void);

// The unfinished file that temp_open made last, NULL if there is none. Safe in signal handlers.
const char *temp_pending(void);

// Says no if `path` names the same file as one of `inputs` ("-": the standard streams).
bool temp_differs(const char *path, const char *const *inputs, int n_inputs, struct fault *fault);

#endif
