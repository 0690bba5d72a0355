// SPDX-License-Identifier: MIT
#ifndef PARTITA_APPS_THREAD_START_H
#define PARTITA_APPS_THREAD_START_H

#include <pthread.h>
#include <stdbool.h>

// Starts a thread with all signals blocked but those of its own faults, so that the main thread
// alone receives the others.
bool thread_start(pthread_t *thread, void *(*run)(void *), void *context);

#endif
