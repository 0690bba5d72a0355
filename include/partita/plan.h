// SPDX-License-Identifier: MIT
// HOW to compute a problem: the planner's choice of an engine, and the calls that run it. A plan is
// created once, is immutable, and may be shared by any number of threads.
//
// Arrays of bounded problems are plain and contiguous: [batch][channels][size...], the last axis
// fastest, or with problem.channels_last [batch][size...][channels]. gy is the gradient with
// respect to the sum, before problem.activation: with PARTITA_RELU the caller first sets gy to 0
// where y is 0. Gradients are of real types.
//
// Accuracy: in engines that transform, a rounding error is relative to the largest values that
// share a transform, not to each result. A result that is exactly 0, because products cancel or
// there are none, may come out as a small nonzero value, in f32 about 1e-6 of the largest results.
// Two items of a batch, or two output channels, may share a transform of tiles.
// options.engine = "cpu/direct" or "cpu/gemm" computes each result as a separate sum.
// options.error_budget bounds the error of all results together (relative L2), and
// options.error_reach how far the error of a loud passage reaches into a quiet one: the error of a
// passage is then relative to what is that near.
//
// options.device is "cpu", "cuda" (the first GPU) or, for example, "cuda:1". Support for NVIDIA
// GPUs is in a separate module, libpartita-cuda.so, which is loaded when such a device is first
// requested. Without the module, or without a driver, everything else works. The module is searched
// for in the library's folder, then in the system's library path; the environment variable
// PARTITA_CUDA_MODULE names another file. A program that runs with more rights than its caller
// takes it from the system's path alone. Every call leaves the calling thread's current CUDA device
// as it was, also when it fails. Memory that calls release stays in a pool of the library's own
// while there is a plan of the device.
#ifndef PARTITA_PLAN_H
#define PARTITA_PLAN_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

// Describes a device, named as in options.device, in one line, or says what is missing: "no CUDA
// device: driver not installed".
// Shapes:  text[size], terminated when size > 0 and truncated if necessary.
// Errors:  PARTITA_ERR_ARG for NULL (text is not changed); PARTITA_ERR_DEVICE if there is no such
//          device; text then says why.
// Threads: any.
PARTITA_API enum partita_status partita_device_describe(const char *device, char *text,
                                                        size_t size);

struct partita_filter;
struct partita_plan;
struct partita_saved;
struct partita_wisdom;

// How much time planning may take.
enum partita_effort {
    PARTITA_ESTIMATE = 0, // choose by the cost model; takes milliseconds
    PARTITA_MEASURE,      // time the likely choices on this machine; takes up to a few seconds. On
                          // devices other than the CPU: choose by rates of the device (launches,
                          // copies, transforms, products) that are measured once in a process, in
                          // tenths of a second.
};

// Directions of a bounded problem; bits, to be combined. Problems of complex types have only the
// forward direction.
enum partita_direction {
    PARTITA_FORWARD = 1,         // partita_forward
    PARTITA_BACKWARD_DATA = 2,   // partita_backward_data
    PARTITA_BACKWARD_WEIGHT = 4, // partita_backward_weight
};

// Streams may use threads of the application in place of the library's own. `run` calls
// task(context) n times, possibly at once on several threads, and returns when all of these calls
// have returned. It is called from partita_stream_process, so it must be as real-time safe as that
// call has to be. n is options.threads, at least 1. (This is the form of CLAP's thread pool.)
struct partita_executor {
    void (*run)(void *user, void (*task)(void *context), void *context, size_t n); // NULL: none
    void *user;
};

// Sizes of blocks that are imposed from outside, in samples of the filter (dilation included) and
// of x. Only the engines cpu/blocks and cuda/blocks take them: set options.engine to one of these,
// since all others, which the planner may choose, ignore the sizes. docs/parts.md says how two
// sizes are computed, and partita_plan_explain prints the schedule. Two different sizes need a
// stride of 1. The engine "cpu/blocks:private-divisions" sums all divisions at once, each but the
// first in memory of its own, or as many as the workspace limit allows.
struct partita_parts {
    size_t taps, signal; // at most 2^40 [0: the engine's choice; both or none]
    bool in_time;        // sum pairs directly, without transforms; not on a device [false]
};

