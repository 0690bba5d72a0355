// SPDX-License-Identifier: MIT
// The only internal interface that algorithms see: an engine is one algorithm on one device; a plan is an engine's
// choice of everything for one shape. The planner knows engines through this table alone.
#ifndef PARTITA_ENGINE_H
#define PARTITA_ENGINE_H

#include <partita/partita.h>

#include "cpu/kernels/kernels.h"
#include "host.h"
#include "log.h"
#include "mem.h"
#include "problem.h"

// What an engine would do and what it would cost.
struct estimate {
    bool applicable;
    char reason[96];        // why not, when it is not
    size_t transform;       // FFT size, 0 without
    size_t hop;             // outputs per transform; for direct, outputs per tile
    size_t latency;         // input frames added; streams
    double seconds;         // whole bounded problem, or one input frame of a stream
    double flops;           // likewise
    size_t workspace;       // bytes of partita_forward
    size_t bytes;           // filter and stream or workspace: what running it holds
    double error;           // predicted relative L2 error
};

struct engine {
    const char *name;       // "cpu/overlap-save"
    // Fills *ret with the cheapest way this engine knows, or applicable = false with a reason. Allocates nothing.
    void (*estimate)(const struct shape *shape, const struct host *host, int threads, struct estimate *ret);
    // Builds plan->state for plan->choice. The planner calls plan_destroy on failure too.
    enum partita_status (*plan_create)(struct partita_plan *plan);
    void (*plan_destroy)(struct partita_plan *plan);
    // Makes filter->state from taps in the caller's layout. On failure the caller calls filter_destroy.
    enum partita_status (*filter_create)(struct partita_filter *filter, const void *taps);
    // Streams. The state is one arena, released by the caller. process takes any n_frames.
    enum partita_status (*stream_open)(struct partita_stream *stream);
    void (*stream_process)(struct partita_stream *stream, const struct frames *frames);
    void (*stream_reset)(struct partita_stream *stream);
    // Bounded problems. workspace is choice.workspace bytes, aligned.
    void (*forward)(const struct partita_plan *plan, const struct partita_filter *filter, void *y, const void *x,
                    void *workspace);
};

struct partita_plan {
    const struct engine *engine;
    const struct kernels *kernels;
    struct shape shape;
    struct estimate choice;
    enum cpu_level level;
    int threads;
    bool measure;
    struct partita_allocator allocator;
    struct partita_log log;
    struct estimate *considered; // one per engine of engines.c, for explain
    void *state;                 // the engine's
};

struct partita_filter {
    const struct partita_plan *plan;
    void *state;                 // one arena
};

struct partita_stream {
    const struct partita_plan *plan;
    const struct partita_filter *filter;
    uint64_t position;           // input frames taken so far, modulo 2^64
    size_t phase;                // position modulo the stride
    void *state;                 // one arena
};

// All engines, best name first, NULL-terminated (engines.c).
extern const struct engine *const engines[];

#endif
