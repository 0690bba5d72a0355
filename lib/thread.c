// SPDX-License-Identifier: MIT
#include "thread.h"

#ifdef _OPENMP
#include <omp.h>

void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context)
{
    if (threads <= 1 || n_tasks <= 1) {
        for (size_t task = 0; task < n_tasks; task++) run(context, task, 0);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (size_t task = 0; task < n_tasks; task++) run(context, task, omp_get_thread_num());
}

#else

void thread_loop(int threads, size_t n_tasks, task_fn *run, void *context)
{
    (void)threads;
    for (size_t task = 0; task < n_tasks; task++) run(context, task, 0);
}

#endif
