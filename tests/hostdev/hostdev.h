// SPDX-License-Identifier: MIT
// A stand-in for two GPUs that uses all freedom of the rules of CUDA: threads of a block run as
// fibers in forward, reverse or random order, from barrier to barrier; memory is filled with NaN,
// has guards around it and is inaccessible to the host and to kernels of the other device; a queued
// operation runs when a caller waits for it, or in random orders at any time before; any call may
// fail. A violated rule ends the process with a message. Tests include this file; engines include
// only cuda_runtime_api.h.
#ifndef HOSTDEV_H
#define HOSTDEV_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

// The environment may give the devices another's figures, so that a plan for that one can be asked
// for: HOSTDEV_PROCESSORS, HOSTDEV_CAPABILITY (90 is 9.0), HOSTDEV_CLOCK and HOSTDEV_MEMORY_CLOCK
// in kHz, HOSTDEV_BUS in bits, HOSTDEV_MEMORY in MiB, at most 16384. The name stays hostdev.

// Order of blocks and of the threads of a block: "forward" (the default), "reverse" or a number,
// the seed of random orders that change at every barrier. Initially it is HOSTDEV_ORDER in the
// environment.
void hostdev_order(const char *order);

// The k-th call after this one, counted from 1, fails; 0: none does. After an illegal address, a
// failed launch or a missing device all later calls fail, as with a lost device, until the next
// hostdev_fail. A call that fails with another error was refused, and does nothing.
void hostdev_fail(size_t k, cudaError_t error);

// Calls since hostdev_fail.
size_t hostdev_calls(void);

// What calls have done since hostdev_fail: allocations and releases of any memory, waits, and
// readings of a device's properties.
struct hostdev_used {
    size_t allocations, waits, properties;
};
struct hostdev_used hostdev_used(void);

// What has run since the process began: kernels, their thread blocks, intervals of these between
// barriers, of which a block without a barrier has one, and bytes of copies.
struct hostdev_work {
    size_t kernels, blocks, intervals, copied;
};
struct hostdev_work hostdev_work(void);

// Counts the bytes that kernels read and write in a range of a device's memory from now on. Only
// kernels that were compiled with checks are counted (race.h).
struct hostdev_accesses {
    size_t read, written;
};
void hostdev_observe(const void *memory, size_t bytes);
struct hostdev_accesses hostdev_observed(void);

// Whether a context was made on a device, by cudaSetDevice or by a call that needs one.
bool hostdev_has_context(int device);

// Sets the bytes of shared memory that a thread block may have; 0: the initial limit. A process may
// remember what it has read of a device.
void hostdev_shared(size_t bytes);

// Kernels count as not loaded, as at the start of a process.
void hostdev_unload(void);

// Queued operations that have not run, without allocations and releases.
size_t hostdev_queued(void);

// Sets the bytes of device memory; 0: the initial size.
void hostdev_memory(size_t bytes);

// Whether devices have memory pools; at first they do. A process may remember it.
void hostdev_pools(bool supported);

// Bytes that all memory pools of a device keep, also those in use.
size_t hostdev_kept(int device);

// Objects that were not released: device memory, pinned memory, streams, events and graphs. Queued
// operations run first.
size_t hostdev_allocations(void);

#endif
