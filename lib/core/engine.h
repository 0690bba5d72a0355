// SPDX-License-Identifier: MIT
// The interface of an engine: one algorithm on one device. The planner knows engines through this
// table alone; plan.h has the structs that engines fill, stream/stream.h that of a stream.
#ifndef PARTITA_ENGINE_H
#define PARTITA_ENGINE_H

#include <partita/partita.h>

#include "base/log.h"
#include "cost_model.h"
#include "problem.h"

struct device;
struct frames;
struct step;

enum {
    DECISION_BYTES = 192, // of an estimate, for the engine's own decision
    ANY_VARIANT = -1,     // of a request: the engine chooses
};

// What an engine would do and what it would cost.
struct estimate {
    bool applicable;
    char reason[96];       // why not, when it is not
    int variant;           // index into the engine's variants; 0 without, ANY_VARIANT: all alike
    char summary[24];      // the decision in words, for explain; may be empty
    size_t transform;      // FFT size, or edge of a tile in the transformed domain; 0 without
    size_t hop;            // input frames of a block; for direct, outputs of a tile
    size_t latency;        // input frames added; streams
    double seconds;        // on one thread: whole bounded problem, or one input frame of a stream
    double flops;          // likewise
    size_t shared, worker; // bytes of workspace of the plan's direction: once, and for each thread
    size_t bytes;          // held while running: filter, and stream or the workspace of one thread
    double error;          // predicted relative L2 error
    bool from_taps;        // a single use of the taps is fastest without a filter
    // The engine's own decision, from which plan_create builds what was priced.
    _Alignas(16) unsigned char decision[DECISION_BYTES];
};

// What the planner asks an engine. Thread count is omitted on purpose: results must not depend on
// it.
struct request {
    const struct shape *shape;
    enum partita_direction direction; // PARTITA_FORWARD for streams
    const struct cost_model *model;
    const struct device *device; // NULL: the CPU
    size_t transform;            // this FFT size and no other; 0: the engine chooses
    int variant;                 // this variant and no other, or ANY_VARIANT
    size_t workspace_limit;      // bytes of one call on one thread; SIZE_MAX: no limit
    struct partita_parts parts;
    double error_budget; // largest predicted error; 0: no limit but the engine's own
    // Reuse the variant and transform of this estimate so that its filters fit; NULL: free choice.
    const struct estimate *compatible_with;
};

// A piece of memory.
struct region {
    void *data;
    size_t bytes;
};

// The arrays of one call of a bounded problem. The plan says which direction.
struct operands {
    void *to; // y, gx or gw
    const void
        *from[2];   // x or gy; of PARTITA_BACKWARD_WEIGHT x and gy; with `from_taps` x and taps
    bool from_taps; // forward with taps of a single use instead of a filter
    bool queued; // device: all arrays are in its memory, and the caller waits for the queued work
    // Transforms of x that forward writes and backward weight reads in place of x; NULL: none.
    void *cached_spectra;
};

struct engine {
    const char *name;            // "cpu/overlap-save"
    const char *const *variants; // names after the colon, NULL-terminated; NULL: only one
    unsigned directions;         // bits of enum partita_direction that `run` computes
    int max_rank;                // axes it can work along; 0: one
    bool half;                   // reads and stores samples in two bytes, forward
    // Fills *ret with the cheapest decision, or applicable = false with a reason. Allocates
    // nothing.
    void (*estimate)(const struct request *request, struct estimate *ret);
    // Builds plan->state for plan->choice, which estimate made of the same request. The planner
    // calls plan_destroy on failure too.
    enum partita_status (*plan_create)(struct partita_plan *plan, const struct request *request);
    void (*plan_destroy)(struct partita_plan *plan); // NULL: plan->state is one arena
    void (*plan_load)(const struct partita_plan *plan, struct partita_load *ret); // streams
    void (*plan_explain)(const struct partita_plan *plan, struct text *text); // details; NULL: none

    // Makes filter->state from taps in the caller's layout, for the direction of filter->plan. On
    // failure the caller calls filter_destroy. Not called for PARTITA_BACKWARD_WEIGHT.
    enum partita_status (*filter_create)(struct partita_filter *filter, const void *taps);
    // The same from paths, added to those of `base`, if there is one. NULL: the caller makes dense
    // taps of the paths first.
    enum partita_status (*filter_create_paths)(struct partita_filter *filter,
                                               const struct partita_cell *paths, size_t n_paths,
                                               const struct partita_filter *base);
    // Stores the bias with the taps; NULL: the caller keeps a copy in filter->bias.
    enum partita_status (*filter_bias)(struct partita_filter *filter, const void *bias);
    // The taps in the caller's layout in device memory, if the filter is nothing else; else NULL.
    // NULL: never.
    const void *(*filter_taps)(const struct partita_filter *filter);
    void (*filter_destroy)(struct partita_filter *filter); // NULL: filter->state is one arena

    // Bounded problems, any direction, bias (filter->bias) and activation (shape.relu) included.
    // Arrays are in the device's memory; a device takes the host's as well. `filter` is NULL for
    // PARTITA_BACKWARD_WEIGHT and with operands->from_taps. The workspace is plan_workspace bytes,
    // 64-byte aligned; a device replaces one that is NULL or not in its memory by one of its own.
    // On the CPU the status is PARTITA_OK.
    enum partita_status (*run)(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace);
    // Cached spectra, of engines that have them: their bytes for one call of forward, and a plan of
    // backward weight like `weight` that takes them, which plan_destroy releases.
    size_t (*cached_spectra_bytes)(const struct partita_plan *plan);
    enum partita_status (*cached_spectra_plan)(const struct partita_plan *plan,
                                               const struct partita_plan *weight,
                                               struct partita_plan *ret_plan);

    // Streams. The state is one arena, released by the caller. A step takes as many of the frames
    // as it likes, at least one, and writes the outputs that fall due meanwhile; stream.c repeats
    // it and keeps position and phase. All inputs of a step are read before its first output is
    // written. Where a device fails, a step sets stream->status and takes nothing; from then on it
    // is not called again.
    enum partita_status (*stream_open)(struct partita_stream *stream);
    struct step (*stream_step)(struct partita_stream *stream, const struct frames *frames);
    void (*stream_reset)(struct partita_stream *stream);
    void (*stream_close)(struct partita_stream *stream); // before the state is released; NULL: none
    // All that future outputs depend on, without pointers: what saving copies. stream_pause and
    // stream_resume, if any, are called before it is copied or replaced, and after.
    struct region (*stream_region)(struct partita_stream *stream);
    // Plans with equal keys have regions of equal meaning; NULL: 0.
    uint64_t (*region_key)(const struct partita_plan *plan);
    void (*stream_pause)(struct partita_stream *stream);
    void (*stream_resume)(struct partita_stream *stream);
    // A swap: swap_begin returns after how many frames the outputs of both filters are available;
    // the step then fades (swap_fade) while the swap's state says so; when stream->filter is the
    // new one, swap_end returns for how many frames the old one is still in use. NULL: no swaps.
    size_t (*swap_begin)(struct partita_stream *stream);
    size_t (*swap_end)(struct partita_stream *stream);
};

#endif
