// SPDX-License-Identifier: MIT
// Detects calls that a real-time function must not make. The program defines and exports the C
// library's functions that allocate, lock, sleep, make system calls or access files, so that the
// shared library calls these. On a watched thread they print their name and abort; on other threads
// they forward the call.
#ifndef PARTITA_TEST_INTERPOSE_H
#define PARTITA_TEST_INTERPOSE_H

#include <stdbool.h>

// Whether the calling thread is watched from now on.
void watch_this_thread(bool watched);

// How many calls of sem_post the calling thread may make although it is watched; returns how many
// were left.
unsigned watch_permit_wakes(unsigned n);

#endif
