// SPDX-License-Identifier: MIT
// HOW to compute it: the planner's choice for one problem, made once, immutable, shared by any number of threads.
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
    PARTITA_ESTIMATE = 0, // choose by the host model; milliseconds
    PARTITA_MEASURE,      // time the likely choices on this machine; up to a few seconds. On devices besides the CPU
                          // not yet: as estimate
};

// The ways to run a bounded problem; bits, to be combined. Complex types, f16 and bf16 have forward alone.
enum partita_direction {
    PARTITA_FORWARD = 1,         // partita_forward
    PARTITA_BACKWARD_DATA = 2,   // partita_backward_data, in layer.h
    PARTITA_BACKWARD_WEIGHT = 4, // partita_backward_weight
};

// Threads of the host for streams, in place of the library's own: `run` calls task(context) n times, possibly at once
// on several threads, and returns when all have returned. It is called from process, so it must be as real-time safe as
// the host needs process to be; n is options.threads, at least 1. (The shape of CLAP's thread pool.)
struct partita_executor {
    void (*run)(void *user, void (*task)(void *context), void *context, size_t n); // NULL: none
    void *user;
};

// Sizes of parts that cpu/blocks or cuda/blocks is to cut taps and signal into, in samples of the filter (dilation
// included) and of x, where it is chosen. Parts of one size, half of a size that transforms are good at, work as those
// it would choose itself. Any other two sizes are for operands whose blocks are given: the results of all pairs that
// begin at one output are summed in one transform of at least taps + signal - 1 samples, and what begins at different
// outputs is added in divisions, within which nothing overlaps: taps/signal + 1 of them if signal divides taps, in
// general (taps + signal) over the greatest common divisor. They need a stride of 1. partita_plan_explain prints the
// schedule. On a device sizes that transforms are good at are powers of two from 16 on, and nothing is summed in time.
struct partita_parts {
    size_t taps, signal; // at most 2^40 [0: the engine's choice; both or none]
    bool in_time;        // sum the pairs as they are, without transforms [false]
};

// Wishes. Plain data; zero-initialise it and set what differs. NULL instead of a struct means all defaults.
struct partita_options {
    const char *device;         // "cpu", "cuda" or "cuda:N", see device.h [NULL: "cpu"]
    const char *engine;         // force one engine by name, for example "cpu/overlap-save" [NULL: planner's choice]
    enum partita_effort effort; // [estimate]
    int threads; // of bounded problems [0: all cores], on a device those that copy pageable arrays [0: the calling
                 // one]; of one stream of the CPU, the calling one included [0: it alone]
    struct partita_executor executor; // streams of the CPU: use these threads and start none [none]
    double sample_rate;               // streams: frames a second, for partita_stream_stats [0: calls are not timed]
    size_t workspace_limit;           // bytes that one call in any direction may be asked for [0: no limit]
    unsigned directions; // bounded problems: enum partita_direction, combined; failing one of them is an error [0:
                         // forward, and each gradient that can be had unless there is but one signal of one axis]
    struct partita_parts parts;         // cpu/blocks, cuda/blocks: sizes of parts [its own choice]
    double error_budget;                // largest predicted L2 error of a whole result, relative to it; see layer.h on
                                        // single values [0: any; cpu/winograd 2e-6 in f32]
    struct partita_wisdom *wisdom;      // host model and remembered choices to use, and to extend when measuring [NULL]
    struct partita_log log;             // [silent]
    struct partita_allocator allocator; // [C library]; every object made from the plan uses it too
};

// Decides how to run a problem: asks every engine, keeps the cheapest within the options.
// Ranges:  the structs are copied; strings in them need not outlive the call, wisdom and hooks must outlive the plan.
// Errors:  PARTITA_ERR_ARG if a field is out of range (the log line names it); PARTITA_ERR_UNSUPPORTED if no engine
//          fits the options; PARTITA_ERR_DEVICE if the device is not here (the log line says what is missing);
//          PARTITA_ERR_NOMEM.
// Memory:  the plan holds transform tables; release it after all filters and streams made from it.
// Time:    below 5 ms at PARTITA_ESTIMATE for filters up to 64 k taps; tens of ms in a build with FFTW's transforms
//          alone, which plan themselves. Not real-time safe.
// Threads: any; several plans may be made at once.
PARTITA_API enum partita_status partita_plan_create(const struct partita_problem *problem,
                                                    const struct partita_options *options,
                                                    struct partita_plan **ret_plan);

// Releases a plan. NULL is allowed. Threads: none may still use it.
PARTITA_API void partita_plan_destroy(struct partita_plan *plan);

// Writes what was chosen and why nothing else was: each engine with its predicted time, bytes, error bound, and for
// streams latency; or the reason it does not apply. Of cpu/partitioned also the partitions, what a call costs, and a
// timeline of the calls' work.
// Shapes:  text[size], always terminated when size > 0. Returns the length of the whole text, as snprintf does.
// Threads: any.
PARTITA_API size_t partita_plan_explain(const struct partita_plan *plan, char *text, size_t size);

