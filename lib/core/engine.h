// SPDX-License-Identifier: MIT
// The only internal interface that algorithms see: an engine is one algorithm on one device; a plan
// is an engine's choice of everything for one shape. The planner knows engines through this table
// alone.
#ifndef PARTITA_ENGINE_H
#define PARTITA_ENGINE_H

#include <partita/partita.h>

#include "base/log.h"
#include "base/mem.h"
#include "cost_model.h"
#include "device.h"
#include "kernels/kernels.h"
#include "problem.h"
#include "stream/stats.h"
#include "stream/swap_queue.h"

// What an engine would do and what it would cost.
struct estimate {
    bool applicable;
    char reason[96];       // why not, when it is not
    size_t transform;      // FFT size, or edge of a tile in the transformed domain; 0 without
    int variant;           // which of its ways the engine would take; its own numbers
    char way[24];          // the same in words, for explain; may be empty
    size_t hop;            // input frames of a block; for direct, outputs of a tile
    size_t latency;        // input frames added; streams
    double seconds;        // on one thread: whole bounded problem, or one input frame of a stream
    double flops;          // likewise
    size_t shared, worker; // bytes of workspace of the plan's direction: once, and for each thread
    size_t bytes;   // filter, and stream or the workspace of one thread: what running it holds
    double error;   // predicted relative L2 error
    bool from_taps; // a single use of the taps is done best by forward_taps
};

// What the planner asks an engine. The number of threads is none of it: results must not depend on
// it.
struct request {
    const struct shape *shape;
    enum partita_direction direction; // which way to run it; PARTITA_FORWARD for streams
    const struct cost_model *model;
    const struct device *device; // NULL: the CPU
    size_t transform;            // this FFT size and no other; 0: the engine chooses
    size_t workspace_limit;      // bytes of one call on one thread; SIZE_MAX: no limit
    struct partita_parts parts;
    double error_budget; // largest predicted error; 0: no limit but what the engine itself thinks
                         // right
    const struct estimate
        *like; // a choice for more of the same, whose filters shall serve; NULL: there is none
};

// Frames of one process call that are still to be done.
struct frames {
    void *const *y;
    size_t y_stride, y_first; // in samples; frame
    const void *const *x;     // NULL: silence
    size_t x_stride, x_first;
    size_t n;    // input frames from x_first on
    size_t rest; // input frames of the call from x_first on: a step may read as many, but not take
                 // more than n
};

static inline char *frames_y(const struct frames *frames, size_t channel, size_t i, size_t bytes)
{
    return (char *)frames->y[channel] + (frames->y_first + i) * frames->y_stride * bytes;
}

static inline const char *frames_x(const struct frames *frames, size_t channel, size_t i,
                                   size_t bytes)
{
    return (const char *)frames->x[channel] + (frames->x_first + i) * frames->x_stride * bytes;
}

// What one step of an engine did with them.
struct step {
    size_t in, out; // input frames taken, output frames written
};

// A piece of memory.
struct region {
    void *data;
    size_t bytes;
};

// The arrays of one call: what is computed, and from what.
struct operands {
    void *to; // y, gx or gw
    const void *
        from[2]; // x or gy; of PARTITA_BACKWARD_WEIGHT x and gy; of a single use of taps x and taps
    bool queued; // of a device's: all of them are there, and the caller waits for what the call
                 // queues
};

