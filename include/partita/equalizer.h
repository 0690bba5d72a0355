// SPDX-License-Identifier: MIT
// Equalizers and crossovers as taps: peaks, shelves, notches and passes, which other programs run
// as recursions (biquads), graphic equalizers, and the bands of loudspeakers.
//
//   const struct partita_section list[] = {
//       {.kind = PARTITA_SECTION_GAIN, .gain = -6.5},
//       {.kind = PARTITA_SECTION_LOW_SHELF, .frequency = 105, .gain = 6.5, .q = 0.7},
//       {.frequency = 2200, .gain = -3.4, .q = 1.8}, // a peak
//   };
//   const struct partita_equalizer headphone = {.rate = 48000, .sections = list, .n_sections = 3};
//   struct partita_equalizer_result result;
//   if (partita_equalizer_taps(&headphone, NULL, 0, &result)) return false; // only result.taps
//   double *taps = malloc(result.taps * sizeof *taps);
//   if (partita_equalizer_taps(&headphone, taps, result.taps, &result)) return false;
//
// Sections are the bilinear transforms of analogue filters, with the formulas of the Audio EQ
// Cookbook, which CamillaDSP, Equalizer APO, REW and AutoEq use. Coefficients and taps are double.
//
// Two crossings at 300 Hz and 3 kHz split a signal into three bands, whose sum has the magnitude 1:
//
//   const struct partita_crossover speaker = {
//       .rate = 48000, .bands = 3, .crossing = {{.frequency = 300}, {.frequency = 3000}}};
//   if (partita_crossover_taps(&speaker, taps, n, &result)) return false; // double taps[3][n]
#ifndef PARTITA_EQUALIZER_H
#define PARTITA_EQUALIZER_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

// A recursion of two frames:
// y[t] = b[0] x[t] + b[1] x[t-1] + b[2] x[t-2] - a[0] y[t-1] - a[1] y[t-2].
struct partita_biquad {
    double b[3], a[2];
};

// What a section does. A = 10^(gain/40), and s is the frequency divided by that of the section,
// times the imaginary unit; Q follows from q, bandwidth or slope.
enum partita_section_kind {
    PARTITA_SECTION_PEAK = 0,   // (s^2 + s A/Q + 1) / (s^2 + s/(A Q) + 1)
    PARTITA_SECTION_LOW_SHELF,  // A (s^2 + s sqrt(A)/Q + A) / (A s^2 + s sqrt(A)/Q + 1)
    PARTITA_SECTION_HIGH_SHELF, // A (A s^2 + s sqrt(A)/Q + 1) / (s^2 + s sqrt(A)/Q + A)
    PARTITA_SECTION_LOW_PASS,   // 1 / (s^2 + s/Q + 1), or a family
    PARTITA_SECTION_HIGH_PASS,  // s^2 / (s^2 + s/Q + 1), or a family
    PARTITA_SECTION_BAND_PASS,  // (s/Q) / (s^2 + s/Q + 1)
    PARTITA_SECTION_NOTCH,      // (s^2 + 1) / (s^2 + s/Q + 1)
    PARTITA_SECTION_ALL_PASS,   // (s^2 - s/Q + 1) / (s^2 + s/Q + 1)
    // A notch at `frequency` and poles at `target_frequency` with `target_q`; the gain is 1 at
    // rate/2 or, with unity_at_0, at 0.
    PARTITA_SECTION_GENERAL_NOTCH,
    // Linkwitz's transform: makes a closed box with the resonance `frequency` and q one with those
    // of the target.
    PARTITA_SECTION_LINKWITZ_TRANSFORM,
    // Low frequencies fall and high ones rise by half of the gain, which changes evenly between
    // them: two shelves at 110 Hz and 3.5 kHz with Q 0.35, for a rate in Hz.
    PARTITA_SECTION_TILT,
    PARTITA_SECTION_GAIN,   // the same at all frequencies
    PARTITA_SECTION_BIQUAD, // the coefficients of `biquad`
};

// Families of low and high passes. The gain at the frequency is -3 dB, for Linkwitz-Riley -6 dB.
enum partita_section_family {
    PARTITA_FAMILY_DEFAULT = 0,    // sections: order 1, or 2 with any q; crossings: Linkwitz-Riley
    PARTITA_FAMILY_BUTTERWORTH,    // of orders 1 to 16
    PARTITA_FAMILY_LINKWITZ_RILEY, // twice a Butterworth of half of the order: 2, 4 to 16
    PARTITA_FAMILY_BESSEL,         // of orders 1 to 8
};

