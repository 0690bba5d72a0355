// SPDX-License-Identifier: MIT
// Runs kernels: block after block, threads as fibers, shared memory poisoned and guarded.
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "race.h"

enum { GUARD_BYTES = 4096, GUARD = 0xa5, POISON = 0xff };

struct hostdev_index threadIdx, blockIdx, blockDim, gridDim;
_Alignas(128) unsigned char shared_memory[SHARED_BYTES + GUARD_BYTES];

static const struct hostdev_kernel *running;
static struct hostdev_index indices[MAX_THREADS]; // of the threads of a block

static enum { UNSET, FORWARD, REVERSE, SHUFFLED } order_kind;
static uint64_t order_state;

void hostdev_order(const char *order)
{
    order_kind = !order || !strcmp(order, "forward") ? FORWARD
                 : !strcmp(order, "reverse")         ? REVERSE
                                                     : SHUFFLED;
    order_state = order_kind == SHUFFLED ? strtoull(order, NULL, 0) : 0;
}

// SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t draw(void)
{
    uint64_t z = order_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void read_order(void)
{
    if (order_kind == UNSET) hostdev_order(getenv("HOSTDEV_ORDER"));
}

size_t order_draw(size_t n)
{
    read_order();
    return order_kind == SHUFFLED && n ? (size_t)(draw() % n) : 0;
}

static void shuffle(unsigned *order, unsigned n)
{
    for (unsigned i = 0; i < n; i++) order[i] = order_kind == REVERSE ? n - 1 - i : i;
    for (unsigned i = n; order_kind == SHUFFLED && i > 1; i--) {
        const unsigned other = (unsigned)(draw() % i), kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

static struct hostdev_index split(unsigned i, struct hostdev_index extent)
{
    return (struct hostdev_index){i % extent.x, i / extent.x % extent.y, i / extent.x / extent.y};
}

// The order of a block's threads up to the next barrier.
static void begin_interval(unsigned *order, unsigned n)
{
    count_interval();
    race_fence();
    shuffle(order, n);
}

static void resume(unsigned i)
{
    race_thread(i);
    threadIdx = indices[i];
}

static void run_thread(unsigned i)
{
    (void)i;
    running->run(running->call);
}

static void run_block(unsigned block)
{
    const struct hostdev_kernel *kernel = running;
    unsigned char *guard = shared_memory + kernel->shared_bytes;
    blockIdx = split(block, kernel->grid);
    memset(shared_memory, POISON, kernel->shared_bytes);
    memset(guard, GUARD, GUARD_BYTES);
    fiber_run(kernel->block.x * kernel->block.y * kernel->block.z, run_thread, resume,
              begin_interval);
    for (size_t i = 0; i < GUARD_BYTES; i++)
        if (guard[i] != GUARD)
            hostdev_abort("written %zu bytes beyond %zu of shared memory", i, kernel->shared_bytes);
}

void launch_run(const struct hostdev_kernel *kernel)
{
    const unsigned n = kernel->grid.x * kernel->grid.y * kernel->grid.z;
    unsigned *order = malloc(n * sizeof *order);
    if (!order) hostdev_abort("out of memory");
    read_order();
    running = kernel;
    race_watch(shared_memory, kernel->shared_bytes);
    gridDim = kernel->grid;
    blockDim = kernel->block;
    for (unsigned i = 0; i < kernel->block.x * kernel->block.y * kernel->block.z; i++)
        indices[i] = split(i, kernel->block);
    shuffle(order, n);
    for (unsigned i = 0; i < n; i++) run_block(order[i]);
    free(order);
}