struct engine {
    const char *name; // "cpu/overlap-save"
    int max_rank;     // axes it can work along; 0: one
    bool half;        // reads and stores samples in two bytes, forward
    // Fills *ret with the cheapest way this engine knows, or applicable = false with a reason.
    // Allocates nothing.
    void (*estimate)(const struct request *request, struct estimate *ret);
    // Builds plan->state for plan->choice, which estimate made of the same request. The planner
    // calls plan_destroy on failure too.
    enum partita_status (*plan_create)(struct partita_plan *plan, const struct request *request);
    void (*plan_destroy)(struct partita_plan *plan);
    void (*plan_load)(const struct partita_plan *plan, struct partita_load *ret); // streams
    void (*plan_explain)(const struct partita_plan *plan, struct text *text); // details; NULL: none
    // Makes filter->state from taps in the caller's layout, for the direction of filter->plan. On
    // failure the caller calls filter_destroy. Not called for PARTITA_BACKWARD_WEIGHT.
    enum partita_status (*filter_create)(struct partita_filter *filter, const void *taps);
    // The same from cells, added to those that `base` has besides, if there is one. NULL: cells are
    // spread out first.
    enum partita_status (*filter_create_cells)(struct partita_filter *filter,
                                               const struct partita_cell *cells, size_t n_cells,
                                               const struct partita_filter *base);
    // The bias goes with the taps; NULL: the caller keeps a copy in filter->bias.
    enum partita_status (*filter_bias)(struct partita_filter *filter, const void *bias);
    // The taps as the caller had them, in the device's memory, where the filter is nothing else;
    // else NULL. NULL: never.
    const void *(*filter_taps)(const struct partita_filter *filter);
    void (*filter_destroy)(struct partita_filter *filter); // NULL: filter->state is one arena
    // Streams. The state is one arena, released by the caller. A step takes as many of the frames
    // as it likes, at least one, and writes the outputs that fall due meanwhile; stream.c repeats
    // it and keeps position and phase. All inputs of a step are read before its first output is
    // written. Where a device fails, a step sets stream->status and takes nothing; from then on it
    // is not called again.
    enum partita_status (*stream_open)(struct partita_stream *stream);
    struct step (*stream_step)(struct partita_stream *stream, const struct frames *frames);
    void (*stream_reset)(struct partita_stream *stream);
    void (*stream_close)(
        struct partita_stream *stream); // before the state is released; NULL: nothing to do
    // All that future outputs depend on, without pointers: what saving copies. Where there are
    // stream_pause and stream_resume, they are called before it is copied or replaced, and after.
    struct region (*stream_region)(struct partita_stream *stream);
    uint64_t (*region_key)(
        const struct partita_plan *plan); // equal keys, equal meaning of regions; NULL: 0
    void (*stream_pause)(struct partita_stream *stream);
    void (*stream_resume)(struct partita_stream *stream);
    // A swap goes by: swap_begin says after how many frames both filters' outputs are at hand; the
    // step then fades (stream_blend) while swap.state says so; when stream->filter has become the
    // new one, swap_end says for how many frames the old one is still in use. NULL: cannot swap.
    size_t (*swap_begin)(struct partita_stream *stream);
    size_t (*swap_end)(struct partita_stream *stream);
    // Bounded problems. workspace is as the choice says, aligned. A direction without a function is
    // not asked for in estimate. Bias (filter->bias) and activation (shape.relu) are applied to y
    // afterwards unless finishes says that forward does so itself.
    void (*forward)(const struct partita_plan *plan, const struct partita_filter *filter, void *y,
                    const void *x, void *workspace);
    // The same for one call, with the taps as the caller has them; where the choice says from_taps.
    void (*forward_taps)(const struct partita_plan *plan, const void *taps, void *y, const void *x,
                         void *workspace);
    bool (*finishes)(const struct partita_plan *plan); // NULL: never
    void (*backward_data)(const struct partita_plan *plan, const struct partita_filter *filter,
                          void *gx, const void *gy, void *workspace);
    void (*backward_weight)(const struct partita_plan *plan, void *gw, const void *x,
                            const void *gy, void *workspace);
    // Saved transforms, of engines that can: bytes of those of x that a call of forward makes; a
    // plan of backward weight like `weight` that takes them, in *ret_plan, which plan_destroy
    // releases. Then forward that leaves them in `saved`, and backward weight from there.
    size_t (*saved_bytes)(const struct partita_plan *plan);
    enum partita_status (*saved_plan)(const struct partita_plan *plan,
                                      const struct partita_plan *weight,
                                      struct partita_plan *ret_plan);
    void (*forward_saving)(const struct partita_plan *plan, const struct partita_filter *filter,
                           void *saved, void *y, const void *x, void *workspace);
    void (*backward_weight_saved)(const struct partita_plan *plan, void *gw, const void *saved,
                                  const void *gy, void *workspace);
    // Engines of devices: any direction of a bounded problem, bias and activation included, in
    // place of the functions above. Arrays are in the device's memory or the host's. filter is NULL
    // for PARTITA_BACKWARD_WEIGHT, and for forward from taps, where the choice says from_taps; a
    // workspace that is NULL or not in the device's memory is replaced by one of the call's own.
    enum partita_status (*run)(const struct partita_plan *plan, const struct partita_filter *filter,
                               const struct operands *operands, void *workspace);
    // Saved transforms there, with saved_bytes and saved_plan: memory of the device for them, then
    // `run` of forward that leaves them in it, or of a plan of saved_plan's from there, which does
    // not read x.
    enum partita_status (*saved_create)(const struct partita_plan *plan, void **ret_saved);
    void (*saved_destroy)(const struct partita_plan *plan, void *saved);
    enum partita_status (*run_saved)(const struct partita_plan *plan,
                                     const struct partita_filter *filter, void *saved,
                                     const struct operands *operands, void *workspace);
};

