// SPDX-License-Identifier: MIT
// A watch over what must not be called where calls must not take long: the program defines the C
// library's functions that allocate, lock, sleep, call the system or touch files itself and exports
// them, so the shared library calls these. On a thread that has said so they print their name and
// abort; elsewhere they pass the call on.
#ifndef PARTITA_TEST_INTERPOSE_H
#define PARTITA_TEST_INTERPOSE_H

#include <stdbool.h>

// Whether the calling thread is watched from now on.
void watch_this_thread(bool watched);

#endif
