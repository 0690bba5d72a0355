// SPDX-License-Identifier: MIT
#ifndef PARTITA_APPS_THREAD_START_H
#define PARTITA_APPS_THREAD_START_H

#include <pthread.h>
#include <stdbool.h>

// Starts a thread that signals leave alone: they are for the first thread, as without threads.
bool thread_start(pthread_t *thread, void *(*run)(void *), void *context);

#endif