// Options of a plan. Plain data; zero-initialise it and set what differs. NULL instead of a struct
// means all defaults. As in struct partita_problem, an option that has no meaning for the kind of
// problem must be zero.
struct partita_options {
    const char *device; // "cpu", "cuda" or "cuda:N", see partita_device_describe ["cpu"]
    const char *engine; // force one engine or variant of one, for example "cpu/overlap-save" or
                        // "cpu/overlap-add:steps" [planner's choice]
    enum partita_effort effort; // [estimate]
    // Bounded problems on the CPU: threads of a call [0: as many as the work pays for, at most
    // OpenMP's default, which is OMP_NUM_THREADS or all cores].
    // Bounded problems on a device: threads that copy pageable arrays [0: OpenMP's default, at most
    // 8]. Streams of the CPU: threads of one stream, the calling thread
    // included [0: only that one]; the others block after 100 ms without a call, and the next call
    // wakes them by a system call (partita_stream_process). 0 to 4096; no more than 16, or twice
    // the number of cores if that is more, are used.
    int threads;
    struct partita_executor executor; // streams of the CPU: use these threads and start none [none]
    double sample_rate;         // streams: frames per second, for statistics [calls are not timed]
    size_t workspace_limit;     // maximum bytes of workspace of a call in any direction [no limit]
    struct partita_parts parts; // imposed sizes of blocks [none]
    // Maximum predicted L2 error of a whole result, relative to the result's norm; the text above
    // says what this means for single values [0: any; cpu/winograd and cuda/winograd 2e-6 in f32].
    // Streams in f32 and cf32: with 1e-4 or more, spectra of filters are stored in 16 bits, which
    // halves their memory: on the CPU those that its caches do not hold, on a device all. The error
    // is then at most 81 dB below the outputs, and about 94 dB below for filters like noise and
    // reverberation [0: no spectra in 16 bits].
    double error_budget;
    struct partita_wisdom *wisdom; // cost model and choices to use; measuring adds to it [none]
    struct partita_log log;        // [none, or what PARTITA_LOG says, see struct partita_log]
    struct partita_allocator allocator; // [C library]; every object made from the plan uses it too
    // Bounded problems: enum partita_direction, combined. It is an error if one of them cannot be
    // planned [0: forward, and each gradient that can be planned, unless there is only one signal
    // of one axis].
    unsigned directions;
    // Bounded problems: calls of one direction that use a filter before it is replaced or updated;
    // the planner adds the time of preparing the filter, divided by this number, to each call. 1 in
    // training, where taps change every step. Engines of devices report no such time [0: so many
    // that preparing it does not count; 1 for one signal of one axis].
    unsigned filter_uses;
    // The rounding errors of a sample reach fewer than this many positions, along any axis, beyond
    // the results that depend on it, and no other items of the batch. Transforms are shorter than
    // this; with 1 every result is a separate sum, whose error is relative to its own products. A
    // small reach may cost a multiple of the time: partita_plan_explain says how much [0: any].
    size_t error_reach;
    // partita_correlate_normalised only: the mean of the template, and that of the signal under it,
    // are subtracted first, so that an offset hides no template (Pearson's coefficient) [false].
    bool zero_mean;
    bool reserved[7]; // must be false
    // Bounded problems with all three directions, on the CPU: a training step may keep this many
    // bytes of transforms from one call to the next in a partita_saved (advanced.h). If it costs
    // less, all directions then use the same tiles; x, taps and gy are transformed once a step, and
    // a filter is packed for forward alone. partita_saved_bytes of the plan is not 0 then. Not with
    // workspace_limit, nor for samples in two bytes [0: each direction is planned alone].
    size_t saved_limit;
};

// Plans a problem: asks every engine for an estimate and keeps the cheapest engine that fits the
// options.
// Ranges:  the structs are copied; strings in them need not outlive the call; wisdom and hooks must
//          outlive the plan.
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED if no engine fits the options; PARTITA_ERR_DEVICE if the device
//          is absent (the log line says what is missing); PARTITA_ERR_NOMEM.
// Memory:  the plan holds transform tables, and for streams of a device the device's memory of one
//          stream; release it after all filters, streams and saved transforms made from it.
// Time:    below 5 ms with PARTITA_ESTIMATE for filters up to 64 k taps; tens of milliseconds in a
//          build with only FFTW's transforms, because FFTW plans each transform. Not real-time
//          safe.
// Threads: any; several plans may be created at once.
PARTITA_API enum partita_status partita_plan_create_sized(const struct partita_problem *problem,
                                                          size_t problem_bytes,
                                                          const struct partita_options *options,
                                                          size_t options_bytes,
                                                          struct partita_plan **ret_plan);