// One section, or several of a family. Plain data; zero-initialise it and set what differs; a zero
// means the default given in brackets. A field out of range, or one that has no meaning for the
// kind, is rejected, and the log names it.
struct partita_section {
    enum partita_section_kind kind;     // [peak]
    enum partita_section_family family; // of low and high passes [of `order` with `q`]
    // 1 or 2, or as the family allows. With order 1 and without a Q shelves are
    // A (A + s) / (1 + A s) and A (1 + A s) / (A + s), and an all pass is (1 - s) / (1 + s) [2].
    int order;
    bool unity_at_0;  // general notch [false]
    double frequency; // above 0 and below rate/2
    double gain;      // in dB, -150 to 150
    double q;         // [1/sqrt(2)]
    double bandwidth; // instead of q: in octaves, between the points of half the gain (3 dB) [q]
    double slope;     // instead of q: of shelves, in dB an octave, at most 12 without a bump [q]
    double target_frequency, target_q; // target_q: [1/sqrt(2)]
    struct partita_biquad biquad;      // its poles lie inside the unit circle
};

// How taps follow from sections.
enum partita_equalizer_phase {
    // The response of the recursion, without latency. It has minimum phase but for all passes, and
    // biquads with zeros outside of the unit circle.
    PARTITA_EQUALIZER_RECURSIVE = 0,
    // The magnitude of the sections with linear phase: an odd number of taps that are symmetric.
    PARTITA_EQUALIZER_LINEAR,
};

// Sections in series. Plain data, as struct partita_section.
//
// Taps end where the energy that is left is `tail` below all of it. A section with a frequency f
// and a quality Q needs 3 to 8 times Q rate/f taps for 160 dB. With linear phase magnitudes with a
// corner need many more: those of notches, band passes, and high passes of order 1.
struct partita_equalizer {
    double rate; // frames a second, in the unit of all frequencies [1]
    const struct partita_section *sections;
    size_t n_sections;                  // 0 to 4096
    size_t taps;                        // 1 to 786432; odd for linear phase [as `tail` allows]
    double tail;                        // in dB, 20 to 240 [160; 120 for linear phase]
    enum partita_equalizer_phase phase; // [recursive]
    // A graphic equalizer: the response of all peaks together passes through their gains, within
    // 1e-6 dB. Otherwise each peak has its gain alone, and neighbours add to it [false].
    bool exact_gains;
    struct partita_log log;             // [none, or what PARTITA_LOG says, see struct partita_log]
    struct partita_allocator allocator; // for working memory [C library]
};

// Writes the recursions of all sections, one after the other.
// Shapes:  biquads [8 * n_sections], of which *ret_count are written.
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED for a field that the library does not know, or if no peaks have
//          exact_gains; PARTITA_ERR_NOMEM.
// Memory:  allocates working memory.
// Time:    with exact_gains some 50 times the square of the number of peaks.
// Threads: any.
// Source:  Bristow-Johnson, Cookbook formulae for audio equalizer biquad filter coefficients, W3C
//          note (2021). Linkwitz, Active crossover networks for noncoincident drivers, J. Audio
//          Eng. Soc. 24 (1976).
PARTITA_API enum partita_status
partita_equalizer_biquads_sized(const struct partita_equalizer *equalizer, size_t equalizer_bytes,
                                struct partita_biquad *biquads, size_t *ret_count);
static inline enum partita_status
partita_equalizer_biquads(const struct partita_equalizer *equalizer, struct partita_biquad *biquads,
                          size_t *ret_count)
{
    return partita_equalizer_biquads_sized(equalizer, sizeof *equalizer, biquads, ret_count);
}

// The response of biquads in series at a frequency in cycles per frame (Hz divided by the sample
// rate), as real and imaginary part.
// Shapes:  biquads [n].
// Errors:  none: arguments are not checked.
// Memory:  none.
// Time:    proportional to n, and a complex exponential.
// Threads: any. Real-time safe.
// Source:  the definition: the product of (b0 + b1 z + b2 z^2) / (1 + a1 z + a2 z^2) with
//          z = exp(-2 pi i frequency).
PARTITA_API void partita_biquads_response(const struct partita_biquad *biquads, size_t n,
                                          double frequency,
                                          double ret_response[2]) PARTITA_NONBLOCKING;

