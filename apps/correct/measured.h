// SPDX-License-Identifier: MIT
// Measured impulse responses, and filters for them, in files.
#ifndef PARTITA_APPS_MEASURED_H
#define PARTITA_APPS_MEASURED_H

#include "cli/options.h"
#include "io/audio.h"

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

// For an output with info->channels and rate: the container that its name implies, and the type of
// --output-format, or else of the name, or floats.
bool measured_choose_format(struct audio_info *info, const struct settings *settings,
                            const char *path, struct fault *fault);

// Writes info->frames of rows[channels][frames].
bool measured_store(const double *rows, const struct audio_info *info, const char *path,
                    struct sample_counts *ret_counts, struct fault *fault);

// Writes a file of that format.
bool measured_write(const struct measured *measured, const struct settings *settings,
                    const char *path, struct fault *fault);

void measured_release(struct measured *measured);

#endif
