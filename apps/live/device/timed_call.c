// SPDX-License-Identifier: MIT
// See timed_call.h. All calls share one thread, because PortAudio keeps the reason of an error per
// thread.
#include "timed_call.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

// The limit counts steps of waiting, so that the time in which the program itself is stopped does
// not count.
enum { STEP_MILLISECONDS = 50 };

static struct {
    int wanted, done; // events: a call is to be made, and has returned
    void (*function)(void *);
    void *argument;
    bool started, hangs;
    bool (*meanwhile)(void *user); // NULL: none
    void *user;
} worker;

static void *timed_call_thread(void *unused)
{
    for (eventfd_t n; read(worker.wanted, &n, sizeof n) == sizeof n;) {
        worker.function(worker.argument);
        if (write(worker.done, &n, sizeof n) != sizeof n) break;
    }
    return unused;
}

static bool start_thread_once(void)
{
    pthread_t thread;
    if (worker.started) return true;
    if (worker.wanted <= 0) worker.wanted = eventfd(0, EFD_CLOEXEC);
    if (worker.done <= 0) worker.done = eventfd(0, EFD_CLOEXEC);
    if (worker.wanted < 0 || worker.done < 0) return false;
    worker.started = pthread_create(&thread, NULL, timed_call_thread, NULL) == 0;
    if (worker.started) pthread_detach(thread);
    return worker.started;
}

void timed_call_meanwhile(bool (*function)(void *user), void *user)
{
    worker.meanwhile = function;
    worker.user = user;
}

bool timed_call(void (*function)(void *argument), void *argument, double seconds)
{
    eventfd_t one = 1;
    if (worker.hangs || !start_thread_once()) return false;
    worker.function = function;
    worker.argument = argument;
    worker.hangs = true;
    if (write(worker.wanted, &one, sizeof one) != sizeof one) return false;
    for (double left = 1e3 * seconds; worker.hangs && left > 0; left -= STEP_MILLISECONDS) {
        struct pollfd done = {.fd = worker.done, .events = POLLIN};
        worker.hangs = poll(&done, 1, STEP_MILLISECONDS) <= 0 ||
                       read(worker.done, &one, sizeof one) != sizeof one;
        if (worker.hangs && worker.meanwhile && !worker.meanwhile(worker.user)) break;
    }
    return !worker.hangs;
}

bool timed_call_hangs(void)
{
    return worker.hangs;
}
