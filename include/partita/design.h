// SPDX-License-Identifier: MIT
// Designs filters: taps of a low pass, a Hilbert transformer, a pulse of a modem, or of a response
// given as a table, for plans, streams and banks.
//
//   struct partita_design channel = {.rate = 1e6, .cutoff = {20e3}, .width = 5e3,
//                                    .attenuation = 80};
//   size_t n;
//   if (partita_design_taps_count(&channel, &n)) return false; // 1009
//   double *taps = malloc(n * sizeof *taps);
//   if (partita_design_taps(&channel, taps, n)) return false;
//   for (size_t i = 0; i < n; i++) float_taps[i] = (float)taps[i]; // for PARTITA_F32
//
// Taps are double. Rounding them to float adds errors of about 2^-25 times the square root of their
// sum of squares to the response: stop bands below about -140 dB need PARTITA_F64.
//
// Filters have linear phase: their taps are symmetric (antisymmetric for Hilbert transformers and
// differentiators) and delay all frequencies by (n - 1) / 2 frames. With minimum_phase the response
// has the same magnitude and the shortest delay that this magnitude allows.
#ifndef PARTITA_DESIGN_H
#define PARTITA_DESIGN_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a filter does. The gain of pass bands is 1.
enum partita_design_kind {
    PARTITA_DESIGN_LOW_PASS = 0,
    PARTITA_DESIGN_HIGH_PASS,
    PARTITA_DESIGN_BAND_PASS,
    PARTITA_DESIGN_BAND_STOP,
    // Shifts the phase by -90 degrees from `width` to rate/2 - `width`.
    PARTITA_DESIGN_HILBERT,
    // The derivative up to `cutoff`, per frame: the gain is 2 pi frequency / rate.
    PARTITA_DESIGN_DIFFERENTIATOR,
    // The pulse for 2 * `cutoff` symbols a second, with the roll-off `width` / (2 * `cutoff`). Its
    // convolution with itself or, if it is not the root, it itself is 0 at all other symbols.
    PARTITA_DESIGN_RAISED_COSINE,
    PARTITA_DESIGN_ROOT_RAISED_COSINE,
    // The magnitudes of `table`.
    PARTITA_DESIGN_TABLE,
};

// How taps are found.
enum partita_design_method {
    // The ideal, infinitely long taps times Kaiser's window.
    PARTITA_DESIGN_KAISER = 0,
    // The taps whose largest deviation, in relation to ripple and attenuation, is smallest, found
    // by the exchange of Parks and McClellan: fewer taps for the same bands. For low, high and band
    // pass, band stop, Hilbert transformer and differentiator, with 5 to 4095 taps.
    PARTITA_DESIGN_EQUIRIPPLE,
};

// A point of a response: at this frequency the gain is 10^(decibels / 20).
struct partita_design_point {
    double frequency, decibels;
};

// What to design. Plain data; zero-initialise it and set what differs; a zero means the default
// given in brackets. A field out of range, or one that has no meaning for the kind, is rejected,
// and the log names it.
//
// A transition of `width` lies around each cutoff, half on each side. Pass and stop bands begin
// where it ends. The taps that are chosen (taps = 0) are the fewest found, near a formula's, of odd
// numbers, whose measured response has the attenuation and the ripple; for raised cosines and
// tables they are those of Kaiser's formula.
struct partita_design {
    enum partita_design_kind kind;     // [low pass]
    enum partita_design_method method; // [Kaiser's window]
    double rate;                       // frames a second, in the unit of all frequencies [1]
    // The middle of the transitions, between 0 and rate/2: two for band pass and band stop, none
    // for Hilbert transformers and tables.
    double cutoff[2];
    // Of each transition; for a table the finest detail to resolve, for a raised cosine the width
    // of its slope. If taps are given: [what these taps allow; no default for raised cosines].
    double width;
    // By which stop bands lie below the largest gain of the pass bands, in dB, 10 to 200; for a
    // Hilbert transformer that of negative frequencies in x + j H(x); for raised cosines and tables
    // that of the window, which for root raised cosines adds interference of symbols [80; 60 for
    // raised cosines, by which the taps of root raised cosines are counted, which then have no
    // window; what taps and width allow, if both are given and the method is Kaiser's window].
    double attenuation;
    // The largest deviation in pass bands, in dB, 1e-9 to 6 [Kaiser's window: follows from the
    // attenuation; equiripple: 0.1, or the attenuation of a Hilbert transformer].
    double ripple;
    size_t taps; // 3 to 2^18 [chosen]; odd for kinds that do not vanish at rate/2, and Hilbert
    // The magnitude at ascending frequencies above 0. Decibels are interpolated over the logarithm
    // of the frequency, as graphic equalizers do, and constant before the first and after the last
    // point.
    const struct partita_design_point *table;
    size_t table_count;
    struct partita_log log;             // [none, or what PARTITA_LOG says, see struct partita_log]
    struct partita_allocator allocator; // for working memory [C library]
    // The same magnitude with minimum phase: low, high and band pass, band stop and tables, with at
    // most 16384 taps. Stop bands are then raised to 18 dB below their largest ripple, which lowers
    // the attenuation of a given number of taps by 0.07 dB [false].
    bool minimum_phase;
    bool reserved[7]; // must be false
};

