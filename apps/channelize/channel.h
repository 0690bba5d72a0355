// SPDX-License-Identifier: MIT
// One channel of `partita channelize`: how it is computed, by a row of the table.
#ifndef PARTITA_APPS_CHANNEL_H
#define PARTITA_APPS_CHANNEL_H

#include "convolve/shard.h"
#include "io/formats/sigmf_carry.h"
#include "table.h"

struct channel {
    const struct table_row *row;
    // Of the `partita convolve --tail no` that makes the same: TAPS, IN and OUT, --tune, --up and
    // --stride.
    struct settings settings;
    double bandwidth; // that is kept; 0: all
    struct taps taps; // none: those of `like`
    const struct channel *like;
    struct partita_channel_filter *filter; // likewise
    size_t slot;                           // of the channelizer
    char *path;                            // of its output
    struct audio_info output;
    struct sigmf_origin origin;
    struct audio_writer *out;
    struct shard shard;
    uint64_t next, end; // samples of the whole result
    struct outcome *outcome;
};

struct outcome {
    double rate;
    uint64_t frames;
    struct sample_counts written;
    bool failed;
    struct fault fault;
};

// What all channels share.
struct channel_source {
    const struct table *table;
    const struct audio_info *in;
    enum partita_type type; // of the computation
    double middle;          // of IN, absolute, in Hz; NaN: unknown
};

// Chooses centre, rate and taps of channels[i], whose row and settings are set; filters that are
// the same as those of an earlier channel are not made again.
bool channel_plan(struct channel *channels, size_t i, const struct channel_source *source,
                  struct fault *fault);

// The channel whose taps and filter it has: itself or an earlier one.
const struct channel *channel_like(const struct channel *channel);

// Puts its name into OUT, in place of the mark or as a file of the folder.
#define CHANNEL_MARK "{name}"
bool channel_name_output(struct channel *channel, struct fault *fault);

// spectrum.c: adds frames of IN to their spectrum, and writes the picture `path`, with the bands of
// the channels, which appears only when it is complete.
enum { SPECTRUM_LAGS = 2048 };
struct spectrum {
    double sums[2][SPECTRUM_LAGS]; // real and imaginary parts of correlations
    uint64_t calls;
};
#ifdef HAVE_CAIRO
bool spectrum_add(struct spectrum *spectrum, enum partita_type type, const void *x, size_t n,
                  struct fault *fault);
bool spectrum_write(struct spectrum *spectrum, const struct channel_source *source,
                    const struct channel *channels, size_t n, const char *path,
                    struct fault *fault);
#else // main.c refuses --plot
#define spectrum_add(...) true
#define spectrum_write(...) true
#endif

#endif
