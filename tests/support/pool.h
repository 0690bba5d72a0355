// SPDX-License-Identifier: MIT
// Threads of a host, for partita_options.executor: a small pool with a lock, as plain as can be.
#ifndef PARTITA_TEST_POOL_H
#define PARTITA_TEST_POOL_H

#include <partita/plan.h>
#include <pthread.h>
#include <stdatomic.h>

enum { POOL_THREADS = 3 };

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t threads[POOL_THREADS];
    void (*task)(void *context);
    void *context;
    size_t waiting, running; // calls of the task not yet begun, not yet returned
    bool closing;
    atomic_ulong calls; // of run
    // Told when a thread goes into the library's code and when it leaves it. NULL: nobody is told.
    void (*entering)(bool inside);
};

void pool_open(struct pool *pool);
void pool_close(struct pool *pool);

// All threads and the calling one take part.
struct partita_executor pool_executor(struct pool *pool);

// One of the pool's threads makes all the calls, one after the other, while the calling thread
// waits.
struct partita_executor pool_executor_other_thread(struct pool *pool);

// The calling thread makes all the calls, one after the other; counted in `calls`, no thread is
// needed.
struct partita_executor pool_executor_serial(struct pool *pool);

#endif
