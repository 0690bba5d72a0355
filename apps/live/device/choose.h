// SPDX-License-Identifier: MIT
// Which devices a run uses.
#ifndef PARTITA_APPS_LIVE_CHOOSE_H
#define PARTITA_APPS_LIVE_CHOOSE_H

#include "cli/options.h"
#include "device.h"

// The devices that the settings mean, of one API: one for both directions if there is such.
// *ret_may_come: see host.h.
bool device_choose_pair(struct audio_device *ret_in, struct audio_device *ret_out,
                        const struct settings *settings, bool *ret_may_come, struct fault *fault);

#endif