static inline enum partita_status partita_plan_create(const struct partita_problem *problem,
                                                      const struct partita_options *options,
                                                      struct partita_plan **ret_plan)
{
    return partita_plan_create_sized(problem, sizeof *problem, options, sizeof *options, ret_plan);
}

// Releases a plan. NULL is allowed. Threads: any; no call may still use the plan.
PARTITA_API void partita_plan_destroy(struct partita_plan *plan);

// Writes what was chosen and why: each engine with its predicted time, memory and error bound, and
// for streams its latency, or the reason why it does not apply or was not estimated. For
// cpu/partitioned it adds the partitions, the cost of a call, and a timeline of the work of calls.
// Shapes:  text[size], always terminated when size > 0. Returns the length of the whole text, as
//          snprintf does.
// Threads: any.
PARTITA_API size_t partita_plan_explain(const struct partita_plan *plan, char *text, size_t size);

// Name of the engine of one direction, for example "cpu/direct"; of a stream, with
// PARTITA_FORWARD. "" for NULL or if the direction is not planned. The string lives as long as the
// plan.
// Threads: any.
PARTITA_API const char *partita_plan_engine(const struct partita_plan *plan,
                                            enum partita_direction direction);

// Number of taps that partita_filter_create reads: out_channels * in_channels/groups * the kernel's
// size along each axis; 0 for NULL. Threads: any.
PARTITA_API size_t partita_plan_taps_count(const struct partita_plan *plan);

// Bytes of workspace that one direction needs; 0 for NULL, streams and directions that are not
// planned.
// Threads: any.
PARTITA_API size_t partita_plan_workspace(const struct partita_plan *plan,
                                          enum partita_direction direction);

// Added delay of a stream in input frames; 0 for bounded problems. It is a multiple of the stride;
// with problem.up, up times the delay is one.
// Threads: any.
PARTITA_API size_t partita_plan_latency(const struct partita_plan *plan);

// What the calls of a stream cost according to the cost model, in seconds on one thread. A call
// does all work that its frames make due; with cpu/partitioned a fixed table says which work this
// is, so the worst call is known beforehand.
struct partita_load {
    size_t frames;      // of the call: the problem's block
    double mean, worst; // seconds of such a call
    size_t swap_delay;  // maximum number of input frames from the call after a swap to the start of
                        // the fade
};

// Predicts what the calls of a stream cost.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE for the plan of a bounded problem.
// Threads: any.
PARTITA_API enum partita_status partita_plan_load_sized(const struct partita_plan *plan,
                                                        struct partita_load *ret_load,
                                                        size_t load_bytes);
static inline enum partita_status partita_plan_load(const struct partita_plan *plan,
                                                    struct partita_load *ret_load)
{
    return partita_plan_load_sized(plan, ret_load, sizeof *ret_load);
}

// What a call of a bounded problem may be given besides its arrays. Plain data; zero-initialise it
// and set what differs. NULL instead of a struct: nothing. A field that has no meaning for the
// direction must be zero.
struct partita_call {
    // At least partita_plan_workspace(plan, direction) bytes, 64-byte aligned [the call allocates
    // it]. Backward weight with `saved` needs partita_saved_workspace bytes; partita_filter_update
    // takes what forward and backward data need. With `accumulate` it has this number of bytes,
    // rounded up to a multiple of 64, plus the bytes of the results.
    void *workspace;
    // Transforms that the calls of a training step keep for each other, see partita_saved_create in
    // advanced.h. Backward weight with those of x does not need x, which may be NULL [none].
    struct partita_saved *saved;
    // Forward and backward data without a filter (NULL): taps that are used once, as
    // partita_filter_create takes them. An engine that is faster without a filter reads them
    // directly; for others the call creates a filter [none].
    const void *taps;
    // Devices: a cudaStream_t of the plan's device on which the call queues its work and returns
    // without waiting; cudaStreamLegacy is CUDA's default stream [the call waits].
    void *queue;
    // The results, bias included, are added to what y, gx, gw or gb holds, as gradients of several
    // micro-batches are: each element becomes the sum of its value and of the result that the call
    // would write otherwise, rounded once more to its type; f16 and bf16 are added in f32. Not for
    // forward with an activation [results replace what the array holds].
    bool accumulate;
    bool reserved[7]; // must be false
};

