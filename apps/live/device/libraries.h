// SPDX-License-Identifier: MIT
// The audio libraries below PortAudio. They print dozens of lines about absent devices, in which
// the relevant one is lost. And PortAudio gives the ports of a JACK client its own names and
// connects every stream to the ports of its device, and has no settings for either: calls of
// libjack that this program defines take precedence over those of the library, to which they lead.
#ifndef PARTITA_APPS_LIVE_LIBRARIES_H
#define PARTITA_APPS_LIVE_LIBRARIES_H

#include "config/network.h"

// Silences ALSA and JACK through their error handlers, if the libraries are loaded. What they and
// PortAudio print directly on standard error remains.
void libraries_silence(void);

// From now on PortAudio's streams stay unconnected.
void jack_connections_forbid(void);

// False, with a fault, if two ports would have the same name.
bool jack_connections_check(const struct network *network, struct fault *fault);

// From now on ports have the names and connections of the network, where it has any, which must
// last. NULL: PortAudio's.
void jack_connections_use(const struct network *network);

// The first port of the network to which no connection could be made; NULL: all were made.
const char *jack_connections_missing(void);

#endif
