// SPDX-License-Identifier: MIT
// What engines that sum over passes (conv_pass.h) share, forward and backward data: the list of a
// direction's passes as the engine cuts them, taps packed in blocks of output channels, tasks, and
// the rows of results.
#ifndef PARTITA_CONV_RUNS_H
#define PARTITA_CONV_RUNS_H

#include "base/thread.h"
#include "core/plan.h"
#include "pass.h"

// A pass with what was decided about it.
struct conv_run {
    struct conv_pass pass;
    size_t block;  // output channels whose taps are packed side by side
    size_t padded; // output channels of a group, with those of zeros that fill the last block's
                   // vectors
    size_t parts, part_out; // output channels of a group, in parts of whole blocks that are tasks
                            // of their own
    size_t weights;         // where its packed taps begin
    size_t *offset;         // of one chunk
    const struct conv_run *kind; // the first of its kind, in the plan's list
};

// Plans hold one pass of each kind: strides may make thousands of them, of which no list would be
// worth its memory.
struct conv_runs {
    size_t n;             // kinds
    bool covers;          // every output belongs to a pass
    struct conv_run *run; // the first of each
    size_t taps;          // packed, of all passes
};

// All passes of a plan, one after the other: begins with the first, goes on to the next; false
// behind the last.
bool conv_runs_begin(const struct partita_plan *plan, struct conv_run *ret);
bool conv_runs_next(const struct partita_plan *plan, struct conv_run *run);

// Chooses chunk, box and parts of a pass within so many bytes of workspace, by shape alone; and
// blocks, if not those of CONV_CHANNELS without padding.
typedef void conv_cut_fn(struct conv_run *run, size_t limit);

// Kinds of passes of the request's direction: cut and counted once for all passes of a kind. Pass
// i; false if no output belongs to it.
size_t conv_runs_kinds(const struct request *request, struct conv_kind ret[CONV_KINDS]);
bool conv_runs_make(const struct request *request, size_t i, conv_cut_fn *cut,
                    struct conv_run *ret);

// Whether there are too many taps or passes; says so in ret->reason.
bool conv_runs_refuse(const struct request *request, struct estimate *ret);

// plan->state becomes a struct conv_runs; filter->state the taps of all its passes.
enum partita_status conv_runs_create(struct partita_plan *plan, const struct request *request,
                                     conv_cut_fn *cut);
enum partita_status conv_runs_filter(struct partita_filter *filter, const void *taps);

// Splits the output channels of a group into about so many parts of whole blocks.
void conv_run_split(struct conv_run *run, size_t parts);

// Taps of a pass as they are packed.
static inline size_t conv_run_taps(const struct conv_run *run)
{
    return size_mul(size_mul(run->pass.groups * run->padded, run->pass.in), run->pass.terms);
}

static inline size_t conv_run_packed_bytes(const struct conv_run *run)
{
    return mem_round(size_mul(run->pass.chunk, conv_channel_bytes(&run->pass)));
}

// One call of forward or backward data.
struct conv_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const struct conv_run *run;
    char *to;
    const char *from;
    char *workspace;
};

// Part of a call: output channels begin .. end-1 of a group at the place of a box.
struct conv_task {
    struct conv_place place;
    size_t group, begin, end;
};

// Runs all passes, each with `run` once for every task; outputs that no pass reaches become 0.
void conv_call_run(struct conv_call *call, task_fn *run);
struct conv_task conv_call_task(const struct conv_call *call, size_t task);

// Channels of the block of output channels `first`, with those of zeros.
static inline size_t conv_run_width(const struct conv_run *run, size_t first)
{
    return run->padded - first < run->block ? run->padded - first : run->block;
}

// Packed taps of the block of output channels `first` of a group from input channel `in` on:
// [in][term][block].
const char *conv_call_taps(const struct conv_call *call, size_t group, size_t first, size_t in);

// The rows of one output channel, counted within its group, from its sums of a box, whose rows,
// planes and images lie as in a box of these extents. `first_share`, `last_share`: of the input
// channels, whose shares are added; where samples are stored in two bytes there is one share.
void conv_call_store(const struct conv_call *call, const struct conv_task *task, size_t channel,
                     const char *sums, const size_t extent[3], bool first_share, bool last_share);

#endif
