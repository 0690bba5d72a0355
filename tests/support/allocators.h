// SPDX-License-Identifier: MIT
// Allocators for partita_options.allocator.
#ifndef PARTITA_TEST_ALLOCATORS_H
#define PARTITA_TEST_ALLOCATORS_H

#include <partita/problem.h>

// Counts allocations. Memory is filled with garbage, and bytes after it must not change.
struct meter {
    size_t n_allocated, bytes_allocated; // all so far
    size_t n_live, bytes_live;
    size_t fail_at; // the allocation that fails, counted from 1 in n_allocated [none]
    size_t guard;   // bytes after each allocation that must not change [4096]
};

struct partita_allocator meter_allocator(struct meter *meter);
void *meter_allocate(void *meter, size_t bytes);
void meter_release(void *meter, void *memory);

// Counts an allocation. Returns whether it must fail.
bool meter_fails(struct meter *meter);

// Reuses released memory at once for the same size, so that new objects have the addresses of
// earlier ones.
struct recycled {
    void *memory[256];
    size_t bytes[256], n;
    bool used[256];
};

// `all` must be zero at first. Returns NULL after 256 allocations.
struct partita_allocator recycled_allocator(struct recycled *all);
void recycled_free(struct recycled *all);

#endif
