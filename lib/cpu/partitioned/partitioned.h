// SPDX-License-Identifier: MIT
// Declarations that the files of cpu/partitioned share. A long filter is split into a head, which
// is summed directly, and segments of partitions (geometry/partition_search.h). The work of a
// segment on a block is a list of small tasks; a table says how many of them each quantum runs
// (schedule.c). tasks.c executes a task, workers.c chooses the thread that runs it.
//
// All that outputs depend on is in one region without pointers, so a copy of the region saves the
// stream. Pointers into the region are set again when a stream resumes.
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

// Number of complete blocks of a segment, and quanta of the current block, `quanta` quanta after
// the first block began.
static inline uint64_t complete_blocks(const struct partition_segment *segment, uint64_t quanta)
{
    return quanta >> __builtin_ctzll(segment->quanta);
}

static inline size_t quanta_into_block(const struct partition_segment *segment, uint64_t quanta)
{
    return (size_t)quanta & (segment->quanta - 1);
}

// Distance from one line of a spectrum to the next in the slots of an input, in spectrum lines: the
// slots, then copies of the first slots (kernels.h).
static inline size_t slot_pitch(const struct partition_segment *segment)
{
    return partition_slots(segment) + segment->batch - 1;
}

// Work of `units` units split into tasks of `each` units; the last tasks may be smaller or empty.
struct split {
    size_t units, each, tasks;
    double seconds; // of one task
};

static inline struct fft_steps split_range(const struct split *split, size_t task)
{
    const size_t first = task * split->each, end = first + split->each;
    return (struct fft_steps){size_min(first, split->units), size_min(end, split->units)};
}

// The work on a block consists of stages, one after the other. A stage consists of chains of tasks:
// the tasks of a chain run in order, and two chains have no data in common.
enum stage {
    STAGE_FORWARD,  // each input's transform into its slot, then the slot's copy; or zeros if the
                    // input is silent
    STAGE_PRODUCTS, // each for some spectrum lines of all outputs, so that the inputs' spectra stay
                    // in the cache
    STAGE_INVERSE,  // each output's inverse transform
    N_STAGES
};

enum { MAX_PRODUCT_CHAINS = 8 };

// The sums of a share, whose batch began some blocks before, to which a block adds: those with most
// sums are the kernel's own, the others are added to fewer of the same sums.
struct share_sums {
    struct partition_sum sums[SECTIONS]; // [1 + terms.n_more]
    struct cmac_terms terms;             // except fields that change with the block or the output
};

// How the work of a segment is split.
struct segment_work {
    struct fft *fft;
    size_t lines; // of a spectrum
    size_t pitch; // lines from one channel's spectrum to the next: not a power of two, so that they
                  // do not all map to one cache set
    struct split transform; // of one channel, forward or inverse, in the transform's steps
    struct split store;     // of one input, in lines
    struct split product;   // of all outputs, in lines of each share
    struct {
        size_t chains, length; // tasks of each chain
    } stage[N_STAGES];
    double slot_seconds; // extra time of each task of an input's transform if its slot is in memory
    double mean_seconds; // of the tasks of a block, of which most have nothing to store
    // By age of a share's batch; and by a block's index in its batch the bits, as in `begun`, of
    // the sums that its products are added to, and of those that are complete with it.
    struct share_sums share[PARTITION_MAX_BATCH];
    uint16_t filled[PARTITION_MAX_BATCH], complete[PARTITION_MAX_BATCH];
    uint32_t *due; // [quanta] number of tasks, in the order of all stages, that must be done by the
                   // end of that quantum
};

// plan->state.
struct partitioned {
    struct partition_layout layout;
    struct segment_work work[PARTITION_MAX_SEGMENTS];
    size_t ring; // frames of input kept per channel, a multiple of the quantum
    struct partita_load load;
    double
        *quantum_seconds; // [period] predicted work of each quantum of the longest segment's cycle
    size_t period;
};

static inline const struct partitioned *partitioned_of(const struct partita_plan *plan)
{
    return plan->state;
}

// The description of the CPU for the search. It refers to the rates, and the rates to the request.
struct partition_device cpu_partition_device(const struct request *request,
                                             const struct signal_rates *rates);

// Bytes from one line of a filter's spectra to the next.
static inline size_t filter_line_bytes(const struct partition_segment *segment)
{
    return segment->i16 ? SPECTRUM_I16_BYTES : SPECTRUM_LINE_BYTES;
}

// Splits every segment's work into tasks and distributes them over its quanta so that the largest
// load of a quantum is as small as possible.
enum partita_status schedule_create(struct partita_plan *plan, const struct request *request,
                                    const struct partition_device *device);

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

// One path's spectra of one section of a segment: [lines][stride] spectrum lines. In each row the
// first `count` belong to partitions first .. first+count-1 of this path, which are the only ones
// that are not zero. The others belong to other paths, sorted by output, so that the products of
// all outputs read them in order.
struct path_section {
    char *spectra;         // written once, when the filter is made
    float *scales;         // [lines][stride] of spectra in 16 bits; else NULL
    uint32_t first, count; // narrow, since a sparse matrix has many of these
    size_t stride;
};

struct path {
    struct path_section segment[PARTITION_MAX_SEGMENTS][SECTIONS];
};

// filter->state.
struct partitioned_filter {
    struct path_view view;
    struct path *paths; // as in view
};

// The paths whose spectra have columns of their own.
struct path_columns {
    const struct partita_plan *plan;
    size_t n;
    struct path *paths;                // with their ranges of partitions
    const struct path_source *sources; // twins share a column; NULL: there are none
};

