// SPDX-License-Identifier: MIT
// Low passes: --rate-out, which makes the filter of a run also change the rate, and the channels of
// `partita channelize`.
#ifndef PARTITA_APPS_RESAMPLER_H
#define PARTITA_APPS_RESAMPLER_H

#include "taps.h"

// Designs taps of one channel, PARTITA_F32 or _F64, and multiplies them by `gain`. False, with a
// fault in the words of the command's options.
bool taps_design(struct taps *ret, const struct partita_design *design, enum partita_type type,
                 double gain, enum command command, struct fault *fault);

// With --rate-out: sets --up and --stride for a signal of this rate, and makes of the taps, which
// are at that rate, those that also resample. False, with a fault, if the rates are not in a simple
// ratio.
bool resampler_apply(struct taps *taps, struct settings *settings, double rate,
                     struct fault *fault);

#endif
