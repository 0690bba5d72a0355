// SPDX-License-Identifier: MIT
// One thread for calls that may never come back, as PortAudio's when an audio server has died or
// stands still.
#ifndef PARTITA_APPS_LIVE_TIMED_CALL_H
#define PARTITA_APPS_LIVE_TIMED_CALL_H

#include <stdbool.h>

// Makes the call on that thread and waits for its end. False if it has not come back within so many
// seconds, or one before has not: `argument` is then in use for good. Threads: one.
bool timed_call(void (*function)(void *argument), void *argument, double seconds);

// Whether a call has not come back. There is no ordinary way out of the program then, only _exit
// and exec.
bool timed_call_hangs(void);

#endif
