// SPDX-License-Identifier: MIT
// Filters that are made of several responses: configurations of other convolvers, chains of files,
// layouts of loudspeakers. All of them are networks, which `convolve` and `live` load in one way.
#ifndef PARTITA_APPS_ROUTE_H
#define PARTITA_APPS_ROUTE_H

#include "cli/options.h"
#include "config/network.h"
#include "io/audio.h"

// Whether a network is made of the files of an IR: of a chain, a.wav+b.wav, of one for --layout,
// and in `convolve` of a SOFA file, which `live` turns.
bool route_is_made(const struct settings *settings, const char *ir);

// Whether an IR is a network: one that is made, or a configuration.
bool route_is_named(const struct settings *settings, const char *ir);

// False, with a fault, if options for the channels of one file are given for an IR that is a
// network or a SOFA file.
bool route_check(const struct settings *settings, const char *ir, struct fault *fault);

// Of convolve: makes an IR that is a network the configuration of the run.
void route_adopt(struct settings *settings);

// Reads the network of an IR, for a signal of this layout. NULL: only the files of a chain, for
// network_list_files, and its inputs, 0 if the signal decides. `ir` must outlive the network. An
// empty name is no filter: outputs are inputs.
bool route_read(struct network *ret, const struct settings *settings, const char *ir,
                const struct audio_info *signal, struct fault *fault);

#endif
