// SPDX-License-Identifier: MIT
#include "mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 1 << 21 };

// Large memory in large pages, where the system has them: streams walk through megabytes a little
// at a time, and a missing translation costs more than the missing data.
static void *reserve_large(size_t bytes)
{
    const size_t whole = (bytes + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1);
    void *memory = aligned_alloc(LARGE_PAGE, whole);
#ifdef MADV_HUGEPAGE
    if (memory) madvise(memory, whole, MADV_HUGEPAGE); // a wish: refusal changes nothing but speed
#endif
    return memory;
}

void *mem_reserve(const struct partita_allocator *allocator, size_t bytes)
{
    // One byte more than nothing, so that NULL always means failure.
    const size_t rounded = mem_round(bytes ? bytes : 1);
    if (rounded > PTRDIFF_MAX) return NULL;
    if (allocator->allocate) return allocator->allocate(allocator->user, rounded);
    return rounded > LARGE_PAGE / 2 ? reserve_large(rounded) : aligned_alloc(MEM_ALIGN, rounded);
}

void *mem_allocate(const struct partita_allocator *allocator, size_t bytes)
{
    void *memory = mem_reserve(allocator, bytes);
    return memory ? memset(memory, 0, mem_round(bytes)) : NULL;
}

void mem_release(const struct partita_allocator *allocator, void *memory)
{
    if (!memory) return;
    if (allocator->allocate) allocator->release(allocator->user, memory);
    else free(memory);
}

static bool arena_restart(struct arena *arena, void *base)
{
    *arena = (struct arena){.base = base, .size = arena->used};
    return base;
}

bool arena_allocate(struct arena *arena, const struct partita_allocator *allocator)
{
    assert(!arena->base);
    return arena_restart(arena, mem_allocate(allocator, arena->used));
}

bool arena_reserve(struct arena *arena, const struct partita_allocator *allocator)
{
    assert(!arena->base);
    return arena_restart(arena, mem_reserve(allocator, arena->used));
}
