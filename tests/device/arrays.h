// SPDX-License-Identifier: MIT
// Layers whose arrays are in any kind of memory, and layers with failing CUDA calls.
#ifndef PARTITA_TEST_ARRAYS_H
#define PARTITA_TEST_ARRAYS_H

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

// Where a caller may have its arrays.
enum memory { PAGEABLE, PINNED, DEVICE };

void *array_allocate(enum memory memory, size_t bytes);
void array_release(enum memory memory, void *array);

// Bytes of one of a layer's arrays.
size_t layer_bytes(const struct layer *layer, int array);

// Computes all results of a layer, or only that of forward, with copies of its arrays in `from` and
// `to`; stores the results in its own arrays.
void layer_run_in(struct layer *layer, unsigned directions, enum memory from, enum memory to);

// Executes all directions with the k-th CUDA call failing. Each must return the error or the right
// results, and all memory must be released. Returns false if there were fewer calls.
bool layer_attempt(const struct layer *reference, const struct partita_options *options, size_t k,
                   cudaError_t error);

#endif
