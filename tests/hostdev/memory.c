// SPDX-License-Identifier: MIT
// Device memory: one range of addresses that is inaccessible unless the device runs. Poison between
// allocations, NaN for a reader, must be unchanged when they are released.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

enum { ALIGN = 256, GAP = 4096, POISON = 0xff }; // NaN as a float and as a double
#define RANGE ((size_t)1 << 30)
#define PAGE ((size_t)2 << 20)  // large, as mprotect takes time for every page
#define TAIL ((size_t)64 << 10) // maximum of poison after the last allocation

static size_t capacity = RANGE; // bytes that may be allocated; gaps are not counted

struct allocation {
    unsigned char *memory;
    size_t bytes, whole;     // as requested; rounded, with the gap after it
    bool fresh;              // not yet poisoned
    struct allocation *next; // at a higher address
};

static unsigned char *range;
static size_t opened; // accessible bytes from its start
static unsigned char *tail;
static size_t tail_bytes;
static struct allocation *allocations;

static void reserve(void)
{
    range = mmap(NULL, RANGE + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) hostdev_abort("no addresses for device memory");
    range += PAGE - (uintptr_t)range % PAGE;
    madvise(range, RANGE, MADV_HUGEPAGE);
}

void memory_limit(size_t bytes)
{
    capacity = bytes ? bytes : RANGE;
}

static size_t memory_bytes(void)
{
    size_t sum = 0;
    for (const struct allocation *a = allocations; a; a = a->next) sum += a->bytes;
    return sum;
}

void *memory_map(size_t bytes)
{
    const size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN + GAP;
    if (bytes > capacity || memory_bytes() > capacity - bytes) return NULL;
    if (!range) reserve();
    unsigned char *at = range + GAP;
    struct allocation **link = &allocations;
    for (; *link && (*link)->memory < at + whole; link = &(*link)->next)
        at = (*link)->memory + (*link)->whole;
    if (at + whole > range + RANGE) return NULL;
    struct allocation *a = malloc(sizeof *a);
    if (!a) hostdev_abort("out of memory");
    *a = (struct allocation){at, bytes, whole, true, *link};
    *link = a;
    return at;
}

static void check_gaps(const struct allocation *a)
{
    const unsigned char *end = a->memory + a->whole;
    for (const unsigned char *byte = a->memory - GAP; byte < end; byte++) {
        if (byte == a->memory) byte += a->bytes;
        if (byte < end && *byte != POISON)
            hostdev_abort("written %td bytes from the start of an allocation of %zu",
                          byte - a->memory, a->bytes);
    }
}

void memory_unmap(void *memory)
{
    for (struct allocation **at = &allocations; *at; at = &(*at)->next) {
        struct allocation *a = *at;
        if (a->memory != memory) continue;
        if (!a->fresh) check_gaps(a);
        memset(a->memory, POISON, a->bytes);
        *at = a->next;
        free(a);
        return;
    }
    hostdev_abort("released %p, which is no allocation", memory);
}

static const struct allocation *find(const unsigned char *pointer)
{
    for (const struct allocation *a = allocations; a; a = a->next)
        if (pointer >= a->memory && pointer < a->memory + a->bytes) return a;
    return NULL;
}

bool memory_contains(const void *pointer)
{
    return find(pointer);
}

void memory_check(const void *pointer, size_t bytes)
{
    const struct allocation *a = find(pointer);
    const unsigned char *byte = pointer;
    if (a ? bytes > (size_t)(a->memory + a->bytes - byte) : byte >= range && byte < range + RANGE)
        hostdev_abort("%zu bytes from %p, which are not in one allocation", bytes, pointer);
}

// Poisons memory from the last allocation to at most the end of its page, where accessible memory
// ends.
static void poison_tail(unsigned char *end)
{
    if (end == tail) return;
    tail = end;
    tail_bytes = (size_t)(range + opened - end) < TAIL ? (size_t)(range + opened - end) : TAIL;
    memset(tail, POISON, tail_bytes);
}

static void check_tail(void)
{
    for (size_t i = 0; i < tail_bytes; i++)
        if (tail[i] != POISON) hostdev_abort("written %zu bytes after the last allocation", i);
}

void memory_open(void)
{
    if (opened || !range) return;
    opened = GAP;
    for (const struct allocation *a = allocations; a; a = a->next)
        opened = (size_t)(a->memory + a->whole - range);
    unsigned char *end = range + opened;
    opened = (opened + PAGE - 1) / PAGE * PAGE;
    mprotect(range, opened, PROT_READ | PROT_WRITE);
    poison_tail(end);
    for (struct allocation *a = allocations; a; a = a->next) {
        if (a->fresh) memset(a->memory - GAP, POISON, a->whole + GAP);
        a->fresh = false;
    }
}

void memory_close(void)
{
    if (!opened) return;
    check_tail();
    mprotect(range, opened, PROT_NONE);
    opened = 0;
}

size_t memory_count(void)
{
    size_t n = 0;
    for (const struct allocation *a = allocations; a; a = a->next) n++;
    return n;
}
