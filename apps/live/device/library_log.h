// SPDX-License-Identifier: MIT
// The audio libraries print dozens of lines about devices that are not there, among which the one
// that matters is lost.
#ifndef PARTITA_APPS_LIVE_LIBRARY_LOG_H
#define PARTITA_APPS_LIVE_LIBRARY_LOG_H

// Has ALSA and JACK print nothing from now on. The libraries' own hooks are used where they are
// loaded; what they and PortAudio print without asking is left alone, since it shares standard
// error with the program.
void library_log_silence(void);

#endif
