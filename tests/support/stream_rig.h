// SPDX-License-Identifier: MIT
// A stream with random taps and input, which is fed in calls of any lengths and checked against the
// oracle.
#ifndef PARTITA_TEST_STREAM_RIG_H
#define PARTITA_TEST_STREAM_RIG_H

#include "support/rig.h"

struct stream_case {
    const char *engine;
    const struct type_pair *types;
    const struct named_problem *named; // NULL if the test has a problem of its own
};

// A stream, its plan, its taps and its input, planar.
struct stream_rig {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    size_t in, out, up, stride, sample_bytes, n_frames, n_outputs, n_taps;
    void *x, *w; // [in][n_frames], [out][in/groups][kernel]
};

// Engines whose streams store the history instead of sums, so that filters can be swapped.
enum { N_HISTORY_ENGINES = 4 };
extern const char *const history_engines[N_HISTORY_ENGINES];

// The partitioned engine of the device under test (layer_rig.h).
const char *partitioned_engine(void);

// Which cases of an engine, a pair of types and problem p this program has. The engine must belong
// to the device under test. A stand-in has three of the pairs, or only f32 in brief runs, and each
// problem with one of them. The CPU has all cases, or each problem with a third of the pairs in
// brief runs.
bool rig_has_types(const char *engine, size_t types);
bool rig_has_problem(size_t types, size_t p);

// Whether the device of an engine serves a problem: `up` is of the CPU only.
static inline bool engine_serves(const char *engine, const struct partita_problem *problem)
{
    return or_one(problem->up) == 1 || strncmp(engine, "cuda/", 5) != 0;
}

// Sets the device that a named engine belongs to.
void set_engine_device(struct partita_options *options);

// Latency 0 in the problem means any latency here, so that every engine can serve it.
void stream_rig_open(struct stream_rig *rig, const struct stream_case *c,
                     const struct partita_problem *problem, size_t n_frames, struct random *random);
// The same with exactly this problem and these options (NULL: none), except types and engine of
// `c`.
void stream_rig_open_exactly(struct stream_rig *rig, const struct stream_case *c,
                             const struct partita_problem *problem,
                             const struct partita_options *options, size_t n_frames,
                             struct random *random);
void stream_rig_close(struct stream_rig *rig);

// Opens a new stream with a filter of the taps that `w` has now, or with the given filter, which
// the rig then owns.
void stream_rig_replace_taps(struct stream_rig *rig);
void stream_rig_replace_filter(struct stream_rig *rig, struct partita_filter *filter);

// How the input is split into calls: at most `max` frames, drawn for each call, or always `max`.
// With whole blocks required, the largest multiple of a block in that.
struct call_split {
    const char *name;
    size_t max;
    bool random;
};

extern const struct call_split split_whole;
size_t split_next(const struct call_split *split, struct random *random, size_t left);

// Outputs that are due with the first n frames, and outputs that the latency delays them by.
size_t stream_rig_outputs(const struct stream_rig *rig, size_t n);
size_t stream_rig_latency(const struct stream_rig *rig);

// Feeds all of x to `stream`; y is [out][n_outputs], planar. Checks the output count of every call.
void stream_rig_feed(const struct stream_rig *rig, struct partita_stream *stream, void *y,
                     const struct call_split *split, struct random *random);
// The same for frames [first, end) of x, to a stream that has had those before.
void stream_rig_feed_span(const struct stream_rig *rig, struct partita_stream *stream, void *y,
                          size_t first, size_t end, const struct call_split *split,
                          struct random *random);

// Guarded memory for all outputs.
void *stream_rig_alloc_output(const struct stream_rig *rig);
size_t stream_rig_output_bytes(const struct stream_rig *rig);

// Compares outputs from the latency on with the oracle, and those before it with zero.
void stream_rig_check(const struct stream_rig *rig, const void *y);
// The same for a random sample of outputs, with the first and the last, so that the oracle takes a
// moment only.
void stream_rig_check_sampled(const struct stream_rig *rig, const void *y, struct random *random);

// Fails unless the stream, reset before each, has the output y for all splits of the input. Some
// input is fed before each reset.
void stream_rig_check_splits(const struct stream_rig *rig, const void *y,
                             const struct call_split *splits, size_t n, struct random *random);

// Feeds frames from `at` on to `stream`. Fails unless outputs from there on have the bits of y.
void stream_rig_check_continues(const struct stream_rig *rig, struct partita_stream *stream,
                                const void *y, size_t at, struct random *random);

// Copies y to *first, guarded, if that is NULL. Otherwise fails unless both have the same bits.
void stream_rig_check_first(const struct stream_rig *rig, const void *y, void **first);

// Compares the outputs of two values of frame `at` of the first channel: `value`, which is not
// finite, and 0. Fails unless the real parts of outputs [first, end) are NaN with the former, and
// all others have the same bits.
struct nonfinite {
    size_t at, first, end;
    double value;
};
void stream_rig_check_nonfinite(const struct stream_rig *rig, const struct nonfinite *c,
                                const struct call_split *split, struct random *random);

// The largest error of a single output among outputs of root mean square `rms`. Errors are nearly
// normal, with half the gate as their deviation (gate_for_outputs); this is eight deviations, which
// once in 1e15 outputs exceeds.
double stream_rig_sample_limit(const struct stream_rig *rig, double rms);

// Input frames for several blocks of the size that the planner chooses.
size_t stream_rig_frames(const struct stream_case *c, const struct partita_problem *problem);

#endif
