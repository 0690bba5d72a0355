// SPDX-License-Identifier: MIT
// Signals as bytes in a pipe, so that one loop can wait for signals and keys.
#ifndef PARTITA_APPS_LIVE_SIGNALS_H
#define PARTITA_APPS_LIVE_SIGNALS_H

// Installs the handlers and returns the descriptor from which SIGINT, SIGTERM, SIGQUIT and SIGHUP
// can be read, or -1 on failure. After one of the first three, another one restores the terminal,
// prints the name of the unfinished recording and ends the program by that signal. SIGPIPE,
// SIGXFSZ, SIGTTIN and SIGTTOU are ignored, so that calls fail instead.
int signals_install(void);

// The next signal; 0: none.
int signals_next(int descriptor);

#endif
