// SPDX-License-Identifier: MIT
// Metadata that an output takes over from the recording it is computed from: everything but what
// describes the samples themselves. Captures and annotations move with the samples.
#ifndef PARTITA_APPS_SIGMF_CARRY_H
#define PARTITA_APPS_SIGMF_CARRY_H

#include "sigmf.h"

// What became of the input's samples: sample s is sample (s * up + shift) / stride of the whole
// result, and a frequency of 0 in it was `tune` Hz in the input.
struct sigmf_origin {
    const struct sigmf *sigmf;
    int64_t up, shift, stride;
    double tune;
    uint64_t first, total; // the output begins with sample `first` of `total` (0: of its own)
};

// The sample at which a capture or annotation begins, counted from the first of the data, which has
// the number core:offset; negative before the data. False if it is none.
bool sigmf_position(const json_t *object, const json_t *global, int64_t *ret);

// False, with a fault, for captures and annotations whose positions are no sample numbers.
bool sigmf_check_positions(const struct sigmf *sigmf, struct fault *fault);

// The metadata of an output with `frames` samples; NULL: out of memory. A shard (first > 0 or total
// > frames) has core:offset and the captures and annotations of the whole result.
json_t *sigmf_carry(const struct sigmf_origin *origin, const struct audio_info *info,
                    uint64_t frames);

// Sorts annotations by core:sample_start; equal ones keep their order. False: out of memory.
bool sigmf_sort_annotations(json_t *annotations);

#endif
