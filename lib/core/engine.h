// SPDX-License-Identifier: MIT
// The interface of an engine: one algorithm on one device. The planner knows engines only through
// this table; plan.h has the structs that engines fill, stream/stream.h has the struct of a stream.
// In the tables only a function whose comment mentions NULL may be NULL.
#ifndef PARTITA_ENGINE_H
#define PARTITA_ENGINE_H

#include <partita/partita.h>
#include <stdatomic.h>

#include "base/log.h"
#include "cost_model.h"
#include "problem.h"

struct arena;
struct device;
struct frames;
struct partita_bank;
struct step;

enum {
    DECISION_BYTES = 192, // of an estimate, for the engine's own decision
    ANY_VARIANT = -1,     // of a request: the engine chooses
};

// An engine's decision for a problem, and its cost.
struct estimate {
    bool applicable;
    char reason[96];       // why not, when it is not
    int variant;           // index into the engine's variants; 0: it has none; ANY_VARIANT: all
    char summary[24];      // the decision in words, for explain; may be empty
    size_t transform;      // FFT size, or edge of a tile in the transformed domain; 0: none
    size_t hop;            // input frames of a block; for direct, outputs of a tile
    size_t latency;        // input frames added; streams
    double seconds;        // on one thread: whole bounded problem, or one input frame of a stream
    double flops;          // likewise
    double filter_seconds; // bounded problems: preparing a filter, except the part in `seconds`
    size_t shared, worker; // bytes of workspace of the plan's direction: shared, and per thread
    size_t bytes;          // held while running: filter, and stream or the workspace of one thread
    double error;          // predicted relative L2 error
    bool from_taps;        // taps that are used once are fastest without a filter
    size_t spread;         // bounded problems: a sample that is not finite reaches at least this
                           // many outputs in a row, some of which do not depend on it; 0: only
                           // those that do
    bool peaks;            // runs tell the largest magnitude that they read: operands.peak
    size_t reach;          // positions beyond the results that depend on a sample that its rounding
                           // errors reach; 0: as many as the transform has samples; SIZE_MAX: tiles
                           // anywhere, also of other items of the batch
    size_t pair_row;       // filters of bf16 are packed from pairs of the taps in every two rows of
                           // this length; 0: from taps in f32
    bool resamples;        // problem.up: a run or step writes the outputs, not those of branches
    // The engine's own decision, from which plan_create builds exactly the estimated plan.
    _Alignas(16) unsigned char decision[DECISION_BYTES];
};

// Whether an engine may use one of its modes (bench/base/modes.h).
#ifndef MODE_IS_ON
#define MODE_IS_ON(name) true
#endif

// Says why an estimate is not applicable.
#define estimate_refuse(estimate, ...)                                                             \
    text_print((estimate)->reason, sizeof(estimate)->reason, __VA_ARGS__)

// The planner's request to an engine. Thread count is omitted on purpose: results must not depend
// on it.
struct request {
    const struct shape *shape;
    enum partita_direction direction; // PARTITA_FORWARD for streams
    const struct cost_model *model;
    const struct device *device;
    size_t transform;       // only this FFT size; 0: the engine chooses
    int variant;            // only this variant, or ANY_VARIANT
    size_t workspace_limit; // maximum bytes of one call on one thread; SIZE_MAX: no limit
    size_t call_limit;      // part of the workspace for an engine that resamples by itself
    struct partita_parts parts;
    double error_budget;  // maximum predicted error; 0: only the engine's own limit
    size_t error_reach;   // of the options; see request_max_transform
    unsigned filter_uses; // of the options
    size_t saved_limit;   // forward: the estimate is of a training step that shares transforms, of
                          // which it saves this many bytes at most; 0: of a call
    // Reuse the variant and transform of this estimate so that its filters fit; NULL: free choice.
    const struct estimate *compatible_with;
};

static inline size_t estimate_reach(const struct estimate *estimate)
{
    return estimate->reach ? estimate->reach : estimate->transform;
}

// The longest transform whose rounding errors stay within the reach that the options allow.
static inline size_t request_max_transform(const struct request *request)
{
    return request->error_reach ? request->error_reach - 1 : SIZE_MAX;
}

// A range of memory.
struct region {
    void *data;
    size_t bytes;
};

// The memory of a filter: `packed` bytes of filter->state, and of scratch memory while taps are
// packed by all of the plan's threads. Of less they use fewer threads.
struct filter_bytes {
    size_t packed, scratch;
};

