// SPDX-License-Identifier: MIT
// Shared by the host's files of cuda/partitioned: plans, filters, and the running stream.
#ifndef PARTITA_CUDA_PARTITIONED_H
#define PARTITA_CUDA_PARTITIONED_H

#include "base/sizes.h"
#include "cuda/device/fft.h"
#include "cuda/device/queue.h"
#include "frames.h"
#include "geometry/partition_search.h"
#include "stream/paths.h"

// The outputs of partitions are available so many frames after the inputs: one quantum to collect
// the frames, less one frame if calls may be single frames.
static inline size_t cuda_partitioned_delay(const struct partition_layout *split)
{
    return split->latency + split->head;
}

// Frames of a stream's history: the head's taps, and frames whose outputs are still to come.
static inline size_t cuda_partitioned_history(const struct partition_layout *split)
{
    return (ceil_div(cuda_partitioned_delay(split), split->quantum) + 1) * split->quantum;
}

// Objects of the device and its driver for a stream or a bank. Making them takes locks of the
// driver for which the launches of other streams wait, so a plan has one from the beginning and
// keeps those of streams that were closed; there the struct is at the beginning of the pinned
// memory.
struct cuda_stream_memory {
    struct cuda_queue queue;
    void *device, *pinned;
    struct cuda_stream_memory *next;
};

// plan->state.
struct cuda_partitioned {
    pthread_mutex_t lock; // protects the following member
    struct cuda_stream_memory *idle;
    struct partition_layout split;
    double worst_quantum; // seconds of a quantum that completes the blocks of all segments
    struct cuda_partition_layout layout; // of the kernels
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
    struct cuda_stream_memory *held;
    struct cuda_partition_memory memory;
    size_t device_bytes;                // of the stream's state
    const struct pending_swap *pending; // taken, but not posted yet; NULL: none
    // Arrays of the host, in pinned memory: a step, and [channel][quantum] samples.
    struct cuda_step *step;
    char *x, *y;
};

static inline struct cuda_partitioned_stream *cuda_stream_of(const struct partita_stream *stream)
{
    return stream->state;
}

// Memory and queues of streams and banks (memory.c). cuda_memory_open leaves nothing after a
// failure.
enum partita_status cuda_memory_open(const struct partita_plan *plan, size_t device_bytes,
                                     size_t pinned_bytes, struct cuda_stream_memory *ret_memory);
void cuda_memory_close(const struct partita_plan *plan, struct cuda_stream_memory memory);

// The memory of streams that were closed. cuda_memory_take_idle returns NULL if there is none.
void cuda_memory_keep(const struct partita_plan *plan, struct cuda_stream_memory *memory);
struct cuda_stream_memory *cuda_memory_take_idle(const struct partita_plan *plan);

// Whether a call succeeded; if not, the stream or bank has failed for good, with PARTITA_ERR_NOMEM
// or, also after a refusal, PARTITA_ERR_DEVICE, which is stored. The caller may then release a
// filter of a swap, which work under way still reads: it is waited for.
bool cuda_memory_succeeds(const struct partita_plan *plan, struct cuda_stream_memory *memory,
                          atomic_int *ret_status, enum partita_status status);

// Lays out the memory on the device for the channels of a layout, which may be those of all slots
// of a bank.
void cuda_memory_layout(const struct partita_plan *plan, const struct cuda_partition_layout *layout,
                        struct cuda_partition_memory *memory, struct arena *arena);

// The work of a step, and its kernels but for the one that advances a stream.
struct cuda_step_work {
    struct cuda_step step;
    struct cuda_channels x, y;
    struct cuda_partition_launch launch;
};
enum partita_status cuda_partitioned_issue(const struct partita_plan *plan,
                                           const struct cuda_partition_layout *layout,
                                           const struct cuda_partition_memory *memory,
                                           const struct cuda_step_work *work);

// The stream's functions (stream.c). cuda_partitioned_prepare makes the memory of the first stream
// of a plan. cuda_partitioned_succeeds is cuda_memory_succeeds of a stream.
enum partita_status cuda_partitioned_prepare(const struct partita_plan *plan);
void *cuda_partitioned_state_layout(const struct partita_stream *stream, struct arena *arena);
enum partita_status cuda_partitioned_open(struct partita_stream *stream);
void cuda_partitioned_close(struct partita_stream *stream);
void cuda_partitioned_reset(struct partita_stream *stream);
struct region cuda_partitioned_region(struct partita_stream *stream);
void cuda_partitioned_copy_out(struct partita_stream *stream, void *to);
void cuda_partitioned_copy_in(struct partita_stream *stream, const void *from);
bool cuda_partitioned_succeeds(struct partita_stream *stream, enum partita_status status);

// Calls of streams (steps.c), and the work of a step on arrays of the host.
struct step cuda_partitioned_step(struct partita_stream *stream, const struct frames *frames);
enum partita_status cuda_partitioned_queue(struct partita_stream *stream,
                                           const struct frames *frames, void *queue);
enum partita_status cuda_partitioned_queue_step(void *stream);

// Banks (bank.c).
struct partita_bank;
enum partita_status cuda_bank_open(struct partita_bank *bank);
void cuda_bank_close(struct partita_bank *bank);
enum partita_status cuda_bank_open_slot(struct partita_bank *bank, size_t slot);
void cuda_bank_process(struct partita_bank *bank, uint64_t call, size_t n_open, size_t n_closing);

#endif
