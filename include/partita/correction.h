// SPDX-License-Identifier: MIT
// From measured responses to a filter: averages the impulse responses of several positions and
// designs the filter by which a loudspeaker in a room gets a wanted response.
//
//   struct partita_correction room = {.rate = 48000, .positions = 10, .frames = 24000,
//                                     .taps = 65536, .low = 30, .high = 16000};
//   struct partita_correction_report report;
//   room.target = partita_correction_curve("bk", &room.target_count);
//   if (partita_correction_taps(&room, responses, taps, &report)) return false;
//
// The power P(f) that is corrected is the mean over the positions, which are aligned by their
// largest samples and have equal power within the range from `low` to `high`. It is smoothed, and
// multiplied by the smoothed quotient of the power before and after this, so that smoothing does
// not fill narrow dips that the filter then deepens. In decibels, with the target T(f), and the
// mean L of P - T within the range over the logarithm of the frequency, the gain of the filter is
//
//   G(f) = r(f) * limit(L + T(f) - P(f))
//
// so that a response keeps its level. r is 1 within the range and falls outside of it as half a
// period of a cosine over `edge` octaves. limit(x) is x up to b - w, with the largest boost b and
// w = min(2, b) dB; from there to b + w it is x - (x - b + w)^2 / (4 w), which is b - w/4 at x = b,
// and then b. Gains below 0 are limited by `attenuation` in the same manner, if it is set.
//
// Phase: the filter has the minimum phase of its magnitude, or none (linear phase), or, with mixed
// phase, the minimum phase plus the phase that inverts the excess phase of the mean response from
// `low` to `phase_limit`. The inverse of an excess phase begins before the peak: it is faded in
// over `pre_time`, and the magnitude is then restored by a factor of minimum phase. While taps more
// than 1 ms before the peak exceed `pre_level`, pre_time is shortened by 0.7.
#ifndef PARTITA_CORRECTION_H
#define PARTITA_CORRECTION_H

#include <partita/design.h>