// Transforms that the calls of a training step keep. A run reads a slot that is ready, else writes.
enum { SAVED_X, SAVED_GY, SAVED_SLOTS };
struct saved_slot {
    void *data; // in the device's memory
    bool ready;
    const void *array; // whose transforms they are
    unsigned calls;    // bits of enum partita_direction: that have used them
    uint64_t peak;     // operands.peak of the array; UINT64_MAX: not known
};

// The arrays of one call of a bounded problem. The plan says which direction.
struct operands {
    void *to; // y, gx or gw
    const void
        *from[2];   // x or gy; of PARTITA_BACKWARD_WEIGHT x and gy; with `from_taps` x and taps
    bool from_taps; // forward with taps of a single use instead of a filter
    void *queue; // device: of the caller's, with all arrays and the workspace in its memory; work
                 // is only queued there. NULL: the call returns when the work is done
    // Bytes of `to`, to whose values device->run adds the results; 0: they replace these. Engines
    // write results to another array then.
    size_t accumulate;
    // With estimate.peaks: raised to the bits of the largest magnitude that the run reads of
    // from[0] (peak_fn); NULL: not wanted.
    _Atomic uint64_t *peak;
    struct saved_slot *saved[SAVED_SLOTS]; // of x and of gy; NULL: none
};

// Raises operands.peak to the bits of a magnitude; any thread.
static inline void operands_raise_peak(_Atomic uint64_t *peak, uint64_t to)
{
    uint64_t before = atomic_load_explicit(peak, memory_order_relaxed);
    while (to > before && !atomic_compare_exchange_weak_explicit(
                              peak, &before, to, memory_order_relaxed, memory_order_relaxed)) {
    }
}

// Filters, which PARTITA_BACKWARD_WEIGHT has none of.
struct filter_ops {
    // Their memory, and packing taps in the caller's layout into it, again and again, whatever it
    // held before. The scratch memory is at least as large as `bytes` says or as the plan's
    // workspace. On a device taps are in its memory, aligned, and packing is queued; on the CPU the
    // status is PARTITA_OK. NULL: only streams have filters, which `create` makes.
    struct filter_bytes (*bytes)(const struct partita_plan *plan);
    enum partita_status (*pack)(struct partita_filter *filter, const void *taps,
                                const struct region *scratch);
    bool on_host; // device: packing waits and takes memory of the host; not on a queue
    // Makes filter->state from taps in the caller's layout. On failure the caller calls `destroy`.
    // NULL: the caller reserves filter->state and calls `pack`.
    enum partita_status (*create)(struct partita_filter *filter, const void *taps);
    // The same from paths, which are added to those of `base` or replace them; `base` may be NULL.
    // NULL: the caller converts the paths to dense taps first.
    enum partita_status (*create_paths)(struct partita_filter *filter,
                                        const struct partita_path *paths, size_t n_paths,
                                        const struct partita_filter *base);
    // Stores the bias with the taps; NULL: the caller keeps a copy in filter->bias.
    enum partita_status (*bias)(struct partita_filter *filter, const void *bias);
    void (*destroy)(struct partita_filter *filter); // NULL: filter->state is one arena
};

// Bounded problems, any direction, bias (filter->bias) and activation (shape.relu) included.
struct bounded_ops {
    // Arrays are in the memory of the engine's device; device->run also accepts arrays in host
    // memory. `filter` is NULL for PARTITA_BACKWARD_WEIGHT and with operands->from_taps. The
    // workspace is plan_workspace bytes, 64-byte aligned; a device replaces one that is NULL or not
    // in its memory by one of its own. On the CPU the status is PARTITA_OK. NULL: only streams.
    enum partita_status (*run)(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace);
    // The bytes of a saved slot: of x, or of gy for a plan of backward data. A plan like `gradient`
    // on the tiles of forward, which plan_destroy releases: with plan->shares backward data reads
    // filters of forward; else it is of backward weight and has no x but the saved one.
    size_t (*cached_bytes)(const struct partita_plan *plan);
    enum partita_status (*cached_plan)(const struct partita_plan *plan,
                                       const struct partita_plan *gradient,
                                       struct partita_plan *ret_plan);
};

