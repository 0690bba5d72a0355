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

// Which channel of a file, or of several together, leads from which input to which output: one for
// every input, one for each, or a matrix.
struct route_map {
    const char *from; // what has the inputs
    size_t in, out, channels;
    bool matrix, by_input;
};

// Finds what is not of the input. part: the file as the user names it in an IR with words for
// layouts; NULL: the IR of `convolve`, for which options alone say it. False, with a fault, if the
// channels do not fit.
bool route_map_channels(struct route_map *map, const struct settings *settings, const char *part,
                        const struct audio_info *file, struct fault *fault);

// The channel from an input to an output; without a matrix they have the same number.
size_t route_channel(const struct route_map *map, size_t out, size_t in);

// Makes the channels of IR those of --ir-channel, whose numbers are counted from 0 here.
bool route_choose_channels(size_t chosen[MAX_WORDS], struct audio_info *info,
                           const struct settings *settings, struct fault *fault);

// Reads the network of an IR, for a signal of this layout. NULL: only the files of a chain, for
// network_list_files, and its inputs, 0 if the signal decides. `ir` must outlive the network. An
// empty name is no filter: outputs are inputs.
bool route_read(struct network *ret, const struct settings *settings, const char *ir,
                const struct audio_info *signal, struct fault *fault);

#endif
