// SPDX-License-Identifier: MIT
// Measured impulse responses, and filters for them, in files.
#ifndef PARTITA_APPS_MEASURED_H
#define PARTITA_APPS_MEASURED_H

#include "cli/options.h"

struct measured {
    double *samples; // [channels][frames]
    size_t channels, frames;
    double rate;                  // Hz; 0: unknown
    struct fault shortfall, note; // how the file contradicts its header; empty: it does not
};

// Reads a signal, or the response that a text of frequencies, decibels and phases describes.
bool measured_load(struct measured *ret, const struct settings *settings, const char *path,
                   struct fault *fault);

// Warns of a file that contradicts its header, when nothing fails any more.
void measured_warn(const struct measured *measured, const struct settings *settings);

// Writes a file of the type of --output-format or of floats.
bool measured_write(const struct measured *measured, const struct settings *settings,
                    const char *path, struct fault *fault);

void measured_release(struct measured *measured);

#endif