// Loads what calls with call.queue need: the device's kernels and those of its transforms, for all
// directions of the plan and for updates of its filters. The first such call of a direction does
// the same if that has not been done; nothing can be loaded while a queue is captured into a graph.
// On the CPU, and for streams, there is nothing to do.
// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE.
// Memory:  allocates memory of the device for the duration of the call.
// Threads: any. Not real-time safe.
PARTITA_API enum partita_status partita_plan_prepare(const struct partita_plan *plan);

// Computes a bounded problem. The filter is NULL if call.taps brings taps.
// Shapes:  x [batch][in_channels][size], y [batch][out_channels][output size], contiguous, of the
//          problem's types; with problem.channels_last the channels are the last axis of both.
// Ranges:  x, y and call.taps are aligned to their scalar. y and the workspace share no memory with
//          each other, x or taps: no engine works in place. On the CPU an infinite or NaN sample of
//          x affects only the outputs that depend on it: they become NaN (infinite or NaN where the
//          sums are direct), all others are as with 0 in its place. If the engine transforms
//          blocks, the call then takes twice as long and allocates a copy of x. Results of finite
//          samples are finite if the sum of the magnitudes of their products is, and that of the
//          taps of a path: where a transform overflows, the call is repeated with x scaled down (in
//          layers only if a magnitude of x is 2^32 or more, in f64 2^256). This does not hold for
//          filters of which any tap is infinite or NaN. With PARTITA_RELU a sum that overflows to
//          minus infinity in a transform gives 0.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned pointer, arrays that overlap, or a filter
//          of another plan, or saved transforms of another plan with other tiles of x;
//          PARTITA_ERR_STATE if the plan is for a stream, or borrows transforms that are not there;
//          PARTITA_ERR_UNSUPPORTED if options.directions omitted forward; PARTITA_ERR_NOMEM only
//          without a workspace, with call.taps, for copies of x and y where a sample is not finite
//          or a transform overflows, or on a device, where copies of arrays take memory;
//          PARTITA_ERR_DEVICE if the device failed, now or earlier, which leaves y undefined.
// Devices: arrays in the memory of the plan's device are used in place; others are copied there and
//          back within the call. The call queues its work on the thread's default CUDA stream
//          (cudaStreamPerThread) and returns when all of it is done. A workspace is used only if it
//          lies in the device's memory; otherwise the call allocates its own. All of this also
//          holds for gradients, and for taps and bias of filters (but not of paths, which are
//          read on the host). Arrays in host memory are processed in micro-batches: some items,
//          some outputs of long signals, or some of many taps at a time. Two micro-batches are on
//          the device at once, with arrays of about 16 MiB each (more for signals whose
//          micro-batches overlap much), within half of the workspace limit, but at least one item.
//          Results that are added over micro-batches, and outputs of transforms, may round
//          differently than from arrays in device memory. Pinned memory is copied fastest; other
//          memory goes through pinned buffers of 8 MiB per concurrent call, which the first calls
//          allocate and the plan keeps.
//          With call.queue all arrays, and the workspace if the direction needs one, are in the
//          memory of the plan's device, and arrays are aligned to a sample; the log names one that
//          is not (PARTITA_ERR_ARG). Nothing is allocated, waited for, or put on another queue,
//          so that the queue may be captured into a graph after partita_plan_prepare (before it:
//          PARTITA_ERR_STATE). Arrays, workspace, filter, saved transforms and plan must last until
//          the work is done, in a graph until its last launch is. A later call returns failures of
//          queued work. PARTITA_ERR_UNSUPPORTED on the CPU, and for call.taps with an engine that
//          needs a filter.
// Threads: a plan and a filter may serve several calls at once, each with its own workspace. The
//          result does not depend on the number of threads.
// Source:  overlap-add and overlap-save after Stockham (1966) and Oppenheim & Schafer,
//          Discrete-Time Signal Processing, 8.7.
PARTITA_API enum partita_status
partita_forward_sized(const struct partita_plan *plan, const struct partita_filter *filter, void *y,
                      const void *x, const struct partita_call *call, size_t call_bytes);
