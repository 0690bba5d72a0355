// SPDX-License-Identifier: MIT
// Commands as Open Sound Control messages over UDP: /partita/gain with the number -6 is the line
// "gain -6". Nothing here blocks.
#ifndef PARTITA_APPS_CONTROL_OSC_H
#define PARTITA_APPS_CONTROL_OSC_H

#include "base/fault.h"

struct osc;

// Receives at PORT or HOST:PORT, with a port from 1 to 65535 and an address as HOST; without HOST
// from this machine only. False, with a fault, also if the program was built without liblo.
bool osc_open(struct osc **ret, const char *address, struct fault *fault);

// Accepts NULL.
void osc_close(struct osc *osc);

// The descriptor to wait for; -1 for NULL.
int osc_file(const struct osc *osc);

// Executes one line, which it may change.
typedef void osc_line_fn(void *user, char *line);

// Receives and executes what has arrived, at most some messages. Others than /partita/ are ignored,
// and so are messages of a button that is released: a 0 for a command without argument.
void osc_serve(struct osc *osc, osc_line_fn *run, void *user);

// Sends a message to where the last one came from. types: a character for each further argument,
// 'f' for a double, 'i' for an int, 's' for a text.
void osc_send(struct osc *osc, const char *path, const char *types, ...);

#endif
