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
//          PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE.
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
// Ranges:  n_frames >= 0, with problem.whole_blocks a multiple of problem.block: frames beyond that are not heard, and
//          come out as zeros. y[c] == x[c] is allowed; any other overlap is not.
// Errors:  none: arguments are trusted here. Never allocates, locks, logs or calls the system.
// Devices: a plan of a device makes the CUDA run-time queue a graph and wait for it, once each for as many frames as
//          partita_plan_explain says. The library still allocates and locks nothing; what the driver does in these
//          calls (locks of its own, system calls, waiting by turning or by sleeping) is its own affair. If the device
//          fails, outputs are zeros from there on: see partita_stream_status.
// Time:    amortised cost and latency are the plan's; the worst call is what partita_plan_load says, up to twice that
//          while a swap is under way. With threads (options.threads) a call may wait for a slice of work, microseconds,
//          that a helper has begun: let the thread that opens the stream have the scheduling of the one that runs it.
// Threads: one at a time per stream; many streams may share plan and filter.
// Output k of the stream is y[k - latency/stride] of the problem; outputs before that are zero.
PARTITA_API void partita_stream_process(struct partita_stream *stream, void *const *y, const void *const *x,
                                        size_t n_frames) PARTITA_NONBLOCKING;

// The same for buffers whose frames are `y_stride` and `x_stride` samples apart: interleaved audio of C channels has
// x[c] = base + c and x_stride = C. In place (y[c] == x[c]) needs equal strides and a problem stride of 1.
PARTITA_API void partita_stream_process_strided(struct partita_stream *stream, void *const *y, size_t y_stride,
                                                const void *const *x, size_t x_stride,
                                                size_t n_frames) PARTITA_NONBLOCKING;

// Output frames that the next process call of n_frames will write: n_frames without decimation, else the number of
// multiples of the stride among the next n_frames input positions. Real-time safe. Threads: the stream's.
PARTITA_API size_t partita_stream_output_frames(const struct partita_stream *stream,
                                                size_t n_frames) PARTITA_NONBLOCKING;

// Added delay in input frames, exact and constant; a multiple of the problem's stride. Real-time safe.
PARTITA_API size_t partita_stream_latency(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Input frames of silence that bring out everything the input so far contributes to: latency + dilation*(kernel-1), in
// whole blocks if the problem says so.
// Real-time safe.
PARTITA_API size_t partita_stream_tail(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// PARTITA_OK, or why a stream of a device has failed: PARTITA_ERR_DEVICE or PARTITA_ERR_NOMEM, said once to the plan's
// log. From then on its outputs are zeros, a filter handed over counts as taken over at once, and saving, restoring and
// cloning return this status. Streams of the CPU and of other devices are unharmed. Errors: PARTITA_ERR_ARG for NULL.
// Real-time safe. Threads: any.
PARTITA_API enum partita_status partita_stream_status(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Feeds silence: as partita_stream_process with n_frames of zeros. Call it for partita_stream_tail frames in all, in
// pieces of any size, to get the tail to its last sample. Real-time safe. Threads: the stream's.
PARTITA_API void partita_stream_drain(struct partita_stream *stream, void *const *y, size_t y_stride,
                                      size_t n_frames) PARTITA_NONBLOCKING;

// Hands another filter over to a running stream, from any thread, without a lock. Old and new filter run on the same
// history; then the output fades over `fade` frames: frame i of the fade is old + (new - old) * (i + 1) / (fade + 1),
// of the outputs that either filter alone would have given all along. The fade begins when all that the new filter
// contributes has been computed, at most swap_delay frames (struct partita_load) after the call that takes it up. Of
// several filters handed over before that call the last one counts; one handed over later follows after the fade.
// Ranges:  filter of the stream's plan; fade >= 0; 0 switches within one sample.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_UNSUPPORTED with cpu/overlap-add, which
//          keeps sums, not the history.
// Memory:  filters handed over before must live until partita_stream_swapping returns false.
// Threads: one caller at a time; process may run meanwhile. Real-time safe.
PARTITA_API enum partita_status partita_stream_swap(struct partita_stream *stream, const struct partita_filter *filter,
                                                    size_t fade) PARTITA_NONBLOCKING;

// True while the stream still uses, or waits to use, any filter but the one handed over last. To be polled from the
// thread that swaps: when it turns false, all other filters may be destroyed. Real-time safe. Threads: any.
PARTITA_API bool partita_stream_swapping(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// What the stream's process calls took, gathered without locks.
struct partita_stream_stats {
    uint64_t calls;
    uint64_t missed;                  // took longer than their frames last at options.sample_rate
    double mean, p50, p99, p999, max; // seconds; percentiles are upper bounds within 9 %
};

// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if options.sample_rate was not set: calls are not timed then.
// Threads: any, also while process runs. Real-time safe.
PARTITA_API enum partita_status partita_stream_stats(const struct partita_stream *stream,
                                                     struct partita_stream_stats *ret_stats) PARTITA_NONBLOCKING;

// Bytes that partita_stream_save writes. Real-time safe. Threads: any.
PARTITA_API size_t partita_stream_state_size(const struct partita_stream *stream);

// Writes all that the stream's future outputs depend on, filter excepted, to state[partita_stream_state_size].
// Restoring it, on this stream or another one of an equal plan on a machine of the same kind, continues bit for bit.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE while partita_stream_swapping; partita_stream_status.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_save(struct partita_stream *stream, void *state);

// Takes a saved state over. Errors: PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE while partita_stream_swapping, or if
// state is not one of a stream of an equal plan; the stream is unchanged then. Threads: the stream's.
PARTITA_API enum partita_status partita_stream_restore(struct partita_stream *stream, const void *state, size_t size);

// Opens a second stream of the same plan and filter in the same state. Errors: PARTITA_ERR_ARG, PARTITA_ERR_NOMEM;
// PARTITA_ERR_STATE while partita_stream_swapping. Threads: the stream's. Not real-time safe.
PARTITA_API enum partita_status partita_stream_clone(struct partita_stream *stream, struct partita_stream **ret_stream);

// Forgets all input: the stream is as if just opened. Real-time safe (it clears the history). Threads: the stream's.
PARTITA_API void partita_stream_reset(struct partita_stream *stream) PARTITA_NONBLOCKING;

#ifdef __cplusplus
}
#endif

#endif
