// SPDX-License-Identifier: MIT
// The names of the files that a run writes.
#ifndef PARTITA_APPS_LIVE_OUTPUT_NAMES_H
#define PARTITA_APPS_LIVE_OUTPUT_NAMES_H

#include "cli/options.h"

// "dir/name.wav" of take 3 -> "dir/name-3.wav", of take 1 itself; to be freed. NULL: out of memory.
char *output_names_take(const char *path, int take);

// Says no if the recording of this take or the list of calls would be written over an impulse
// response, or both into one file.
bool output_names_check(const struct settings *settings, int take, struct fault *fault);

#endif
