// SPDX-License-Identifier: MIT
// Arrays in the host's memory in pieces, each for a plan of its own: so many items of a batch;
// where an item is too large and has one axis, so many outputs of its lines, with the inputs that
// they see; where few outputs see long taps, so many taps. (decision 27)
#ifndef PARTITA_CUDA_PIECES_H
#define PARTITA_CUDA_PIECES_H

#include "core/plan.h"

// Makes plan->piece where arrays are worth cutting: by the same engine, for a filter of the plan's.
// How they are cut follows from the shape, the workspace limit and the size of the device's memory
// alone.
enum partita_status cuda_pieces_plan(struct partita_plan *plan, const struct request *request);
void cuda_pieces_forget(struct partita_plan *plan); // releases it

// Lines of an array, and the part of each that belongs to a piece: bytes first + i*hop .. + bytes -
// 1 to piece i, with zeros for what is before the line or from `end` on, which no output sees.
// Pitch and hop 0: all pieces have the same.
struct cuda_cut_lines {
    size_t lines, pitch, end, bytes;
    ptrdiff_t first, hop;
};

// How a call is cut. Lines come in `sets`, one set after the other, with `of_set` pieces each.
struct cuda_pieces {
    size_t sets, of_set;
    struct cuda_cut_lines to,
        from[2];      // of operands; no lines: there is no such array, or it is summed
    size_t sum_bytes; // of a result that is the sum over all pieces; 0: it is not
};

// Of a plan that has a piece; `from_taps`: of calls that read the taps in place.
struct cuda_pieces cuda_pieces_of(const struct partita_plan *plan, bool from_taps);

// Of the gradient of the bias, ret_piece having batch and outputs of a piece of gy; false if gy
// stays whole.
bool cuda_pieces_of_bias(const struct partita_plan *plan, struct cuda_pieces *ret,
                         struct shape *ret_piece);

// Whether its pieces are of taps: those of the call, or filter_taps.
bool cuda_pieces_are_taps(const struct partita_plan *plan);

#endif
