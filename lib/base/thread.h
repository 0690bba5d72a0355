// SPDX-License-Identifier: MIT
// Parallel loops. The only file that knows OpenMP.
#ifndef PARTITA_THREAD_H
#define PARTITA_THREAD_H

#include <stddef.h>

// One task of a loop; `worker` is below the thread count given, so it can index per-thread scratch.
typedef void task_fn(void *context, size_t task, int worker);

// Runs tasks 0 .. n_tasks-1, each once, on up to `threads` threads, in any order; returns when all
// are done. Tasks must not depend on each other or on the worker that runs them.
void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context);

#endif
