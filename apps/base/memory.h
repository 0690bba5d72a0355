// SPDX-License-Identifier: MIT
// Memory of samples, taps and plans, which is large and which --max-memory bounds. Objects of a few
// kilobytes are plain malloc. Any thread may call these functions.
#ifndef PARTITA_APPS_MEMORY_H
#define PARTITA_APPS_MEMORY_H

#include <partita/problem.h>

#include "base/fault.h"

// The bytes that may be in use at a time; 0: half of the machine's memory or of the process's limit
// of addresses. Called before anything is allocated; without it there is no limit.
void memory_limit(size_t bytes);

// 64-byte aligned and undefined, or of zeros; NULL where it would exceed the limit or there is
// none.
void *memory_allocate(size_t bytes);
void *memory_allocate_zeros(size_t bytes);

// As realloc: not aligned; `memory` stays as it is where NULL is returned.
void *memory_resize(void *memory, size_t bytes);

// NULL is allowed.
void memory_free(void *memory);

// The same for the library's objects.
struct partita_allocator memory_allocator(void);

// `array`, which free releases, with space for one element of `size` bytes after its n, at this or
// another address. NULL: no memory, and the array stays.
void *memory_append(void *array, size_t n, size_t *capacity, size_t size);

// As a user reads it: 1.5 GiB. Returns `text`.
enum { MEMORY_SIZE_TEXT = 32 };
const char *memory_size(double bytes, char text[MEMORY_SIZE_TEXT]);

// After an allocation has failed: says for what, how many bytes it needed and what the limit is.
// Returns false.
__attribute__((format(printf, 2, 3))) bool memory_fault(struct fault *fault, const char *format,
                                                        ...);

#endif
