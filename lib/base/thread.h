// SPDX-License-Identifier: MIT
// Parallel loops. thread.c is the only file that uses OpenMP.
#ifndef PARTITA_THREAD_H
#define PARTITA_THREAD_H

#include <stddef.h>

// One task of a loop; `worker` is below the thread count given, so it can index per-thread scratch.
typedef void task_fn(void *context, size_t task, int worker);

// Runs tasks 0 .. n_tasks-1, each once, on up to `threads` threads, in any order; returns when all
// are done. Tasks must not depend on each other or on the worker that runs them. Fewer threads run
// where the system does not give more, and one in a child of fork() whose parent has run a loop on
// several.
void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context);

// How often this process and its ancestors have forked since an ancestor first asked: threads that
// were started at another number are not in this process.
unsigned thread_forks(void);

// Locks that fork() waits for, so that a child finds them free and the data they guard whole. No
// thread takes one while it has another.
enum thread_lock { LOCK_FFTW, LOCK_WISDOM, THREAD_LOCKS };
void thread_lock(enum thread_lock lock);
void thread_unlock(enum thread_lock lock);

enum { MAX_THREADS = 4096 };

// As many of the threads that a caller wants as this machine can use: 16, or two for each core if
// that is more. Results do not depend on it, and more would only wait for each other. The cores are
// counted once.
int thread_bound(int wanted);

// Threads of a loop whose caller does not say how many: OpenMP's default, which is OMP_NUM_THREADS
// or the number of cores that the process could run on when it started, within thread_bound; 1
// without OpenMP.
int thread_default(void);

#endif
