// SPDX-License-Identifier: MIT
// The control thread's loop: keys, signals, the screen or a line per second, reloading of filters,
// and the check that the device is alive.
#ifndef PARTITA_APPS_LIVE_CONTROL_H
#define PARTITA_APPS_LIVE_CONTROL_H

#include "session.h"

// Returns when the session has ended or the device is lost (session->lost). signals: of
// signals_install.
void control_run(struct session *session, int signals);

#endif
