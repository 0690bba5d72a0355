// SPDX-License-Identifier: MIT
// STATE of one running stream: input history and partial blocks. One thread at a time may process a
// stream; each function says which others may use it. Functions that return no status require a
// stream that is not NULL, except partita_stream_close.
#ifndef PARTITA_STREAM_H
#define PARTITA_STREAM_H

#include <partita/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_stream;

// Arrays of pointers to the samples of each channel. A pointer to any of these types may be passed,
// for example a float **: in C through a union that GCC and Clang convert to, in C++ through the
// overloads at the end of this header. With other compilers the types are void *const * and
// const void *const *.
#if defined(__GNUC__) && !defined(__cplusplus)
union partita_outputs {
    void *const *samples;
    float *const *f32;
    double *const *f64;
    __extension__ float _Complex *const *cf32;
    __extension__ double _Complex *const *cf64;
} __attribute__((transparent_union));
union partita_inputs {
    const void *const *samples;
    void *const *outputs;
    const float *const *f32;
    const double *const *f64;
    float *const *f32_outputs;
    double *const *f64_outputs;
    __extension__ const float _Complex *const *cf32;
    __extension__ const double _Complex *const *cf64;
    __extension__ float _Complex *const *cf32_outputs;
    __extension__ double _Complex *const *cf64_outputs;
} __attribute__((transparent_union));
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC system_header // or -Wpedantic would warn of every call with such a union
#endif
#define PARTITA_OUTPUTS union partita_outputs
#define PARTITA_INPUTS union partita_inputs
#else
#define PARTITA_OUTPUTS void *const *
#define PARTITA_INPUTS const void *const *
#endif

// Starts a stream with empty history.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_STATE if the plan is
//          for a bounded problem; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE; on a device also
//          PARTITA_ERR_UNSUPPORTED, see enum partita_status.
// Memory:  history, spectra and one block; plan and filter must outlive the stream.
//          A plan for streams of a device has the device's memory of one stream from its creation
//          on, and keeps that of streams that were closed for those that open later.
// Threads: any.
PARTITA_API enum partita_status partita_stream_open(const struct partita_plan *plan,
                                                    const struct partita_filter *filter,
                                                    struct partita_stream **ret_stream);

// Releases a stream. NULL is allowed. Threads: any; no thread may still use the stream.
PARTITA_API void partita_stream_close(struct partita_stream *stream);

// Filters the next n_frames input frames; n_frames may differ from call to call. The output samples
// do not depend on how the input is split into calls, bit for bit. Output k of the stream is
// y[k - latency/stride] of the problem; the first latency/stride outputs are zero. (With
// problem.up read up*latency/stride, which is a whole number; a call's outputs are those at
// multiples of the stride among its frames and the zeros inserted after them.)
// Shapes:  x [in_channels] pointers to n_frames samples each, y [out_channels] pointers to
//          partita_stream_output_frames(stream, n_frames) samples each. All of them are in host
//          memory, also if the plan is for a device. x == NULL is silence: the same as frames of
//          zeros. partita_stream_tail frames of it give the complete tail.
// Ranges:  n_frames >= 0. With problem.whole_blocks it is a multiple of problem.block: frames
//          beyond the last whole block are ignored, and their outputs are zero. y[c] == x[c] is
//          allowed, unless problem.up is above the stride; any other overlap is not.
//          An infinite or NaN sample makes exactly the outputs that depend on it NaN (infinite or
//          NaN where the sums are direct), all others are as with 0 in its place. These are, in
//          every output channel of its group, the outputs from the first tap to the last; zeros
//          between dilated taps count as taps, and for problem.up see there. A path without taps,
//          or with zeros alone, counts with some engines only (not with cpu/partitioned). The call
//          takes longer by a few operations for each sample, output and input that is affected.
//          Largest floats: where an engine transforms blocks, outputs are finite for certain only
//          if the magnitude of the samples, times the length n of the longest transform
//          (partita_plan_explain), times the sum of the magnitudes of the taps, or 1 if that is
//          less, is below a quarter of the largest float: in f32 and with n = 65536 samples up to
//          1.2e33. Beyond it outputs may be infinite or NaN although the exact ones are finite,
//          until the samples have left the taps and two such transforms. A bounded call is
//          repeated with smaller samples (partita_forward); a stream has no time for it. The
//          direct sums of cpu/direct overflow only if a partial sum does.
// Errors:  none: arguments are not checked.
// Memory:  none. On the CPU the call never allocates, locks, logs or makes system calls, with one
//          exception: if the stream has threads of its own (options.threads) and nobody has
//          processed it for 100 ms, these threads are blocked, and the call wakes them by one
//          system call (sem_post), which does not wait. Until then they look for work every 50
//          microseconds. An open stream that is not processed uses no processor time.
// Devices: a stream on a device queues one CUDA graph per quantum and waits for it once;
//          partita_plan_explain prints the frames of a quantum. The library itself still allocates
//          and locks nothing. The CUDA driver may lock, make system calls, spin or sleep in these
//          calls. If the device fails, the plan's log is called once, from this call, and outputs
//          are zero from then on: see partita_stream_status.
// Time:    mean cost and latency are the plan's. partita_plan_load predicts the worst call; while a
//          swap is in progress it takes up to twice that. With threads (options.threads) a call may
//          wait some microseconds for a task that a worker has begun: give the thread that opens
//          the stream the scheduling of the thread that processes it.
// Threads: one at a time per stream; many streams may share plan and filter.
PARTITA_API void partita_stream_process(struct partita_stream *stream, PARTITA_OUTPUTS y,
                                        PARTITA_INPUTS x, size_t n_frames) PARTITA_NONBLOCKING;

