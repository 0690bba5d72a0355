// SPDX-License-Identifier: MIT
// What the files of cpu/partitioned share. A long filter is cut into levels: the head's first taps are summed directly,
// level 0 covers what follows in partitions of its size, level 1 what follows that in larger ones, and so on
// (partition_layout.c). Time goes by in ticks of a few frames. A level collects `hop` frames of input, then works on
// this block in a window of ticks: a list of small slices, of which each tick runs as many as a table says
// (partition_schedule.c); then its outputs are played, one tick's worth a tick.
//
//      ticks        | 0 1 2 3 | 4 5 6 7 | 8 9 ...         a level with hop = 4 ticks, window = 2
//      collect      | block 0 | block 1 | block 2         (partition_stream.c)
//      work               | 0 |   | 1 |   | 2 |           begins in the tick that completes the block
//      play                   | block 0 | block 1 | ...   hence taps from hop + (window-1) ticks on are in time
//
// Everything that outputs depend on lies in one region without pointers, so saving it is copying it; what refers to it
// is made again when a stream resumes.
#ifndef PARTITA_PARTITIONED_H
#define PARTITA_PARTITIONED_H

#include "../engine.h"
#include "../fft.h"

enum { MAX_LEVELS = 16 };

// A level's blocks are `hop` new frames each, transformed together with the n - hop frames before them. One partition
// holds `multiple` hops of taps, n = (multiple + 1) * hop: few transforms for 1, few products for more.
struct level {
    size_t hop, n, multiple;
    size_t parts; // partitions, from tap `first` on
    size_t first;
    size_t ticks;  // of a block: hop / tick, a power of two
    size_t window; // ticks of work on a block
    size_t start;  // tick in which the work on the first block begins
    bool paired;   // blocks are worked on in pairs: see struct work
};

// Ticks after which the work repeats.
static inline size_t level_cycle(const struct level *level)
{
    return level->paired ? 2 * level->ticks : level->ticks;
}

// Which of its pair a block is: 0 or 1, 0 if there are no pairs.
static inline size_t place_in_pair(const struct level *level, uint64_t block)
{
    return level->paired ? block & 1 : 0;
}

// The first partition that odd blocks work on besides partition 0: they and even blocks have the same to do then.
static inline size_t level_split(const struct level *level)
{
    return (level->parts + 2) / 2;
}

// Whole blocks of a level and ticks of the current one, `ticks` ticks after the first one began.
static inline uint64_t whole_blocks(const struct level *level, uint64_t ticks)
{
    return ticks >> __builtin_ctzll(level->ticks);
}

static inline size_t ticks_into_block(const struct level *level, uint64_t ticks)
{
    return (size_t)ticks & (level->ticks - 1);
}

struct layout {
    size_t tick;    // frames
    size_t latency; // frames by which outputs are delayed, a multiple of tick
    size_t head;    // taps summed directly
    size_t n_levels;
    struct level level[MAX_LEVELS];
    bool wasteful;       // the last partition holds many zeros: taken only if there is nothing else
    double seconds;      // predicted, one frame
    double head_seconds; // of these, outside of the levels
};

// The cheapest layout for a stream's shape. False if there is none: then the direct engine does it all.
bool layout_search(const struct request *request, struct layout *ret);

// Predicted seconds of a level's parts of work, one channel each.
struct level_costs {
    double transform;  // forward or inverse
    double product[2]; // of the partitions of one cell, with the first and with the second block of a pair
};
struct level_costs layout_costs(const struct request *request, const struct level *level);

// Work of `units` cut into slices of `each`; the last one may be smaller.
struct cut {
    size_t units, each, slices;
    double seconds; // of one slice
};

static inline struct fft_steps slice_of(const struct cut *cut, size_t slice)
{
    const size_t first = slice * cut->each, end = first + cut->each;
    return (struct fft_steps){first, end < cut->units ? end : cut->units};
}

// The slices of a level's work on one block. Stage 0: each input's transform, then its storing; stage 1: each output's
// products, then its inverse transform. Inputs and outputs are chains: within one, order counts.
//
// Two blocks meet most of a filter's spectra at once, so that each is read once for two products (level->paired). What
// partition p > 0 contributes to a block is known when the block before has come in. So with every even block the
// partitions below level_split are multiplied for it and for the next one, with every odd block those from level_split
// on; what that yields for the next block waits in `next`. Partition 0 of an odd block comes on top.
struct work {
    struct fft *fft;
    size_t tiles;                            // of a spectrum
    struct cut transform, store, product[2]; // of one chain: the inverse is cut as the transform is; by place in a pair
    size_t forward, output[2];               // slices of an input's and of an output's chain
    size_t edge_slices;                      // first ones of a transform, last ones of an inverse:
    double read_seconds, write_seconds;      // what they take more, for samples not in the cache
    uint32_t *due; // [cycle] how many slices of all chains, in order, must be done by the end of that tick
};

