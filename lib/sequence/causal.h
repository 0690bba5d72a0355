// SPDX-License-Identifier: MIT
// Short causal convolution. A call is split into runs, which are sequences or parts of them that no
// tap reaches beyond, and into blocks of channels. A block of a run is computed tile by tile: its
// samples are brought into rows of f32, a row a frame and a lane a channel, whatever their type and
// order in memory are, so that one loop serves all of them with the same bits. The last taps - 1
// rows of a tile are the first of the next one.
#ifndef PARTITA_CAUSAL_H
#define PARTITA_CAUSAL_H

#include "base/sizes.h"
#include "causal_kernels.h"

#include <partita/sequence.h>

enum {
    CAUSAL_MAX_TAPS = 256,
    CAUSAL_LANES = CONV_BLOCK_BYTES / sizeof(float), // channels of a block are a multiple of them
    CAUSAL_MAX_BLOCK = 256,                          // channels
    CAUSAL_TILE = 8192,                              // f32 of a tile: 32 KiB
    CAUSAL_STAGED = 4096,                            // f32 on their way to or from rows
};

// A call whose arguments have been checked and whose defaults have been filled in.
struct causal {
    struct partita_causal call;
    const struct kernels *kernels;
    const struct causal_kernels *sums;
    size_t block; // channels of a task
    int threads;
};

// Channels first .. first+count-1 of a call, and the memory of the thread that computes them.
struct causal_block {
    const struct causal *causal;
    size_t first, count, pitch; // pitch: lanes of a row
    size_t rows;                // frames of a tile without its past
    float tile[CAUSAL_TILE] __attribute__((aligned(64)));
    float taps[CAUSAL_TILE / 2 + CAUSAL_MAX_BLOCK] __attribute__((aligned(64))); // [taps][pitch]
    float bias[CAUSAL_MAX_BLOCK] __attribute__((aligned(64)));
    float staged[CAUSAL_STAGED] __attribute__((aligned(64)));
};

// Frames first .. first+frames-1 of one batch of x and y.
struct causal_run {
    size_t batch, first, frames;
    size_t slot;     // of its state
    size_t position; // frames that a circular state has seen
    bool initial;    // its state precedes it
    bool absent;     // its results are zeros
};

// The next run of a sequence; *at is the frame where the last one ended, 0 at first.
bool causal_next_run(const struct partita_causal *call, size_t sequence, size_t *at,
                     struct causal_run *run);

// Begins a block: its taps and bias.
void causal_begin(struct causal_block *block, const struct causal *causal, size_t first);

// One sequence of an array, of the channels of the block.
struct causal_view {
    char *data;
    size_t channel, frame; // strides
    enum partita_type type;
};
struct causal_view causal_view(const struct causal_block *block,
                               const struct partita_causal_array *array, size_t index,
                               size_t frame);

// Frames of samples into rows (load), or back.
void causal_move(struct causal_block *block, float *rows, struct causal_view view, size_t frames,
                 bool load);

// Loads or stores frames of a state, a ring of state_len frames, from frame `at` on.
void causal_ring(struct causal_block *block, struct causal_view view, float *rows, size_t at,
                 size_t frames, bool load);

// The sums of so many rows of f32, of which the taps - 1 before them are the first.
void causal_compute(const struct causal_block *block, float *y, const float *x, size_t rows,
                    bool silu);

// The taps - 1 rows before a run.
void causal_past(struct causal_block *block, const struct causal_run *run, float *rows);

// Checks a caller's struct and fills in its defaults; the log names the field that is refused.
enum partita_status causal_resolve(struct causal *ret, const struct partita_causal *given,
                                   size_t bytes, bool backward);

#endif