static inline enum partita_status partita_forward(const struct partita_plan *plan,
                                                  const struct partita_filter *filter, void *y,
                                                  const void *x, const struct partita_call *call)
{
    return partita_forward_sized(plan, filter, y, x, call, sizeof *call);
}

// The gradient with respect to the input: gx[n, c, i] = sum of w[k, c, r] gy[n, k, p] over all k, r
// and p with stride*p + dilation*r - pad_begin = i, or at a ghost cell that copies sample i
// (problem.boundary). This is the transpose of partita_forward without bias and activation.
// Shapes:  gx as x of partita_forward, gy as its y. All of gx is written: the gradient of a sample
//          that no output depends on is 0, except for rounding errors if the engine transforms
//          tiles.
// Ranges, Errors, Devices: as partita_forward, for this direction.
// Threads: as partita_forward; the result does not depend on the number of threads.
// Source:  Dumoulin & Visin, A guide to convolution arithmetic for deep learning (2016), section 4.
PARTITA_API enum partita_status partita_backward_data_sized(const struct partita_plan *plan,
                                                            const struct partita_filter *filter,
                                                            void *gx, const void *gy,
                                                            const struct partita_call *call,
                                                            size_t call_bytes);
static inline enum partita_status partita_backward_data(const struct partita_plan *plan,
                                                        const struct partita_filter *filter,
                                                        void *gx, const void *gy,
                                                        const struct partita_call *call)
{
    return partita_backward_data_sized(plan, filter, gx, gy, call, sizeof *call);
}

// The gradient with respect to the taps, summed over the batch: gw[k, c, r] = sum over n, p of
// gy[n, k, p] x[n, c, stride*p + dilation*r - pad_begin], with the values of problem.boundary
// outside the size of x.
// Shapes:  gw [out_channels][in_channels/groups][kernel], as the taps of partita_filter_create; x,
//          gy as forward's x, y.
// Ranges, Errors, Devices: as partita_forward, for this direction, but with saved transforms a
//          sample of x that is not finite may also spread to gradients of taps that it is not
//          multiplied by if x is NULL or options.saved_limit was 0, and a call whose transforms
//          overflow is not repeated then. PARTITA_ERR_ARG also for call.taps, and for another x
//          than that of the saved transforms; PARTITA_ERR_STATE also for saved transforms that no
//          call has filled.
// Threads: as partita_backward_data. How sums are split depends only on the shape, and their parts
//          are added in a fixed order.
PARTITA_API enum partita_status
partita_backward_weight_sized(const struct partita_plan *plan, void *gw, const void *x,
                              const void *gy, const struct partita_call *call, size_t call_bytes);
static inline enum partita_status partita_backward_weight(const struct partita_plan *plan, void *gw,
                                                          const void *x, const void *gy,
                                                          const struct partita_call *call)
{
    return partita_backward_weight_sized(plan, gw, x, gy, call, sizeof *call);
}

// The gradient with respect to the bias: gb[k] = sum over n, p of gy[n, k, p].
// Shapes:  gb [out_channels], gy as forward's y.
// Errors, Devices: as partita_forward. PARTITA_ERR_ARG also for call.taps and call.saved;
//          PARTITA_ERR_UNSUPPORTED for complex types. No direction has to be planned.
// Memory:  none; call.workspace is not used.
// Threads: as partita_forward.
PARTITA_API enum partita_status partita_backward_bias_sized(const struct partita_plan *plan,
                                                            void *gb, const void *gy,
                                                            const struct partita_call *call,
                                                            size_t call_bytes);
static inline enum partita_status partita_backward_bias(const struct partita_plan *plan, void *gb,
                                                        const void *gy,
                                                        const struct partita_call *call)
{
    return partita_backward_bias_sized(plan, gb, gy, call, sizeof *call);
}

#ifdef __cplusplus
}
#endif

#endif
