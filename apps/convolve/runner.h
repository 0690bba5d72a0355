// SPDX-License-Identifier: MIT
// Runs one filter over frames as they come: through a stream of the library, or over large pieces
// at once, with --range and --resume, and where no size of calls is asked for, with several threads
// and for files of more than 2^24 frames. Either way the frames that come out are the result from
// its first sample on, without latency.
#ifndef PARTITA_APPS_RUNNER_H
#define PARTITA_APPS_RUNNER_H

#include "cli/options.h"
#include "taps.h"

struct runner;

// signal: the type of the frames on both sides. is_live: the frames come through a pipe, where
// delay counts; a file's are there, and only speed and memory do. frames: how many will come, or
// SIZE_UNKNOWN. rate: frames a second if calls are to be timed, else 0.
bool runner_open(struct runner **ret_runner, const struct settings *settings,
                 enum partita_type signal, bool is_live, uint64_t frames, double rate,
                 const struct taps *taps, struct partita_wisdom *wisdom, struct fault *fault);
void runner_close(struct runner *runner);

// Filters n interleaved frames, or n frames of silence if x is NULL. *ret_n: how many frames it
// wrote to y. What comes of frames fed may come out of a later call: pieces that several threads
// work on come in their order.
bool runner_feed(struct runner *runner, void *y, size_t *ret_n, const void *x, size_t n,
                 struct fault *fault);

// Frames that pieces in work will give without any more input.
size_t runner_owed(const struct runner *runner);

// Waits for the next of them, as many as a piece gives; none if none are owed.
bool runner_finish(struct runner *runner, void *y, size_t *ret_n, struct fault *fault);

// The most that runner_feed can write for n frames.
size_t runner_capacity(const struct runner *runner, size_t n);

// The most frames that are worth feeding at once, so that silence at the end is not filtered for
// nothing.
size_t runner_appetite(const struct runner *runner);

// Input frames of a piece, if the runner works on pieces: piece after piece from the first frame
// fed, and what comes of one depends on its frames and on the length - 1 before them alone. 0: a
// stream.
size_t runner_piece(const struct runner *runner);

// What was removed from the start of the engine's output, in input frames.
size_t runner_latency(const struct runner *runner);
const struct partita_plan *runner_plan(const struct runner *runner);

// What the stream's calls took; all zero if they were not timed or there is no stream.
struct partita_stream_stats runner_calls(const struct runner *runner);

#endif
