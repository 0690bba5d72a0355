// SPDX-License-Identifier: MIT
// The loop beside the sound: keys, signals, the screen or a line a second, filters read again, and
// the watch over the device.
#ifndef PARTITA_APPS_LIVE_CONTROL_H
#define PARTITA_APPS_LIVE_CONTROL_H

#include "session.h"

// Runs until the session has ended or the device is lost (session->lost). signals: of
// signals_install.
void control_run(struct session *session, int signals);

#endif
