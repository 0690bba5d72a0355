// SPDX-License-Identifier: MIT
// An output that appears under its name only when it is complete: written to a temporary file in the same directory
// and renamed at the end. Pipes, devices and standard output are written directly.
#ifndef PARTITA_APPS_TEMP_H
#define PARTITA_APPS_TEMP_H

#include <stdbool.h>

#include "../fault.h"

struct temp {
    char *final;     // the name to appear; NULL: written directly
    char *temporary; // the name it has until then
    bool keep;       // what is unfinished stays for a later run
};

// Opens `path` for writing ("-" is standard output) and returns the descriptor, or -1.
int temp_open(struct temp *temp, const char *path, struct fault *fault);

// The same for a file that may exist in part, under a name of its own, and that stays there until it is complete.
int temp_resume(struct temp *temp, const char *path, const char *partial, struct fault *fault);

// Gives the finished file its name. The descriptor is closed already.
bool temp_commit(struct temp *temp, struct fault *fault);

// Removes the unfinished file. Safe to call at any time and twice.
void temp_discard(struct temp *temp);

// The same for a signal handler: removes what temp_open made last and nobody has committed.
void temp_discard_on_signal(void);

// Says no if `path` names the same file as one of `inputs` ("-": the standard streams).
bool temp_differs(const char *path, const char *const *inputs, int n_inputs, struct fault *fault);

#endif
