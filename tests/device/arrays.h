// SPDX-License-Identifier: MIT
// Layers whose arrays a caller has in any memory, and calls that fail: for subjects of arrays in
// pieces.
#ifndef PARTITA_TEST_ARRAYS_H
#define PARTITA_TEST_ARRAYS_H

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

// Where a caller may have arrays: what is read and what is written.
enum memory { PAGEABLE, PINNED, DEVICE };

void *array_allocate(enum memory memory, size_t bytes);
void array_release(enum memory memory, void *array);

// Bytes of one of a layer's arrays.
size_t layer_bytes(const struct layer *layer, int array);

// All results of a layer, or forward's alone, from arrays elsewhere, left in its own.
void layer_run_in(struct layer *layer, unsigned directions, enum memory from, enum memory to);

// All directions with the k-th call failing, each with a status or the right results, and nothing
// left behind; false if there were fewer calls.
bool layer_attempt(const struct layer *right, const struct partita_options *options, size_t k,
                   cudaError_t error);

#endif
