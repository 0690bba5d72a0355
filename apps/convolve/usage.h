// SPDX-License-Identifier: MIT
// Options of `partita convolve`, `correlate` and `channelize` that contradict each other or the
// files; and IN, as they describe it.
#ifndef PARTITA_APPS_USAGE_H
#define PARTITA_APPS_USAGE_H

#include "cli/options.h"
#include "io/audio.h"
#include "processes/processes.h"

// Not for an OUT that is left out, which is NULL.
bool is_standard(const char *path);

// Joins the processes of mpirun, unless --range is given: the first speaks for all. Then checks the
// options.
bool usage_begin(struct settings *settings, struct processes *processes, struct fault *fault);

// Opens IN.
bool usage_open_signal(struct audio_reader **ret_reader, const struct settings *settings,
                       struct fault *fault);

// Checks --tune. rate: of IN; 0: unknown.
bool usage_check_tune(const struct settings *settings, double rate, struct fault *fault);

#endif
