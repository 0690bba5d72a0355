// SPDX-License-Identifier: MIT
// A running stream: the loop that feeds an engine until a call's frames are used up, and its swap
// of filters. Nothing here allocates, locks or fails but opening and closing.
#ifndef PARTITA_INTERNAL_STREAM_H
#define PARTITA_INTERNAL_STREAM_H

#include "core/plan.h"
#include "stats.h"
#include "swap_queue.h"

// Frames of one process call that are still to be done.
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

// What one step of an engine did with them.
struct step {
    size_t in, out; // input frames taken, output frames written
};

// How far a swap has come. Each state but SWAP_NONE ends after `left` more frames.
enum swap_state {
    SWAP_NONE,
    SWAP_WAITING,  // until the incoming filter's outputs are complete
    SWAP_FADING,   // from the stream's filter to the incoming one
    SWAP_SETTLING, // the incoming filter is the stream's; until nothing refers to the old one
};

struct swap {
    enum swap_state state;
    size_t left, fade;
    const struct partita_filter *incoming; // while waiting and fading
};

struct partita_stream {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    size_t phase; // input frames taken so far, modulo the stride
    struct swap swap;
    struct swap_queue swap_queue; // filters handed over by another thread
    struct stats stats;
    atomic_int status; // enum partita_status; set by a step that did nothing as its device failed
    void *state;       // one arena
};

// Errors: PARTITA_ERR_NOMEM, PARTITA_ERR_DEVICE; *ret_stream is then untouched. NULL may be closed.
enum partita_status stream_open(const struct partita_plan *plan,
                                const struct partita_filter *filter,
                                struct partita_stream **ret_stream);
void stream_close(struct partita_stream *stream);

// Processes all frames.
void stream_feed(struct partita_stream *stream, struct frames frames);

// Outputs fall due at input frames that the stride divides: input frames before the next one, and
// output frames that the next n input frames make due.
size_t stream_frames_until_due(const struct partita_stream *stream);
size_t stream_frames_due(const struct partita_stream *stream, size_t n);

// Forgets all input. A swap under way is complete at once.
void stream_reset(struct partita_stream *stream);

// Before and after the memory of the stream's region is read or replaced.
void stream_pause(struct partita_stream *stream);
void stream_resume(struct partita_stream *stream);

// The stream's step has taken n frames of a swap's state: enters the states that follow (swap.c).
void swap_advance(struct partita_stream *stream, size_t n);

// Takes a filter that was handed over, unless a swap is under way; ends a swap at once.
void swap_begin(struct partita_stream *stream);
void swap_end(struct partita_stream *stream);

// Fades y[n] into y_new[n], outputs of frames first, first + stride, ... of the current step.
void swap_fade(const struct partita_stream *stream, void *y, const void *y_new, size_t n,
               size_t first, size_t stride);

#endif