// What taps achieve.
struct partita_equalizer_result {
    size_t taps; // their number, n
    double tail; // by which the energy of all that follows the taps is below all energy, in dB
    // The largest difference between the magnitudes of taps and sections, in dB, where the latter
    // is above -60 dB of the root mean square over all frequencies; for crossovers between the sum
    // of all bands and 1.
    double deviation, deviation_frequency;
    double gain, gain_frequency; // the largest gain in dB: that by which a tone may clip
    double delay;                // of linear phase in frames, (n - 1) / 2; 0 for recursive taps
};

// Computes taps and measures them, at 2 n frequencies or more. Without taps it writes no more than
// their number, result.taps: equalizer.taps or, if that is 0, the fewest that leave `tail`.
// Shapes:  taps [n], or NULL.
// Ranges:  n is equalizer.taps or, if that is 0, any number of taps.
// Errors:  as partita_equalizer_biquads; PARTITA_ERR_ARG for another n; PARTITA_ERR_UNSUPPORTED if
//          786432 taps are too few.
// Memory:  allocates working memory: 16 MiB and some 200 bytes a tap.
// Time:    proportional to taps and sections; not real-time safe.
// Threads: any.
PARTITA_API enum partita_status
partita_equalizer_taps_sized(const struct partita_equalizer *equalizer, size_t equalizer_bytes,
                             double *taps, size_t n, struct partita_equalizer_result *ret_result,
                             size_t result_bytes);
static inline enum partita_status
partita_equalizer_taps(const struct partita_equalizer *equalizer, double *taps, size_t n,
                       struct partita_equalizer_result *ret_result)
{
    return partita_equalizer_taps_sized(equalizer, sizeof *equalizer, taps, n, ret_result,
                                        sizeof *ret_result);
}

// The largest number of bands of a crossover.
enum { PARTITA_MAX_BANDS = 8 };

// Where two bands of a crossover meet.
struct partita_crossing {
    double frequency;
    enum partita_section_family family; // [Linkwitz-Riley]
    int order;                          // as the family allows [4]
};

// A crossover: the lowest band has the low pass of the first crossing, the next one its high pass
// and the low pass of the second crossing, and so on. Plain data, as struct partita_section.
//
// Bands of recursive phase have the polarity by which neighbours add up at their crossing: the
// upper one is inverted for Linkwitz-Riley and Butterworth of orders 2, 6, 10 and 14, and Bessel of
// orders 2 to 4. Lower bands pass the all pass that is the sum of each higher crossing, so that any
// number of bands of Linkwitz-Riley, or of Butterworth with odd orders, has a sum of magnitude 1.
// With linear phase only those of Linkwitz-Riley have. Butterworth of even orders is 3 dB above it.
struct partita_crossover {
    double rate;  // frames a second, in the unit of all frequencies [1]
    size_t bands; // 2 to 8
    struct partita_crossing crossing[PARTITA_MAX_BANDS - 1]; // with ascending frequencies
    double gain[PARTITA_MAX_BANDS];                          // of each band in dB, -150 to 150
    size_t delay[PARTITA_MAX_BANDS];                         // in frames, at most 2^16
    bool inverted[PARTITA_MAX_BANDS];                        // [false]
    size_t taps; // of each band; 1 to 786432, odd for linear phase [as `tail` allows]
    double tail; // in dB, 20 to 240 [160; 120 for linear phase]
    enum partita_equalizer_phase phase; // [recursive]
    struct partita_log log;             // [none, or what PARTITA_LOG says]
    struct partita_allocator allocator; // for working memory [C library]
};

// Computes the taps of all bands; the lowest one comes first. The result is that of the sum of all
// bands with their gains, delays and inversions; its tail is that of the band with the most left.
// Without taps it only writes the number of taps of each band.
// Shapes:  taps [bands][n], or NULL.
// Ranges:  n is crossover.taps or, if that is 0, any number of taps.
// Errors, Memory, Time, Threads: as partita_equalizer_taps.
PARTITA_API enum partita_status
partita_crossover_taps_sized(const struct partita_crossover *crossover, size_t crossover_bytes,
                             double *taps, size_t n, struct partita_equalizer_result *ret_result,
                             size_t result_bytes);
static inline enum partita_status
partita_crossover_taps(const struct partita_crossover *crossover, double *taps, size_t n,
                       struct partita_equalizer_result *ret_result)
{
    return partita_crossover_taps_sized(crossover, sizeof *crossover, taps, n, ret_result,
                                        sizeof *ret_result);
}

#ifdef __cplusplus
}
#endif

#endif
