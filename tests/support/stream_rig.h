// SPDX-License-Identifier: MIT
// A stream set up to run: random taps and input, fed in calls of any cut, checked against the
// oracle.
#ifndef PARTITA_TEST_STREAM_RIG_H
#define PARTITA_TEST_STREAM_RIG_H

#include "support/rig.h"

struct named_problem {
    const char *name;
    struct partita_problem problem;
};

struct stream_case {
    const char *engine;
    const struct type_pair *types;
    const struct named_problem *named; // NULL for promises that bring their own
};

// A stream of random taps with its input, planar.
struct stream_rig {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    size_t in, out, stride, sample_bytes, n_frames, n_outputs, n_taps;
    void *x, *w; // [in][n_frames], [out][in/groups][kernel]
};

// Engines whose stream keeps the history, not sums: filters can be swapped there.
enum { N_HISTORY_ENGINES = 4 };
extern const char *const history_engines[N_HISTORY_ENGINES];

// The partitioned engine of the device under test (layer_rig.h).
const char *partitioned_engine(void);

// Whether an engine's streams of a pair of types run here: the engine is of the device under test
// and, where that is a stand-in, three of the pairs do, or f32 alone in brief runs. Of the
// problems, p, each is run by one of these then; on the CPU by a third of the pairs in brief runs,
// by all in others.
bool rig_has_types(const char *engine, size_t types);
bool rig_has_problem(size_t types, size_t p);

// Adds the device that a named engine is of.
void set_engine_device(struct partita_options *options);

// A latency of zero in the problem stands for any latency here, so that every engine can serve it.
void stream_rig_open(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, size_t n_frames, struct random *random);
// The problem and the options as they stand (NULL: none), but for the types and the engine of `c`.
void stream_rig_open_exactly(struct stream_rig *rig, const struct stream_case *c,
                             const struct partita_problem *problem,
                             const struct partita_options *options, size_t n_frames,
                             struct random *random);
void stream_rig_close(struct stream_rig *rig);

// Starts anew with another filter of the run's plan made of the taps `w` now holds, or with one
// made elsewhere.
void stream_rig_replace_taps(struct stream_rig *rig);
void stream_rig_replace_filter(struct stream_rig *rig, struct partita_filter *filter);

// How a run is cut into calls: `most` frames at most, drawn anew for each call, or always `most`;
// of streams that want whole blocks, as many as that holds.
struct call_split {
    const char *name;
    size_t max;
    bool random;
};

extern const struct call_split split_whole;
size_t split_next(const struct call_split *split, struct random *random, size_t left);

// Feeds all of x to `stream`; y [out][n_outputs] planar. Checks the output count of every call.
void stream_rig_feed(struct stream_rig *rig, struct partita_stream *stream, void *y,
                     const struct call_split *split, struct random *random);
// The same for frames [first, end) of x, to a stream that has had those before.
void stream_rig_feed_span(const struct stream_rig *rig, struct partita_stream *stream, void *y,
                          size_t first, size_t end, const struct call_split *split,
                          struct random *random);

// Room for all outputs of a run, guarded.
void *stream_rig_alloc_output(const struct stream_rig *rig);
size_t stream_rig_output_bytes(const struct stream_rig *rig);

// Compares outputs from `latency` on with the oracle, those before it with zero.
void stream_rig_check(const struct stream_rig *rig, const void *y);
// The same for as many outputs, drawn by chance, as the oracle computes in a moment; the first and
// the last among them.
void stream_rig_check_sampled(const struct stream_rig *rig, const void *y, struct random *random);

// Input frames for several blocks of whatever size the planner likes.
size_t stream_rig_frames(const struct stream_case *c, const struct partita_problem *problem);

#endif
