// SPDX-License-Identifier: MIT
// Partita as a contender.
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "runner/runner.h"

// Relative L2 error that engines may have if the caller sets no budget: f32 layers.
#define OURS_DEFAULT_BUDGET 2e-6

// Measures the cost model that plans of ours use from then on.
void ours_calibrate(void);
struct partita_wisdom *ours_wisdom(void);

// Stores a text as the contender's reason; `contender` is void so that it serves as a log function.
void ours_set_reason(void *contender, const char *text);

open_fn ours_stream, ours_signal;
open_fn ours_stream_whole;     // with whole blocks promised, which peers require
open_fn ours_stream_swap;      // while the stream fades from one filter to another
open_fn ours_stream_morph;     // while the weights of several filters move
open_fn ours_stream_mixed;     // as many streams, whose outputs are summed with moving weights
open_fn ours_stream_i16;       // with spectra of 16 bits, where the plan has them
open_fn ours_stream_whole_i16; // both
open_fn ours_stream_parallel;  // several channels only: with one there is little to share
open_fn ours_layer;            // filters are packed beforehand
open_fn ours_network;
open_fn ours_network_last;   // with channels last
open_fn ours_network_shared; // of training: directions share transforms

// The planner's choice for a layer, as text in memory of this function; "" if there is none.
const char *ours_layer_choice(const struct workload *w, int threads);

#endif
