// SPDX-License-Identifier: MIT
// `partita live --measure`: the impulse response of the path from output 1 to the inputs, and how
// long it takes.
#ifndef PARTITA_APPS_LIVE_MEASURE_H
#define PARTITA_APPS_LIVE_MEASURE_H

#include "cli/options.h"

// Returns the program's exit status; says why if it is not 0. signals: of signals_install. The host
// may hang afterwards.
int measure_run(const struct settings *settings, int signals);

#endif
