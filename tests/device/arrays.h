// SPDX-License-Identifier: MIT
// Arrays in any kind of memory; failing and concurrent calls.
#ifndef PARTITA_TEST_ARRAYS_H
#define PARTITA_TEST_ARRAYS_H

#include "hostdev/hostdev.h"
#include "support/layer_rig.h"

// Where a caller may have its arrays.
enum memory { PAGEABLE, PINNED, DEVICE, MISALIGNED }; // MISALIGNED: on the device, to a scalar

void *array_allocate(enum memory memory, size_t bytes);
void array_release(enum memory memory, void *array);

// Device memory with a copy of `bytes` bytes after the first `offset` bytes; without one if `from`
// is NULL.
void *device_copy(const void *from, size_t bytes, size_t offset);

// Bytes of one of a layer's arrays.
size_t layer_bytes(const struct layer *layer, int array);

// Computes all results of a layer, or only that of forward, with copies of its arrays in `from` and
// `to`; stores the results in its own arrays. layer_add_in: added to what these held.
void layer_run_in(struct layer *layer, unsigned directions, enum memory from, enum memory to);
void layer_add_in(struct layer *layer, unsigned directions, enum memory from, enum memory to);

// Executes all directions with the k-th CUDA call failing. Each must return the error or the right
// results, and all memory must be released. Returns false if there were fewer calls.
bool layer_attempt(const struct layer *reference, const struct partita_options *options, size_t k,
                   cudaError_t error);

// What a caller does with objects that it makes, uses and releases. `compute` stops at the first
// failure; its result is expected[bytes]. `usable` is false if not all objects could be made.
struct failing_calls {
    void *objects;
    enum partita_status (*compute)(void *objects, void *y);
    bool (*usable)(const void *objects);
    void (*release)(void *objects);
    const void *expected;
    size_t bytes;
};

// Computes with each CUDA call failing in turn. Each failure must be returned as a status, or the
// result must be right; all memory must be released.
void check_failing_calls(const struct failing_calls *calls, cudaError_t error);

// Calls `compute` several times on several threads at once; fails unless all results are
// expected[bytes].
void check_concurrent_calls(const struct failing_calls *calls);

#endif
