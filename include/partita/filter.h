// SPDX-License-Identifier: MIT
// Taps prepared for one plan: checked, reversed, transformed. A filter changes only by
// partita_filter_update; any thread may create it, and threads may share it.
#ifndef PARTITA_FILTER_H
#define PARTITA_FILTER_H

#include <partita/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

// Prepares taps for a plan.
// Shapes:  taps [out_channels][in_channels/groups][kernel], contiguous, of the problem's taps type:
//          partita_plan_taps_count samples; copied.
// Ranges:  taps are aligned to their scalar.
// Errors:  PARTITA_ERR_ARG for NULL, misaligned taps, and taps that break problem.separable if the
//          engine relies on it; PARTITA_ERR_NOMEM; PARTITA_ERR_DEVICE; on a device also
//          PARTITA_ERR_UNSUPPORTED, see enum partita_status.
// Devices: taps may be in the device's memory or in host memory.
// Memory:  for each planned direction that reads taps (options.directions): the taps; or one
//          spectrum per path (input channel to output channel) of the transform size that
//          partita_plan_explain prints; or with cpu/winograd 4 to 16 times the taps, with the
//          partitioned engines about twice the taps. The plan must outlive the filter.
// Threads: any; several filters of one plan may be created at once. Not real-time safe.
PARTITA_API enum partita_status partita_filter_create(const struct partita_plan *plan,
                                                      const void *taps,
                                                      struct partita_filter **ret_filter);

// One path of a sparse matrix filter: what input channel `in` contributes to output channel `out`.
// It is the row w[out][in of the group][kernel] of a dense filter that is zero except for
// taps[0 .. length-1] at w[delay .. delay+length-1].
struct partita_path {
    size_t out, in;   // channels, both counted over all groups; they must belong to one group
    size_t delay;     // zeros before the taps
    size_t length;    // taps; delay + length <= the problem's kernel
    const void *taps; // of the problem's taps type, aligned to their scalar; copied
};

// What a filter is made from: dense taps or paths. Plain data; zero-initialise it and set what
// differs.
struct partita_taps {
    // As partita_filter_create takes them. `dense_count` is the number of samples that the caller
    // has there; it must be partita_plan_taps_count.
    const void *dense;
    size_t dense_count;
    // Problems of one axis: paths, no two of which have the same out and in; paths that are not
    // listed are zero. In cpu/partitioned and cuda/partitioned those cost nothing, and paths with
    // equal taps and delay share their spectra.
    const struct partita_path *paths;
    size_t path_count;
    // With paths: a filter of the same plan. The new filter equals it except for these paths, which
    // replace those of `base` (length 0 removes one). Spectra of other paths are not computed
    // again: cpu/partitioned copies them, cuda/partitioned shares them. `base` may be destroyed
    // before the new filter. Only with cpu/partitioned and cuda/partitioned [none].
    const struct partita_filter *base;
    // Bounded real problems: forward adds bias[k] to every output of channel k before the
    // activation. [out_channels] of the problem's type, aligned to it; copied [none].
    const void *bias;
};

// Prepares a filter from dense taps or paths, and a bias.
// Errors:  PARTITA_ERR_ARG for NULL, neither or both of dense taps and paths, a wrong count, a path
//          out of range or given twice, misaligned taps or bias, paths for a problem of several
//          axes, or a base of another plan; PARTITA_ERR_UNSUPPORTED for a bias if the problem is a
//          stream or complex, and for a base with other engines; PARTITA_ERR_NOMEM. The plan's log
//          says which.
// Memory, Threads: as partita_filter_create.
PARTITA_API enum partita_status
partita_filter_create_from_sized(const struct partita_plan *plan, const struct partita_taps *taps,
                                 size_t taps_bytes, struct partita_filter **ret_filter);
static inline enum partita_status partita_filter_create_from(const struct partita_plan *plan,
                                                             const struct partita_taps *taps,
                                                             struct partita_filter **ret_filter)
{
    return partita_filter_create_from_sized(plan, taps, sizeof *taps, ret_filter);
}

// Packs other taps, and another bias, into the memory of a filter of a bounded problem, for all
// directions that it serves: for training, where taps change at every step. Results are then, bit
// for bit, those of a new filter with the same taps and bias.
// Shapes:  taps as partita_filter_create takes them, also if the filter was made from paths; bias
//          [out_channels] of the problem's type, or NULL: the filter keeps the bias that it has.
// Errors:  PARTITA_ERR_ARG for a filter or taps that are NULL, a misaligned pointer, a workspace
//          that overlaps taps or bias, call.taps and call.saved; PARTITA_ERR_STATE for a filter of
//          streams or banks, which may be playing (partita_stream_swap replaces it by another), and
//          for a bias if the filter was created without one; PARTITA_ERR_UNSUPPORTED for call.queue
//          on the CPU. These leave the filter as it was, others leave it with undefined taps until
//          it is updated again: PARTITA_ERR_ARG for taps that break problem.separable if the engine
//          relies on it, PARTITA_ERR_NOMEM, PARTITA_ERR_DEVICE, and any status for work that CUDA
//          refuses.
// Memory:  call.workspace holds the larger of partita_plan_workspace for PARTITA_FORWARD and for
//          PARTITA_BACKWARD_DATA. With it the call allocates nothing on the CPU, nor on a device if
//          taps and workspace are in the device's memory. NULL: the call allocates what it needs to
//          transform taps, and releases it.
// Devices: taps and bias may be in the device's memory or in host memory; the call copies them
//          there, allocating memory for taps that are not in the device's memory already, and
//          returns when the filter is complete. With call.queue taps, bias, and the workspace if
//          the engine needs one, are in the device's memory. Then the call queues the packing, and
//          allocates and waits for nothing, so that the queue may be captured into a graph after
//          partita_plan_prepare (before it: PARTITA_ERR_STATE). Calls that are queued there later
//          use the new taps; arrays must last until the work is done. PARTITA_ERR_UNSUPPORTED with
//          call.queue if the engine relies on problem.separable, since it factors taps on the host.
// Threads: any, but no other call may use the filter meanwhile; on other queues than call.queue no
//          work that uses it may be under way. Other filters of the plan are not affected. Not
//          real-time safe.
PARTITA_API enum partita_status partita_filter_update_sized(struct partita_filter *filter,
                                                            const void *taps, const void *bias,
                                                            const struct partita_call *call,
                                                            size_t call_bytes);
static inline enum partita_status partita_filter_update(struct partita_filter *filter,
                                                        const void *taps, const void *bias,
                                                        const struct partita_call *call)
{
    return partita_filter_update_sized(filter, taps, bias, call, sizeof *call);
}

// Releases a filter. NULL is allowed. Threads: any; no stream or call may still use the filter (of
// banks: see partita_bank_destroy).
PARTITA_API void partita_filter_destroy(struct partita_filter *filter);

#ifdef __cplusplus
}
#endif

#endif
