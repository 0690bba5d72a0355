// SPDX-License-Identifier: MIT
// A running stream: the loop that calls an engine's step until all frames of a call are processed,
// and the swap of filters. Only opening and closing allocate, lock or fail.
#ifndef PARTITA_INTERNAL_STREAM_H
#define PARTITA_INTERNAL_STREAM_H

#include "core/plan.h"
#include "stats.h"
#include "swap_queue.h"

// The remaining frames of one process call.
struct frames {
    void *const *y;
    size_t y_stride, y_first; // in samples; frame
    const void *const *x;     // NULL: silence
    size_t x_stride, x_first;
    size_t n;    // input frames from x_first on
    size_t rest; // input frames of the call from x_first on: a step may read them, but takes only n
};

static inline char *frames_y(const struct frames *frames, size_t channel, size_t i, size_t bytes)
{
    return (char *)frames->y[channel] + (frames->y_first + i) * frames->y_stride * bytes;
}

static inline const char *frames_x(const struct frames *frames, size_t channel, size_t i,
                                   size_t bytes)
{
    return (const char *)frames->x[channel] + (frames->x_first + i) * frames->x_stride * bytes;
}

// The frames that one step of an engine processed.
struct step {
    size_t in, out; // input frames taken, output frames written
};

// The state of a swap. Each state except SWAP_NONE ends after `left` more frames.
enum swap_state {
    SWAP_NONE,
    SWAP_WAITING,  // until the incoming filter's outputs are complete
    SWAP_FADING,   // from the stream's filter to the incoming one
    SWAP_SETTLING, // the incoming filter is the stream's; until the old one is no longer in use
};

struct swap {
    enum swap_state state;
    size_t left, fade;
    const struct partita_filter *incoming; // while waiting and fading
};

// Where the frames of a stream come from. A device has a separate state for each.
enum stream_arrays {
    STREAM_NO_ARRAYS, // yet
    STREAM_HOST_ARRAYS,
    STREAM_QUEUED, // arrays of the device, with a queue of the caller's
};

struct partita_stream {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    size_t phase; // positions taken so far (input frames, or with problem.up those and the zeros
                  // between them), modulo the distance of outputs
    enum stream_arrays arrays;
    struct swap swap;
    struct swap_queue swap_queue; // filters posted by another thread
    atomic_int status;   // enum partita_status; set by a step that did nothing because its device
                         // failed
    void *state;         // the engine's, in the arena of this struct
    const void *x_begin; // of the last call's frames, of the first channel
    const struct partita_stream *next; // bank: the stream that is fed next in this call, whose
                                       // data may be prefetched; NULL: none
    // problem.up: outputs of the branches for some frames, [out_channels][branch_frames], from
    // which the stream's outputs are taken; 0 frames: none, or the engine writes the outputs.
    void **branches;
    size_t branch_frames;
    struct stats stats; // large, so that it comes last
};

// Errors: PARTITA_ERR_NOMEM, PARTITA_ERR_DEVICE; *ret_stream is then unchanged. stream_close
// accepts NULL.
enum partita_status stream_open(const struct partita_plan *plan,
                                const struct partita_filter *filter,
                                struct partita_stream **ret_stream);
void stream_close(struct partita_stream *stream);

// Lays a stream without a filter out in zeroed memory; NULL while the arena only counts. Before one
// of a bank is fed its filter is set and it is reset.
struct partita_stream *stream_layout(const struct partita_plan *plan, struct arena *arena);

// Processes all frames; of a stream that is queued none: outputs are zeros. Leaves the first frame
// after them in `frames`. (A copy of the struct would wait until the caller's stores are done.)
void stream_feed(struct partita_stream *stream, struct frames *frames);

// For a call whose first frame is not that of the call before. Prefetches as many frames behind the
// call's, if these follow those of the call before, and channels and frames are few: so a caller
// goes on to filter an array, and would wait for memory.
void stream_prefetch_next(struct partita_stream *stream, const struct frames *frames);

// Queues the processing of all frames, of arrays on the device. Errors: see
// partita_stream_process_queued.
enum partita_status stream_queue(struct partita_stream *stream, struct frames frames, void *queue);

// Outputs are due at positions that are multiples of the stride. stream_outputs_wait: positions
// before the next such one. stream_outputs_due: outputs that the next n input frames make due.
size_t stream_outputs_wait(const struct partita_stream *stream);
size_t stream_outputs_due(const struct partita_stream *stream, size_t n);

// Clears all input. A swap in progress is completed at once.
void stream_reset(struct partita_stream *stream);

// The state as bytes (state.c). Save, restore and clone return the streams' status after copying.
// Restore: PARTITA_ERR_STATE, after a line in the log, for a state that is not of such a stream.
size_t stream_state_bytes(const struct partita_stream *stream);
enum partita_status stream_state_save(struct partita_stream *stream, void *state);
enum partita_status stream_state_restore(struct partita_stream *stream, const void *state,
                                         size_t size);
enum partita_status stream_clone(struct partita_stream *stream, struct partita_stream **ret_stream);

// Called when the stream's step has taken n frames during a swap: enters the next states if the
// current one has ended (swap.c).
void swap_advance(struct partita_stream *stream, size_t n);

// swap_begin takes a posted filter, unless a swap is in progress. swap_end completes a swap at
// once.
void swap_begin(struct partita_stream *stream);
void swap_end(struct partita_stream *stream);

// Fades y[n] towards y_new[n] in place; these are the outputs of frames first, first + stride, ...
// of the current step.
void swap_fade(const struct partita_stream *stream, void *y, const void *y_new, size_t n,
               size_t first, size_t stride);

#endif
