// SPDX-License-Identifier: MIT
// Finds races in shared memory: a thread reads what another has written, or writes what another has
// read or written, with no barrier between. It sees the accesses of kernels that were compiled with
// -fsanitize=thread, whose callbacks it implements; other kernels run as without it.
#ifndef HOSTDEV_RACE_H
#define HOSTDEV_RACE_H

#include <stddef.h>

// The memory that is watched, which must not move.
void race_watch(unsigned char *memory, size_t bytes);

// All threads have passed a barrier, or another block begins.
void race_fence(void);

// The thread that runs from now on, as a number in its block.
void race_thread(unsigned thread);

#endif
