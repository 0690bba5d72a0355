// SPDX-License-Identifier: MIT
// Restart after the loss of the device (--retry). PortAudio may hang for ever in the client of a
// dead server, so the program executes itself anew and passes its state in an open file.
#ifndef PARTITA_APPS_LIVE_RESTART_H
#define PARTITA_APPS_LIVE_RESTART_H

#include <stdbool.h>

#include "control/socket.h"
#include "io/formats/sofa.h"

// What the user changes while the program plays.
struct live_state {
    double gain, wet, dry, input_gain; // dB; -INFINITY: off
    double fade;                       // ms
    struct sofa_direction direction;   // of a SOFA file
    bool mute, bypass;
};

struct restart {
    int take;   // of the recording, from 1 on
    int filter; // index of the current filter or scene
    struct live_state state;
    double played; // s
    bool waiting;  // for a device; the user has been told
    struct control_kept socket;
};

// Reads the state of the previous process. False, with take 1, if there is none.
bool restart_read(struct restart *ret);

// Executes `partita` with the same arguments. All descriptors but the standard streams and the
// control socket, which may be NULL, are closed, so that a server sees that its client is gone.
// Returns only on failure.
void restart_exec(const struct restart *restart, const struct control_socket *socket, char **argv);

#endif
