// SPDX-License-Identifier: MIT
// Whole commands as contenders: a 16-bit WAV in, a 16-bit WAV out, one filter for all channels. The workload is a
// stream of one block; its signal begins with silence (SoX cuts the first half of a filter off its answer) and its
// channels share one filter (SoX and ffmpeg take it so).
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include "runner/runner.h"

enum { COMMAND_WORDS = 24, COMMAND_PATH = 96 };

// A running contender.
struct command {
    const char *argv[COMMAND_WORDS];
    char text[160], threads[16]; // room for composed arguments
    size_t skipped;              // leading frames of the result that the command leaves out
    char folder[64];
    char in[COMMAND_PATH], ir[COMMAND_PATH], out[COMMAND_PATH], coefficients[COMMAND_PATH];
};

// Makes the folder with the input files and the common part of the contender; NULL with a reason on failure. The
// caller then returns command_ready().
struct command *command_create(struct contender *contender, const struct workload *w);

// Takes the words of the command (they must live as long as it), runs it once and notes its memory; false with a
// reason, and everything released, if it fails.
bool command_ready(struct contender *contender, const char *const *argv, size_t n_words);

// Gives a workload the shape above: silence first, the filter of channel 0 everywhere.
void command_shape(struct workload *w);

#endif
