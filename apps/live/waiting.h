// SPDX-License-Identifier: MIT
// What `partita live --retry` does while there is no audio device: it answers commands, and waits
// for signals.
#ifndef PARTITA_APPS_LIVE_WAITING_H
#define PARTITA_APPS_LIVE_WAITING_H

#include "steer.h"

struct waiting {
    struct remotes remotes;
    int signals;                // of signals_install
    struct steer_waiting steer; // `ended` also after a signal
};

// Serves for this time. False: the user ends the program. SIGHUP is ignored, since no filter is
// loaded.
bool waiting_pause(struct waiting *waiting, double seconds);

// The same without waiting, as a function for timed_call_meanwhile.
bool waiting_serve(void *waiting);

#endif
