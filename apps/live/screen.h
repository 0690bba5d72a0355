// SPDX-License-Identifier: MIT
// The status of a session on the terminal's screen, redrawn in place.
#ifndef PARTITA_APPS_LIVE_SCREEN_H
#define PARTITA_APPS_LIVE_SCREEN_H

#include "session.h"

// Zero at first.
struct screen {
    int columns, rows; // of the terminal, as last drawn
    int n_drawn;       // complete lines, above the cursor
    bool shows_keys, showed_keys;
};

// Draws levels, load, losses, latency and filter, and `message` in the last two lines; with
// shows_keys the list of keys instead. Lines are cut to the width of the terminal. If they exceed
// its height, everything is in one line.
void screen_draw(struct screen *screen, const struct session *session, const char *message);

#endif
