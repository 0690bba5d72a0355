// SPDX-License-Identifier: MIT
// A run with several filters, handed over on the way, and what each of them alone makes of the
// input: so that every output of a swap can be held against the header's blend.
#ifndef PARTITA_TEST_SWAP_RIG_H
#define PARTITA_TEST_SWAP_RIG_H

#include "support/stream_rig.h"

enum { N_FILTERS = 4 };

// A run with several filters and what each of them alone makes of the input.
struct swap_rig {
    struct stream_rig rig;
    struct partita_load load;
    struct partita_filter *filters[N_FILTERS]; // the first is the run's own
    void *alone[N_FILTERS];
    double peak; // largest part of any of them
};

// A filter handed over before frame `at`, the others having been fed.
struct swap {
    size_t at, filter, fade;
};

// Frames: `least_frames` and four times the swap's delay, in whole blocks if the problem says so.
// The options as they stand (NULL: none).
void swap_rig_open(struct swap_rig *s, const struct stream_case *c,
                   const struct partita_problem *problem, const struct partita_options *options,
                   size_t least_frames, struct random *random);
void swap_rig_close(struct swap_rig *s);

// What filter f alone makes of the input, anew: it or the input was changed.
void swap_rig_run_alone(struct swap_rig *s, size_t f, struct random *random);

// Feeds the whole input to a new stream of the first filter, handing filters over on the way.
struct partita_stream *swap_rig_run(struct swap_rig *s, void *y, const struct swap *swaps, size_t n,
                                    const struct call_split *split, struct random *random);

// First output of [first, end) that is not the blend of a fade from filter a to b that begins at
// output `begin`, or `end`.
size_t first_mismatch(const struct swap_rig *s, const void *y, size_t a, size_t b, size_t begin,
                      size_t fade, size_t first, size_t end);

// Fails unless outputs [first, end) fade from a to b, beginning at most swap_delay after `from`.
// Returns the begin.
size_t check_fade(const struct swap_rig *s, const void *y, size_t a, size_t b, size_t fade,
                  size_t first, size_t from, size_t end);

#endif