// A plan runs one direction; that of the caller, which is forward's, holds the plans of the other
// two.
struct partita_plan {
    const struct engine *engine;         // NULL: forward was not asked for
    const struct engine *const *engines; // those of the device
    struct device *device;               // NULL: the CPU; the plan of the caller owns it
    struct partita_plan
        *piece; // of a device: for a piece of the host's arrays at a time; NULL: never cut
    enum partita_direction direction;
    struct partita_plan *backward_data, *backward_weight; // NULL: not planned
    const struct kernels *kernels;
    struct shape shape;
    struct estimate choice;
    enum cpu_isa level;
    int threads; // of bounded problems: what was asked for, or as many as the workspace limit
                 // allows
    int stream_threads;               // of each stream, the calling one included
    struct partita_executor executor; // of streams, if it has a function
    double sample_rate;               // of streams; 0: calls are not timed
    bool measure;                     // let transforms be timed while planning
    bool remembered;                  // the choice was measured, now or earlier
    bool engine_asked, parts_asked;   // the options named the engine; and the sizes of its parts
    struct partita_allocator allocator;
    struct partita_log log;
    struct estimate *considered; // one per engine of the device, for explain
    void *state;                 // the engine's
};

// Conversions between samples stored in two bytes, where shape.half says so, and f32.
static inline enum half shape_half(const struct shape *shape)
{
    return shape->signal == PARTITA_F16 ? HALF_F16 : HALF_BF16;
}

static inline convert_fn *plan_widen(const struct partita_plan *plan)
{
    return plan->kernels->widen[shape_half(&plan->shape)];
}

static inline convert_fn *plan_narrow(const struct partita_plan *plan)
{
    return plan->kernels->narrow[shape_half(&plan->shape)];
}

// Seconds of moving a bounded signal and its result through memory, where they do not fit into the
// cache.
static inline double memory_seconds(const struct cost_model *model, const struct shape *shape)
{
    const size_t scalars =
        shape->batch *
        (shape->in_channels * shape_inputs(shape) + shape->out_channels * shape_outputs(shape)) *
        (shape->complex_signal ? 2 : 1);
    return scalars * shape->scalar_bytes <= model->cache_bytes
               ? 0
               : (double)scalars / 2 * model->costs[shape->f64].copy_far;
}

// A lone signal is convolved once: then memory that is new costs what clearing and fetching it
// takes.
static inline double fresh_seconds(const struct cost_model *model, const struct shape *shape,
                                   size_t bytes)
{
    if (!shape_lone(shape) || bytes <= model->cache_bytes) return 0;
    return (double)bytes / (double)shape->scalar_bytes * model->costs[shape->f64].copy_far;
}

static inline size_t plan_workspace(const struct partita_plan *plan)
{
    return size_add(plan->choice.shared, size_mul((size_t)plan->threads, plan->choice.worker));
}

struct partita_filter {
    const struct partita_plan *plan;
    void *state;                          // one arena
    void *bias;                           // [out_channels] reals; NULL: none
    struct partita_filter *backward_data; // of the plan's backward_data
};

struct partita_saved {
    const struct partita_plan *plan;
    struct partita_plan weight; // backward weight, by the tiles of forward
    void *data;
    bool filled; // by a forward
};

// How far a swap has come. Each state but SWAP_NONE ends after `left` more frames.
enum swap_state {
    SWAP_NONE,
    SWAP_WAITING,  // until the incoming filter's outputs are complete
    SWAP_FADING,   // from the stream's filter to the incoming one
    SWAP_SETTLING, // the incoming filter is the stream's; until nothing refers to the old one
};

struct swap {
    enum swap_state state;
    size_t left, fade;
    const struct partita_filter *incoming; // while waiting and fading
};

struct partita_stream {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    size_t phase; // input frames taken so far, modulo the stride
    struct swap swap;
    struct swap_queue swap_queue; // filters handed over, from another thread
    struct stats stats;
    atomic_int status; // enum partita_status; a failed device's, set by a step that did nothing
    void *state;       // one arena
};

// Fades y[n] into y_new[n] for outputs that belong to frames first, first + stride, ... of the
// current step.
static inline void stream_blend(const struct partita_stream *stream, void *y, const void *y_new,
                                size_t n, size_t first, size_t stride)
{
    const struct swap *swap = &stream->swap;
    const size_t reals = stream->plan->shape.complex_signal ? 2 : 1;
    const double slope = (double)stride / ((double)swap->fade + 1);
    const double begin = (double)(swap->fade - swap->left + first + 1) / (double)stride;
    stream->plan->kernels->blend(y, y_new, n * reals, reals, begin, slope);
}

// All engines of the CPU, best name first, NULL-terminated (engines.c).
extern const struct engine *const cpu_engines[];

#endif
