// SPDX-License-Identifier: MIT
// How a run is going: as lines for the terminal's screen, as one line of JSON, as sentences at the
// end.
#ifndef PARTITA_APPS_LIVE_STATUS_H
#define PARTITA_APPS_LIVE_STATUS_H

#include "session.h"

// Draws the screen over the one before; `news` is its last two lines.
void status_draw(struct session *session, const char *news);

// One line of JSON; to be freed. final: of the whole run. NULL: out of memory.
char *status_compose_json(struct session *session, bool final);

// What happened, on standard error, unless --quiet.
void status_conclude(struct session *session);

#endif
