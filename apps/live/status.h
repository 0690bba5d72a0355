// SPDX-License-Identifier: MIT
// The status of a session as JSON, and as a summary at the end. The screen is in screen.h.
#ifndef PARTITA_APPS_LIVE_STATUS_H
#define PARTITA_APPS_LIVE_STATUS_H

#include <jansson.h>

#include "session.h"

// Adds what the user can change to an object, or everything. final: of the whole session.
void status_put_settings(json_t *object, const struct session *session);
void status_put_all(json_t *object, const struct session *session, bool final);

// The response of the current filter, and with the levels that of what is played.
json_t *status_response(const struct session *session);

// The object as a line, which the caller frees; releases the object. NULL: out of memory.
char *status_dump(json_t *object);

// One line of JSON, which the caller frees. NULL: out of memory.
char *status_compose_json(const struct session *session, bool final);

// Prints the summary on standard error, unless --quiet.
void status_conclude(const struct session *session);

#endif
