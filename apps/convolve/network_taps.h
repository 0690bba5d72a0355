// SPDX-License-Identifier: MIT
// The taps of a configuration of another convolver.
#ifndef PARTITA_APPS_NETWORK_TAPS_H
#define PARTITA_APPS_NETWORK_TAPS_H

#include "config/network.h"
#include "taps.h"

// The same as taps_load for what a network describes, with the options of the level, the length and
// the delay. Paths that it
// lacks are absent.
bool network_taps_load(struct taps *ret, const struct network *network, enum partita_type type,
                       const struct audio_info *signal, const struct settings *settings,
                       struct fault *fault);

#endif
