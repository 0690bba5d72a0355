// SPDX-License-Identifier: MIT
// The head of a stream on a device as a stream of the CPU's own, where that is cheaper than to sum
// its taps directly: a stream within the stream, which takes the same frames and changes filters
// when the outer one does. It hears samples that are no numbers as zeros, as the device does: the
// outer stream marks what they reach.
#ifndef PARTITA_CUDA_PARTITION_HEAD_H
#define PARTITA_CUDA_PARTITION_HEAD_H

#include "partitioned.h"

// The two ways to the head of a cut, with what they cost: summed directly, or by a stream. The
// stream's latency is the cut's, which may be lowered for it, with more taps in the head; false if
// there is none.
void cuda_head_sum(const struct request *request, struct cuda_cut *cut);
bool cuda_head_stream(const struct request *request, struct cuda_cut *cut);

// The plan of its stream in partitioned->head; NULL where the head is summed directly.
// cuda_head_forget is to follow, whatever was returned.
enum partita_status cuda_head_plan(struct partita_plan *plan, const struct request *request);
void cuda_head_forget(struct partita_plan *plan);

// The load of its stream; zeros where there is none.
struct partita_load cuda_head_load(const struct partita_plan *plan);

// Continues a hash by what must be the same of two plans whose streams' regions are of one kind.
uint64_t cuda_head_key(const struct partita_plan *plan, uint64_t hash);

// The part of a filter, whose cells and heads are there.
enum partita_status cuda_head_filter(struct partita_filter *filter);
void cuda_head_filter_forget(struct partita_filter *filter);

struct cuda_head {
    struct partita_stream stream;
    const void **x; // [in] lines of the outer stream's history
    void **y;       // [out] of one step
};

// NULL where the head is summed directly. cuda_head_close is to follow, whatever was returned; it
// takes NULL.
enum partita_status cuda_head_open(const struct partita_stream *outer, struct cuda_head **ret_head);
void cuda_head_close(struct cuda_head *head);

// Filters by the next n frames, of which the first lies at index `at` of the lines, and by no more
// than `ready` of the lines' frames. The outputs stand in head->y until the next run.
void cuda_head_run(const struct partita_stream *outer, struct cuda_head *head, size_t at, size_t n,
                   size_t ready);

// The outer stream's functions of these names; of NULL they do nothing.
void cuda_head_reset(const struct partita_stream *outer, struct cuda_head *head);
size_t cuda_head_swap_begin(const struct partita_stream *outer, struct cuda_head *head);
size_t cuda_head_swap_end(const struct partita_stream *outer, struct cuda_head *head);
size_t cuda_head_region_bytes(struct cuda_head *head);
void cuda_head_save(const struct partita_stream *outer, struct cuda_head *head, void *region);
void cuda_head_restore(const struct partita_stream *outer, struct cuda_head *head,
                       const void *region);

#endif
