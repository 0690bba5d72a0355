// SPDX-License-Identifier: MIT
// Which partitions a long filter of a stream is cut into, on any device: the cheapest layout by the
// device's rates (decision 6).
//
// The taps are covered by a head, whose taps are summed directly, and by segments of partitions
// that grow with their distance. Time goes by in quanta of a few frames. A segment collects a block
// of `hop` frames, works on it during a window of quanta, and then its outputs are played:
//
//      quanta       | 0 1 2 3 | 4 5 6 7 | 8 9 ...        a segment with hop = 4 quanta, window = 2
//      collect      | block 0 | block 1 | block 2
//      work               | 0 |   | 1 |   | 2 |          begins in the quantum that completes the
//      play                     | block 0 | block 1 ...  block, so taps from hop + (window - 1)
//                                                        quanta on are in time
#ifndef PARTITA_PARTITION_SEARCH_H
#define PARTITA_PARTITION_SEARCH_H

#include "core/problem.h"
#include "signal_rates.h"

enum {
    PARTITION_MAX_SEGMENTS = 16,
    PARTITION_MAX_BATCH = 4, // blocks that are multiplied together
    PARTITION_MIN_QUANTUM = 16,
    PARTITION_MAX_QUANTUM = 1024,
};

// Partitions of one size. A block consists of `hop` new frames, transformed together with the n -
// hop frames before them. One partition holds `multiple` hops of taps, n = (multiple + 1) * hop:
// few transforms for 1, few products for more.
struct partition_segment {
    size_t hop, n, multiple;
    size_t partitions;
    size_t first;  // tap of the first partition
    size_t quanta; // of a block: hop / quantum, a power of two
    size_t window; // quanta of work on a block
    size_t start;  // quantum in which the work on the first block begins
    size_t batch;  // 1, 2 or 4 blocks that are multiplied together: see partition_sums
    bool far;      // the spectra do not fit the fast memory of a core
};

struct partition_layout {
    size_t quantum; // frames
    size_t latency; // frames by which outputs are delayed
    bool whole;     // calls bring whole quanta, whose outputs are played after the work on them
    size_t head;    // taps summed directly
    size_t n_segments;
    struct partition_segment segment[PARTITION_MAX_SEGMENTS];
    bool parallel;          // head and segments run side by side
    bool wasteful;          // the last partition holds many zeros: taken if there is nothing else
    double seconds;         // predicted, one frame
    double head_seconds;    // of these, outside of the segments
    double segment_seconds; // and in them
};

// What a device can do, when it has outputs ready, and what that costs.
struct partition_device {
    const struct signal_rates *rates;
    // Limits.
    size_t max_segments, max_multiple, max_batch, max_transform, max_partitions;
    bool first_is_quantum; // the blocks of the first segment are one quantum long
    // Timing. Outputs are ready `lag` quanta after the last one of a block's window, those of
    // segments with longer blocks than a quantum `long_lag` quanta after that. Where calls bring
    // whole quanta, this is counted from their end; where not, from `early` frames before.
    bool half_windows; // segments other than the last work in half of a block's time, so that
                       // larger ones may begin earlier
    bool fixed_start; // work begins with the complete block, so outputs have no other place; false:
                      // it is put off while taps are further away than they need be
    bool any_latency; // false: latencies are whole quanta
    bool any_waste;   // false: no layout with many zeros behind the last tap if there is another
    size_t lag, long_lag, early;
    bool parallel; // head and segments run side by side: a quantum takes the longer time of the two
    // Seconds beside those of rates.
    double task;    // starting one of the tasks of a transform
    double sum;     // starting a sum of products of one output
    double segment; // a quantum, each segment
    double launch;  // a quantum, all segments together
    double call;    // a call of the stream
    double quantum; // a quantum, outside of the segments
    double frame;   // a frame, outside of the segments
};

// Replaces *best, which may be zeros, by the cheapest layout for a stream if there is a cheaper
// one. Returns whether *best holds a layout; without one the taps are too few to be cut.
bool partition_search(const struct shape *shape, const struct partition_device *device,
                      struct partition_layout *best);

// Frames by which a stream's outputs are late: where calls bring whole quanta, a quantum's delay is
// over when its outputs are played.
static inline size_t partition_delay(const struct partition_layout *layout)
{
    return layout->latency - (layout->whole ? layout->quantum : 0);
}

// Spectra that are kept of an input for one segment.
static inline size_t partition_slots(const struct partition_segment *segment)
{
    return (segment->partitions - 1) * segment->multiple + 1;
}

// Operations a frame.
double partition_flops(const struct shape *shape, const struct partition_layout *layout);

// Predicted seconds of the products of one path with a block of a segment.
double partition_product_seconds(const struct shape *shape, const struct partition_device *device,
                                 const struct partition_segment *segment);

// The partitions of a segment by how early their inputs are known: for a block alone, for a pair of
// blocks, for a whole batch.
enum partition_section { SECTION_ALONE, SECTION_PAIR, SECTION_BATCH, SECTIONS };

// Section s holds partitions bounds[s] .. bounds[s+1]-1.
void partition_sections(const struct partition_segment *segment, size_t bounds[SECTIONS + 1]);

// Blocks of a batch read the spectra of a filter together. What partition p contributes to a block
// is known p * multiple blocks before. So the far partitions are multiplied for a block and for the
// batch-1 ones after it at once, whose sums wait until their blocks come. Near ones serve fewer
// blocks at a time, partition 0 its own block alone. The bins are divided into as many shares as
// the batch has blocks, and the batch of share s begins with the block at index s in its batch: so
// every block brings the same amount of work.
struct partition_sum {
    enum partition_section section;
    size_t blocks; // that the sum serves, from the current one on
};

// What is multiplied in a share, in this order, with the block `age` blocks after the first one of
// its batch. Returns how many sums.
size_t partition_sums(const struct partition_segment *segment, size_t age,
                      struct partition_sum ret[SECTIONS]);

#endif
