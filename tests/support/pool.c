// SPDX-License-Identifier: MIT
#include "support/pool.h"

#include <stdlib.h>

static void pool_notify(const struct pool *pool, bool inside)
{
    if (pool->entering) pool->entering(inside);
}

// Makes one call of the task; the lock is held before and after.
static void pool_run_one(struct pool *pool)
{
    void (*task)(void *) = pool->task;
    void *context = pool->context;
    pool->waiting--;
    pthread_mutex_unlock(&pool->lock);
    pool_notify(pool, true);
    task(context);
    pool_notify(pool, false);
    pthread_mutex_lock(&pool->lock);
    if (--pool->running == 0) pthread_cond_signal(&pool->done);
}

static void *pool_thread(void *argument)
{
    struct pool *pool = argument;
    pthread_mutex_lock(&pool->lock);
    while (!pool->closing) {
        if (pool->waiting) pool_run_one(pool);
        else pthread_cond_wait(&pool->work, &pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void pool_open(struct pool *pool)
{
    *pool = (struct pool){.closing = false};
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (int i = 0; i < POOL_THREADS; i++)
        if (pthread_create(&pool->threads[i], NULL, pool_thread, pool) != 0) abort();
}

void pool_close(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < POOL_THREADS; i++) pthread_join(pool->threads[i], NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
}

static void pool_run(struct pool *pool, void (*task)(void *context), void *context, size_t n,
                     bool take_part)
{
    atomic_fetch_add(&pool->calls, 1);
    if (n == 0) return;
    pool_notify(pool, false);
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->context = context;
    pool->waiting = pool->running = n;
    if (take_part) pthread_cond_broadcast(&pool->work);
    else pthread_cond_signal(&pool->work);
    while (take_part && pool->waiting) pool_run_one(pool);
    while (pool->running) pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pool_notify(pool, true);
}

static void pool_run_together(void *user, void (*task)(void *context), void *context, size_t n)
{
    pool_run(user, task, context, n, true);
}

static void pool_run_other_thread(void *user, void (*task)(void *context), void *context, size_t n)
{
    pool_run(user, task, context, n, false);
}

static void pool_run_serial(void *user, void (*task)(void *context), void *context, size_t n)
{
    struct pool *pool = user;
    atomic_fetch_add(&pool->calls, 1);
    while (n--) task(context);
}

struct partita_executor pool_executor(struct pool *pool)
{
    return (struct partita_executor){pool_run_together, pool};
}

struct partita_executor pool_executor_other_thread(struct pool *pool)
{
    return (struct partita_executor){pool_run_other_thread, pool};
}

struct partita_executor pool_executor_serial(struct pool *pool)
{
    return (struct partita_executor){pool_run_serial, pool};
}