// Streams.
struct stream_ops {
    // Lays out stream->state in zeroed memory of the arena and returns it; NULL while the arena
    // only counts. NULL: only bounded problems.
    void *(*layout)(const struct partita_stream *stream, struct arena *arena);
    // Starts the parts of a stream that are not in its state, and ends them, also if starting has
    // failed. The streams of a bank need neither. NULL: there are none.
    enum partita_status (*open)(struct partita_stream *stream);
    void (*close)(struct partita_stream *stream);
    // Takes one or more frames, as the engine chooses, and writes the outputs that become due;
    // stream.c repeats it and keeps position and phase. Reads all its inputs before it writes. If a
    // device fails, it sets stream->status, takes nothing and is not called again.
    struct step (*step)(struct partita_stream *stream, const struct frames *frames);
    // Queues the work on all frames->rest frames, of arrays in the memory of the engine's device.
    // Frames after the first n are beyond the last whole block: their outputs are zeros. A call of
    // 0 frames takes a filter. NULL: no queues. Otherwise steps and queued calls take filters from
    // stream->swap_queue, and the device settles swaps: swap_begin and swap_end are NULL.
    enum partita_status (*queue)(struct partita_stream *stream, const struct frames *frames,
                                 void *queue);
    void (*reset)(struct partita_stream *stream); // NULL: the caller zeroes the region
    // Fetches the next reads of a stream's step into the caches. Called 3, 2 and 1 streams
    // ahead: each call may read data that the one before has fetched. NULL: nothing.
    void (*prefetch)(const struct partita_stream *stream, int ahead);
    // The region of all that future outputs depend on, without pointers. If it is not in one place,
    // its data is NULL; copies are to and from host memory, and a failure sets stream->status.
    struct region (*region)(struct partita_stream *stream);
    void (*copy_out)(struct partita_stream *stream, void *to); // NULL: it is in one place
    void (*copy_in)(struct partita_stream *stream, const void *from);
    // Called before and after the region is copied or replaced. NULL: nothing.
    void (*pause)(struct partita_stream *stream);
    void (*resume)(struct partita_stream *stream);
    // The regions of plans with equal keys have the same meaning; NULL: the key is 0.
    uint64_t (*region_key)(const struct partita_plan *plan);
    // swap_begin returns the number of frames after which both filters have outputs: then the step
    // fades (swap_fade) in state SWAP_FADING. When stream->filter is the new filter, swap_end
    // returns for how many frames the old one is in use. NULL: no swaps, or those of `queue`.
    size_t (*swap_begin)(struct partita_stream *stream);
    size_t (*swap_end)(struct partita_stream *stream);
    void (*plan_load)(const struct partita_plan *plan, struct partita_load *ret);
};

// Banks whose slots are computed together (stream/bank.h). NULL: a bank has a stream for each slot.
struct bank_ops {
    // Makes bank->state, the slots' arrays, which are zeros, and their queues of swaps.
    enum partita_status (*open)(struct partita_bank *bank);
    void (*close)(struct partita_bank *bank); // releases them, also half-made ones
    // Prepares a free slot for another input, in the thread that opens.
    enum partita_status (*open_slot)(struct partita_bank *bank, size_t slot);
    // Filters a block of the first n_open slots that bank->open lists; the outputs of the n_closing
    // that follow become zeros. A failure sets bank->status, and from then on it writes zeros.
    void (*process)(struct partita_bank *bank, uint64_t call, size_t n_open, size_t n_closing);
};

// Lays out a state in an arena. It is called twice, first without memory, and then returns the
// state.
typedef void *build_fn(const struct partita_plan *plan, const struct request *request,
                       struct arena *arena);

struct engine {
    const char *name;            // "cpu/overlap-save"
    const char *const *variants; // names after the colon, NULL-terminated; NULL: only one
    unsigned directions;         // bits of enum partita_direction that bounded.run computes
    int max_rank;                // maximum number of axes; 0: one
    bool half;                   // serves f16 and bf16; an engine of the CPU has taps of f32
    bool real;                   // complex types are not served
    bool channels_last;          // x and y may be [batch][position][channel]
    bool layers;                 // for many channels: of forward on a lone signal with adjacent
                                 // outputs and taps it is asked only if the options name it
    // Fills *ret: the cheapest decision, or applicable = false and a reason. Allocates nothing.
    void (*estimate)(const struct request *request, struct estimate *ret);
    // The parts of plan_create_state, for plan->choice, which is the estimate of the same request:
    // plan->state has `state_bytes` of zeros or is the arena that `build` lays out. plan_create
    // completes it; plan_destroy releases the objects to which it refers, also if it is half-made.
    // NULL: there is nothing to do.
    size_t state_bytes;
    build_fn *build;
    enum partita_status (*plan_create)(struct partita_plan *plan, const struct request *request);
    void (*plan_destroy)(struct partita_plan *plan);
    void (*explain)(const struct partita_plan *plan, struct text *text); // details; NULL: none
    struct filter_ops filter;
    struct bounded_ops bounded;
    struct stream_ops stream;
    struct bank_ops bank;
};

static inline bool engine_swaps(const struct engine *engine)
{
    return engine->stream.swap_begin || engine->stream.queue;
}

#endif
