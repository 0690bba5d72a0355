// SPDX-License-Identifier: MIT
// See worker.h. All calls share a thread, since PortAudio tells the reason of an error only to the
// one that started it.
#include "timed_call.h"

#include <pthread.h>
#include <time.h>

// Time is counted in steps that were waited for: a program that was itself stopped blames nobody.
static const double STEP_SECONDS = 0.05;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*function)(void *); // the call under way; NULL: none
    void *argument;
    bool is_there, hangs;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *run(void *unused)
{
    pthread_mutex_lock(&worker.lock);
    for (;;) {
        while (!worker.function) pthread_cond_wait(&worker.changed, &worker.lock);
        void (*function)(void *) = worker.function;
        pthread_mutex_unlock(&worker.lock);
        function(worker.argument);
        pthread_mutex_lock(&worker.lock);
        worker.function = NULL;
        pthread_cond_broadcast(&worker.changed);
    }
    return unused;
}

static bool start(void)
{
    pthread_t thread;
    if (!worker.is_there && pthread_create(&thread, NULL, run, NULL) == 0) {
        pthread_detach(thread);
        worker.is_there = true;
    }
    return worker.is_there;
}

static void wait_a_step(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(STEP_SECONDS * 1e9);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&worker.changed, &worker.lock, &until);
}

bool timed_call(void (*function)(void *argument), void *argument, double seconds)
{
    if (worker.hangs || !start()) return false;
    pthread_mutex_lock(&worker.lock);
    worker.function = function;
    worker.argument = argument;
    pthread_cond_broadcast(&worker.changed);
    for (double waited = 0; worker.function && waited < seconds; waited += STEP_SECONDS)
        wait_a_step();
    worker.hangs = worker.function != NULL;
    pthread_mutex_unlock(&worker.lock);
    return !worker.hangs;
}

bool timed_call_hangs(void)
{
    return worker.hangs;
}
