// SPDX-License-Identifier: MIT
// Chooses the input and the output device of a run.
#ifndef PARTITA_APPS_LIVE_CHOOSE_H
#define PARTITA_APPS_LIVE_CHOOSE_H

#include "cli/options.h"
#include "device.h"

// Starts PortAudio as the settings say; see device_initialize.
bool device_initialize_for(const struct settings *settings, struct fault *fault);

// Finds the devices of the settings; both have the same API, and are one device if possible.
// *ret_may_come: see device_choose. Fails also if the settings need JACK and the device is another.
bool device_choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
                        const struct settings *settings, bool *ret_may_come, struct fault *fault);

#endif
