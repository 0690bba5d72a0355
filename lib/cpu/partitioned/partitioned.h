// SPDX-License-Identifier: MIT
// What the files of cpu/partitioned share. A long filter is cut into levels: the head's first taps
// are summed directly, level 0 covers what follows in partitions of its size, level 1 what follows
// that in larger ones, and so on (partition_layout.c). Time goes by in ticks of a few frames. A
// level collects `hop` frames of input, then works on this block in a window of ticks: a list of
// small slices, of which each tick runs as many as a table says (partition_schedule.c); then its
// outputs are played, one tick's worth a tick.
//
//      ticks        | 0 1 2 3 | 4 5 6 7 | 8 9 ...         a level with hop = 4 ticks, window = 2
//      collect      | block 0 | block 1 | block 2         (partition_stream.c)
//      work               | 0 |   | 1 |   | 2 |           begins in the tick that completes the
//      block play                   | block 0 | block 1 | ...   hence taps from hop + (window-1)
//      ticks on are in time
//
// Everything that outputs depend on lies in one region without pointers, so saving it is copying
// it; what refers to it is made again when a stream resumes. Which partitions: decision 6. Which of
// them meet which block when, two blocks by one reading of the filter: decision 8.
#ifndef PARTITA_PARTITIONED_H
#define PARTITA_PARTITIONED_H

#include "core/plan.h"
#include "fft/fft.h"
#include "kernels/kernels.h"
#include "stream/history.h"
#include "stream/paths.h"

enum { MAX_LEVELS = 16 };

// A level's blocks are `hop` new frames each, transformed together with the n - hop frames before
// them. One partition holds `multiple` hops of taps, n = (multiple + 1) * hop: few transforms for
// 1, few products for more.
struct level {
    size_t hop, n, multiple;
    size_t parts; // partitions, from tap `first` on
    size_t first;
    size_t ticks;  // of a block: hop / tick, a power of two
    size_t window; // ticks of work on a block
    size_t start;  // tick in which the work on the first block begins
    size_t bundle; // 1, 2 or 4 blocks that are multiplied together: see struct turn
    bool far;      // its spectra lie beyond a core's caches
};

// Which of its bundle a block is.
static inline size_t place_in_bundle(const struct level *level, uint64_t block)
{
    return block & (level->bundle - 1);
}

// The partitions by how early they are known.
enum section {
    SECTION_ALONE, // serves its own block
    SECTION_PAIR,  // and the next one
    SECTION_WIDE,  // and all of a bundle
    SECTIONS
};

// Blocks of a bundle read the spectra of a filter together. What partition p contributes to a block
// is known p * multiple blocks before: so the far partitions are multiplied for a block and for the
// bundle-1 ones after it at once, whose sums wait until it is their turn. Near ones serve fewer
// blocks at a time, partition 0 its own block alone. The tiles of the spectra are as many shares as
// the bundle has blocks, and the bundle of share s begins with the block at place s: so there is as
// much to do with every block.
struct turn {
    enum section section; // of the partitions
    size_t sums;          // blocks that they serve, from the current one on
};

enum { MAX_BUNDLE = CMAC_SUMS };

// Section s holds bounds[s] .. bounds[s+1]-1 (partition_turns.c).
void level_sections(const struct level *level, size_t bounds[SECTIONS + 1]);

// What is multiplied in a share of the tiles, in this order, with the block `age` blocks after its
// bundle's first one; returns how many turns.
size_t level_turns(const struct level *level, size_t age, struct turn turns[SECTIONS]);

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
    bool whole;     // calls bring whole ticks, whose outputs are played when their inputs have been
                    // worked on
    size_t head;    // taps summed directly
    size_t n_levels;
    struct level level[MAX_LEVELS];
    bool wasteful;       // the last partition holds many zeros: taken only if there is nothing else
    double seconds;      // predicted, one frame
    double head_seconds; // of these, outside of the levels
};

// Frames by which a stream's outputs are late: a whole tick's delay is over when it is played.
static inline size_t layout_delay(const struct layout *layout)
{
    return layout->latency - (layout->whole ? layout->tick : 0);
}

// The cheapest layout for a stream's shape. False if there is none: then the direct engine does it
// all.
bool layout_search(const struct request *request, struct layout *ret);

// Predicted seconds of a level's parts of work, one channel each.
struct level_costs {
    double transform; // forward or inverse
    double product;   // of the partitions of one cell
};
struct level_costs cost_level(const struct request *request, const struct level *level);

// Predicted seconds a frame, of all channels (partition_cost.c): a level's transforms and products,
// the head, and how long a tick takes beyond its work. cost_bundle chooses the level's bundle and
// says how far its spectra are.
double cost_transforms(const struct request *request, const struct level *level);
double cost_products(const struct request *request, const struct level *level);
double cost_head(const struct request *request, size_t head, size_t tick);
double cost_tick(void);
void cost_bundle(const struct request *request, struct level *level);

// Work of `units` cut into slices of `each`; the last ones may be smaller or empty.
struct cut {
    size_t units, each, slices;
    double seconds; // of one slice
};

static inline struct fft_steps slice_of(const struct cut *cut, size_t slice)
{
    const size_t first = slice * cut->each, end = first + cut->each;
    return (struct fft_steps){first < cut->units ? first : cut->units,
                              end < cut->units ? end : cut->units};
}

