// SPDX-License-Identifier: MIT
// PortAudio connects every stream to the ports of its JACK device and has no setting against that.
#ifndef PARTITA_APPS_LIVE_JACK_CONNECTIONS_H
#define PARTITA_APPS_LIVE_JACK_CONNECTIONS_H

// From now on PortAudio's streams stay unconnected: jack_connect, which this program defines and
// which therefore takes precedence over that of libjack, does nothing.
void jack_connections_forbid(void);

#endif
