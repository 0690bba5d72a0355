// SPDX-License-Identifier: MIT
#include "thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static unsigned forks;
static pthread_mutex_t locks[THREAD_LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void before_fork(void)
{
    for (int i = 0; i < THREAD_LOCKS; i++) pthread_mutex_lock(&locks[i]);
}

static void after_fork(void)
{
    for (int i = 0; i < THREAD_LOCKS; i++) pthread_mutex_unlock(&locks[i]);
}

static void begin_child(void)
{
    forks++;
    after_fork();
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, begin_child);
}

unsigned thread_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return forks;
}

void thread_lock(enum thread_lock lock)
{
    thread_forks(); // from the first lock on forks are waited for
    pthread_mutex_lock(&locks[lock]);
}

void thread_unlock(enum thread_lock lock)
{
    pthread_mutex_unlock(&locks[lock]);
}

#ifdef _OPENMP
#include <omp.h>

// Threads that a call of this thread may have: as many as its last loop had, for OpenMP lets the
// others end. Loops of the application do not count, nor do proofs of other threads.
static _Thread_local int proven = 1;

static void *wait_at_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

// OpenMP ends the process where it cannot make a thread. So as many as are wanted are made here
// first, at once, and end again; returns how many there can be.
static int prove_threads(int wanted)
{
    if (wanted <= proven) return proven = wanted;
    pthread_t threads[MAX_THREADS];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int made = 0;
    pthread_mutex_lock(&gate);
    while (proven + made < wanted && !pthread_create(&threads[made], NULL, wait_at_gate, &gate))
        made++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&gate);
    proven += made;
    return proven;
}

// Threads do not survive fork(): a loop of a child would wait for ever for those that its parent's
// loops have made. Returns whether this process is such a child.
static bool threads_lost(void)
{
    static atomic_uint owner; // forks before the first loop that had several threads, plus 1
    const unsigned caller = thread_forks() + 1;
    unsigned first = 0;
    return !atomic_compare_exchange_strong(&owner, &first, caller) && first != caller;
}
#endif

void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context)
{
    assert(threads >= 1 && threads <= MAX_THREADS);
#ifdef _OPENMP
    if (threads > 1 && n_tasks > 1) threads = threads_lost() ? 1 : prove_threads(threads);
    // Neighbouring tasks touch neighbouring memory: a thread takes several at once, so that it
    // reads the data that the processor reads ahead, yet often enough that threads finish together.
    const size_t batch = n_tasks / (32 * (size_t)threads) + 1;
    if (threads > 1 && n_tasks > 1) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, batch)
        for (size_t task = 0; task < n_tasks; task++) run(context, task, omp_get_thread_num());
        return;
    }
#endif
    for (size_t task = 0; task < n_tasks; task++) run(context, task, 0);
}

// The C library reads a file for this, which would take longer than the rest of a small plan.
static int cores(void)
{
    static atomic_int known;
    if (!known) {
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        if (online < 1) return 1;
        known = online < MAX_THREADS ? (int)online : MAX_THREADS;
    }
    return known;
}

int thread_bound(int wanted)
{
    enum { MIN_BOUND = 16 };
    if (wanted <= MIN_BOUND) return wanted;
    int bound = 2 * cores();
    if (bound < MIN_BOUND) bound = MIN_BOUND;
    if (bound > MAX_THREADS) bound = MAX_THREADS;
    return wanted < bound ? wanted : bound;
}

int thread_default(void)
{
#ifdef _OPENMP
    return thread_bound(omp_get_max_threads());
#else
    return 1;
#endif
}
