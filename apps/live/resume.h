// SPDX-License-Identifier: MIT
// Starting over after the device was lost (--retry). PortAudio may hang for ever inside a dead
// server's client, so the program replaces itself by a fresh copy, and tells that one how far it
// was.
#ifndef PARTITA_APPS_LIVE_RESUME_H
#define PARTITA_APPS_LIVE_RESUME_H

#include <stdbool.h>

struct resume {
    int take;      // of the recording, from 1 on
    int filter;    // the current one
    double gain;   // dB
    double played; // s
    bool mute, bypass;
    bool waiting; // for a device, and it was told
};

// What the copy before left; false, and take 1, if there was none.
bool resume_read(struct resume *ret);

// Becomes `partita` with the same arguments; argv[0] is the subcommand. Of open files the standard
// streams alone go along: a server must see that its client is gone. Returns only if that fails.
void resume_as_new(const struct resume *resume, int argc, char **argv);

#endif
