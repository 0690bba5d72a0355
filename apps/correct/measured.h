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

// Loads all operands but the last, which is an output, into files[]; *ret_n counts those to
// release. With --resample they get that rate. They must have the same rate and number of channels,
// except the channels for --combine channels. An output that exists needs --replace: where it was
// forgotten after room*.wav it is a measurement.
bool measured_load_all(struct measured *files, size_t *ret_n, const struct settings *settings,
                       struct fault *fault);

// The channels of all files, [channels][files][*ret_frames], with silence after shorter ones. NULL:
// no memory.
double *measured_rows(const struct measured *files, size_t n, size_t *ret_frames);

// A fault of such a row: "room.wav: channel 2" and the text.
bool measured_fault(const struct settings *settings, size_t row, const char *text,
                    struct fault *fault);

// The same for a function of partita/correction.h, whose responses begin at a row, that failed.
bool measured_fail(const struct settings *settings, enum partita_status status,
                   const struct fault *log, size_t row, struct fault *fault);

// Whether a name is that of a table of frequencies, in which a .txt may hold taps, too.
bool measured_is_table(const char *path);

// For an output with info->channels and rate: the container that its name implies, and the type of
// --output-format, or else of the name, or floats.
bool measured_choose_format(struct audio_info *info, const struct settings *settings,
                            const char *path, struct fault *fault);

// Writes info->frames of rows[channels][frames]. Says what avoids that samples clip, if any do, or
// if `clipped` of them did before.
bool measured_store(const double *rows, const struct audio_info *info, const char *path,
                    const struct settings *settings, uint64_t clipped, struct fault *fault);

// Writes a file of that format.
bool measured_write(const struct measured *measured, const struct settings *settings,
                    const char *path, struct fault *fault);

void measured_release(struct measured *measured);

#endif
