// SPDX-License-Identifier: MIT
#include "thread.h"

static _Thread_local struct cuda_thread current = {.stream = cudaStreamPerThread};

const struct cuda_thread *cuda_thread(void)
{
    return &current;
}

void cuda_thread_set(const struct cuda_thread *thread)
{
    current = *thread;
}
