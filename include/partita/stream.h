// SPDX-License-Identifier: MIT
// STATE of one running stream: input history and partial blocks. One thread at a time may use a
// stream.
#ifndef PARTITA_STREAM_H
#define PARTITA_STREAM_H

#include <partita/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_stream;

// Starts a stream with empty history.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_STATE if the plan is
//          for a bounded problem; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE.
// Memory:  history, spectra and one block; plan and filter must outlive the stream.
// Threads: any.
PARTITA_API enum partita_status partita_stream_open(const struct partita_plan *plan,
                                                    const struct partita_filter *filter,
                                                    struct partita_stream **ret_stream);

// Releases a stream. NULL is allowed. Threads: any; no thread may still use the stream.
PARTITA_API void partita_stream_close(struct partita_stream *stream);

// Filters the next n_frames input frames; n_frames may differ from call to call. The output samples
// do not depend on how the input is split into calls, bit for bit. Output k of the stream is
// y[k - latency/stride] of the problem; outputs before that are zero.
// Shapes:  x [in_channels] pointers to n_frames samples each, y [out_channels] pointers to
//          partita_stream_output_frames(stream, n_frames) samples each.
// Ranges:  n_frames >= 0. With problem.whole_blocks it is a multiple of problem.block: frames
//          beyond the last whole block are ignored, and their outputs are zero. y[c] == x[c] is
//          allowed; any other overlap is not.
// Errors:  none: arguments are not checked.
// Memory:  none. The call never allocates, locks, logs or makes system calls.
// Devices: a stream on a device queues one CUDA graph per quantum and waits for it once;
//          partita_plan_explain prints the frames of a quantum. The library itself still allocates
//          and locks nothing. The CUDA driver may lock, make system calls, spin or sleep in these
//          calls. If the device fails, outputs are zero from then on: see partita_stream_status.
// Time:    mean cost and latency are the plan's. partita_plan_load predicts the worst call; while a
//          swap is in progress it takes up to twice that. With threads (options.threads) a call may
//          wait some microseconds for a task that a worker has begun: give the thread that opens
//          the stream the scheduling of the thread that processes it.
// Threads: one at a time per stream; many streams may share plan and filter.
PARTITA_API void partita_stream_process(struct partita_stream *stream, void *const *y,
                                        const void *const *x, size_t n_frames) PARTITA_NONBLOCKING;

// The same for buffers whose frames are `y_stride` and `x_stride` samples apart: interleaved audio
// of C channels has x[c] = base + c and x_stride = C. In place (y[c] == x[c]) requires equal
// strides and a problem stride of 1.
PARTITA_API void partita_stream_process_strided(struct partita_stream *stream, void *const *y,
                                                size_t y_stride, const void *const *x,
                                                size_t x_stride,
                                                size_t n_frames) PARTITA_NONBLOCKING;

// Output frames that the next process call with n_frames will write: n_frames without decimation,
// otherwise the number of multiples of the stride among the next n_frames input positions.
// Real-time safe.
// Threads: the stream's.
PARTITA_API size_t partita_stream_output_frames(const struct partita_stream *stream,
                                                size_t n_frames) PARTITA_NONBLOCKING;

// Added delay in input frames, exact and constant; a multiple of the problem's stride. Real-time
// safe.
PARTITA_API size_t partita_stream_latency(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Input frames of silence after which everything that the previous input contributes to has been
// output: latency + dilation*(kernel-1), rounded up to whole blocks if the problem promises these.
// Real-time safe.
PARTITA_API size_t partita_stream_tail(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// PARTITA_OK, or why a stream on a device failed: PARTITA_ERR_DEVICE or PARTITA_ERR_NOMEM, which
// the plan's log receives once. From then on outputs are zero, a filter that is handed to
// partita_stream_swap counts as taken over at once, and save, restore and clone return this status.
// Streams of the CPU and of other devices are not affected.
// Errors:  PARTITA_ERR_ARG for NULL.
// Threads: any. Real-time safe.
PARTITA_API enum partita_status
partita_stream_status(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Filters silence: as partita_stream_process with n_frames of zeros. To get the complete tail, call
// it for partita_stream_tail frames in total, in calls of any size. Real-time safe.
// Threads: the stream's.
PARTITA_API void partita_stream_drain(struct partita_stream *stream, void *const *y,
                                      size_t y_stride, size_t n_frames) PARTITA_NONBLOCKING;

// Replaces the filter of a running stream, from any thread, without a lock. Old and new filter run
// on the same history while the output fades over `fade` frames: frame i of the fade is old +
// (new - old) * (i + 1) / (fade + 1), where old and new are the outputs that each filter alone
// would have given all along. The fade begins when everything that the new filter contributes has
// been computed, at most swap_delay frames (struct partita_load) after the process call that takes
// the filter up. Of several filters that are handed over before that call only the last takes
// effect; one that is handed over later follows after the fade.
// Ranges:  filter of the stream's plan; fade >= 0; 0 switches within one sample.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_UNSUPPORTED if the
//          engine cannot swap filters.
// Memory:  earlier filters must live until partita_stream_swapping returns false.
// Threads: one caller at a time; process may run at the same time. Real-time safe.
PARTITA_API enum partita_status partita_stream_swap(struct partita_stream *stream,
                                                    const struct partita_filter *filter,
                                                    size_t fade) PARTITA_NONBLOCKING;

// True while the stream still uses, or waits to use, any filter other than the last one handed
// over. Poll it from the thread that swaps: once it is false, all other filters may be destroyed.
// Real-time safe.
// Threads: any.
PARTITA_API bool partita_stream_swapping(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// How long the stream's process calls took, recorded without locks.
struct partita_stream_stats {
    uint64_t calls;
    uint64_t missed;                  // calls that took longer than their frames last
    double mean, p50, p99, p999, max; // seconds; percentiles are upper bounds within 9 %
};

// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if options.sample_rate was not set, since
//          calls are then not timed.
// Threads: any, also while process runs. Real-time safe.
PARTITA_API enum partita_status
partita_stream_stats(const struct partita_stream *stream,
                     struct partita_stream_stats *ret_stats) PARTITA_NONBLOCKING;

// Bytes that partita_stream_save writes. Real-time safe. Threads: any.
PARTITA_API size_t partita_stream_state_size(const struct partita_stream *stream);

// Writes everything that the stream's future outputs depend on, except the filter, to
// state[partita_stream_state_size]. A stream that restores it continues bit for bit; it may be
// another stream of an equal plan, on a machine of the same kind.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE while partita_stream_swapping; the value of
//          partita_stream_status if the device failed.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_save(struct partita_stream *stream, void *state);

// Replaces the state of a stream by a saved one.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE while partita_stream_swapping, or if state
//          does not belong to a stream of an equal plan; the value of partita_stream_status if the
//          device failed. The stream is then unchanged.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_restore(struct partita_stream *stream,
                                                       const void *state, size_t size);

// Opens a second stream of the same plan and filter in the same state. Not real-time safe.
// Errors:  PARTITA_ERR_ARG; PARTITA_ERR_NOMEM; PARTITA_ERR_STATE while partita_stream_swapping; the
//          value of partita_stream_status if the device failed.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_clone(struct partita_stream *stream,
                                                     struct partita_stream **ret_stream);

// Clears all input history: the stream is as if just opened. Real-time safe. Threads: the stream's.
PARTITA_API void partita_stream_reset(struct partita_stream *stream) PARTITA_NONBLOCKING;

#ifdef __cplusplus
}
#endif

#endif