// The same for buffers whose frames are `y_stride` and `x_stride` samples apart: interleaved audio
// of C channels has x[c] = base + c and x_stride = C. In place (y[c] == x[c]) requires equal
// strides and a problem stride of 1.
PARTITA_API void partita_stream_process_strided(struct partita_stream *stream, PARTITA_OUTPUTS y,
                                                size_t y_stride, PARTITA_INPUTS x, size_t x_stride,
                                                size_t n_frames) PARTITA_NONBLOCKING;

// The same on a device, without waiting: the work is put on a queue of the caller's, and the call
// returns. The bits are those of the same frames in host arrays.
// Shapes:  as partita_stream_process, but every channel is in the memory of the stream's device and
//          is aligned to its scalar. x == NULL is silence.
// Ranges:  as partita_stream_process. queue is a cudaStream_t of that device; cudaStreamLegacy
//          is CUDA's default stream.
// Errors:  PARTITA_ERR_ARG for NULL, a channel that is elsewhere or misaligned (the log names it),
//          or a queue of another device; PARTITA_ERR_STATE if the stream has processed host arrays
//          since it was opened or reset; PARTITA_ERR_UNSUPPORTED on the CPU; PARTITA_ERR_NOMEM. The
//          stream is then unchanged, but a graph that the call was captured into must not be
//          launched. PARTITA_ERR_DEVICE, which lasts, if the device failed or CUDA refused a part
//          of the call's work after another part was queued. Later calls return the value of
//          partita_stream_status; failures of queued work show in a later call.
// Memory:  none. Nothing is allocated, waited for, or put on another queue. Channels, filter and
//          stream must last until the work is done, in a graph until its last launch is.
// Devices: calls for one stream must be ordered, as on one queue. Queued calls have a state of
//          their own: after one, partita_stream_process writes zeros and logs a line, until
//          partita_stream_reset. Before reset, save, restore, clone and close the caller waits for
//          the work. The queue may be captured into a graph without preparation. Each launch of the
//          graph filters the next n_frames frames, from the channels of the captured call; n_frames
//          must then be a multiple of the problem's stride (PARTITA_ERR_ARG), and at each launch
//          the stream must have filtered as many frames, modulo the stride, as at the capture. A
//          swap begins with the first call that is not captured; that call may have 0 frames. A
//          second swap begins at most one quantum later than on host arrays.
//          partita_stream_swapping returns false when the device no longer uses the other filters.
// Time:    some kernel launches per quantum of frames, or per call if that is shorter. Statistics
//          are of the time that calls take to queue their work; launches of graphs are not counted.
// Threads: one at a time per stream.
PARTITA_API enum partita_status partita_stream_process_queued(struct partita_stream *stream,
                                                              PARTITA_OUTPUTS y, PARTITA_INPUTS x,
                                                              size_t n_frames,
                                                              void *queue) PARTITA_NONBLOCKING;

// Output frames that the next process call with n_frames will write: n_frames without decimation,
// otherwise the number of multiples of the stride among the next n_frames input positions; with
// problem.up among those and the positions of the zeros inserted after each of them.
// Real-time safe.
// Threads: the stream's.
PARTITA_API size_t partita_stream_output_frames(const struct partita_stream *stream,
                                                size_t n_frames) PARTITA_NONBLOCKING;

