// SPDX-License-Identifier: MIT
// A stream set up to run: random taps and input, fed in calls of any cut, checked against the oracle.
#ifndef PARTITA_TEST_STREAM_RIG_H
#define PARTITA_TEST_STREAM_RIG_H

#include "rig.h"

// A stream's problem; the rest is written behind it.
#define STREAM .size = {PARTITA_UNBOUNDED}, .block = 64

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
struct run {
    struct partita_problem problem;
    struct partita_plan *plan;
    struct partita_filter *filter;
    struct partita_stream *stream;
    size_t in, out, stride, sample_bytes, n_frames, n_outputs;
    void *x, *w; // [in][n_frames], [out][in/groups][kernel]
};

// A latency of zero in the problem stands for any latency here, so that every engine can serve it.
void run_open(struct run *run, const struct stream_case *c, const struct partita_problem *problem, size_t n_frames,
              struct random *random);
void run_close(struct run *run);

// How a run is cut into calls: `most` frames at most, drawn anew for each call, or always `most`.
struct cut {
    const char *name;
    size_t most;
    bool random;
};

extern const struct cut cut_whole;
size_t cut_next(const struct cut *cut, struct random *random, size_t left);

// Feeds all of x to `stream`; y [out][n_outputs] planar. Checks the output count of every call.
void run_feed(struct run *run, struct partita_stream *stream, void *y, const struct cut *cut, struct random *random);

// Room for all outputs of a run, guarded.
void *run_output(const struct run *run);
size_t run_output_bytes(const struct run *run);

// Compares outputs from `latency` on with the oracle, those before it with zero.
void run_check(const struct run *run, const void *y);

// Input frames for several blocks of whatever size the planner likes.
size_t run_frames(const struct stream_case *c, const struct partita_problem *problem);

#endif
