// SPDX-License-Identifier: MIT
// HOW to compute it: the planner's choice for one problem. A plan is created once, is immutable,
// and may be shared by any number of threads.
#ifndef PARTITA_PLAN_H
#define PARTITA_PLAN_H

#include <partita/problem.h>

#ifdef __cplusplus
extern "C" {
#endif

struct partita_filter;
struct partita_plan;
struct partita_wisdom;

enum partita_effort {
    PARTITA_ESTIMATE = 0, // choose by the cost model; milliseconds
    PARTITA_MEASURE,      // time the likely choices on this machine; up to a few seconds.
                          // On devices other than the CPU this is the same as PARTITA_ESTIMATE.
};

// Directions of a bounded problem; bits, to be combined. Complex types, f16 and bf16 have forward
// alone.
enum partita_direction {
    PARTITA_FORWARD = 1,         // partita_forward
    PARTITA_BACKWARD_DATA = 2,   // partita_backward_data, in layer.h
    PARTITA_BACKWARD_WEIGHT = 4, // partita_backward_weight, in layer.h
};

// Threads of the application for streams, in place of the library's own. `run` calls task(context)
// n times, possibly at once on several threads, and returns when all of these calls have returned.
// It is called from process, so it must be as real-time safe as process has to be. n is
// options.threads, at least 1. (This is the form of CLAP's thread pool.)
struct partita_executor {
    void (*run)(void *user, void (*task)(void *context), void *context, size_t n); // NULL: none
    void *user;
};

// Sizes of the blocks into which cpu/blocks or cuda/blocks splits taps and signal, in samples of
// the filter (dilation included) and of x. They apply only if one of these engines is chosen.
//
// Two equal sizes, half of a good transform size, work like blocks that the engine chooses itself.
// Any other two sizes are for operands whose blocks are given; they need a stride of 1. All pairs
// of blocks that begin at one output are then summed in one transform of at least taps + signal - 1
// samples. Sums that begin at different outputs are added in divisions, within which nothing
// overlaps. If signal divides taps there are taps/signal + 1 divisions, in general (taps +
// signal) / gcd(taps, signal). partita_plan_explain prints the schedule. On a device, good
// transform sizes are powers of two from 16 on, and in_time is not available.
struct partita_parts {
    size_t taps, signal; // at most 2^40 [0: the engine's choice; both or none]
    bool in_time;        // sum pairs directly, without transforms [false]
};

// Options of a plan. Plain data; zero-initialise it and set what differs. NULL instead of a struct
// means all defaults.
struct partita_options {
    const char *device; // "cpu", "cuda" or "cuda:N", see device.h ["cpu"]
    const char *engine; // force one engine, for example "cpu/overlap-save" [planner's choice]
    enum partita_effort effort; // [estimate]
    // Bounded problems: threads of a call [0: all cores]; on a device, threads that copy pageable
    // arrays [0: only the calling thread]. Streams of the CPU: threads of one stream, the calling
    // thread included [0: only that one].
    int threads;
    struct partita_executor executor; // streams of the CPU: use these threads and start none [none]
    double sample_rate;     // streams: frames per second, for statistics [calls are not timed]
    size_t workspace_limit; // most bytes of workspace of a call in any direction [no limit]
    // Bounded problems: enum partita_direction, combined. It is an error if one of them cannot be
    // planned [0: forward, and each gradient that can be planned, unless there is only one signal
    // of one axis].
    unsigned directions;
    struct partita_parts parts; // cpu/blocks, cuda/blocks: sizes of blocks [the engine's choice]
    // Largest predicted L2 error of a whole result, relative to it; layer.h says what this means
    // for single values [0: any; cpu/winograd and cuda/winograd 2e-6 in f32].
    double error_budget;
    struct partita_wisdom *wisdom; // cost model and choices to use; measuring adds to it [none]
    struct partita_log log;        // [no log]
    struct partita_allocator allocator; // [C library]; every object made from the plan uses it too
};

// Plans a problem: asks every engine for an estimate and keeps the cheapest engine that fits the
// options.
// Ranges:  the structs are copied; strings in them need not outlive the call; wisdom and hooks must
//          outlive the plan.
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it);
//          PARTITA_ERR_UNSUPPORTED if no engine fits the options; PARTITA_ERR_DEVICE if the device
//          is absent (the log line says what is missing); PARTITA_ERR_NOMEM.
// Memory:  the plan holds transform tables; release it after all filters and streams made from it.
// Time:    below 5 ms with PARTITA_ESTIMATE for filters up to 64 k taps; tens of ms in a build with
//          FFTW's transforms alone, which do their own planning. Not real-time safe.
// Threads: any; several plans may be created at once.
PARTITA_API enum partita_status partita_plan_create(const struct partita_problem *problem,
                                                    const struct partita_options *options,
                                                    struct partita_plan **ret_plan);

// Releases a plan. NULL is allowed. Threads: any; no call may still use the plan.
PARTITA_API void partita_plan_destroy(struct partita_plan *plan);

// Writes what was chosen and why: each engine with its predicted time, memory and error bound, and
// for streams its latency, or the reason why it does not apply. For cpu/partitioned it adds the
// partitions, the cost of a call, and a timeline of the work of calls.
// Shapes:  text[size], always terminated when size > 0. Returns the length of the whole text, as
//          snprintf does.
// Threads: any.
PARTITA_API size_t partita_plan_explain(const struct partita_plan *plan, char *text, size_t size);

