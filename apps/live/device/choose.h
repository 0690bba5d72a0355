// SPDX-License-Identifier: MIT
// Which devices a run uses.
#ifndef PARTITA_APPS_LIVE_CHOOSE_H
#define PARTITA_APPS_LIVE_CHOOSE_H

#include "cli/options.h"
#include "host.h"

// The devices that the settings mean, of one API: one for both directions if there is such.
// *ret_may_come: see host.h.
bool host_choose_pair(struct host_device *ret_in, struct host_device *ret_out,
                      const struct settings *settings, bool *ret_may_come, struct fault *fault);

#endif
