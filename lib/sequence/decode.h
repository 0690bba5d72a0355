// SPDX-License-Identifier: MIT
// Decoding of long filters (decision 49). Sixteen channels are a group, with a lane each. A slot is
// the memory of its groups; a group has its last frames, twice, so that every window of this ring
// is contiguous; the parts of outputs that earlier quanta give; the block of each segment that
// is being computed; and for each channel its last samples, spectra and blocks of outputs.
//
// The time of a group is the frames of its sequence and a phase, which is below a quantum: groups
// begin their quanta one after the other. Blocks of a segment lie at multiples of their length of
// that time. While block w arrives, the spectrum of blocks w-2 and w-1 is made, the last spectra
// are multiplied by the partitions, and the sums are transformed to outputs of block w+1.
#ifndef PARTITA_SEQUENCE_DECODE_H
#define PARTITA_SEQUENCE_DECODE_H

#include "causal.h"
#include "fft/fft.h"

#include <partita/decode.h>

enum {
    DECODE_LANES = CONV_BLOCK_BYTES / sizeof(float), // channels of a group
    DECODE_QUANTUM = 16,                             // frames; as many taps are summed in a call
    DECODE_DIRECT = 128,                             // taps that are summed directly
    DECODE_BLOCK = DECODE_DIRECT / 2,                // frames of the shortest block
    DECODE_GROWTH = 4,                               // from segment to segment
    DECODE_SEGMENTS = 8,
    DECODE_TILE = DECODE_QUANTUM * DECODE_LANES,      // samples of a quantum of a group
    DECODE_LINE = SPECTRUM_LINE_BYTES / sizeof(float) // floats
};

// Partitions of one size, from tap 2 * block on. Offsets are in floats.
struct decode_segment {
    struct fft *fft;
    size_t block, shift;           // frames, and their logarithm
    size_t partitions;             // of the filter
    size_t spectra, outputs;       // of the input and blocks of outputs that a channel keeps
    size_t products, tasks;        // parts of the products; all tasks of a channel's block
    size_t filter_at;              // in the spectra of a channel's taps
    size_t spectra_at, outputs_at; // in a channel
    size_t work_at;                // in a group: a spectrum, samples of its inverse, scratch
};

// A slot's sequence.
struct decode_sequence {
    size_t position, longest; // frames: now, and at most so far
    bool open;
};

struct partita_decode {
    struct partita_decode_options options; // completed
    const struct kernels *kernels;
    int threads;
    size_t groups, n_taps, n_direct; // taps that are computed, and those that are summed directly
    struct tap_span spans[DECODE_DIRECT / MAX_SPAN_TAPS]; // of the first quantum, and the others
    struct decode_segment segments[DECODE_SEGMENTS];
    size_t n_segments;
    size_t recent;                     // frames of a group's ring, a power of two
    size_t past, mirror;               // frames of a channel's ring; the first ones, kept twice
    size_t past_at, channel_floats;    // of that ring in a channel; of a channel
    size_t channel_at, group_floats;   // of a group's first channel; of a group
    size_t filter_floats;              // of the spectra of a channel's taps
    float *direct;                     // [groups][n_direct][lanes], the first tap last
    float *filters;                    // [channels][filter_floats]: [segment][line][partition]
    float *slots;                      // [sequences][groups][group_floats]
    struct decode_sequence *sequences; // [sequences]
};

#endif