// A block is worked on in stages, one after the other. A stage consists of chains of slices: within
// a chain order counts, two chains touch nothing in common.
enum stage {
    STAGE_FORWARD, // each input's transform into its slot, then the slot's copy, or silence instead
    STAGE_PRODUCTS, // for some tiles each, of all outputs: so the inputs' spectra stay near
    STAGE_INVERSE,  // each output's inverse transform
    N_STAGES
};

enum { MAX_PRODUCT_CHAINS = 8 };

struct work {
    struct fft *fft;
    size_t tiles; // of a spectrum
    size_t pitch; // from one channel's spectrum to the next, in tiles: not a power of two, lest all
                  // fall in one cache set
    struct cut transform; // of one channel, either way
    struct cut store;     // of one input
    struct cut product;   // of all outputs, in tiles of each share
    struct {
        size_t chains, length; // slices of each chain
    } stage[N_STAGES];
    size_t edge_slices;                 // first ones of a transform, last ones of an inverse:
    double read_seconds, write_seconds; // what they take more, for samples not in the cache
    uint32_t *due; // [ticks] how many slices of all stages, in order, must be done by the end of
                   // that tick
};

struct partitioned {
    struct layout layout;
    struct work work[MAX_LEVELS];
    size_t ring; // frames of input kept a channel, a multiple of tick
    struct partita_load load;
    double *tick_seconds; // [hyper] predicted work of each tick of the longest level's cycle
    size_t hyper;
};

// Cuts every level's work into slices and spreads them over its ticks so that the largest tick is
// as small as it gets.
enum partita_status schedule_create(struct partita_plan *plan, const struct request *request);

// Slices of a stage, and of all of them.
static inline size_t stage_slices(const struct work *work, enum stage stage)
{
    return work->stage[stage].chains * work->stage[stage].length;
}

static inline size_t block_slices(const struct work *work)
{
    return stage_slices(work, STAGE_FORWARD) + stage_slices(work, STAGE_PRODUCTS) +
           stage_slices(work, STAGE_INVERSE);
}

// Predicted seconds of the slices first .. end-1 of a level's work on a block.
double slices_seconds(const struct work *work, size_t first, size_t end);

// The table of levels and a timeline of their work, as text (partition_explain.c).
void partitioned_explain(const struct partita_plan *plan, struct text *text);

// One cell's spectra of one section of a level: [tiles][stride] tiles, of which the first `count`
// are those of partitions first .. first+count-1, the only ones not zero; the others belong to
// other cells, sorted by output, so that products of all outputs read them from one end to the
// other.
struct cell_section {
    char *spectra; // written once, when the filter is made
    size_t first, count, stride;
};

struct cell {
    size_t in;
    const char *head; // taps of the head, causal
    size_t head_taps;
    struct cell_section level[MAX_LEVELS][SECTIONS];
};

// filter->state.
struct partitioned_filter {
    size_t *first_cell; // [out_channels + 1] into cells, which are sorted by output
    struct cell *cells;
};

// Its cells; none of NULL.
struct path_view partitioned_cells(const struct partita_filter *filter);

enum partita_status partitioned_filter_create(struct partita_filter *filter,
                                              const struct partita_cell *cells, size_t n_cells,
                                              const struct partita_filter *base);

// Where a stream is. Everything counts from the stream's begin. Where calls bring whole ticks, a
// tick is complete before its outputs are played: while they are, `tick` and `fill` are the
// outputs' place, a tick ahead of what was asked for.
struct position {
    uint64_t tick; // complete ticks
    size_t fill;   // frames of the tick that is being collected
    size_t set;    // which of the two sets of outputs belongs to the stream's own filter
};

// A level's progress on its current block, kept in the region.
struct progress {
    size_t done; // slices, in the order of the table; kept by a team elsewhere while it is at work
    enum stage stage; // of the next slice
    size_t chain, number;
    bool running; // there is a block
    bool twice;   // worked on with two filters
    size_t set;   // of the first filter's sums and outputs
    uint64_t block;
};

// What the outputs' products are with one filter.
struct hearing {
    const struct partita_filter *filter; // NULL: not pointed yet
    bool *any;                           // [out] is there a line at all
    struct {
        struct cmac_line *lines; // [cells] each output's from its first cell's place on
        size_t *n_lines;         // [out] cells that hear more than silence
    } section[SECTIONS];
};

// One level's part of the region, and what is derived from it.
struct level_state {
    struct progress *progress;
    size_t *quiet;  // [in] blocks of silence in a row, up to the current one
    char *slots;    // [in][pitch][row] spectra of the last blocks, and copies of the first ones
                    // (kernels.h)
    char *spectrum; // [in][pitch] being transformed
    char *sum;      // [2 sets][bundle][out][pitch] of the blocks of a bundle
    uint16_t *held; // [2 sets][out] before the current block: bit share * MAX_BUNDLE + place says
                    // whether that share of that place's sum holds something
    uint16_t *kept; // the same after it
    char *out;      // [2 sets][2 blocks in turn][out][n]
    char *scratch;  // [in or 2 x out] of the transforms; this and what follows is not in the region
    struct hearing hearing[2]; // by the current block's filters
};

struct team; // partition_team.h

struct partitioned_stream {
    struct position *position;
    struct history history;
    struct level_state level[MAX_LEVELS];
    char *samples[2];  // outputs of one tick of one channel, by either filter
    struct team *team; // NULL: the stream's thread works alone
    struct region region;
};

static inline size_t level_slots(const struct level *level)
{
    return (level->parts - 1) * level->multiple + 1;
}

// Tiles from one tile of a spectrum to the next in the slots of an input.
static inline size_t level_row(const struct level *level)
{
    return level_slots(level) + level->bundle - 1;
}

#endif
