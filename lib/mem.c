// SPDX-License-Identifier: MIT
#include "mem.h"

#include <stdlib.h>
#include <string.h>

size_t size_add(size_t a, size_t b)
{
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

size_t size_mul(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t mem_round(size_t bytes)
{
    return bytes > SIZE_MAX - MEM_ALIGN ? SIZE_MAX : (bytes + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1);
}

void *mem_reserve(const struct partita_allocator *allocator, size_t bytes)
{
    // One byte more than nothing, so that NULL always means failure.
    const size_t rounded = mem_round(bytes ? bytes : 1);
    if (rounded > PTRDIFF_MAX) return NULL;
    return allocator->allocate ? allocator->allocate(allocator->user, rounded) : aligned_alloc(MEM_ALIGN, rounded);
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

void *arena_take(struct arena *arena, size_t bytes)
{
    char *slice = arena->base ? arena->base + arena->used : NULL;
    arena->used = size_add(arena->used, mem_round(bytes));
    return slice;
}