struct partitioned {
    struct layout layout;
    struct work work[MAX_LEVELS];
    size_t ring; // frames of input kept a channel, a multiple of tick
    struct partita_load load;
    double *tick_seconds; // [hyper] predicted work of each tick of the longest level's cycle
    size_t hyper;
};

// Cuts every level's work into slices and spreads them over its ticks so that the largest tick is as small as it gets.
enum partita_status schedule_create(struct partita_plan *plan, const struct request *request);

// Predicted seconds of the slices first .. end-1 of a level's work on either block of a pair.
double slices_seconds(const struct shape *shape, const struct work *work, size_t place, size_t first, size_t end);

// The table of levels and a timeline of their work, as text (partition_explain.c).
void partitioned_explain(const struct partita_plan *plan, struct text *text);

// A tile is SPECTRUM_TILE blocks of a spectrum.
enum { TILE_BYTES = SPECTRUM_TILE * 2 * SPECTRUM_BLOCK_BYTES };

// One cell's spectra of one level: [tiles][stride] tiles, of which the first `count` are those of partitions first ..
// first+count-1, the only ones not zero; the others belong to other cells of the output, so that what its products read
// lies in one line.
struct cell_level {
    char *spectra; // written once, when the filter is made
    size_t first, count, stride;
};

struct cell {
    size_t in;
    const char *head; // taps of the head, causal
    size_t head_taps;
    struct cell_level level[MAX_LEVELS];
};

// filter->state.
struct partitioned_filter {
    size_t *first_cell; // [out_channels + 1] into cells, which are sorted by output
    struct cell *cells;
};

enum partita_status partitioned_filter_create(struct partita_filter *filter, const struct partita_cell *cells,
                                              size_t n_cells, const struct partita_filter *base);

// Where a stream is. Everything counts from the stream's begin.
struct position {
    uint64_t tick; // complete ticks
    size_t fill;   // frames of the tick that is being collected
    size_t set;    // which of the two sets of outputs belongs to the stream's own filter
};

// A level's progress on its current block, kept in the region.
struct progress {
    size_t done;          // slices, in the order of the table; kept by a team elsewhere while it is at work
    size_t chain, number; // of the next slice
    bool running;         // there is a block
    bool twice;           // worked on with two filters: every output chain is as long again
    size_t set;           // of the first filter's outputs
    uint64_t block;
};

// One level's part of the region, and what is derived from it.
struct level_state {
    struct progress *progress;
    size_t *quiet;           // [in] blocks of silence in a row, up to the current one
    char *slots;             // [in][tiles][slots] spectra of the last blocks
    char *spectrum;          // [in][tiles] being transformed
    char *sum;               // [out][tiles]
    bool *silent;            // [2 sets][2 in a pair][out] nothing is left in `next`
    char *next;              // [2 sets][2 in a pair][out][tiles] sums for the block after; NULL unless paired
    char *out;               // [2 sets][2 blocks in turn][out][n]
    char *scratch;           // [in or out] of the transforms
    struct cmac_line *lines; // [out][CELL_LINES * group_in] what the output's products are; not in the region
    size_t *n_lines;         // [out]
    const struct partita_filter *filters[2]; // of the current block
};

struct team; // partition_team.h

struct partitioned_stream {
    struct position *position;
    uint64_t *loud;       // [in] frames up to the last one that was not zero
    uint64_t *bad;        // [in] frames up to the last one that was no number
    unsigned char *marks; // [in][ring] which frames were none
    uint64_t *poisoned;   // [in] output frames up to which such an input is heard
    char *ring;           // [in][2 * ring] inputs, every frame twice: windows never wrap
    struct level_state level[MAX_LEVELS];
    char *silence;     // a tile of zeros
    char *samples[2];  // outputs of one tick of one channel, by either filter
    struct team *team; // NULL: the stream's thread works alone
    struct region region;
};

enum { CELL_LINES = 4 }; // that the products of one cell take at most

static inline size_t level_slots(const struct level *level)
{
    return (level->parts - 1) * level->multiple + 1;
}

// A frame's place in the doubled ring of a channel, index < 2 * ring.
static inline char *ring_at(const struct partita_stream *stream, size_t channel, size_t index)
{
    const struct partitioned *partitioned = stream->plan->state;
    const struct partitioned_stream *state = stream->state;
    return state->ring + (channel * 2 * partitioned->ring + index) * stream->plan->shape.sample_bytes;
}

#endif
