// SPDX-License-Identifier: MIT
// The terminal: reads single keys, and is restored at every exit. Signals are bytes in a pipe, so
// that one loop can wait for signals and keys.
#ifndef PARTITA_APPS_LIVE_TERMINAL_H
#define PARTITA_APPS_LIVE_TERMINAL_H

#include <stdbool.h>

// Whether standard input and standard error are terminals and the program is in the foreground.
bool terminal_available(void);

// terminal_remember stores which of the standard streams are terminals; terminal_has_gone: whether
// one of them has disappeared since.
void terminal_remember(void);
bool terminal_has_gone(void);

// Switches to unbuffered keys without echo. ^C remains a signal; ^Z is disabled, since a stopped
// program is silent.
void terminal_enter_raw(void);

// Restores the previous mode, if the program is still in the foreground. Safe at any time and in
// signal handlers.
void terminal_restore(void);

// The next key; 0: none is pressed.
int terminal_read_key(void);

// Installs the handlers and returns the descriptor from which SIGINT, SIGTERM, SIGQUIT and SIGHUP
// can be read, or -1 on failure. After one of the first three, another one restores the terminal,
// prints the name of the unfinished recording and ends the program by that signal. SIGPIPE,
// SIGXFSZ, SIGTTIN and SIGTTOU are ignored, so that calls fail instead.
int signals_install(void);

// The next signal; 0: none.
int signals_next(int descriptor);

#endif
