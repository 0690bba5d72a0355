// SPDX-License-Identifier: MIT
// The names of the files that a live run writes.
#ifndef PARTITA_APPS_LIVE_OUTPUT_NAMES_H
#define PARTITA_APPS_LIVE_OUTPUT_NAMES_H

#include "cli/options.h"

// "dir/name.wav" for take 3 -> "dir/name-3.wav"; for take 1 unchanged. The caller frees it. NULL:
// out of memory.
char *output_names_take(const char *path, int take);

// False, with a fault, if the recording of this take or the call log would overwrite an impulse
// response, or both are one file.
bool output_names_check(const struct settings *settings, int take, struct fault *fault);

#endif
