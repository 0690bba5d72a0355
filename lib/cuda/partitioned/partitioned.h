// SPDX-License-Identifier: MIT
// What the host's files of cuda/partitioned share: how a stream is cut for a device, filters, and
// the running stream. The first taps may be left to the host (`head`), which sums them directly.
#ifndef PARTITA_CUDA_PARTITIONED_H
#define PARTITA_CUDA_PARTITIONED_H

#include "cuda/device/queue.h"
#include "kernels.h"
#include "stream/history.h"
#include "stream/paths.h"

// How a stream is cut. A tick's outputs are played `delay` frames after its inputs: of these the
// caller sees `latency`, less a tick where calls bring whole ticks, and the head makes up for the
// rest. At least a tick must pass for the frames to come in, less one frame where they come singly,
// and another one where `ahead` leaves the device a tick for its work.
struct cuda_cut {
    struct cuda_partitions partitions;
    bool whole, ahead;
    size_t latency, head, delay;     // latency + head = delay, or more
    double head_seconds, head_flops; // predicted, one frame
    double seconds;                  // the same of everything
    double tick, worst; // of a call that completes a tick: mean, and where all levels fall together
    double device;      // of tick, the device's part
};

static inline size_t cut_visible_latency(const struct cuda_cut *cut)
{
    return cut->latency - (cut->whole ? (size_t)cut->partitions.tick : 0);
}

// The cheapest cut for a stream's shape; false if there is none, with a reason.
bool cuda_cut_search(const struct request *request, struct cuda_cut *ret, char *reason,
                     size_t size);

// plan->state.
struct cuda_partitioned {
    struct cuda_cut cut;
    struct cuda_fft fft[CUDA_LEVELS];
};

// filter->state. The host keeps the cells and the taps of their heads.
struct cuda_partitioned_filter {
    size_t *first_cell;      // [out_channels + 1]
    struct cuda_cell *cells; // sorted by output
    char **heads;            // [cells], causal taps; cells of one content share them
    size_t *head_taps;       // [cells]
    struct cuda_cells device;
    void *memory; // of the device: all that `device` points to
};

// Its cells; none of NULL.
struct path_view cuda_partitioned_cells(const struct partita_filter *filter);

enum partita_status cuda_partitioned_filter_create(struct partita_filter *filter,
                                                   const struct partita_cell *cells, size_t n_cells,
                                                   const struct partita_filter *base);
void cuda_partitioned_filter_destroy(struct partita_filter *filter);

// The stream's functions (partition_stream.c).
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
