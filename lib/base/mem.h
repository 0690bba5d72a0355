// SPDX-License-Identifier: MIT
// Aligned memory through the caller's hooks, and arenas: one allocation per object.
#ifndef PARTITA_MEM_H
#define PARTITA_MEM_H

#include <assert.h>
#include <partita/problem.h>

enum { MEM_ALIGN = 64, MEM_PACK = 16 };

// Rounds up to the alignment; SIZE_MAX if that overflows, which no allocation can satisfy.
static inline size_t mem_round(size_t bytes)
{
    return bytes > SIZE_MAX - MEM_ALIGN ? SIZE_MAX
                                        : (bytes + MEM_ALIGN - 1) & ~(size_t)(MEM_ALIGN - 1);
}

// Saturating arithmetic for sizes: SIZE_MAX stands for "more than memory".
static inline size_t size_add(size_t a, size_t b)
{
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static inline size_t size_mul(size_t a, size_t b)
{
    size_t product;
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

// 64-byte aligned, through the hooks; NULL on failure or if bytes is SIZE_MAX. mem_allocate zeroes
// the memory. mem_reserve leaves it undefined, for memory that is written before it is read: large
// pages are then first touched by the thread that works on them.
void *mem_allocate(const struct partita_allocator *allocator, size_t bytes);
void *mem_reserve(const struct partita_allocator *allocator, size_t bytes);

// NULL is allowed.
void mem_release(const struct partita_allocator *allocator, void *memory);

// One allocation. The same function lays it out twice: without a base the arena only counts bytes.
struct arena {
    char *base;
    size_t used, size; // size 0: not known
};

static inline void *arena_advance(struct arena *arena, size_t begin, size_t bytes)
{
    arena->used = size_add(begin, bytes);
    assert(!arena->base || !arena->size || arena->used <= arena->size);
    return arena->base ? arena->base + begin : NULL;
}

// Aligned memory of the arena, NULL while counting. arena_pack: aligned to MEM_PACK only, so that
// several small arrays that are read together share a cache line.
static inline void *arena_take(struct arena *arena, size_t bytes)
{
    return arena_advance(arena, mem_round(arena->used), mem_round(bytes));
}

static inline void *arena_pack(struct arena *arena, size_t bytes)
{
    const size_t begin = size_add(arena->used, MEM_PACK - 1) & ~(size_t)(MEM_PACK - 1);
    return arena_advance(arena, begin, bytes);
}

// Allocates the memory of a counted arena, zeroed or undefined as above, and resets `used`: call
// arena_take in the same order again. False: out of memory.
bool arena_allocate(struct arena *arena, const struct partita_allocator *allocator);
bool arena_reserve(struct arena *arena, const struct partita_allocator *allocator);

#endif
