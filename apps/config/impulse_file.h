// SPDX-License-Identifier: MIT
// Reads the impulses that a configuration names. The last file is kept, since its other channels
// are usually named next.
#ifndef PARTITA_APPS_IMPULSE_FILE_H
#define PARTITA_APPS_IMPULSE_FILE_H

#include "io/frames.h"
#include "network.h"

// Responses of recursive filters end where by these dB less energy than all is left: in the result,
// and in each filter that it consists of, so that some ten of these hardly matter.
enum { OUTER_TAIL = 160, INNER_TAIL = 180 };

// How the last file that did so contradicts its header; empty: none did.
struct impulse_notes {
    char note[NOTE_SIZE];      // audio_info.note, which the caller may print and empty
    char shortfall[NOTE_SIZE]; // what it lacks
};

struct impulse_file {
    size_t max_channels;
    bool may_be_short;          // else files that lack something are refused
    double signal_rate;         // for which responses of sections are computed; 0: unknown
    const struct impulse *kept; // whose file `frames` is; NULL: none
    struct frames frames;
    double rate;
    struct impulse_notes notes;
};

// The frames of an impulse, of one channel in double, which the caller releases, and the rate of
// its file; 0: it has none. False, with a fault that names the line of the configuration.
bool impulse_file_read(struct impulse_file *file, const struct network *network,
                       const struct impulse *impulse, struct frames *ret, double *ret_rate,
                       struct fault *fault);

void impulse_file_release(struct impulse_file *file);

// The layout of the file of an impulse, without tags.
bool impulse_file_info(const struct impulse *impulse, size_t max_channels, struct audio_info *ret,
                       struct fault *fault);

#endif
