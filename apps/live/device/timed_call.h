// SPDX-License-Identifier: MIT
// Calls with a time limit, for functions that may never return, such as PortAudio's when an audio
// server has died or is stopped.
#ifndef PARTITA_APPS_LIVE_TIMED_CALL_H
#define PARTITA_APPS_LIVE_TIMED_CALL_H

#include <stdbool.h>

// Calls the function on a thread and waits until it returns. False if it takes longer than
// `seconds`, or an earlier call has not returned; then `argument` stays in use for ever. Threads:
// one.
bool timed_call(void (*function)(void *argument), void *argument, double seconds);

// While calls are waited for this function is called every 50 ms; false: it is not waited any
// longer, and the call counts as one that takes too long. NULL: none.
void timed_call_meanwhile(bool (*function)(void *user), void *user);

// Whether a call has not returned in time. Then the program can only end by _exit or exec.
bool timed_call_hangs(void);

#endif
