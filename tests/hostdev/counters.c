// SPDX-License-Identifier: MIT
// What has run on the device.
#include "internal.h"

static struct hostdev_work work;

void count_work(const struct operation *o)
{
    if (o->kind == KERNEL) {
        work.kernels++;
        work.blocks += (size_t)o->kernel.grid.x * o->kernel.grid.y * o->kernel.grid.z;
    }
    if (o->kind == COPY) work.copied += o->bytes;
}

void count_interval(void)
{
    work.intervals++;
}

struct hostdev_work hostdev_work(void)
{
    return work;
}
