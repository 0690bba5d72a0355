// SPDX-License-Identifier: MIT
// Shared by engines that sum over passes (pass.h): the passes of a direction with the engine's
// layout, and for forward and backward data taps packed in blocks of output channels, tasks, and
// storing rows of results.
#ifndef PARTITA_CONV_PASSES_H
#define PARTITA_CONV_PASSES_H

#include "base/sizes.h"
#include "base/thread.h"
#include "core/plan.h"
#include "cost.h"
#include "pass.h"

// A pass with the decisions of an engine about it.
struct conv_layout {
    struct conv_pass pass;
    size_t oc_block;   // output channels whose taps are packed next to each other
    size_t out_padded; // output channels of a group, padded to whole vectors of the last block
    size_t oc_splits, oc_split; // splits of a group's output channels, in whole blocks: tasks
    size_t tasks;               // tasks of a box; by default groups times oc_splits
    // Backward weight: splits of the taps of a chunk, and of the boxes.
    size_t term_splits, term_split, k_splits;
    bool pairs;       // of backward weight: adjacent outputs of bf16 are pairs
    bool by_offsets;  // terms are offsets in packed inputs, in place of rows of a panel
    bool past_caches; // results are so large that no cache keeps them
    size_t weights;   // index of its first packed tap
    size_t *offset;   // offsets of one chunk's terms, if there are no tables
    void *tables;     // the engine's own
    size_t index;     // of the pass in its direction
};

struct conv_method;

// Plans hold one pass of each class: strides may lead to thousands of passes, and a list of all of
// them would be too large.
struct conv_passes {
    const struct conv_method *method;
    size_t n, count;            // classes; passes
    bool covers;                // every output belongs to a pass
    struct conv_layout *layout; // the first pass of each class
    size_t taps;                // number of packed taps of all passes
    size_t parts; // of the batch, each of which goes through all passes; 0: the whole batch does
};

// The functions by which an engine computes passes.
struct conv_method {
    // Chooses chunk, box and splits of a pass only by shape and workspace limit. Also chooses
    // oc_block and out_padded, unless these are CONV_CHANNELS and no padding, and k_splits, unless
    // it is 1.
    void (*layout)(const struct request *request, struct conv_layout *layout);
    // NULL: offsets are enough, of backward weight by tap.
    void (*make_tables)(struct conv_layout *layout, struct arena *arena);
    // Counts the work of a pass, and returns the outputs of a box.
    size_t (*count_work)(const struct conv_layout *layout, struct ledger *ledger);
    size_t (*worker_bytes)(const struct conv_layout *layout);
    task_fn *run_task; // its context is a struct conv_call
};

// Pass i of the request's direction, laid out; false if it has no output.
bool conv_layout_make(const struct request *request, const struct conv_method *method, size_t i,
                      struct conv_layout *ret);

// Sets what a pass needs to read and write samples of the plan's arrays.
void conv_layout_set_plan(struct conv_layout *layout, const struct partita_plan *plan);

// The first pass of a plan, and the next one; false after the last.
bool conv_passes_first(const struct partita_plan *plan, struct conv_layout *ret);
bool conv_passes_next(const struct partita_plan *plan, struct conv_layout *layout);

// Whether there are too many taps or passes; ret->reason then says so.
bool conv_passes_refuse(const struct request *request, struct estimate *ret);

void conv_passes_estimate(const struct request *request, const struct conv_method *method,
                          struct estimate *ret);

// The state of a plan in an arena, a struct conv_passes: the list of classes, then the offsets or
// tables of each. filter->state holds the packed taps of all its passes.
void *conv_passes_build(const struct partita_plan *plan, const struct request *request,
                        const struct conv_method *method, struct arena *arena);
struct filter_bytes conv_passes_filter_bytes(const struct partita_plan *plan);
enum partita_status conv_passes_filter_pack(struct partita_filter *filter, const void *taps,
                                            const struct region *scratch);

// Splits the output channels of a group into about that many splits of whole blocks.
void conv_layout_split_outputs(struct conv_layout *layout, size_t splits);

// Output channels of the block that begins at channel `first`, including padding.
static inline size_t conv_layout_block_width(const struct conv_layout *layout, size_t first)
{
    const size_t left = layout->out_padded - first;
    return left < layout->oc_block ? left : layout->oc_block;
}

// Index of the packed taps of a group and block of output channels.
static inline size_t conv_layout_block_at(const struct conv_layout *layout, size_t group,
                                          size_t first)
{
    const struct conv_pass *pass = &layout->pass;
    return layout->weights + (group * layout->out_padded + first) * pass->in * pass->terms;
}

// One call. Of backward weight: to is gw, from is x, and the workspace begins with the sums of
// further splits of the boxes.
struct conv_call {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    const struct conv_layout *layout;
    char *to;
    const char *from, *gy;
    char *workspace;
};

// Computes all passes; outputs that belong to no pass become 0.
void conv_passes_run(const struct partita_plan *plan, const struct partita_filter *filter,
                     const struct operands *operands, void *workspace);

// A task of a call: output channels begin .. end-1 of a group of one box.
struct conv_task {
    struct conv_index index;
    size_t group, begin, end;
};
struct conv_task conv_call_task(const struct conv_call *call, size_t task);

// Packed taps of the block of output channels `first` of a group from input channel `in` on:
// [in][term][block].
static inline const char *conv_call_taps(const struct conv_call *call, size_t group, size_t first,
                                         size_t in)
{
    const struct conv_pass *pass = &call->layout->pass;
    const size_t width = conv_layout_block_width(call->layout, first);
    const size_t at = conv_layout_block_at(call->layout, group, first) + in * pass->terms * width;
    return (const char *)call->filter->state + at * pass->scalar_bytes;
}

// Sums of n adjacent output channels of a box: rows and planes of these extents, `stride` scalars
// from one channel to the next.
struct conv_planes {
    char *rows;
    const size_t *extent;
    size_t n, stride;
};

// Stores the rows of output channels, from `channel` of the task's group on, with bias and
// activation. With channels last and with samples of 16 bits this changes the sums.
void conv_call_store(const struct conv_call *call, const struct conv_task *task, size_t channel,
                     const struct conv_planes *from);

#endif
