// SPDX-License-Identifier: MIT
// The control thread's loops: keys, signals, the screen or a line per second, reloading of filters,
// and the check that the device is alive; and with --retry what it does while there is no device.
#ifndef PARTITA_APPS_LIVE_CONTROL_H
#define PARTITA_APPS_LIVE_CONTROL_H

#include "session.h"

// Returns when the session has ended or the device is lost (session->lost). signals: of
// signals_install.
void control_run(struct session *session, int signals);

// While there is no audio device commands are answered, and signals awaited.
struct waiting {
    struct remotes remotes;
    int signals;                                  // of signals_install
    char reason[sizeof((struct fault *)0)->text]; // why there is none
    double seconds;                               // played so far
    bool ended;                                   // the user or a signal has ended the program
};

// Serves for this time. False: the user ends the program. SIGHUP is ignored, since no filter is
// loaded.
bool waiting_pause(struct waiting *waiting, double seconds);

// The same without waiting, as a function for timed_call_meanwhile.
bool waiting_serve(void *waiting);

#endif