// Counts the taps of a design: design.taps or, if that is 0, the number chosen for it.
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED if no number of taps reaches ripple and attenuation;
//          PARTITA_ERR_NOMEM.
// Memory:  allocates working memory.
// Time:    designs the filter a few times: equiripple ones of 2500 taps take 2 s. Not real-time
// safe. Threads: any.
PARTITA_API enum partita_status partita_design_taps_count_sized(const struct partita_design *design,
                                                                size_t design_bytes,
                                                                size_t *ret_count);
static inline enum partita_status partita_design_taps_count(const struct partita_design *design,
                                                            size_t *ret_count)
{
    return partita_design_taps_count_sized(design, sizeof *design, ret_count);
}

// Designs taps.
// Shapes:  taps [n].
// Ranges:  n is what partita_design_taps_count has returned for this design.
// Errors:  as partita_design_taps_count; PARTITA_ERR_ARG if n is not design.taps or that is 0 and n
//          cannot be the number of taps; PARTITA_ERR_UNSUPPORTED if the exchange does not converge.
// Memory:  allocates working memory.
// Time:    not real-time safe.
// Threads: any.
// Source:  Kaiser, Nonrecursive digital filter design using the I0-sinh window function, ISCAS
//          (1974). Parks and McClellan, Chebyshev approximation for nonrecursive digital filters
//          with linear phase, IEEE Trans. Circuit Theory 19 (1972); McClellan, Parks and Rabiner, A
//          computer program for designing optimum FIR linear phase digital filters, IEEE Trans.
//          Audio Electroacoust. 21 (1973). Minimum phase: Oppenheim and Schafer, Discrete-Time
//          Signal Processing, chapter on the cepstrum.
PARTITA_API enum partita_status partita_design_taps_sized(const struct partita_design *design,
                                                          size_t design_bytes, double *taps,
                                                          size_t n);
static inline enum partita_status partita_design_taps(const struct partita_design *design,
                                                      double *taps, size_t n)
{
    return partita_design_taps_sized(design, sizeof *design, taps, n);
}

// What taps achieve.
struct partita_design_result {
    // The largest deviation from the gain of the pass bands, in dB. For differentiators in relation
    // to the largest gain; for raised cosines up to the cutoff; for tables where the wanted gain is
    // at most half of the attenuation (in dB) below the largest one.
    double ripple;
    // As in struct partita_design, in dB; infinite if the design has no stop band. Stop bands of
    // raised cosines begin at cutoff + width, as the window widens the slope.
    double attenuation;
    // The delay in frames: the mean of the group delay over all frequencies, weighted by the power
    // that passes; (n - 1) / 2 for linear phase.
    double delay;
    double width; // of the transitions between which ripple and attenuation were measured
};

// Measures the response of taps in the bands of a design: of its own taps, of those rounded to
// float, of taps from elsewhere.
// Shapes:  taps [n].
// Ranges:  n is 1 to 2^18; taps are finite.
// Errors:  PARTITA_ERR_ARG; PARTITA_ERR_NOMEM.
// Memory:  allocates working memory.
// Time:    a transform of at least 16 n points; between them the response is searched at the
//          largest value only, so that results are within 0.05 dB of the largest deviation.
// Threads: any.
PARTITA_API enum partita_status
partita_design_measure_sized(const struct partita_design *design, size_t design_bytes,
                             const double *taps, size_t n, struct partita_design_result *ret_result,
                             size_t result_bytes);
static inline enum partita_status partita_design_measure(const struct partita_design *design,
                                                         const double *taps, size_t n,
                                                         struct partita_design_result *ret_result)
{
    return partita_design_measure_sized(design, sizeof *design, taps, n, ret_result,
                                        sizeof *ret_result);
}

// The response of taps at a frequency in cycles per frame (Hz divided by the sample rate): the sum
// of taps[i] exp(-2 pi i j frequency), as real and imaginary part.
// Shapes:  taps [n].
// Errors:  none: arguments are not checked.
// Memory:  none.
// Time:    proportional to n.
// Threads: any. Real-time safe.
PARTITA_API void partita_design_response(const double *taps, size_t n, double frequency,
                                         double ret_response[2]) PARTITA_NONBLOCKING;

#ifdef __cplusplus
}
#endif

#endif