// Name of the engine that runs forward or streams, for example "cpu/direct"; "" if options.directions left forward out.
// Lives as long as the plan. Threads: any.
PARTITA_API const char *partita_plan_engine(const struct partita_plan *plan);

// Bytes of workspace that partita_forward needs: 0 for streams. Threads: any.
PARTITA_API size_t partita_plan_workspace_size(const struct partita_plan *plan);

// Added delay of a stream in input frames, a multiple of the stride; 0 for bounded problems. Threads: any.
PARTITA_API size_t partita_plan_latency(const struct partita_plan *plan);

// What a stream's calls cost by the plan's model, in seconds on one thread. A call of `frames` runs every piece of work
// that its frames bring due; with cpu/partitioned that is a fixed table, so the worst call is known beforehand.
struct partita_load {
    size_t frames;      // of the call: the problem's block
    double mean, worst; // seconds of such a call
    size_t swap_delay;  // input frames at most from the call after partita_stream_swap until the fade begins
};

// Errors: PARTITA_ERR_ARG for NULL; PARTITA_ERR_STATE for the plan of a bounded problem. Threads: any.
PARTITA_API enum partita_status partita_plan_load(const struct partita_plan *plan, struct partita_load *ret_load);

// Runs a bounded problem.
// Shapes:  x [batch][in_channels][size], y [batch][out_channels][output size], contiguous, of the problem's types.
// Ranges:  x and y aligned to their scalar; they must not overlap. workspace: at least
//          partita_plan_workspace_size bytes, 64-byte aligned; NULL lets the call allocate it.
// Errors:  PARTITA_ERR_ARG for NULL, a misaligned pointer or a filter of another plan; PARTITA_ERR_STATE
//          if the plan is a stream's; PARTITA_ERR_UNSUPPORTED if options.directions left forward out;
//          PARTITA_ERR_NOMEM only where workspace is NULL, or on a device, where copies of arrays take memory.
// Devices: besides, arrays may be in the memory of the plan's device, where they are used as they are; others are
//          copied there and back within the call, which waits for the thread's default stream and returns when all is
//          done. Batches, lines and long taps that are not there go in pieces, the arrays of two of which are on the
//          device at a time: some 16 MiB each (lines that share much with their neighbours more), and within half of
//          the workspace limit, but one item at least. Arrays in pinned memory are copied fastest; others go through
//          8 MiB of it a call at once, which first calls make and the plan keeps. What is summed over pieces, and
//          outputs by transforms, may round differently from either memory. Only a workspace in the device's memory is
//          used, else the call takes its own: PARTITA_ERR_NOMEM. PARTITA_ERR_DEVICE if the device failed, now or
//          earlier; y is undefined then. The same holds for gradients, and for taps and bias of filters (but not of
//          cells, which are read on the host).
// Threads: a plan and a filter may serve several calls at once, each with its own workspace. The result does not
//          depend on the number of threads.
// Source:  overlap-add and overlap-save after Stockham (1966) and Oppenheim & Schafer, Discrete-Time Signal Processing,
//          8.7.
PARTITA_API enum partita_status partita_forward(const struct partita_plan *plan, const struct partita_filter *filter,
                                                void *y, const void *x, void *workspace);

// Runs a bounded problem once: as partita_filter_create and partita_forward, but an engine that does better without a
// filter reads the taps themselves. With cpu/blocks and a narrow window of lags that saves memory as large as the taps.
// Shapes:  taps as for partita_filter_create; y and x as for partita_forward.
// Errors:  those of both.
// Memory:  allocates the workspace, and a filter of forward alone where one is needed.
// Threads: any.
PARTITA_API enum partita_status partita_forward_once(const struct partita_plan *plan, void *y, const void *x,
                                                     const void *taps);

// Makes an empty store of measured facts: the model of this host, FFTW's wisdom, choices made by PARTITA_MEASURE.
// An empty store leaves planning as without one. Threads: any.
PARTITA_API enum partita_status partita_wisdom_create(struct partita_wisdom **ret_wisdom);

// Releases a store. NULL is allowed. Threads: no plan creation may still use it.
PARTITA_API void partita_wisdom_destroy(struct partita_wisdom *wisdom);

// Measures the host model (kernels, transforms, memory) in under a second, a little more in a build with FFTW's
// transforms alone, and keeps it in the store.
// Threads: one at a time per store; nothing else heavy should run.
PARTITA_API enum partita_status partita_wisdom_calibrate(struct partita_wisdom *wisdom);

// Reads a file written by partita_wisdom_save into the store.
// Errors:  PARTITA_ERR_IO if it cannot be read; PARTITA_ERR_STATE if it is not such a file, damaged, of another
//          version or another host. The store is unchanged then.
// Threads: one at a time per store.
PARTITA_API enum partita_status partita_wisdom_load(struct partita_wisdom *wisdom, const char *path);

// Writes the store to a file, through a temporary file and a rename. Errors: PARTITA_ERR_IO. Threads: as load.
PARTITA_API enum partita_status partita_wisdom_save(const struct partita_wisdom *wisdom, const char *path);

#ifdef __cplusplus
}
#endif

#endif
