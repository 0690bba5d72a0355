// SPDX-License-Identifier: MIT
// All frames of a file in memory: impulse responses and templates.
#ifndef PARTITA_APPS_FRAMES_H
#define PARTITA_APPS_FRAMES_H

#include "audio.h"

// An impulse response is in memory several times. This many samples are 46 minutes at 48 kHz; more
// must be a mistake.
enum { FRAMES_MAX_SAMPLES = 1 << 27 };

struct frames {
    void *data; // interleaved
    size_t n, channels;
    enum partita_type type;
};

// Reads all frames that are left in `reader`. False, with a fault that names the file, if there are
// none or too many, or if a sample is not finite.
bool frames_read(struct frames *ret, struct audio_reader *reader, enum partita_type type,
                 const char *name, struct fault *fault);

// Converts a response to another sample rate (Hz), with the same frequency response: multiplies it
// by rate_in / rate_out, since the response of a filter is a sum over taps, whose number changes.
// *ret_lead frames, which the interpolation adds, now precede its start, and as many follow its
// end.
bool frames_resample(struct frames *frames, double rate_in, double rate_out, size_t *ret_lead,
                     const char *name, struct fault *fault);

// Copies one channel to row[n].
void frames_copy_channel(const struct frames *frames, size_t channel, void *row);

// Real numbers in all frames.
size_t frames_count_scalars(const struct frames *frames);

// Which of n samples of one channel is the largest.
size_t frames_peak(const double *x, size_t n);

// The sum of their squares.
double frames_energy(const double *x, size_t n);

void frames_release(struct frames *frames);

// Responses of equal length, one after the other.
struct rows {
    const float *samples; // [n][length]
    size_t n, length;
};

// The first frame before `end` in which any row reaches a share of the peak of all; `end` if none
// does.
size_t rows_first_above(const struct rows *rows, float share, size_t end);

// How many frames to omit from the start of resampled responses: their lead, `lead` frames long,
// consists of interpolation pulses and would add latency. Its frames below 1 % of the peak are
// omitted.
size_t rows_omitted_lead(const struct rows *rows, size_t lead);

#endif