// Name of the engine for forward or the stream, for example "cpu/direct"; "" if options.directions
// omitted forward. The string lives as long as the plan.
// Threads: any.
PARTITA_API const char *partita_plan_engine(const struct partita_plan *plan);

// Bytes of workspace that partita_forward needs; 0 for streams. Threads: any.
PARTITA_API size_t partita_plan_workspace_size(const struct partita_plan *plan);

// Added delay of a stream in input frames, a multiple of the stride; 0 for bounded problems.
// Threads: any.
PARTITA_API size_t partita_plan_latency(const struct partita_plan *plan);

// What the calls of a stream cost by the cost model, in seconds on one thread. A call does all work
// that its frames make due; with cpu/partitioned a fixed table says which, so the worst call is
// known beforehand.
struct partita_load {
    size_t frames;      // of the call: the problem's block
    double mean, worst; // seconds of such a call
    size_t swap_delay;  // most input frames from the call after a swap until the fade begins
};

// Errors:  PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE for the plan of a bounded problem.
// Threads: any.
PARTITA_API enum partita_status partita_plan_load(const struct partita_plan *plan,
                                                  struct partita_load *ret_load);

// Computes a bounded problem.
// Shapes:  x [batch][in_channels][size], y [batch][out_channels][output size], contiguous, of the
//          problem's types.
// Ranges:  x and y aligned to their scalar; they must not overlap. workspace: at least
//          partita_plan_workspace_size bytes, 64-byte aligned; NULL: the call allocates it.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned pointer or a filter of another plan;
//          PARTITA_ERR_STATE if the plan is for a stream; PARTITA_ERR_UNSUPPORTED if
//          options.directions omitted forward; PARTITA_ERR_NOMEM only if workspace is NULL, or on a
//          device, where copies of arrays take memory; PARTITA_ERR_DEVICE if the device failed, now
//          or earlier, which leaves y undefined.
// Devices: arrays in the memory of the plan's device are used in place; others are copied there and
//          back within the call. The call waits for the thread's default stream and returns when
//          all is done. A workspace is used only if it lies in the device's memory; otherwise the
//          call allocates its own. All of this also holds for gradients, and for taps and bias of
//          filters (but not of cells, which are read on the host). Arrays in host memory are
//          processed in micro-batches: some items, some outputs of long signals, or some of many
//          taps at a time. Two micro-batches are on the device at once, with arrays of some 16 MiB
//          each (more for signals that share much with their neighbours), within half of the
//          workspace limit, but at least one item. Results that are added over micro-batches, and
//          outputs of transforms, may round differently than from arrays in device memory. Pinned
//          memory is copied fastest; other memory goes through pinned buffers of 8 MiB per
//          concurrent call, which the first calls allocate and the plan keeps.
// Threads: a plan and a filter may serve several calls at once, each with its own workspace. The
//          result does not depend on the number of threads.
// Source:  overlap-add and overlap-save after Stockham (1966) and Oppenheim & Schafer,
//          Discrete-Time Signal Processing, 8.7.
PARTITA_API enum partita_status partita_forward(const struct partita_plan *plan,
                                                const struct partita_filter *filter, void *y,
                                                const void *x, void *workspace);

// Computes a bounded problem with taps that are used once: as partita_filter_create and
// partita_forward. An engine that is better off without a filter reads the taps themselves. With
// cpu/blocks or cuda/blocks and a narrow window of lags this saves memory of the size of the taps.
// Shapes:  taps as for partita_filter_create; y and x as for partita_forward.
// Errors:  those of both.
// Memory:  allocates the workspace, and a filter for forward alone if one is needed.
// Threads: any.
PARTITA_API enum partita_status partita_forward_once(const struct partita_plan *plan, void *y,
                                                     const void *x, const void *taps);

// Creates an empty store of measurements: the cost model of this machine, FFTW's wisdom, and
// choices made with PARTITA_MEASURE. Planning with an empty store is planning without one.
// Threads: any.
PARTITA_API enum partita_status partita_wisdom_create(struct partita_wisdom **ret_wisdom);

// Releases a store. NULL is allowed. Threads: any; no plan may still use the store.
PARTITA_API void partita_wisdom_destroy(struct partita_wisdom *wisdom);

// Measures the cost model of this machine (kernels, transforms, memory) and keeps it in the store.
// Time:    under a second, a little more in a build with FFTW's transforms alone.
// Threads: one at a time per store; nothing else heavy should run.
PARTITA_API enum partita_status partita_wisdom_calibrate(struct partita_wisdom *wisdom);

// Reads a file that partita_wisdom_save wrote into the store.
// Errors:  PARTITA_ERR_IO if it cannot be read; PARTITA_ERR_STATE if it is not such a file, is
//          damaged, or belongs to another version or another machine. The store is then unchanged.
// Threads: one at a time per store.
PARTITA_API enum partita_status partita_wisdom_load(struct partita_wisdom *wisdom,
                                                    const char *path);

// Writes the store to a file, through a temporary file and a rename.
// Errors:  PARTITA_ERR_IO.
// Threads: as partita_wisdom_load.
PARTITA_API enum partita_status partita_wisdom_save(const struct partita_wisdom *wisdom,
                                                    const char *path);

#ifdef __cplusplus
}
#endif

#endif