// Added delay in input frames, exact and constant. It is a multiple of the problem's stride; with
// problem.up, up times the delay is one. Real-time safe.
// Threads: any.
PARTITA_API size_t partita_stream_latency(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Input frames of silence after which everything that the previous input contributes to has been
// output: latency + dilation*(kernel-1), rounded up to whole blocks if the problem promises these;
// with problem.up latency + the taps of the longest branch - 1, about dilation*kernel/up.
// Real-time safe.
// Threads: any.
PARTITA_API size_t partita_stream_tail(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// PARTITA_OK, or why a stream on a device failed: PARTITA_ERR_DEVICE, also for work that CUDA
// refused, or PARTITA_ERR_NOMEM. The plan's log receives the reason once. From then on
// outputs are zero, a filter that is passed to partita_stream_swap counts as in use at once, and
// save, restore and clone return this status. Streams of the CPU and of other devices are not
// affected.
// Errors:  PARTITA_ERR_ARG for NULL.
// Threads: any. Real-time safe.
PARTITA_API enum partita_status
partita_stream_status(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Replaces the filter of a running stream, from any thread, without a lock. Old and new filter run
// on the same history while the output fades over `fade` input frames (with a stride about
// fade / stride outputs): frame i of the fade is old +
// (new - old) * (i + 1) / (fade + 1), where old and new are the outputs that each filter alone
// would have given all along. The fade begins when everything that the new filter contributes has
// been computed, at most swap_delay frames (struct partita_load) after the first process call that
// sees the filter. Of several filters that are passed before that call only the last takes effect;
// one that is passed later follows after the fade.
// Ranges:  filter of the stream's plan; fade >= 0; 0 switches within one sample.
// Errors:  PARTITA_ERR_ARG for NULL or a filter of another plan; PARTITA_ERR_UNSUPPORTED if the
//          engine cannot swap filters.
// Memory:  earlier filters must live until partita_stream_swapping returns false.
// Threads: one caller at a time; process may run at the same time. Real-time safe.
PARTITA_API enum partita_status partita_stream_swap(struct partita_stream *stream,
                                                    const struct partita_filter *filter,
                                                    size_t fade) PARTITA_NONBLOCKING;

// True while the stream still uses, or waits to use, any filter other than the last one passed to
// partita_stream_swap. Poll it from the thread that swaps: once it is false, all other filters may
// be destroyed. Real-time safe.
// Threads: any.
PARTITA_API bool partita_stream_swapping(const struct partita_stream *stream) PARTITA_NONBLOCKING;

// Starts a stream with empty history whose filter is a weighted sum of filters, the sum of
// weights[k] * filters[k], with weights that partita_stream_morph moves. While they rest the
// outputs are those of one filter with the sum of the taps, and cost as much.
// Shapes:  filters [n_filters], weights [n_filters].
// Ranges:  n_filters from 1 to 8; weights are finite, of any sign and sum. The filters may differ
//          in their paths and lengths.
// Errors:  as partita_stream_open; PARTITA_ERR_ARG also for these ranges; PARTITA_ERR_UNSUPPORTED
//          for another engine than cpu/partitioned, and for spectra in 16 bits
//          (options.error_budget). The log says which.
// Memory:  as partita_stream_open, and that of one more filter. All filters must outlive the
//          stream.
// Devices: the CPU alone.
// Threads: any.
PARTITA_API enum partita_status
partita_stream_open_morph(const struct partita_plan *plan,
                          const struct partita_filter *const *filters, size_t n_filters,
                          const double *weights, struct partita_stream **ret_stream);

// Moves the weights of a stream's filters, without steps, from any thread, without a lock. They are
// asked to go from where they are, linearly, to `weights` within `frames` input frames, from the
// first frame on that the process call which sees the request takes and whose number is a multiple
// of the quantum (partita_plan_explain). A later request replaces the rest of an earlier one; of
// several before one process call only the last takes effect.
//
// The weights of tap j follow what is asked for with a delay: at any time they are a mean of what
// was asked for within the last partita_stream_morph_lag(stream, j) frames. As functions of time
// they are continuous and linear in pieces, the same for all taps of a partition, and the output is
// exactly the sum over taps and filters of weight * tap * sample. So it differs from the
// convolution with the weights that are asked for by at most the sum over filters and taps of
// |tap|, times the largest sample, times the range of that filter's weight within the tap's lag. It
// is the same when the weights have rested for the largest lag. The bits do not depend on how the
// input is split into calls: a request takes effect at the same frame if it is made between calls
// at the same frame.
// Shapes:  weights, as many as the stream has filters.
// Ranges:  finite; frames >= 0; 0 asks for a jump, which takes a block of each partition's size.
// Errors:  PARTITA_ERR_ARG for NULL or weights that are not finite; PARTITA_ERR_UNSUPPORTED for a
//          stream that partita_stream_open opened.
// Memory:  none.
// Time:    a block of each size changes a part of its partitions, at most one in sixteen of the
//          late ones, and transforms the products with their change back (decision 50).
//          partita_stream_swap and partita_stream_clone return PARTITA_ERR_UNSUPPORTED for a stream
//          that morphs. partita_stream_save writes the weights and where they go. Restore and reset
//          sum the whole filter again; reset gives it the weights last asked for.
// Threads: one caller at a time; process may run at the same time. Real-time safe.
// Source:  fades of filters by partitions are known (Wefers, Partitioned convolution algorithms for
//          real-time auralization, 2015), between two complete filters. Here a block changes a
//          share of the partitions and transforms the products with their change alone, so that
//          each partition has a time-varying weight that is known exactly.
PARTITA_API enum partita_status partita_stream_morph(struct partita_stream *stream,
                                                     const double *weights,
                                                     size_t frames) PARTITA_NONBLOCKING;

// Maximum number of input frames by which the weight of a tap (after dilation, of a causal filter)
// is behind what partita_stream_morph asks for: some quanta for the first taps, then by and large
// in proportion to the tap's number. 0 for a stream that does not morph. Real-time safe.
// Threads: any.
PARTITA_API size_t partita_stream_morph_lag(const struct partita_stream *stream,
                                            size_t tap) PARTITA_NONBLOCKING;

// How long the stream's process calls took, recorded without locks.
struct partita_stream_stats {
    uint64_t calls;
    uint64_t missed;                  // calls that took longer than their frames last
    double mean, p50, p99, p999, max; // seconds; percentiles are upper bounds within 9 %
};

// Reads how long the stream's process calls took.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE if options.sample_rate was not set, since
//          calls are then not timed.
// Threads: any, also while process runs. Real-time safe.
PARTITA_API enum partita_status partita_stream_stats_sized(const struct partita_stream *stream,
                                                           struct partita_stream_stats *ret_stats,
                                                           size_t stats_bytes) PARTITA_NONBLOCKING;
static inline enum partita_status
partita_stream_stats(const struct partita_stream *stream,
                     struct partita_stream_stats *ret_stats) PARTITA_NONBLOCKING
{
    return partita_stream_stats_sized(stream, ret_stats, sizeof *ret_stats);
}

// Bytes that partita_stream_save writes. Threads: any.
PARTITA_API size_t partita_stream_state_size(const struct partita_stream *stream);

// Writes everything that the stream's future outputs depend on, except the filter, to
// state[partita_stream_state_size]. A stream that restores it continues bit for bit; it may be
// another stream of a plan with the same problem, engine, transform sizes and instruction set.
// `state` needs no alignment.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE while partita_stream_swapping; the value of
//          partita_stream_status if the device failed.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_save(struct partita_stream *stream, void *state);

// Replaces the state of a stream by a saved one. A checksum finds accidental damage; a state that
// was made to deceive it is not recognised.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE while partita_stream_swapping, if state does
//          not belong to a stream of an equal plan, or if it was damaged; the value of
//          partita_stream_status if the device failed. The stream is then unchanged.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_restore(struct partita_stream *stream,
                                                       const void *state, size_t size);

// Opens a second stream of the same plan and filter in the same state. Not real-time safe.
// Errors:  PARTITA_ERR_ARG; PARTITA_ERR_NOMEM; PARTITA_ERR_STATE while partita_stream_swapping; the
//          value of partita_stream_status if the device failed.
// Threads: the stream's.
PARTITA_API enum partita_status partita_stream_clone(struct partita_stream *stream,
                                                     struct partita_stream **ret_stream);

// Clears all input history: the stream is as if just opened. A swap that has begun ends without a
// fade; one that no process call has seen begins with the next call. Real-time safe on the CPU; on
// a device the call waits for the device.
// Threads: the stream's.
PARTITA_API void partita_stream_reset(struct partita_stream *stream) PARTITA_NONBLOCKING;

#ifdef __cplusplus
}

extern "C++" { // even if the header is included within extern "C"

// Deduces the type of samples from the outputs only, so that NULL may be the inputs.
template <class Sample> struct partita_inputs_of {
    typedef const Sample *const *type;
};

template <class Sample>
void partita_stream_process(partita_stream *stream, Sample *const *y,
                            typename partita_inputs_of<Sample>::type x,
                            size_t n_frames) PARTITA_NONBLOCKING
{
    partita_stream_process(stream, (void *const *)y, (const void *const *)x, n_frames);
}

template <class Sample>
partita_status partita_stream_process_queued(partita_stream *stream, Sample *const *y,
                                             typename partita_inputs_of<Sample>::type x,
                                             size_t n_frames, void *queue) PARTITA_NONBLOCKING
{
    return partita_stream_process_queued(stream, (void *const *)y, (const void *const *)x, n_frames,
                                         queue);
}

template <class Sample>
void partita_stream_process_strided(partita_stream *stream, Sample *const *y, size_t y_stride,
                                    typename partita_inputs_of<Sample>::type x, size_t x_stride,
                                    size_t n_frames) PARTITA_NONBLOCKING
{
    partita_stream_process_strided(stream, (void *const *)y, y_stride, (const void *const *)x,
                                   x_stride, n_frames);
}
}
#endif

#endif
