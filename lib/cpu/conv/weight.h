// SPDX-License-Identifier: MIT
// Shared by engines that sum over passes (pass.h), for backward weight, and the choice between it
// and the other directions. Backward weight sums over the pass of forward. A task computes a chunk
// of input channels, or a split of its terms, for a split of the output channels over a split of
// the boxes; all of these depend only on the shape.
#ifndef PARTITA_CONV_WEIGHT_H
#define PARTITA_CONV_WEIGHT_H

#include "base/thread.h"
#include "product/split_k.h"
#include "passes.h"

struct conv_weight_method;

struct conv_weight {
    const struct conv_weight_method *method;
    struct conv_pass pass;
    size_t term_splits, term_split;  // splits of the terms of a chunk
    size_t oc_splits, oc_split;      // splits of the output channels of a group
    size_t min_tasks, k_splits;      // splits of the boxes: enough for min_tasks tasks
    size_t *offset;                  // of one chunk's terms, in the order of the caller's taps
    bool in_place;                   // cpu/direct: gy is read where it is
    size_t prepared, prepared_bytes; // tasks that prepare memory for all others; its bytes
};

// How an engine computes the gradient of the taps.
struct conv_weight_method {
    // Chooses all fields but method, k_splits and offset, within `limit` bytes of workspace, of a
    // worker and prepared.
    void (*layout)(struct conv_weight *weight, size_t limit);
    void (*count_work)(const struct conv_weight *weight, struct conv_work *work);
    size_t (*worker_bytes)(const struct conv_weight *weight);
    task_fn *run_task; // its context is a struct conv_weight_call
    task_fn *prepare;  // likewise; NULL: there is nothing to prepare
};

// How an engine computes the directions of a layer: forward and backward data, backward weight.
struct conv_methods {
    const struct conv_method *passes;
    const struct conv_weight_method *weight;
};

void conv_estimate(const struct request *request, const struct conv_methods *methods,
                   struct estimate *ret);

// The state of a plan, a struct conv_passes or a struct conv_weight; see build_fn.
void *conv_build(const struct partita_plan *plan, const struct request *request,
                 const struct conv_methods *methods, struct arena *arena);

enum partita_status conv_run(const struct partita_plan *plan, const struct partita_filter *filter,
                             const struct operands *operands, void *workspace);

struct conv_weight_call {
    const struct partita_plan *plan;
    const struct conv_weight *weight;
    char *workers, *prepared;
    struct split_k split_k;
    const char *x, *gy;
};

// A task of a call: terms term .. term+n_terms-1 of the n_in packed channels from `in` on, output
// channels first .. first+n_out-1, boxes box .. box_end-1. n_terms may be 0.
struct conv_weight_task {
    size_t group, in, n_in, term, n_terms, first, n_out;
    size_t box, box_end;
    char *gw;    // address of its first sum
    size_t path; // bytes from the sums of one output channel to those of the next
};
struct conv_weight_task conv_weight_task(const struct conv_weight_call *call, size_t index);

#endif
