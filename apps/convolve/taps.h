// SPDX-License-Identifier: MIT
// The impulse response or template: read whole, checked, resampled if requested, in the library's
// layout.
#ifndef PARTITA_APPS_TAPS_H
#define PARTITA_APPS_TAPS_H

#include "base/sample_type.h"
#include "cli/options.h"
#include "config/impulse_file.h"
#include "io/audio.h"

struct taps_path {
    size_t out, in;
};

struct taps {
    void *data; // [out_channels][in_channels/groups][length], or with paths [n_paths][length]
    // Of a matrix in which paths are absent: those that it has; NULL: it has all of them.
    struct taps_path *paths;
    size_t n_paths;
    enum partita_type type;
    size_t length; // frames
    size_t lead;   // of them before the start of the response; as many follow its end
    size_t zeros;  // before these, from taps_align
    size_t centre; // by which --rate-out delays them, and the result begins later
    size_t in_channels, out_channels, groups;
    struct impulse_notes notes; // see struct matrix
};

// Number i of the reals in `data`.
static inline double taps_at(const struct taps *taps, size_t i)
{
    return type_is_double(taps->type) ? ((const double *)taps->data)[i]
                                      : (double)((const float *)taps->data)[i];
}

static inline void taps_set(struct taps *taps, size_t i, double tap)
{
    if (type_is_double(taps->type)) ((double *)taps->data)[i] = tap;
    else ((float *)taps->data)[i] = (float)tap;
}

// Reads all of the settings->n_irs readers, whose channels follow each other. signal: the shape of
// IN, whose rate and channels the taps must match.
bool taps_load(struct taps *ret, struct audio_reader *const *readers, enum partita_type type,
               const struct audio_info *signal, const struct settings *settings,
               struct fault *fault);

// The same for what a network describes (config/), with --gain, --wet and --dry. Paths that it
// lacks are absent.
bool network_taps_load(struct taps *ret, const struct network *network, enum partita_type type,
                       const struct audio_info *signal, const struct settings *settings,
                       struct fault *fault);

// Designs taps of one channel, PARTITA_F32 or _F64, and multiplies them by `gain`. False, with a
// fault in the words of the command's options.
bool taps_design(struct taps *ret, const struct partita_design *design, enum partita_type type,
                 double gain, enum command command, struct fault *fault);

// With --rate-out: sets --up and --stride for a signal of this rate, and makes of the taps, which
// are at that rate, those that also resample. False, with a fault, if the rates are not in a simple
// ratio.
bool resampler_apply(struct taps *taps, struct settings *settings, double rate,
                     struct fault *fault);

// Opens the settings->n_irs files of IR.
bool taps_open(struct audio_reader **ret_readers, const struct settings *settings,
               struct fault *fault);

// Makes all taps zero, in memory for taps->length in each row.
bool taps_allocate(struct taps *taps, struct fault *fault);

// Rows of `length` taps in taps->data, and the number of that from an input to an output; SIZE_MAX:
// there is none.
size_t taps_count_rows(const struct taps *taps);
size_t taps_find_row(const struct taps *taps, size_t out, size_t in);

// Makes n frames from `first` on all that there is.
void taps_keep(struct taps *taps, size_t first, size_t n);

// Applies --ir-length, --ir-fade, --wet, --gain, --delay and --dry, for which each output has a
// path from the input of its number, or from the only one. `name` is that of the responses.
bool taps_finish(struct taps *taps, const struct settings *settings, const char *name,
                 struct fault *fault);

// The delay of the taps in frames, without the lead: the mean of their positions, weighted with
// their energies. It is the mean group delay, weighted with the squared magnitude of the frequency
// response, and (length - 1) / 2 for taps of linear phase.
double taps_delay(const struct taps *taps);

// The frame in which all responses together have the most energy, by which a click is heard later.
int64_t taps_peak(const struct taps *taps);

// Delays the taps by zeros, so that sample `first` of the result is a multiple of the stride.
bool taps_align(struct taps *taps, int64_t first, int64_t stride, struct fault *fault);
void taps_release(struct taps *taps);

// False, with a fault, for an operand that is an array of [frames, channels] by mistake, which
// looks like very many channels of few frames. --max-channels confirms that they are channels.
bool taps_check_axes(const struct settings *settings, int operand, const struct audio_info *info,
                     struct fault *fault);

#endif
