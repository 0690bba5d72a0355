// SPDX-License-Identifier: MIT
// Signals as bytes in a pipe, so that one loop waits for them and for keys alike.
#ifndef PARTITA_APPS_LIVE_SIGNALS_H
#define PARTITA_APPS_LIVE_SIGNALS_H

// From now on SIGINT, SIGTERM and SIGHUP are bytes to read from the descriptor returned, -1
// without; a second SIGINT or SIGTERM, or a SIGQUIT, ends the program at once, as if nobody had
// caught it, after the terminal is as it was and with a word about the file that is left
// unfinished. SIGPIPE, SIGXFSZ, SIGTTIN and SIGTTOU are ignored: calls fail instead.
int signals_install(void);

// The next signal that came, 0 if none did.
int signals_next(int descriptor);

#endif
