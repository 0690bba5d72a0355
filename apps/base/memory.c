// SPDX-License-Identifier: MIT
// See memory.h. Bytes are counted as the C library rounds them up.
#include "memory.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ALIGNMENT = 64, LARGE_PAGE = 1 << 21 };

static size_t limit;   // 0: none
static bool is_chosen; // by this file
static atomic_size_t in_use;
// Of the last allocation that failed: its bytes, and those in use if it exceeded the limit.
static atomic_size_t failed_bytes, failed_in_use;

// What the machine has, and what `ulimit -v` leaves of it.
static size_t available(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    const size_t all = pages > 0 && bytes > 0 ? (size_t)pages * (size_t)bytes : 0;
    struct rlimit addresses;
    if (getrlimit(RLIMIT_AS, &addresses) || addresses.rlim_cur == RLIM_INFINITY) return all;
    return !all || addresses.rlim_cur < all ? (size_t)addresses.rlim_cur : all;
}

void memory_limit(size_t bytes)
{
    is_chosen = !bytes;
    limit = bytes ? bytes : available() / 2;
}

static bool fail(size_t bytes, size_t used)
{
    atomic_store(&failed_bytes, bytes);
    atomic_store(&failed_in_use, used);
    return false;
}

// Counts bytes unless that would exceed the limit.
static bool count(size_t bytes)
{
    size_t used = atomic_load(&in_use);
    do {
        if (limit && (used > limit || bytes > limit - used)) return fail(bytes, used);
    } while (!atomic_compare_exchange_weak(&in_use, &used, used + bytes));
    return true;
}

// What was counted before it was allocated is replaced by what it takes.
static void *recount(void *memory, size_t counted, size_t asked)
{
    atomic_fetch_sub(&in_use, counted);
    if (memory) atomic_fetch_add(&in_use, malloc_usable_size(memory));
    else fail(asked, 0);
    return memory;
}

// Large memory in large pages, where the system has them, as the library does without hooks.
static void *allocate_aligned(size_t bytes)
{
    const size_t step = bytes > LARGE_PAGE / 2 ? LARGE_PAGE : ALIGNMENT;
    const size_t whole = (bytes ? (bytes - 1) / step + 1 : 1) * step;
    void *memory = whole >= bytes ? aligned_alloc(step, whole) : NULL;
#ifdef MADV_HUGEPAGE
    if (memory && step == LARGE_PAGE) madvise(memory, whole, MADV_HUGEPAGE);
#endif
    return memory;
}

void *memory_allocate(size_t bytes)
{
    return count(bytes) ? recount(allocate_aligned(bytes), bytes, bytes) : NULL;
}

void *memory_allocate_zeros(size_t bytes)
{
    void *memory = memory_allocate(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void *memory_resize(void *memory, size_t bytes)
{
    const size_t before = memory ? malloc_usable_size(memory) : 0;
    const size_t more = bytes > before ? bytes - before : 0;
    if (!count(more)) return NULL;
    void *resized = realloc(memory, bytes);
    return recount(resized, resized ? before + more : more, more);
}

void memory_free(void *memory)
{
    if (memory) atomic_fetch_sub(&in_use, malloc_usable_size(memory));
    free(memory);
}

void *memory_append(void *array, size_t n, size_t *capacity, size_t size)
{
    const size_t more = *capacity ? 2 * *capacity : 16;
    if (n < *capacity) return array;
    void *grown = realloc(array, more * size);
    if (grown) *capacity = more;
    return grown;
}

static void *hook_allocate(void *user, size_t bytes)
{
    (void)user;
    return memory_allocate(bytes);
}

static void hook_release(void *user, void *memory)
{
    (void)user;
    memory_free(memory);
}

struct partita_allocator memory_allocator(void)
{
    return (struct partita_allocator){.allocate = hook_allocate, .release = hook_release};
}

const char *memory_size(double bytes, char text[MEMORY_SIZE_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    double size = bytes / 1024;
    size_t unit = 0;
    for (; size >= 1024 && unit < 3; unit++) size /= 1024;
    snprintf(text, MEMORY_SIZE_TEXT, "%.*f %s", size < 10 ? 1 : 0, size, units[unit]);
    return text;
}

bool memory_fault(struct fault *fault, const char *format, ...)
{
    char what[400], text[3][MEMORY_SIZE_TEXT];
    const size_t bytes = atomic_load(&failed_bytes), used = atomic_load(&failed_in_use);
    const bool limited = limit && (used > limit || bytes > limit - used);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    if (!bytes) return fault_set(fault, "%s: out of memory", what);
    if (!limited)
        return fault_set(fault, "%s: out of memory: %s more are needed", what,
                         memory_size((double)bytes, text[0]));
    memory_size((double)limit, text[1]);
    return fault_set(fault,
                     "%s: %s more of memory are needed, but %s%s%s, of which %s are in use; add "
                     "--max-memory %zuM or more",
                     what, memory_size((double)bytes, text[0]), is_chosen ? "" : "--max-memory is ",
                     text[1], is_chosen ? ", half of what there is, is the limit" : "",
                     memory_size((double)used, text[2]), (used + bytes) / 1000000 + 1);
}
