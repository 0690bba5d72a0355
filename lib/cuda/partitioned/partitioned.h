// SPDX-License-Identifier: MIT
// What the host's files of cuda/partitioned share: the choice of partitions, filters, and the
// running stream.
#ifndef PARTITA_CUDA_PARTITIONED_H
#define PARTITA_CUDA_PARTITIONED_H

#include "cuda/device/fft.h"
#include "cuda/device/queue.h"
#include "kernels.h"
#include "stream/outputs.h"

// How a stream is cut into partitions, stored in its estimate. Outputs come `latency` frames after
// their inputs, one quantum less where calls bring whole quanta. The device's part of them takes
// latency + head frames: a quantum for the frames to come in, less one frame where they come
// singly, and a second one for the device's work if the host reads its results `ahead`, a quantum
// later. What that is beyond the latency, the `head`, is taps that the host sums directly.
struct cuda_partitioned_choice {
    bool whole, ahead;
    int n_segments;
    size_t quantum, latency, head;
    double seconds, host_seconds; // predicted, one frame: in all, and of the host alone
    double worst_quantum;         // seconds of one in which the blocks of all segments are complete
    struct {
        int quanta, partitions;
    } segment[CUDA_MAX_SEGMENTS];
};

static inline size_t cuda_partitioned_delay(const struct cuda_partitioned_choice *choice)
{
    return choice->latency + choice->head;
}

// Fills the decision and the operations of an estimate for a stream; false if there are no
// partitions for it, with a reason.
bool cuda_partitioned_choose(const struct request *request, struct estimate *ret);

// The same for the kernels, without the transforms' tables.
struct cuda_partition_layout cuda_partitioned_layout(const struct shape *shape,
                                                     const struct cuda_partitioned_choice *choice);

// plan->state.
struct cuda_partitioned {
    struct cuda_partitioned_choice choice;
    struct cuda_partition_layout layout;
    struct cuda_fft fft[CUDA_MAX_SEGMENTS];
};

static inline const struct cuda_partitioned *cuda_partitioned_of(const struct partita_plan *plan)
{
    return plan->state;
}

// filter->state. The host has a copy of the paths, and the taps of their heads.
struct cuda_partitioned_filter {
    struct path_view view;
    struct cuda_path *paths; // as in view
    struct cuda_paths device;
    void *memory; // of the device: all that `device` points to
};

// Its paths; none of NULL.
struct path_view cuda_partitioned_paths(const struct partita_filter *filter);

enum partita_status cuda_partitioned_filter_create(struct partita_filter *filter,
                                                   const struct partita_cell *paths, size_t n_paths,
                                                   const struct partita_filter *base);
void cuda_partitioned_filter_destroy(struct partita_filter *filter);

// The stream's functions (stream.c).
enum partita_status cuda_partitioned_open(struct partita_stream *stream);
void cuda_partitioned_close(struct partita_stream *stream);
struct step cuda_partitioned_step(struct partita_stream *stream, const struct frames *frames);
void cuda_partitioned_reset(struct partita_stream *stream);
struct region cuda_partitioned_region(struct partita_stream *stream);
void cuda_partitioned_pause(struct partita_stream *stream);
void cuda_partitioned_resume(struct partita_stream *stream);
size_t cuda_partitioned_swap_begin(struct partita_stream *stream);
size_t cuda_partitioned_swap_end(struct partita_stream *stream);

#endif
