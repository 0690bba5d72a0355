// SPDX-License-Identifier: MIT
// Finds the peaks of a stream of results. A peak is a local maximum of the magnitude of one channel
// (of equal neighbours the first; more than PEAKS_MARGIN of them after a smaller one are a maximum
// whatever follows) that is at least the threshold and that no local maximum closer
// than the distance exceeds; of equal ones within the distance the first is the peak. The ends of
// the stream count as lower than any sample; samples that are not finite are ignored.
//
// Whether a sample is a peak depends only on the samples up to the distance and PEAKS_MARGIN, and
// not on how they arrive. Memory: 24 bytes for each local maximum of a falling sequence within the
// distance, and the peaks that are kept.
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
    size_t most;         // report the largest peaks, this many; 0: all
    double threshold;    // of the magnitude
    uint64_t distance;   // samples, at least 1
    uint64_t first, end; // report peaks from sample `first` on, before `end`
    // Takes a peak, ordered by index and then channel: as soon as it is known, or at the end if
    // only the largest are reported.
    bool (*report)(void *context, const struct peak *peak, struct fault *fault);
    void *context;
};

struct peaks;

// Samples beyond the distance that can change a peak or its position.
enum { PEAKS_MARGIN = 8 };

bool peaks_open(struct peaks **ret, const struct peaks_request *request, struct fault *fault);

// Adds n interleaved frames. False if `report` failed, or without memory.
bool peaks_add(struct peaks *peaks, const void *y, size_t n, struct fault *fault);

// After the last frame.
bool peaks_finish(struct peaks *peaks, struct fault *fault);

// Of n peaks of one signal, the largest `most`, or all if that is 0, in the order of `report`:
// moves them to the front and returns how many they are.
size_t peaks_select(struct peak *peaks, size_t n, size_t most);

// The largest magnitude of all samples.
double peaks_largest(const struct peaks *peaks);
void peaks_close(struct peaks *peaks); // NULL is allowed

#endif
