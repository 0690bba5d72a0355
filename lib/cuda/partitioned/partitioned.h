// SPDX-License-Identifier: MIT
// What the host's files of cuda/partitioned share: the choice of partitions, filters, and the
// running stream.
#ifndef PARTITA_CUDA_PARTITIONED_H
#define PARTITA_CUDA_PARTITIONED_H

#include "base/sizes.h"
#include "cuda/device/fft.h"
#include "cuda/device/queue.h"
#include "queued.h"
#include "stream/outputs.h"

// How a filter is split into partitions, stored in its estimate. Outputs are written `latency`
// frames after their inputs, one quantum less if calls consist of whole quanta. The device's
// results are available latency + head frames after the inputs: one quantum to collect the frames,
// less one frame if calls may be single frames, and, if `ahead` is set, a second quantum for the
// device's work, because the host reads its results a quantum later. The first `head` taps are
// summed directly by the host.
struct cuda_partitioned_choice {
    bool whole, ahead;
    bool i16; // the spectra of filters have 16 bits
    int n_segments;
    size_t quantum, latency, head;
    double seconds, host_seconds; // predicted per frame: in all, and of the host
    double worst_quantum;         // seconds of a quantum that completes the blocks of all segments
    struct {
        int quanta, partitions;
    } segment[CUDA_MAX_SEGMENTS];
};

static inline size_t cuda_partitioned_delay(const struct cuda_partitioned_choice *choice)
{
    return choice->latency + choice->head;
}

// Frames of a stream's history: the head's taps, and frames whose outputs are still to come.
static inline size_t cuda_partitioned_history(const struct cuda_partitioned_choice *choice)
{
    return (ceil_div(cuda_partitioned_delay(choice), choice->quantum) + 1) * choice->quantum;
}

// What a stream has of the device and its driver. Making it takes locks of the driver for which the
// launches of other streams wait, so a plan has one from the beginning and keeps those of streams
// that were closed. The struct is at the beginning of the pinned memory.
struct cuda_stream_memory {
    struct cuda_queue queue;
    void *device, *pinned;
    struct cuda_stream_memory *next;
};

// plan->state.
struct cuda_partitioned {
    pthread_mutex_t lock; // protects the following member
    struct cuda_stream_memory *idle;
    struct cuda_partitioned_choice choice;
    struct cuda_partition_layout layout;
    struct cuda_fft fft[CUDA_MAX_SEGMENTS];
};

static inline const struct cuda_partitioned *cuda_partitioned_of(const struct partita_plan *plan)
{
    return plan->state;
}

// Spectra and heads of paths that were made together, in the device's memory. Filters that take
// paths over from others share them.
struct cuda_path_memory {
    atomic_size_t users; // paths of filters
    void *memory;
};

// filter->state. The host has a copy of the paths, and the taps of their heads.
struct cuda_partitioned_filter {
    struct path_view view;
    struct cuda_path *paths; // as in view
    size_t n_paths;
    struct cuda_path_memory **sources; // [n_paths]: where the spectra of each path are
    struct cuda_paths device;
    void *memory; // device memory: all that `device` points to
};

// The filter's paths; no paths for NULL.
struct path_view cuda_partitioned_paths(const struct partita_filter *filter);

enum partita_status cuda_partitioned_filter_create(struct partita_filter *filter,
                                                   const struct partita_path *paths, size_t n_paths,
                                                   const struct partita_filter *base);
void cuda_partitioned_filter_destroy(struct partita_filter *filter);

// stream->state.
struct cuda_partitioned_stream {
    struct position *position;
    struct history history;
    char *samples[2];                // outputs of one quantum of one channel, by either filter
    struct cuda_stream_memory *kept; // `queue`, `device` and `pinned` are copies of its members
    struct cuda_queue queue;
    struct cuda_partition_memory memory;
    struct cuda_partition_launch launch; // the last one
    struct cuda_queued_memory queued;
    void *device, *pinned; // all that `memory` and `queued` point to
    size_t device_bytes, pinned_bytes;
    size_t y_bytes;
    size_t host_bytes;                  // of the state in host memory, from the position on
    const struct pending_swap *pending; // taken, but not posted yet; NULL: none
};

static inline struct cuda_partitioned_stream *cuda_stream_of(const struct partita_stream *stream)
{
    return stream->state;
}

static inline const struct cuda_partitioned_choice *
choice_of_stream(const struct partita_stream *stream)
{
    return &cuda_partitioned_of(stream->plan)->choice;
}

static inline const struct cuda_partition_layout *
layout_of_stream(const struct partita_stream *stream)
{
    return &cuda_partitioned_of(stream->plan)->layout;
}

// Whether a call succeeded; if not, the stream has failed for good, with PARTITA_ERR_NOMEM or, also
// after a refusal, PARTITA_ERR_DEVICE. The caller may then release a filter of a swap, which work
// under way still reads: it is waited for.
bool cuda_partitioned_succeeds(struct partita_stream *stream, enum partita_status status);

// Lays out the memory on the device for the channels of a layout, which may be those of all slots
// of a bank.
void cuda_partition_layout_memory(const struct partita_plan *plan,
                                  const struct cuda_partition_layout *layout,
                                  struct cuda_partition_memory *memory, struct arena *arena);

// Queued streams (queued.c). cuda_queued_layout_memory does the same for what is not in
// `partitions`. cuda_queued_begin queues the begin of a stream, or with `keep` only its filter, on
// the stream's own queue.
struct cuda_queued_layout cuda_queued_layout_of(const struct partita_plan *plan);
void cuda_queued_layout_memory(const struct partita_plan *plan,
                               const struct cuda_partition_layout *layout,
                               const struct cuda_partition_memory *partitions,
                               struct cuda_queued_memory *memory, struct arena *arena);
enum partita_status cuda_queued_load(const struct partita_plan *plan);
enum partita_status cuda_queued_begin(struct partita_stream *stream, bool keep);
enum partita_status cuda_partitioned_queue(struct partita_stream *stream,
                                           const struct frames *frames, void *queue);

// Called when the plan is created, and when it is destroyed.
enum partita_status cuda_stream_memory_begin(const struct partita_plan *plan);
void cuda_stream_memory_end(const struct partita_plan *plan);

// The stream's functions (stream.c).
enum partita_status cuda_partitioned_open(struct partita_stream *stream);
void cuda_partitioned_close(struct partita_stream *stream);
struct step cuda_partitioned_step(struct partita_stream *stream, const struct frames *frames);
void cuda_partitioned_reset(struct partita_stream *stream);
struct region cuda_partitioned_region(struct partita_stream *stream);
void cuda_partitioned_copy_out(struct partita_stream *stream, void *to);
void cuda_partitioned_copy_in(struct partita_stream *stream, const void *from);
size_t cuda_partitioned_swap_begin(struct partita_stream *stream);
size_t cuda_partitioned_swap_end(struct partita_stream *stream);

// Banks (bank.c).
struct partita_bank;
enum partita_status cuda_bank_open(struct partita_bank *bank);
void cuda_bank_close(struct partita_bank *bank);
enum partita_status cuda_bank_open_slot(struct partita_bank *bank, size_t slot);
void cuda_bank_process(struct partita_bank *bank, uint64_t call, size_t n_open, size_t n_closing);

#endif
