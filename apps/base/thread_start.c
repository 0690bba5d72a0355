// SPDX-License-Identifier: MIT
#include "thread_start.h"

#include <signal.h>

bool thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    // A handler of crashes is called in the thread that crashed.
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const bool started = pthread_create(thread, NULL, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}
