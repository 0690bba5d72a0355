// SPDX-License-Identifier: MIT
// What engines that sum over the pass of forward (pass.h) share for backward weight. A task is a
// chunk of input channels, or a split of its terms, by a split of the output channels, over a split
// of the boxes; all are made by shape alone.
#ifndef PARTITA_CONV_WEIGHT_H
#define PARTITA_CONV_WEIGHT_H

#include "base/thread.h"
#include "cost.h"
#include "split_k.h"

struct conv_weight {
    struct conv_pass pass;
    size_t term_splits, term_split; // of the terms of a chunk
    size_t oc_splits, oc_split;     // of the output channels of a group
    size_t min_tasks, k_splits;     // of the boxes: as many as make so many tasks
    size_t *offset;                 // of one chunk, in the order of the caller's taps
};

// How an engine computes the gradient of the taps.
struct conv_weight_method {
    // Chooses all but k_splits and offset within so many bytes of workspace.
    void (*layout)(struct conv_weight *weight, size_t limit);
    void (*count_work)(const struct conv_weight *weight, struct conv_work *work);
    size_t (*worker_bytes)(const struct conv_weight *weight);
    size_t (*hop)(const struct conv_pass *pass); // outputs of a box, for explain
    task_fn *run_task;                           // of a struct conv_weight_call
};

void conv_weight_estimate(const struct request *request, const struct conv_weight_method *method,
                          struct estimate *ret);

// plan->state becomes a struct conv_weight.
enum partita_status conv_weight_create(struct partita_plan *plan, const struct request *request,
                                       const struct conv_weight_method *method);

struct conv_weight_call {
    const struct partita_plan *plan;
    const struct conv_weight *weight;
    char *workers;
    struct split_k split_k;
    const char *x, *gy;
};
void conv_weight_run(const struct conv_weight_method *method, const struct partita_plan *plan,
                     const struct operands *operands, void *workspace);

// A task of a call: terms term .. term+n_terms-1 of the n_in packed channels from `in` on, output
// channels first .. first+n_out-1, boxes box .. box_end-1. n_terms may be 0.
struct conv_weight_task {
    size_t group, in, n_in, term, n_terms, first, n_out;
    size_t box, box_end;
    char *gw;    // where its first sum belongs
    size_t path; // bytes from one output channel's sums to the next
};
struct conv_weight_task conv_weight_task(const struct conv_weight_call *call, size_t index);

#endif
