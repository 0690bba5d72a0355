// SPDX-License-Identifier: MIT
// The user's terminal: keys as they are pressed, and as it was at every exit.
#ifndef PARTITA_APPS_LIVE_TERMINAL_H
#define PARTITA_APPS_LIVE_TERMINAL_H

#include <stdbool.h>

// Whether there is one, for both keys and screen, and it is ours: of a program in the background it
// is another's.
bool terminal_is_there(void);

// Remembers which of the standard streams are terminals; tells whether one of those has gone since.
void terminal_remember(void);
bool terminal_has_gone(void);

// Gives keys one by one and does not show them. ^C stays a signal; ^Z is off, since a stopped
// program is a silent one.
void terminal_take(void);

// As it was, unless it is another's by now. Safe in signal handlers and at any time.
void terminal_restore(void);

// The next key, 0 if none is pressed.
int terminal_key(void);

#endif
