// SPDX-License-Identifier: MIT
// STATE of one running stream: input history, partial blocks. One thread at a time.
#ifndef PARTITA_STREAM_H
#define PARTITA_STREAM_H

#include <partita/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_stream;

// Starts a stream with empty history.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_STATE if the plan is of a bounded problem;
//          PARTITA_ERR_NOMEM.
// Memory:  history, spectra and one block; plan and filter must outlive the stream.
// Threads: any.
PARTITA_API enum partita_status partita_stream_open(const struct partita_plan *plan,
                                                    const struct partita_filter *filter,
                                                    struct partita_stream **ret_stream);

// Releases a stream. NULL is allowed. Threads: none may still use it.
PARTITA_API void partita_stream_close(struct partita_stream *stream);

// Filters n_frames more input frames; any number, changing each call. The samples that come out do not depend on how
// the input was cut into calls, bit for bit.
// Shapes:  x [in_channels] pointers to n_frames samples each, y [out_channels] pointers to
//          partita_stream_output_frames(stream, n_frames) samples each.
// Ranges:  n_frames >= 0. y[c] == x[c] is allowed; any other overlap is not.
// Errors:  none: arguments are trusted here. Never allocates, locks, logs or calls the system.
// Time:    amortised cost and latency are the plan's; a call that completes a block does that block's work.
// Threads: one at a time per stream; many streams may share plan and filter.
// Output k of the stream is y[k - latency/stride] of the problem; outputs before that are zero.
PARTITA_API void partita_stream_process(struct partita_stream *stream, void *const *y, const void *const *x,
                                        size_t n_frames);

// The same for buffers whose frames are `y_stride` and `x_stride` samples apart: interleaved audio of C channels has
// x[c] = base + c and x_stride = C. In place (y[c] == x[c]) needs equal strides and a problem stride of 1.
PARTITA_API void partita_stream_process_strided(struct partita_stream *stream, void *const *y, size_t y_stride,
                                                const void *const *x, size_t x_stride, size_t n_frames);

// Output frames that the next process call of n_frames will write: n_frames without decimation, else the number of
// multiples of the stride among the next n_frames input positions. Real-time safe. Threads: the stream's.
PARTITA_API size_t partita_stream_output_frames(const struct partita_stream *stream, size_t n_frames);

// Added delay in input frames, exact and constant; a multiple of the problem's stride. Real-time safe.
PARTITA_API size_t partita_stream_latency(const struct partita_stream *stream);

// Input frames of silence that bring out everything the input so far contributes to: latency + dilation*(kernel-1).
// Real-time safe.
PARTITA_API size_t partita_stream_tail(const struct partita_stream *stream);

// Feeds silence: as partita_stream_process with n_frames of zeros. Call it for partita_stream_tail frames in all, in
// pieces of any size, to get the tail to its last sample. Real-time safe. Threads: the stream's.
PARTITA_API void partita_stream_drain(struct partita_stream *stream, void *const *y, size_t y_stride, size_t n_frames);

// Forgets all input: the stream is as if just opened. Real-time safe (it clears the history). Threads: the stream's.
PARTITA_API void partita_stream_reset(struct partita_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
