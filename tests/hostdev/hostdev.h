// SPDX-License-Identifier: MIT
// A stand-in for a GPU that is as unkind as the rules of CUDA allow: threads of a block run as
// fibers in an order that is drawn, and no further than a barrier; memory begins as NaN, lies
// between guard pages and cannot be touched by the host; what is queued happens when somebody waits
// for it, or, where orders are drawn, at any time before; any call may fail. What breaks the rules
// ends the process with a message. What is here is for tests; engines know cuda_runtime_api.h
// alone.
#ifndef HOSTDEV_H
#define HOSTDEV_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

// Order of the threads of a block, and of blocks: HOSTDEV_ORDER in the environment, "forward" (the
// default), "reverse" or a number, the seed of orders that change at every barrier.
void hostdev_order(const char *order);

// The k-th call from now on, counted from 1, fails; 0: none does. After an error but lack of memory
// so do all that follow, as with a lost device, until this is called again.
void hostdev_fail(size_t k, cudaError_t error);

// Calls since hostdev_fail.
size_t hostdev_calls(void);

// Bytes of shared memory that a thread block may ask for from now on; 0: as at first.
void hostdev_shared(size_t bytes);

// Operations that are queued and have not happened yet, other than giving and taking memory.
size_t hostdev_queued(void);

// Bytes that the device has from now on; 0: as at first.
void hostdev_memory(size_t bytes);

// Allocations of device memory that were not released; queued releases are carried out first.
size_t hostdev_allocations(void);

#endif
