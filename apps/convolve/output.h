// SPDX-License-Identifier: MIT
// What the output file will be: its format, sample encoding, channels, rate.
#ifndef PARTITA_APPS_OUTPUT_H
#define PARTITA_APPS_OUTPUT_H

#include "cli/options.h"
#include "io/audio.h"
#include "taps.h"

// in: the input; ir_rate: the taps' own rate or 0; frames: of the result, or SIZE_UNKNOWN.
bool output_choose(struct audio_info *ret, const struct settings *settings,
                   const struct audio_info *in, uint32_t ir_rate, const struct taps *taps,
                   enum partita_type type, uint64_t frames, struct fault *fault);

#endif
