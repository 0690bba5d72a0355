// SPDX-License-Identifier: MIT
#include "thread.h"

#include <assert.h>

#ifdef _OPENMP
#include <omp.h>

void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context)
{
    assert(threads >= 1);
    if (threads <= 1 || n_tasks <= 1) {
        for (size_t task = 0; task < n_tasks; task++) run(context, task, 0);
        return;
    }
    // Neighbouring tasks touch neighbouring memory: a thread takes several at once, so that what
    // the processor reads ahead is its own, yet often enough that threads finish together.
    const size_t batch = n_tasks / (32 * (size_t)threads) + 1;
#pragma omp parallel for num_threads(threads) schedule(dynamic, batch)
    for (size_t task = 0; task < n_tasks; task++) run(context, task, omp_get_thread_num());
}

#else

void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context)
{
    (void)threads;
    for (size_t task = 0; task < n_tasks; task++) run(context, task, 0);
}

#endif
