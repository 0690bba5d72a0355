// SPDX-License-Identifier: MIT
// Whole commands as contenders: a 16-bit WAV in, a 16-bit WAV out, one filter for all channels. The
// workload is a stream of one block. Its signal begins with silence, since SoX drops the first half
// of a filter's length from the result; its channels share one filter, as SoX and ffmpeg require.
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include "runner/runner.h"

enum { COMMAND_WORDS = 24, COMMAND_PATH = 96 };

// State of such a contender.
struct command {
    const char *argv[COMMAND_WORDS];
    char text[160], threads[16]; // composed arguments
    size_t skipped;              // leading frames of the result that the command drops
    char folder[64];
    char in[COMMAND_PATH], ir[COMMAND_PATH], out[COMMAND_PATH], coefficients[COMMAND_PATH];
};

// Makes the folder with the input files and the common part of the contender; returns NULL with a
// reason on failure. After a success the caller returns command_ready().
struct command *command_create(struct contender *contender, const struct workload *w);

// Sets the arguments of the command (they must live as long as it), runs it once and stores its
// memory use. Returns false with a reason, and everything released, if it fails.
bool command_ready(struct contender *contender, const char *const *argv, size_t n_words);

// The `shape` of such workloads: silence first, the filter of channel 0 for all channels.
void command_shape(struct workload *w);

#endif