// Takes the memory of the spectra of all sections.
void partitioned_layout_spectra(const struct path_columns *columns, struct arena *arena);

// The filter's paths; no paths for NULL.
struct path_view partitioned_paths(const struct partita_filter *filter);

enum partita_status partitioned_filter_create(struct partita_filter *filter,
                                              const struct partita_path *paths, size_t n_paths,
                                              const struct partita_filter *base);

// A segment's progress on its current block, stored in the region.
struct progress {
    size_t done;      // tasks that are done, in the order of the table; while workers run they
                      // count elsewhere
    bool running;     // there is a current block
    bool two_filters; // the block is computed with both the stream's filter and the incoming one
    bool sums_only; // the incoming one's sums are for later blocks: this block's output is not used
    size_t set;     // index of the first filter's sums and outputs
    uint64_t block;
};

// The products of a segment with one filter, without those of silent inputs.
struct active_paths {
    const struct partita_filter *filter; // NULL: to be listed again
    bool *any;                           // [out] whether there is any product
    struct {
        struct cmac_path *paths; // [paths] those of each output begin at the index of its first
                                 // path
        size_t *n_paths;         // [out]
    } section[SECTIONS];
};

// One segment's part of the region, and values derived from it.
struct segment_state {
    struct progress *progress;
    uint64_t *active_until; // [in] number of blocks up to and including the last one that was not
                            // silent; 0: all were
    char *slots;            // [in][pitch][slot_pitch] spectra of the last blocks (kernels.h)
    char *sum;              // [2 sets][batch][out][pitch] of the blocks of a batch
    // Bit share * PARTITION_MAX_BATCH + index says whether that share of the sum of the batch's
    // block `index` is valid (else it counts as zero): before the current block, and after it.
    uint16_t *begun, *carried; // [2 sets][out]
    char *out;                 // [2 sets][2 blocks alternating][out][n]
    // [in][pitch] spectra being transformed. In the region, unless a block is computed in one
    // quantum: then it holds nothing between quanta, and neither does `scratch`.
    char *spectrum;
    // The following is not in the region.
    size_t slot, window;           // of the current block: its slot, the window in the history
    char *scratch;                 // [in or 2 x out] of the transforms
    struct active_paths active[2]; // for the current block's filters
};

// Number of consecutive silent blocks of an input up to a block.
static inline uint64_t silent_blocks(const struct segment_state *state, size_t input,
                                     uint64_t block)
{
    const uint64_t until = state->active_until[input];
    return until ? block + 1 - until : UINT64_MAX;
}

struct workers;
struct morph;

// stream->state.
struct partitioned_stream {
    struct position *position;
    struct history history;
    char *samples[2];        // outputs of one quantum of one channel, by either filter
    struct workers *workers; // NULL: only the stream's thread works
    struct morph *morph;     // NULL: the stream's filter does not move (morph.h)
    // During a swap: outputs of earlier quanta need the stream's filter alone, outputs from the
    // quantum `fade_end` on the incoming one alone.
    uint64_t fade_begin, fade_end;
    struct region region;
    struct segment_state segment[PARTITION_MAX_SEGMENTS];
};

static inline struct partitioned_stream *partitioned_stream_of(const struct partita_stream *stream)
{
    return stream->state;
}

// One task of a segment: its stage, its chain in the stage, its number in the chain.
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

// Fills the tables of a segment's work.
void tasks_plan(const struct partition_segment *segment, struct segment_work *work);

// Sets all that depends on the number of a segment's current block.
void tasks_locate(const struct partita_stream *stream, size_t i);

// Called before a segment's new block: determines which of its sums are already valid and which
// remain valid after it.
void tasks_prepare(const struct partita_stream *stream, size_t i);

// Lists the products of a segment with the first or the second of the block's filters.
void tasks_list_paths(const struct partita_stream *stream, size_t i, size_t which,
                      const struct partita_filter *filter);

// Called in each step that does not complete a quantum: wakes threads that are blocked because the
// stream was idle.
void workers_step(const struct partita_stream *stream);

// Runs the tasks that are due at the end of the quantum that is now complete.
void workers_run_quantum(struct partita_stream *stream);

// Called before and after the region is copied or replaced: no thread accesses it between a pause
// and workers_resume.
void workers_pause(struct partita_stream *stream);
void workers_abandon(struct partita_stream *stream); // a pause that discards unfinished work
void workers_resume(struct partita_stream *stream);

// The memory of a stream with several threads; NULL: it has one, or the arena only counts.
struct workers *workers_layout(const struct partita_stream *stream, struct arena *arena);

// Starts the threads. Errors: PARTITA_ERR_NOMEM, also for threads. The caller must call
// workers_close, whatever was returned.
enum partita_status workers_open(struct partita_stream *stream);
void workers_close(struct partita_stream *stream);

// The outputs of segment i for a channel in a quantum in which one of its blocks is ready.
const char *ready_outputs(const struct partita_stream *stream, size_t i, uint64_t quantum,
                          size_t set, size_t channel);

void partitioned_prefetch(const struct partita_stream *stream, int ahead);

// The stream's functions for the engine's table (stream.c).
void *partitioned_stream_layout(const struct partita_stream *stream, struct arena *arena);
struct step partitioned_stream_step(struct partita_stream *stream, const struct frames *frames);
size_t partitioned_swap_begin(struct partita_stream *stream);
size_t partitioned_swap_end(struct partita_stream *stream);

#endif
