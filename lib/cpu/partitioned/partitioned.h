// SPDX-License-Identifier: MIT
// What the files of cpu/partitioned share. A long filter is cut into a head, which is summed
// directly, and segments of partitions (geometry/partition_search.h). The work of a segment on a
// block is a list of small tasks, of which every quantum runs as many as a table says (schedule.c);
// what a task does is in tasks.c, who runs it in workers.c.
//
// Everything that outputs depend on lies in one region without pointers, so saving it is copying
// it; what refers to it is made again when a stream resumes.
#ifndef PARTITA_PARTITIONED_H
#define PARTITA_PARTITIONED_H

#include "core/plan.h"
#include "cpu/conv/signal_rates.h"
#include "fft/fft.h"
#include "geometry/partition_search.h"
#include "kernels/kernels.h"
#include "stream/outputs.h"

// Index of a block in its batch.
static inline size_t index_in_batch(const struct partition_segment *segment, uint64_t block)
{
    return block & (segment->batch - 1);
}

// Complete blocks of a segment and quanta of the current one, `quanta` after the first one began.
static inline uint64_t complete_blocks(const struct partition_segment *segment, uint64_t quanta)
{
    return quanta >> __builtin_ctzll(segment->quanta);
}

static inline size_t quanta_into_block(const struct partition_segment *segment, uint64_t quanta)
{
    return (size_t)quanta & (segment->quanta - 1);
}

// Spectrum lines from one line of a spectrum to the next in the slots of an input: the slots, then
// copies of the first ones (kernels.h).
static inline size_t slot_pitch(const struct partition_segment *segment)
{
    return partition_slots(segment) + segment->batch - 1;
}

// Work of `units` split into tasks of `each`; the last ones may be smaller or empty.
struct split {
    size_t units, each, tasks;
    double seconds; // of one task
};

static inline struct fft_steps split_range(const struct split *split, size_t task)
{
    const size_t first = task * split->each, end = first + split->each;
    return (struct fft_steps){first < split->units ? first : split->units,
                              end < split->units ? end : split->units};
}

// A block is worked on in stages, one after the other. A stage consists of chains of tasks: within
// a chain order counts, two chains touch nothing in common.
enum stage {
    STAGE_FORWARD, // each input's transform into its slot, then the slot's copy, or silence instead
    STAGE_PRODUCTS, // for some spectrum lines each, of all outputs: so the inputs' spectra stay
                    // near
    STAGE_INVERSE,  // each output's inverse transform
    N_STAGES
};

enum { MAX_PRODUCT_CHAINS = 8 };

// How the work of a segment is split.
struct segment_work {
    struct fft *fft;
    size_t lines; // of a spectrum
    size_t pitch; // lines from one channel's spectrum to the next: not a power of two, lest all
                  // fall in one cache set
    struct split transform; // of one channel, either direction, in the transform's steps
    struct split store;     // of one input, in lines
    struct split product;   // of all outputs, in lines of each share
    struct {
        size_t chains, length; // tasks of each chain
    } stage[N_STAGES];
    size_t edge_tasks;                  // first ones of a transform, last ones of an inverse:
    double read_seconds, write_seconds; // what they take more, for samples not in the cache
    uint32_t *due; // [quanta] how many tasks of all stages, in order, must be done by the end of
                   // that quantum
};

// plan->state.
struct partitioned {
    struct partition_layout layout;
    struct segment_work work[PARTITION_MAX_SEGMENTS];
    size_t ring; // frames of input kept a channel, a multiple of the quantum
    struct partita_load load;
    double
        *quantum_seconds; // [period] predicted work of each quantum of the longest segment's cycle
    size_t period;
};

static inline const struct partitioned *partitioned_of(const struct partita_plan *plan)
{
    return plan->state;
}

// What the search is told of the CPU. It refers to the rates.
struct partition_device cpu_partition_device(const struct signal_rates *rates);

// Splits every segment's work into tasks and spreads them over its quanta so that the largest
// quantum is as small as it gets.
enum partita_status schedule_create(struct partita_plan *plan, const struct request *request);

// Tasks of a stage, and of all of them.
static inline size_t stage_tasks(const struct segment_work *work, enum stage stage)
{
    return work->stage[stage].chains * work->stage[stage].length;
}

static inline size_t block_tasks(const struct segment_work *work)
{
    return stage_tasks(work, STAGE_FORWARD) + stage_tasks(work, STAGE_PRODUCTS) +
           stage_tasks(work, STAGE_INVERSE);
}

// Predicted seconds of the tasks first .. end-1 of a segment's work on a block.
double schedule_seconds(const struct segment_work *work, size_t first, size_t end);

// The table of segments and a timeline of their work, as text.
void partitioned_explain(const struct partita_plan *plan, struct text *text);

