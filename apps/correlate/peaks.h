// SPDX-License-Identifier: MIT
// Finds the peaks of a stream of results. A local maximum is a sample of one channel whose
// magnitude is at least the threshold and larger than that of its neighbours (of equal neighbours
// the first; more than PEAKS_MARGIN of them after a smaller one are a maximum whatever follows).
// Local maxima are taken in the order of their magnitude, the largest first, of equal ones the
// first in time; one is a peak unless a peak that was taken before is closer than the distance.
// This is the rule of scipy.signal.find_peaks, which leaves the order of equal ones open. The ends
// of the stream count as lower than any sample; samples that are not finite are ignored.
//
// The peaks do not depend on how samples arrive. A peak is known as soon as its samples decide it:
// `distance` samples after it if no larger maximum follows within them, otherwise with the last of
// the maxima that rise from it, each within the distance of the one before. Memory: 56 bytes for
// each of these rising maxima, and 48 for each peak that is known but comes after one that is not
// yet, or is one of the largest (--peaks). Noise has few rising maxima; a ramp of an hour has all
// of its own, and the limit is --max-memory.
//
// The position is interpolated: the maximum of the magnitude of the polynomial through 8 samples to
// each side. Without noise it is within 0.001 samples of the maximum of the continuous signal if
// that fills at most 60 % of the band, within 0.01 if 80 %, and within 0.06 in any case (a parabola
// through three samples: 0.04, 0.1 and 0.24; sums with windowed sinc pulses fail for broad peaks).
#ifndef PARTITA_APPS_PEAKS_H
#define PARTITA_APPS_PEAKS_H

#include <partita/problem.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"

struct peak {
    uint64_t index; // of the sample, counted from the first
    size_t channel;
    double magnitude, phase; // of the sample; the phase in radians
    double level;            // by which peaks are compared: the magnitude or its square
    double shift;            // of the interpolated maximum from the sample, -1 to 1
};

struct peaks_request {
    enum partita_type type;
    size_t channels;
    size_t max_count;    // report the largest peaks, this many; 0: all
    double threshold;    // of the magnitude
    uint64_t distance;   // samples, at least 1
    uint64_t first, end; // report peaks from sample `first` on, before `end`
    bool continues;      // the stream begins inside of a signal that is not known before it
    // Takes a peak, ordered by index and then channel: as soon as it and all before it are known,
    // or at the end if only the largest are reported.
    bool (*report)(void *context, const struct peak *peak, struct fault *fault);
    void *context;
};

struct peaks;

// Samples to each side that decide whether a sample is a local maximum, and its position.
enum { PEAKS_MARGIN = 8 };

bool peaks_open(struct peaks **ret, const struct peaks_request *request, struct fault *fault);

// Adds n interleaved frames. False if `report` failed, or without memory.
bool peaks_add(struct peaks *peaks, const void *y, size_t n, struct fault *fault);

// After the last frame.
bool peaks_finish(struct peaks *peaks, struct fault *fault);

// Whether a peak that is to be reported may depend on what comes before a stream that `continues`:
// then what has been reported is wrong, and a stream that begins earlier is needed.
bool peaks_lost(const struct peaks *peaks);

// Whether all peaks before `end` have been reported, whatever follows.
bool peaks_settled(const struct peaks *peaks);

// Of n peaks of one signal, the largest `max_count`, or all if that is 0, in the order of `report`:
// moves them to the front and returns how many they are.
size_t peaks_select(struct peak *peaks, size_t n, size_t max_count);

// The largest magnitude of all samples.
double peaks_largest(const struct peaks *peaks);
void peaks_close(struct peaks *peaks); // NULL is allowed

#endif
