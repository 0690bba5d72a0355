// SPDX-License-Identifier: MIT
// The format of the output file: container, sample encoding, channels, rate.
#ifndef PARTITA_APPS_OUTPUT_H
#define PARTITA_APPS_OUTPUT_H

#include "cli/options.h"
#include "io/audio.h"

struct output_request {
    const struct settings *settings;
    const struct audio_info *in;
    double ir_rate;          // the taps' own rate, or 0
    size_t channels;         // of the result
    enum partita_type type;  // of the result
    uint64_t frames;         // of the result, or SIZE_UNKNOWN
    const struct tags *tags; // for OUT; NULL: none
};

// Without OUT only rate, channels and frames are chosen.
bool output_choose(struct audio_info *ret, const struct output_request *request,
                   struct fault *fault);

#endif
