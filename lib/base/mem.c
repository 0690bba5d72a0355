// SPDX-License-Identifier: MIT
#include "mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 1 << 21 };

// Blocks of more than half a large page lie in large pages, where the system has them: streams walk
// through megabytes a little at a time, and a missing translation costs more than the missing data.
// Before a block stands the address of the memory that contains it. aligned_alloc would split that
// memory, and other objects would occupy its parts: calls of ever new sizes need 1.3 times as much.
void *mem_reserve(const struct partita_allocator *allocator, size_t bytes)
{
    // One byte more than nothing, so that NULL always means failure.
    const size_t rounded = mem_round(bytes ? bytes : 1);
    if (rounded > PTRDIFF_MAX) return NULL;
    if (allocator->allocate) return allocator->allocate(allocator->user, rounded);
    const size_t align = rounded > LARGE_PAGE / 2 ? LARGE_PAGE : MEM_ALIGN;
    const size_t whole = (rounded + align - 1) / align * align;
    char *memory = malloc(align + whole);
    if (!memory) return NULL;
    void **block = (void **)(memory + align - (uintptr_t)memory % align);
    assert((char *)(block - 1) >= memory);
    block[-1] = memory;
#ifdef MADV_HUGEPAGE
    if (align == LARGE_PAGE) madvise(block, whole, MADV_HUGEPAGE); // refused: less speed
#endif
    return block;
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
    else free(((void **)memory)[-1]);
}

bool arena_reserve(struct arena *arena, const struct partita_allocator *allocator)
{
    assert(!arena->base);
    *arena = (struct arena){.base = mem_reserve(allocator, arena->used), .size = arena->used};
    return arena->base;
}

bool arena_allocate(struct arena *arena, const struct partita_allocator *allocator)
{
    return arena_reserve(arena, allocator) && memset(arena->base, 0, arena->size);
}
