// SPDX-License-Identifier: MIT
// How a long filter of a stream is split into partitions, on any device: finds the cheapest layout
// by the device's rates (decision 6).
//
// The taps are covered by a head, whose taps are summed directly, and by segments, whose partitions
// are the larger the later their taps are. Time advances in quanta of a few frames. A segment
// collects a block of `hop` frames, computes it during a window of quanta, and then writes its
// outputs:
//
//      quanta       | 0 1 2 3 | 4 5 6 7 | 8 9 ...        a segment with hop = 4 quanta, window = 2
//      collect      | block 0 | block 1 | block 2
//      compute            | 0 |   | 1 |   | 2 |          begins in the quantum that completes the
//      output                   | block 0 | block 1 ...  block, so taps from hop + (window - 1)
//                                                        quanta on are in time
#ifndef PARTITA_PARTITION_SEARCH_H
#define PARTITA_PARTITION_SEARCH_H

#include "core/engine.h"
#include "signal_rates.h"

enum {
    PARTITION_MAX_SEGMENTS = 16,
    PARTITION_MAX_BATCH = 4, // maximum number of blocks that are multiplied together
    PARTITION_MIN_QUANTUM = 16,
    PARTITION_MAX_QUANTUM = 1024,
};

// Partitions of one size. A block consists of `hop` new frames, transformed together with the n -
// hop frames before them. One partition holds `multiple` hops of taps, n = (multiple + 1) * hop: a
// larger multiple means fewer products and larger transforms.
struct partition_segment {
    size_t hop, n, multiple;
    size_t partitions;
    size_t first;  // tap of the first partition
    size_t quanta; // of a block: hop / quantum, a power of two
    size_t window; // quanta of work on a block
    size_t start;  // quantum in which the work on the first block begins
    size_t batch;  // 1, 2 or 4 blocks that are multiplied together: see partition_sums
    bool far;      // the spectra do not fit the fast memory of a core
    bool memory;   // nor that which cores share: those of the filter come from memory
    bool i16;      // the filter's spectra have 16 bits (kernels.h)
};

struct partition_layout {
    size_t quantum; // frames
    size_t begin;   // log2 of the quanta of the first segment's blocks
    size_t latency; // frames by which outputs are delayed
    bool whole;     // calls consist of whole quanta, whose outputs are written after the work on
                    // them
    size_t head;    // taps summed directly
    size_t n_segments;
    struct partition_segment segment[PARTITION_MAX_SEGMENTS];
    bool wasteful;          // the last partition holds many zeros; chosen only if there is no other
                            // layout
    double seconds;         // predicted, per frame
    double head_seconds;    // of these, outside the segments
    double segment_seconds; // of these, in the segments
};

// Spectra of filters in 16 bits (decision 30): for each line of 16 bins one scale and 32 mantissas.
// Rounding a line of 32 reals to 32767 steps of its largest adds at most half a step to each:
// sqrt(32) / 65534 = 8.63e-5 of the line's norm, and as much of the outputs (theory.md, section 6).
// The rest of the error is for the roundings of the mantissas before they are integers.
static const double PARTITION_I16_ERROR = 8.7e-5;
static const double PARTITION_I16_BYTES = 17. / 32; // of those of f32

// Whether a filter's spectra may have 16 bits: in f32, with an error budget that is above their
// error.
static inline bool partition_allows_i16(const struct request *request)
{
    return !request->shape->f64 && request->error_budget >= 1e-4;
}

// Abilities of a device, the time of its outputs, and its costs.
struct partition_device {
    const struct signal_rates *rates;
    // Limits.
    size_t max_segments, max_multiple, max_batch, max_transform, max_partitions;
    bool first_is_quantum; // the blocks of the first segment are one quantum long
    // Timing. Outputs are ready after the last quantum of a block's window; for segments whose
    // blocks are longer than a quantum, `long_lag` quanta after that. If calls consist of whole
    // quanta, this is counted from the end of a quantum, else from `early` frames before it.
    size_t streams; // that run in different phases; 0: 1. The windows of each are so much shorter
    bool half_windows; // the window of segments other than the last is half of a block's time, so
                       // that longer segments may begin earlier
    bool fixed_start;  // work begins when the block is complete, so outputs have a fixed time;
                       // false: it begins later if the segment's taps begin later than necessary
    bool any_latency;  // false: latencies are whole quanta
    bool any_waste;    // false: no layout with many zeros after the last tap if there is another
    bool i16; // spectra of filters have 16 bits in segments that read them from memory; f32
    size_t long_lag, early;
    bool whole; // only layouts whose calls consist of whole quanta
    // Seconds in addition to those of rates.
    double task;    // starting a task of a transform
    double sum;     // starting a sum of products of one output
    double segment; // per quantum and segment
    double launch;  // per quantum, for all segments together
    double call;    // per call of the stream
    double quantum; // per quantum, outside the segments
    double frame;   // per frame, outside the segments
};

// Where the search for a layout began: as in struct partition_layout.
struct partition_choice {
    size_t quantum, begin;
};

// The cheapest layout for a stream, or the one of an estimate for the same shape and device, which
// stores its choice: it is found at once. NULL: there is no estimate yet. False: there are too few
// taps to split.
bool partition_search(const struct shape *shape, const struct partition_device *device,
                      const struct estimate *estimate, struct partition_layout *ret);

// Latency of a stream in frames. If calls consist of whole quanta, one quantum of the layout's
// latency is hidden.
static inline size_t partition_delay(const struct partition_layout *layout)
{
    return layout->latency - (layout->whole ? layout->quantum : 0);
}

// Number of spectra of an input that are stored for one segment.
static inline size_t partition_slots(const struct partition_segment *segment)
{
    return (segment->partitions - 1) * segment->multiple + 1;
}

// Operations per frame.
double partition_flops(const struct shape *shape, const struct partition_layout *layout);

// Predicted seconds of the products of one path with a block of a segment.
double partition_product_seconds(const struct shape *shape, const struct partition_device *device,
                                 const struct partition_segment *segment);

// The partitions of a segment, by how early their inputs are known: in time for one block, for a
// pair of blocks, or for a whole batch.
enum partition_section { SECTION_ALONE, SECTION_PAIR, SECTION_BATCH, SECTIONS };

// Section s holds partitions bounds[s] .. bounds[s+1]-1.
void partition_sections(const struct partition_segment *segment, size_t bounds[SECTIONS + 1]);

// Blocks of a batch read the spectra of a filter together. The contribution of partition p to a
// block is known p * multiple blocks before. So late partitions are multiplied for a block and for
// the batch-1 blocks after it together; the sums of these are stored until their blocks are due.
// Earlier partitions serve fewer blocks at a time, and partition 0 only its own block. The bins are
// divided into as many shares as the batch has blocks, and the batch of share s begins with the
// block at index s in its batch, so that every block takes the same amount of work.
struct partition_sum {
    enum partition_section section;
    size_t blocks; // blocks that the sum serves, from the current one on
};

// The sums that are computed in a share, in this order, for the block that is `age` blocks after
// the first one of the share's batch. Returns their number.
size_t partition_sums(const struct partition_segment *segment, size_t age,
                      struct partition_sum ret[SECTIONS]);

#endif
