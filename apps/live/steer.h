// SPDX-License-Identifier: MIT
// Executes the commands of control/table.h, wherever they come from.
#ifndef PARTITA_APPS_LIVE_STEER_H
#define PARTITA_APPS_LIVE_STEER_H

#include "control/table.h"
#include "session.h"

// True, with a warning, for a level in decibels that is probably a mistake.
bool steer_doubt_level(const char *name, double decibels, struct fault *ret_warning);

// Changes the level, fade or direction that a command is for.
void steer_set_value(struct live_state *state, const struct control_command *command);

// Executes a line for a session. Without an answer a file is being read, which a filter_set_poll
// reports; with a fault nothing has changed.
control_line_fn steer_run;

// Executes a line for a struct waiting: `status`, `help` and `quit`; other commands fail.
control_line_fn steer_run_waiting;

// The line that answers a command whose file has been read. The caller frees it; NULL: out of
// memory.
char *steer_compose_news(struct session *session, const struct filter_set_news *news);

// The status as a line for subscribers. The caller frees it; NULL: out of memory.
char *steer_compose_event(const struct session *session);

#endif
