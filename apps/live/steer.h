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

// Executes a line, which is changed. True: done, or with reply->ticket under way until a
// filter_set_poll reports that request. False, with a fault: nothing has changed. Sets ticket and
// period of the reply, and its line if `answers`.
bool steer_run(struct session *session, char *line, bool answers, struct control_reply *reply,
               struct fault *fault);

// Executes a line that came by OSC, and sends /partita/error with a text if it fails, or for
// `status` a message for each value.
void steer_run_osc(void *session, char *line);

// What there is instead of a session while the program waits for the audio device.
struct steer_waiting {
    char reason[sizeof((struct fault *)0)->text]; // why there is none
    double seconds;                               // played so far
    bool ended;                                   // the user has ended the program
};

// Executes a line then, and answers it: `status`, `help` and `quit`; other commands fail.
bool steer_run_waiting(struct steer_waiting *waiting, char *line, struct control_reply *reply,
                       struct fault *fault);

// The same for a line that came by OSC.
void steer_run_osc_waiting(struct steer_waiting *waiting, struct osc *osc, char *line);

// The line that answers a command whose file has been read. The caller frees it; NULL: out of
// memory.
char *steer_compose_news(struct session *session, const struct filter_set_news *news);

// Tells the same to the sender of an OSC message.
void steer_send_news(struct session *session, const struct filter_set_news *news);

// The status as a line for subscribers. The caller frees it; NULL: out of memory.
char *steer_compose_event(const struct session *session);

#endif
