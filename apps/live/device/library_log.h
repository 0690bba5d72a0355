// SPDX-License-Identifier: MIT
// Messages of the audio libraries: dozens of lines about absent devices, in which the relevant one
// is lost.
#ifndef PARTITA_APPS_LIVE_LIBRARY_LOG_H
#define PARTITA_APPS_LIVE_LIBRARY_LOG_H

// Silences ALSA and JACK through their error handlers, if the libraries are loaded. What they and
// PortAudio print directly on standard error remains.
void library_log_silence(void);

#endif
