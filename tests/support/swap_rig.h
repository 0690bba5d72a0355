// SPDX-License-Identifier: MIT
// A stream with several filters that are swapped, and the output of each of them alone, so that
// every output of a swap can be compared with the blend that the header specifies.
#ifndef PARTITA_TEST_SWAP_RIG_H
#define PARTITA_TEST_SWAP_RIG_H

#include "support/stream_rig.h"

enum { N_FILTERS = 4 };

struct swap_rig {
    struct stream_rig rig;
    struct partita_load load;
    struct partita_filter *filters[N_FILTERS]; // the first is the rig's own
    void *alone[N_FILTERS];                    // the output of each of them
    double peak;                               // largest real or imaginary part of these outputs
};

// A swap to a filter before frame `at`.
struct swap {
    size_t at, filter, fade;
};

// The number of frames is `min_frames` and four times the swap's delay, rounded up to whole blocks
// if the problem requires them. options may be NULL.
void swap_rig_open(struct swap_rig *s, const struct stream_case *c,
                   const struct partita_problem *problem, const struct partita_options *options,
                   size_t min_frames, struct random *random);
void swap_rig_close(struct swap_rig *s);

// Computes the output of filter f alone; to be repeated after a change of it or of the input.
void swap_rig_run_alone(struct swap_rig *s, size_t f, struct random *random);

// Feeds the whole input to a new stream that starts with the first filter, with these swaps.
struct partita_stream *swap_rig_run(struct swap_rig *s, void *y, const struct swap *swaps, size_t n,
                                    const struct call_split *split, struct random *random);

// The first output of [first, end) that differs from a fade from filter a to b that begins at
// output `begin`; `end` if there is none.
size_t first_mismatch(const struct swap_rig *s, const void *y, size_t a, size_t b, size_t begin,
                      size_t fade, size_t first, size_t end);

// Fails unless outputs [first, end) fade from a to b and the fade begins at most swap_delay after
// `from`. Returns where it begins.
size_t check_fade(const struct swap_rig *s, const void *y, size_t a, size_t b, size_t fade,
                  size_t first, size_t from, size_t end);

#endif
