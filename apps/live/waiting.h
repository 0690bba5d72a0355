// SPDX-License-Identifier: MIT
// What `partita live --retry` does while there is no audio device: it answers the control socket
// and OSC, and waits for signals.
#ifndef PARTITA_APPS_LIVE_WAITING_H
#define PARTITA_APPS_LIVE_WAITING_H

#include "control/osc.h"
#include "control/socket.h"
#include "control/web.h"
#include "steer.h"

struct waiting {
    struct control_socket *socket; // NULL: none
    struct osc *osc;               // NULL: none
    struct web *web;               // NULL: none
    int signals;                   // of signals_install
    struct steer_waiting steer;    // `ended` also after a signal
};

// Serves for this time. False: the user ends the program. SIGHUP is ignored, since no filter is
// loaded.
bool waiting_pause(struct waiting *waiting, double seconds);

// The same without waiting, as a function for timed_call_meanwhile.
bool waiting_serve(void *waiting);

#endif
