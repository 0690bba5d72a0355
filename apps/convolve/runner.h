// SPDX-License-Identifier: MIT
// Applies one filter to frames as they arrive: through a stream of the library, or in long segments
// that are filtered as bounded signals. Segments are used with --range, --resume and mpirun and,
// unless --block is given, for files of more than 2^24 frames, with several threads, and of files
// with any --threads. In both cases the output is the result from its first sample on, without
// latency.
#ifndef PARTITA_APPS_RUNNER_H
#define PARTITA_APPS_RUNNER_H

#include "cli/options.h"
#include "taps.h"

struct runner;

struct runner_request {
    const struct settings *settings;
    enum partita_type signal; // of input and output frames
    bool is_pipe;             // the input may arrive slowly, so latency matters
    bool rows;                // results may be channels one after the other
    uint64_t frames;          // of the input, or SIZE_UNKNOWN
    double rate;              // Hz, to time calls against; 0: calls are not timed
    const struct taps *taps;
    struct partita_wisdom *wisdom;
};

bool runner_open(struct runner **ret_runner, const struct runner_request *request,
                 struct fault *fault);
void runner_close(struct runner *runner);

// Memory for the next input frames, at most *ret_n, from which runner_feed need not copy; valid
// until that call. NULL: there is none, and runner_feed copies.
void *runner_input(const struct runner *runner, size_t *ret_n);

// What does not change while the runner is open.
struct runner_layout {
    struct partita_plan *plan;
    size_t segment;   // input frames of a segment, the most to feed at once; 0: a stream
    size_t results;   // of a segment, which come at once
    size_t kept;      // how many results in memory of the runner stay valid beside those of the
                      // latest call, with a row of `results` samples for each channel; 0: results
                      // are written to the caller's buffers, interleaved
    size_t latency;   // of the engine, in input frames, which is removed from the result
    size_t n_workers; // other threads that filter the frames that are fed
};

// The first segment starts at the first frame fed. The results of a segment depend only on its
// frames and those before them that the taps reach.
const struct runner_layout *runner_layout(const struct runner *runner);

// Filters n interleaved frames, or n frames of silence if x is NULL; n is at most a segment.
// *y: on entry a buffer of runner_capacity frames (ignored if results are kept), on return the
// *ret_n results. Results may be returned by a later call.
bool runner_feed(struct runner *runner, void **y, size_t *ret_n, const void *x, size_t n,
                 struct fault *fault);

// Result frames of the segments in flight, which need no more input.
size_t runner_pending(const struct runner *runner);

// Waits for the oldest segment in flight and returns its results as runner_feed does; *ret_n is 0
// if there is none.
bool runner_drain(struct runner *runner, void **y, size_t *ret_n, struct fault *fault);

// The maximum number of frames that runner_feed returns for n frames.
size_t runner_capacity(const struct runner *runner, size_t n);

// Times of the stream's calls; all zero if they are not timed or there is no stream.
struct partita_stream_stats runner_calls(const struct runner *runner);

#endif
