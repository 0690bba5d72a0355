// SPDX-License-Identifier: MIT
// Aligned memory through the caller's hooks, and arenas: one allocation an object.
#ifndef PARTITA_MEM_H
#define PARTITA_MEM_H

#include <partita/common.h>

enum { MEM_ALIGN = 64 };

// Rounds up to the alignment; SIZE_MAX if that overflows, which no allocation can satisfy.
size_t mem_round(size_t bytes);

// Saturating arithmetic for sizes: SIZE_MAX stands for "more than memory".
size_t size_add(size_t a, size_t b);
size_t size_mul(size_t a, size_t b);

// 64-byte aligned, through the hooks; NULL on failure or if bytes is SIZE_MAX. Zeroed, or left as
// it comes for memory that is written before it is read: large pages are then first touched by the
// thread that works on them.
void *mem_allocate(const struct partita_allocator *allocator, size_t bytes);
void *mem_reserve(const struct partita_allocator *allocator, size_t bytes);

// NULL is allowed.
void mem_release(const struct partita_allocator *allocator, void *memory);

// One allocation that is laid out twice by the same function: an arena without a base only counts.
struct arena {
    char *base;
    size_t used, size; // size 0: not known
};

// Aligned memory of the arena, NULL while counting.
void *arena_take(struct arena *arena, size_t bytes);

// Gives a counted arena its memory, zeroed or as it comes, and starts over: run the same takes
// again. False: there is none.
bool arena_allocate(struct arena *arena, const struct partita_allocator *allocator);
bool arena_reserve(struct arena *arena, const struct partita_allocator *allocator);

#endif
