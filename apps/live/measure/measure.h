// SPDX-License-Identifier: MIT
// `partita live --measure`: measures latency and impulse response of the path from output 1 to each
// input.
#ifndef PARTITA_APPS_LIVE_MEASURE_H
#define PARTITA_APPS_LIVE_MEASURE_H

#include "cli/options.h"

// Prints the results or the error, and returns the program's exit status. Resolves times in
// `settings` at the rate of the device. signals: of signals_install. The caller checks
// timed_call_hangs.
int measure_run(struct settings *settings, int signals, struct fault *fault);

#endif