#ifdef __cplusplus
extern "C" {
#endif

// How positions become one response.
enum partita_correction_mean {
    // The mean of their powers; its phase is that of their mean as vectors, and the minimum phase
    // of the quotient of their magnitudes.
    PARTITA_MEAN_ENERGY = 0,
    // The mean of their spectra as vectors: sound that differs between positions is left out.
    PARTITA_MEAN_VECTOR,
};

// The phase of the filter.
enum partita_correction_phase {
    PARTITA_CORRECTION_MINIMUM = 0,
    PARTITA_CORRECTION_LINEAR,
    PARTITA_CORRECTION_MIXED,
};

// Measured responses of one channel, and the filter wanted for them. Plain data; zero-initialise it
// and set what differs; a zero means the default given in brackets. A field out of range is
// rejected, and the log names it. Times are in the unit of 1 / rate.
struct partita_correction {
    double rate;      // frames a second, in the unit of all frequencies; no default
    size_t positions; // 1 to 4096 [1]
    size_t frames;    // of each response, 1 to 2^22, no default
    size_t taps;      // of the filter, at least two periods of `low`, at most 2^18, no default
    enum partita_correction_mean mean;   // [energy]
    enum partita_correction_phase phase; // [minimum]
    // Each frequency f of a response is weighted by about sinc(t f / window)^3, t from the largest
    // sample on, where sinc(x) = sin(pi x) / (pi x): `window` cycles after the peak it is 0. 1 to
    // 10000 [no window; the excess phase of mixed phase: 5].
    double window;
    // The power at f is the mean of those from f / s to f s, s = 2^(1 / (2 smoothing)): smoothing
    // by 1/3 octave is 3. 1 to 1000 [taps: 12; averages: none].
    double smoothing;
    // The range that is corrected, up to rate/2, which is that of the loudspeaker: what it does not
    // play counts in L [20; the lower of 20000 and 0.45 rate].
    double low, high;
    double edge;        // in octaves, 0.01 to 4 [0.5]
    double boost;       // the largest gain in dB, 0.01 to 60 [6]
    double attenuation; // the largest reduction in dB, 0.01 to 120 [no limit]
    // Decibels at ascending frequencies above 0, interpolated over the logarithm of the frequency,
    // constant before the first and after the last point [0 dB]. Its level does not matter.
    const struct partita_design_point *target;
    size_t target_count;
    double phase_limit; // of mixed phase, from `low` to `high` [300, or high]
    double pre_time;    // of mixed phase, at least 0.001, at most taps / (4 rate) [0.02]
    // By which taps more than 0.001 before the peak lie below it with mixed phase, in dB, 1 to 200
    // [30].
    double pre_level;
    struct partita_log log;             // [none, or what PARTITA_LOG says]
    struct partita_allocator allocator; // for working memory [C library]
};

// Averages the positions of one channel, with window and smoothing: a response whose largest sample
// lies where that of the first position does, and whose power within the range is the mean of those
// of the positions. One position without window and smoothing is returned as it is.
// Shapes:  responses [positions][frames]; ret_response [frames], which may be responses.
// Ranges:  samples are finite. Fields of the filter alone (taps, boost, attenuation and those of
//          mixed phase) are not looked at.
// Errors:  PARTITA_ERR_ARG for a field out of range, a response that is silent, has a sample that
//          is not finite, or has no peak: if the energy within a period of `low` around its largest
//          sample is less than twice as dense as in the whole (judged from 8 periods on);
//          PARTITA_ERR_UNSUPPORTED for a field that the library does not know; PARTITA_ERR_NOMEM.
// Memory:  allocates working memory, some 15 doubles for each sample of the transform.
// Time:    a transform of 2 frames for each position. Not real-time safe.
// Threads: any.
// Source:  Hatziantoniou and Mourjopoulos, Generalized fractional-octave smoothing of audio and
//          acoustic responses, J. Audio Eng. Soc. 48 (2000): windows as complex smoothing.
PARTITA_API enum partita_status
partita_correction_average_sized(const struct partita_correction *correction,
                                 size_t correction_bytes, const double *responses,
                                 double *ret_response);
static inline enum partita_status
partita_correction_average(const struct partita_correction *correction, const double *responses,
                           double *ret_response)
{
    return partita_correction_average_sized(correction, sizeof *correction, responses,
                                            ret_response);
}

// What a filter does. Deviations are those of the mean response, with the window, before and with
// the filter, from the target at its level L: the power within 1/6 octave around frequencies that
// are 1/12 octave apart, from `low` to `high`.
struct partita_correction_report {
    double boost, boost_frequency;             // the largest gain in dB
    double attenuation, attenuation_frequency; // the largest reduction within the range, in dB
    double before_max, before_rms;             // deviations in dB
    double after_max, after_rms;
    double delay; // frames from the first to the largest tap
    // The largest tap more than 0.001 (in the unit of 1 / rate) before the largest one, in relation
    // to it, in dB; -infinity if there is none.
    double pre_ringing;
    double pre_time; // of mixed phase, as it was shortened; else 0
    // dB to apply to the filter so that sines of full scale do not clip, and that nothing clips.
    double sine_gain, safe_gain;
    // L, and frames to the largest sample, the mean over the positions, plus delay. Channels become
    // equally loud and late by gains of the lowest level minus theirs, and delays of the latest
    // arrival minus theirs.
    double level, arrival;
};

// Designs the filter that corrects one channel.
// Shapes:  responses [positions][frames]; taps [correction.taps], apart from responses.
// Ranges, Errors, Threads: as partita_correction_average.
// Memory:  as there; the transform has at least 4 taps and at least 2 frames + taps samples.
// Time:    about 6 transforms and one for each position; mixed phase: 8 more, and 5 each time that
//          pre_time is shortened. Not real-time safe.
// Source:  Kirkeby and Nelson, Digital filter design for inversion problems in sound reproduction,
//          J. Audio Eng. Soc. 47 (1999), for regularisation by frequency; here the limit acts on
//          decibels. Excess phase that is windowed before it is inverted: Sbragion, DRC: digital
//          room correction.
PARTITA_API enum partita_status
partita_correction_taps_sized(const struct partita_correction *correction, size_t correction_bytes,
                              const double *responses, double *taps,
                              struct partita_correction_report *ret_report, size_t report_bytes);
static inline enum partita_status
partita_correction_taps(const struct partita_correction *correction, const double *responses,
                        double *taps, struct partita_correction_report *ret_report)
{
    return partita_correction_taps_sized(correction, sizeof *correction, responses, taps,
                                         ret_report, sizeof *ret_report);
}

// The points of a target by its name, or NULL if there is none: "flat" has 0 dB. "bk" is that of
// Bruel & Kjaer for living rooms, 0 dB up to 400 Hz and then falling to -5 dB at 12.8 kHz and
// -6 dB at 20 kHz. "harman-room" is the mean of preferred responses: a shelf of 6 dB at 105 Hz, and
// from 2.5 kHz a slope to -2.5 dB at 10 kHz. Frequencies are in Hz.
// Threads: any.
// Source:  Moller, Relevant loudspeaker tests in studios, in Hi-Fi dealers' demo rooms, in the home
//          etc., Bruel & Kjaer 17-197 (1974), with the points of DRC's file bk. Olive, Welti and
//          McMullin, Listener preferences for in-room loudspeaker and headphone target responses,
//          AES convention paper 8994 (2013), in round figures.
PARTITA_API const struct partita_design_point *partita_correction_curve(const char *name,
                                                                        size_t *ret_count);

#ifdef __cplusplus
}
#endif

#endif
