// SPDX-License-Identifier: MIT
// A small, simple thread pool with a lock, for partita_options.executor.
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
    atomic_ulong calls; // of the executor
    // Called when a thread enters the library's code and when it leaves it [NULL].
    void (*entering)(bool inside);
};

void pool_open(struct pool *pool);
void pool_close(struct pool *pool);

// All threads and the calling thread take part.
struct partita_executor pool_executor(struct pool *pool);

// One of the pool's threads makes all calls, one after the other, while the calling thread waits.
struct partita_executor pool_executor_other_thread(struct pool *pool);

// The calling thread makes all calls, one after the other, and counts them in `calls`; the pool
// need not be open.
struct partita_executor pool_executor_serial(struct pool *pool);

#endif
