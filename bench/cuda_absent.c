// SPDX-License-Identifier: MIT
// Linked instead of cuda.c where nvcc is not installed: the rows are left out without a word.
#include "bench.h"

bool ours_layer_cuda(struct contender *contender, const struct workload *w)
{
    (void)contender;
    (void)w;
    return false;
}
