// SPDX-License-Identifier: MIT
// The output file: its container, sample encoding, channels and rate; its level.
#ifndef PARTITA_APPS_OUTPUT_H
#define PARTITA_APPS_OUTPUT_H

#include "cli/options.h"
#include "io/audio.h"

struct output_request {
    const struct settings *settings;
    const struct audio_info *in;
    double ir_rate;         // the taps' own rate, or 0
    size_t channels;        // of the result
    enum partita_type type; // of the result
    uint64_t frames;        // of the result, or SIZE_UNKNOWN
};

// Without OUT only rate, channels and frames are chosen.
bool output_choose(struct audio_info *ret, const struct output_request *request,
                   struct fault *fault);

// --normalize and --gain auto. The gain depends on the peak of the whole result, so the result is
// first written to a temporary file, as computed, and then to OUT.

// False, with a usage error, for options that contradict each other.
bool level_check(const struct settings *settings, struct fault *fault);

// Whether the gain depends on the peak.
bool level_is_wanted(const struct settings *settings);

// Prints how many samples were clipped, if any were, and a gain that avoids it.
void level_warn_clipped(const struct settings *settings, const struct audio_info *output,
                        const struct sample_counts *counts);

// The factor for a result of this peak. False if the peak is not finite.
bool level_factor(const struct settings *settings, struct encoding encoding, double peak,
                  double *ret_factor, struct fault *fault);

#endif