// One path's spectra of one section of a segment: [lines][stride] spectrum lines, of which the
// first `count` are those of partitions first .. first+count-1, the only ones not zero; the others
// belong to other paths, sorted by output, so that products of all outputs read them from one end
// to the other.
struct path_section {
    char *spectra; // written once, when the filter is made
    size_t first, count, stride;
};

struct path {
    struct path_section segment[PARTITION_MAX_SEGMENTS][SECTIONS];
};

// filter->state.
struct partitioned_filter {
    struct path_view view;
    struct path *paths; // as in view
};

// Its paths; none of NULL.
struct path_view partitioned_paths(const struct partita_filter *filter);

enum partita_status partitioned_filter_create(struct partita_filter *filter,
                                              const struct partita_cell *paths, size_t n_paths,
                                              const struct partita_filter *base);

// A segment's progress on its current block, kept in the region.
struct progress {
    size_t done;      // tasks, in the order of the table; workers keep it elsewhere while they run
    enum stage stage; // of the next task
    size_t chain, number;
    bool running;     // there is a block
    bool two_filters; // worked on with the stream's filter and the incoming one
    size_t set;       // of the first filter's sums and outputs
    uint64_t block;
};

// The products of a segment with one filter: only of inputs that are not silent.
struct active_paths {
    const struct partita_filter *filter; // NULL: to be listed again
    bool *any;                           // [out] is there a product at all
    struct {
        struct cmac_path *paths; // [paths] each output's from the index of its first path on
        size_t *n_paths;         // [out]
    } section[SECTIONS];
};

// One segment's part of the region, and what is derived from it.
struct segment_state {
    struct progress *progress;
    size_t *silent_blocks; // [in] in a row, up to the current one
    char *slots;           // [in][pitch][slot_pitch] spectra of the last blocks (kernels.h)
    char *spectrum;        // [in][pitch] being transformed
    char *sum;             // [2 sets][batch][out][pitch] of the blocks of a batch
    // Bit share * PARTITION_MAX_BATCH + index says whether that share of the sum of the batch's
    // block `index` holds something: before the current block, and after it.
    uint16_t *begun, *carried; // [2 sets][out]
    char *out;                 // [2 sets][2 blocks alternating][out][n]
    // What follows is not in the region.
    char *scratch;                 // [in or 2 x out] of the transforms
    struct active_paths active[2]; // by the current block's filters
};

struct workers;

// stream->state.
struct partitioned_stream {
    struct position *position;
    struct history history;
    struct segment_state segment[PARTITION_MAX_SEGMENTS];
    char *samples[2];        // outputs of one quantum of one channel, by either filter
    struct workers *workers; // NULL: the stream's thread works alone
    struct region region;
};

static inline struct partitioned_stream *partitioned_stream_of(const struct partita_stream *stream)
{
    return stream->state;
}

// One task of a segment: in a chain of a stage, the number within it.
struct task {
    const struct partita_stream *stream;
    const struct partition_segment *segment;
    const struct segment_work *work;
    struct segment_state *state;
    enum stage stage;
    size_t chain, number;
};

// The first task of segment i.
static inline struct task task_first(const struct partita_stream *stream, size_t i)
{
    const struct partitioned *partitioned = partitioned_of(stream->plan);
    return (struct task){.stream = stream,
                         .segment = &partitioned->layout.segment[i],
                         .work = &partitioned->work[i],
                         .state = &partitioned_stream_of(stream)->segment[i]};
}

void task_run(const struct task *at);

// Before a segment's new block: what its sums hold already and what will stay in them.
void tasks_prepare(const struct partita_stream *stream, size_t i);

// Lists the products of a segment, by the first or the second of the block's filters.
void tasks_list_paths(const struct partita_stream *stream, size_t i, size_t which,
                      const struct partita_filter *filter);

// Runs the tasks that are due at the end of the quantum which has just been filled.
void workers_run_quantum(struct partita_stream *stream);

// Around replacing the region, or copying it: nobody works on it between a pause and
// workers_resume.
void workers_pause(struct partita_stream *stream);
void workers_abandon(struct partita_stream *stream); // a pause that gives up unfinished work
void workers_resume(struct partita_stream *stream);

// Starts the stream's threads, if the plan wants any. Errors: PARTITA_ERR_NOMEM, also for threads.
// workers_close is to follow, whatever was returned.
enum partita_status workers_open(struct partita_stream *stream);
void workers_close(struct partita_stream *stream);

// The stream's functions for the engine's table (stream.c).
enum partita_status partitioned_stream_open(struct partita_stream *stream);
void partitioned_stream_close(struct partita_stream *stream);
struct step partitioned_stream_step(struct partita_stream *stream, const struct frames *frames);
void partitioned_stream_reset(struct partita_stream *stream);
struct region partitioned_stream_region(struct partita_stream *stream);
size_t partitioned_swap_begin(struct partita_stream *stream);
size_t partitioned_swap_end(struct partita_stream *stream);

#endif
