// SPDX-License-Identifier: MIT
// --layout: what two ears hear of loudspeakers, or of Ambisonics, by the responses that a SOFA file
// or a file of HeSuVi has for their directions.
#ifndef PARTITA_APPS_LAYOUT_H
#define PARTITA_APPS_LAYOUT_H

#include "base/ir_name.h"
#include "cli/options.h"
#include "config/network.h"
#include "io/audio.h"

// The channels that a file takes: those of --layout; without it 1 of a SOFA file, 8 of HeSuVi's.
// False, with a fault, if there is no such layout.
bool layout_inputs(const struct settings *settings, enum ir_layout prefix, size_t *ret,
                   struct fault *fault);

// Appends the stages of a SOFA file, or of one of HeSuVi, `part` as the user names it. False, with
// a fault, if the channels or the channel mask of the signal are not those of the layout.
bool layout_add_stages(struct network *network, const struct settings *settings, const char *part,
                       const struct audio_info *signal, struct fault *fault);

#endif
