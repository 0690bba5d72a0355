// SPDX-License-Identifier: MIT
// The status of a session: on the terminal's screen, as a line of JSON, and as a summary at the
// end.
#ifndef PARTITA_APPS_LIVE_STATUS_H
#define PARTITA_APPS_LIVE_STATUS_H

#include "session.h"

// Redraws the screen; `message` fills its last two lines.
void status_draw(struct session *session, const char *message);

// One line of JSON, which the caller frees. final: of the whole session. NULL: out of memory.
char *status_compose_json(struct session *session, bool final);

// Prints the summary on standard error, unless --quiet.
void status_conclude(struct session *session);

#endif
