// SPDX-License-Identifier: MIT
// Fibers: one for each thread of a block, with stacks that are reused. One runs at a time, until it
// ends, reaches a barrier or gathers with the other threads of its warp.
#include <stdlib.h>
#include <sys/mman.h>

#include "context.h"
#include "internal.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#else
#define __sanitizer_start_switch_fiber(saved, bottom, size)                                        \
    ((void)(saved), (void)(bottom), (void)(size))
#define __sanitizer_finish_switch_fiber(saved, bottom, size)                                       \
    ((void)(saved), (void)(bottom), (void)(size))
#endif

// Stacks have different offsets, so that they do not evict each other from the caches.
enum { STACK_BYTES = 256 << 10, SHIFT_BYTES = 17 * 64, SHIFTS = 61 };

enum state { READY, WAITING, GATHERED, DONE };

struct fiber {
    struct context context;
    void *stack, *sanitizer;
    bool begun; // has a stack and is in its loop
    enum state state;
    const char *file; // of its barrier
    int line;
    void (*gathered)(void *const lane[WARP_LANES]);
    void *mine;
};

static struct fiber fibers[MAX_THREADS];
static unsigned current;
static void (*current_task)(unsigned i);
static struct context scheduler;
static void *scheduler_sanitizer;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;

static void leave(struct fiber *fiber)
{
    __sanitizer_start_switch_fiber(&fiber->sanitizer, scheduler_stack, scheduler_stack_bytes);
    context_switch(&fiber->context, &scheduler);
    __sanitizer_finish_switch_fiber(fiber->sanitizer, &scheduler_stack, &scheduler_stack_bytes);
}

static void fiber_main(void)
{
    __sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_bytes);
    for (;;) {
        current_task(current);
        fibers[current].state = DONE;
        leave(&fibers[current]);
    }
}

static void begin(struct fiber *fiber)
{
    fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fiber->stack == MAP_FAILED) hostdev_abort("no stack for a fiber");
    const size_t shift = (size_t)(fiber - fibers) % SHIFTS * SHIFT_BYTES;
    context_make(&fiber->context, fiber->stack, STACK_BYTES - shift, fiber_main);
    fiber->begun = true;
}

static void enter(unsigned i)
{
    struct fiber *fiber = &fibers[i];
    current = i;
    if (!fiber->begun) begin(fiber);
    __sanitizer_start_switch_fiber(&scheduler_sanitizer, fiber->stack, STACK_BYTES);
    context_switch(&scheduler, &fiber->context);
    __sanitizer_finish_switch_fiber(scheduler_sanitizer, NULL, NULL);
}

// Returns whether the fibers wait at a barrier. Aborts unless all or none wait, and all at the same
// one.
static bool all_wait(unsigned n)
{
    unsigned waiting = 0;
    for (unsigned i = 0; i < n; i++) {
        waiting += fibers[i].state == WAITING;
        if (fibers[i].state == GATHERED)
            hostdev_abort("thread %u gathers with its warp, another thread of which does not", i);
    }
    if (!waiting) return false;
    for (unsigned i = 0; i < n; i++) {
        if (fibers[i].state == DONE)
            hostdev_abort("thread %u of %u ended, others wait at a barrier", i, n);
        if (fibers[i].line != fibers[0].line || fibers[i].file != fibers[0].file)
            hostdev_abort("thread %u waits at %s:%d, thread 0 at %s:%d", i, fibers[i].file,
                          fibers[i].line, fibers[0].file, fibers[0].line);
    }
    return true;
}

// Aborts unless the other lanes of the warp gather for the same work.
static void work_together(const struct fiber *warp)
{
    void *lane[WARP_LANES];
    for (unsigned i = 0; i < WARP_LANES; i++) {
        if (warp[i].gathered != warp[0].gathered)
            hostdev_abort("lane %u of a warp gathers for other work than lane 0", i);
        lane[i] = warp[i].mine;
    }
    warp[0].gathered(lane);
}

// Runs a fiber, and its whole warp as often as all its lanes have gathered.
static void run_fiber(unsigned fiber, unsigned n, void (*resume)(unsigned i))
{
    const unsigned first = fiber / WARP_LANES * WARP_LANES;
    resume(fiber);
    enter(fiber);
    for (;;) {
        for (unsigned i = first; i < first + WARP_LANES; i++)
            if (i >= n || fibers[i].state != GATHERED) return;
        work_together(&fibers[first]);
        for (unsigned i = first; i < first + WARP_LANES; i++) {
            const unsigned lane = first + (i + fiber) % WARP_LANES;
            fibers[lane].state = READY;
            resume(lane);
            enter(lane);
        }
    }
}

void fiber_gather(void (*work)(void *const lane[WARP_LANES]), void *mine)
{
    struct fiber *fiber = &fibers[current];
    fiber->state = GATHERED;
    fiber->gathered = work;
    fiber->mine = mine;
    leave(fiber);
}

void fiber_run(unsigned n, void (*task)(unsigned i), void (*resume)(unsigned i),
               void (*shuffle)(unsigned *order, unsigned n))
{
    static unsigned order[MAX_THREADS];
    current_task = task;
    for (unsigned i = 0; i < n; i++) fibers[i].state = READY;
    do {
        shuffle(order, n);
        for (unsigned i = 0; i < n; i++) run_fiber(order[i], n, resume);
    } while (all_wait(n));
}

void hostdev_barrier(const char *file, int line)
{
    struct fiber *fiber = &fibers[current];
    fiber->state = WAITING;
    fiber->file = file;
    fiber->line = line;
    leave(fiber);
}
