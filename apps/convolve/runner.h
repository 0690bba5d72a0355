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

// How many results in memory of the runner stay valid, beside those of the latest call; each
// channel has a row of runner_results samples. 0: results are written to the caller's buffers,
// interleaved.
size_t runner_kept(const struct runner *runner);

// Whether other threads filter what is fed.
bool runner_has_workers(const struct runner *runner);

// Filters n interleaved frames, or n frames of silence if x is NULL; n is at most runner_max_feed.
// *y: on entry a buffer of runner_capacity frames (ignored unless runner_kept is 0), on return the
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

// The largest useful n for runner_feed: with more, silence at the end would be filtered needlessly.
size_t runner_max_feed(const struct runner *runner);

// Input frames per segment; 0: a stream. The first segment starts at the first frame fed. The
// results of a segment depend only on its frames and those before them that the taps reach.
size_t runner_segment(const struct runner *runner);

// Results of a segment, which come at once.
size_t runner_results(const struct runner *runner);

// Latency of the engine, in input frames, which is removed from the result.
size_t runner_latency(const struct runner *runner);
const struct partita_plan *runner_plan(const struct runner *runner);

// Times of the stream's calls; all zero if they are not timed or there is no stream.
struct partita_stream_stats runner_calls(const struct runner *runner);

#endif
