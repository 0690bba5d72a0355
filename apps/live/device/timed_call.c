// SPDX-License-Identifier: MIT
// See timed_call.h. All calls share one thread, because PortAudio keeps the reason of an error per
// thread.
#include "timed_call.h"

#include <pthread.h>
#include <time.h>

// The limit counts steps of waiting, so that the time in which the program itself is stopped does
// not count.
static const double STEP_SECONDS = 0.05;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*function)(void *); // the current call; NULL: none
    void *argument;
    bool started, hangs;
    bool (*meanwhile)(void *user); // NULL: none
    void *user;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *timed_call_thread(void *unused)
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

static bool start_thread_once(void)
{
    pthread_t thread;
    if (!worker.started && pthread_create(&thread, NULL, timed_call_thread, NULL) == 0) {
        pthread_detach(thread);
        worker.started = true;
    }
    return worker.started;
}

static void wait_step(void)
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

void timed_call_meanwhile(bool (*function)(void *user), void *user)
{
    worker.meanwhile = function;
    worker.user = user;
}

bool timed_call(void (*function)(void *argument), void *argument, double seconds)
{
    if (worker.hangs || !start_thread_once()) return false;
    pthread_mutex_lock(&worker.lock);
    worker.function = function;
    worker.argument = argument;
    pthread_cond_broadcast(&worker.changed);
    for (double waited = 0; worker.function && waited < seconds; waited += STEP_SECONDS) {
        wait_step();
        if (worker.meanwhile && !worker.meanwhile(worker.user)) break;
    }
    worker.hangs = worker.function != NULL;
    pthread_mutex_unlock(&worker.lock);
    return !worker.hangs;
}

bool timed_call_hangs(void)
{
    return worker.hangs;
}
