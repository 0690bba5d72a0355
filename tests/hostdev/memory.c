// SPDX-License-Identifier: MIT
// Device memory: a range of addresses for each device, inaccessible unless that device runs. Poison
// between allocations, NaN for a reader, must be unchanged when they are released.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

enum { ALIGN = 256, GAP = 4096, POISON = 0xff }; // NaN as a float and as a double
#define RANGE ((size_t)16 << 30)                 // of addresses
#define PAGE ((size_t)2 << 20)                   // large, as mprotect takes time for every page
#define TAIL ((size_t)64 << 10)                  // maximum of poison after the last allocation

static size_t capacity; // bytes that may be allocated, gaps not counted; 0: the initial ones

struct allocation {
    unsigned char *memory;
    size_t bytes, whole;     // as requested; rounded, with the gap after it
    bool unused;             // not yet poisoned
    cudaMemPool_t pool;      // NULL: none
    struct allocation *next; // at a higher address
};

static struct memory {
    unsigned char *range;
    size_t opened; // accessible bytes from its start
    unsigned char *tail;
    size_t tail_bytes;
    struct allocation *allocations;
} memories[DEVICES];

static void reserve(struct memory *m)
{
    m->range =
        mmap(NULL, RANGE + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->range == MAP_FAILED) hostdev_abort("no addresses for device memory");
    m->range += PAGE - (uintptr_t)m->range % PAGE;
    madvise(m->range, RANGE, MADV_HUGEPAGE);
}

void memory_limit(size_t bytes)
{
    capacity = bytes;
}

static size_t memory_capacity(void)
{
    return capacity ? capacity : (size_t)device_figure("HOSTDEV_MEMORY", 1 << 10) << 20;
}

static size_t memory_bytes(const struct memory *m)
{
    size_t sum = 0;
    for (const struct allocation *a = m->allocations; a; a = a->next) sum += a->bytes;
    return sum;
}

void *memory_map(int device, size_t bytes, cudaMemPool_t pool)
{
    struct memory *m = &memories[device];
    const size_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN + GAP;
    const size_t max = memory_capacity();
    if (bytes > max || memory_bytes(m) > max - bytes) return NULL;
    if (!m->range) reserve(m);
    unsigned char *at = m->range + GAP;
    struct allocation **link = &m->allocations;
    for (; *link && (*link)->memory < at + whole; link = &(*link)->next)
        at = (*link)->memory + (*link)->whole;
    if (at + whole > m->range + RANGE) return NULL;
    struct allocation *a = malloc(sizeof *a);
    if (!a) hostdev_abort("out of memory");
    *a = (struct allocation){at, bytes, whole, true, pool, *link};
    *link = a;
    if (pool) pool_take(pool, bytes);
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
    const int device = memory_device(memory);
    if (device < 0) hostdev_abort("released %p, which is no allocation", memory);
    for (struct allocation **at = &memories[device].allocations; *at; at = &(*at)->next) {
        struct allocation *a = *at;
        if (a->memory != memory) continue;
        if (!a->unused) check_gaps(a);
        memset(a->memory, POISON, a->bytes);
        *at = a->next;
        if (a->pool) pool_give_back(a->pool, a->bytes);
        free(a);
        return;
    }
    hostdev_abort("released %p, which is within an allocation", memory);
}

static const struct allocation *find(const unsigned char *pointer, int *ret_device)
{
    for (*ret_device = 0; *ret_device < DEVICES; ++*ret_device)
        for (const struct allocation *a = memories[*ret_device].allocations; a; a = a->next)
            if (pointer >= a->memory && pointer < a->memory + a->bytes) return a;
    return NULL;
}

int memory_device(const void *pointer)
{
    int device;
    return find(pointer, &device) ? device : -1;
}

static bool in_range(const struct memory *m, const unsigned char *byte)
{
    return m->range && byte >= m->range && byte < m->range + RANGE;
}

void memory_check(const void *pointer, size_t bytes)
{
    int device;
    const struct allocation *a = find(pointer, &device);
    const unsigned char *byte = pointer;
    bool outside = a && bytes > (size_t)(a->memory + a->bytes - byte);
    for (int i = 0; i < DEVICES && !a; i++) outside = outside || in_range(&memories[i], byte);
    if (outside)
        hostdev_abort("%zu bytes from %p, which are not in one allocation", bytes, pointer);
}

// Poisons memory from the last allocation to at most the end of its page, where accessible memory
// ends.
static void poison_tail(struct memory *m, unsigned char *end)
{
    const size_t left = (size_t)(m->range + m->opened - end);
    if (end == m->tail) return;
    m->tail = end;
    m->tail_bytes = left < TAIL ? left : TAIL;
    memset(m->tail, POISON, m->tail_bytes);
}

static void check_tail(const struct memory *m)
{
    for (size_t i = 0; i < m->tail_bytes; i++)
        if (m->tail[i] != POISON) hostdev_abort("written %zu bytes after the last allocation", i);
}

static void open_one(struct memory *m)
{
    if (m->opened || !m->range) return;
    m->opened = GAP;
    for (const struct allocation *a = m->allocations; a; a = a->next)
        m->opened = (size_t)(a->memory + a->whole - m->range);
    unsigned char *end = m->range + m->opened;
    m->opened = (m->opened + PAGE - 1) / PAGE * PAGE;
    mprotect(m->range, m->opened, PROT_READ | PROT_WRITE);
    poison_tail(m, end);
    for (struct allocation *a = m->allocations; a; a = a->next) {
        if (a->unused) memset(a->memory - GAP, POISON, a->whole + GAP);
        a->unused = false;
    }
}

static void close_one(struct memory *m)
{
    if (!m->opened) return;
    check_tail(m);
    mprotect(m->range, m->opened, PROT_NONE);
    m->opened = 0;
}

void memory_open(int device)
{
    for (int i = 0; i < DEVICES; i++)
        if (device == ALL_DEVICES || i == device) open_one(&memories[i]);
        else close_one(&memories[i]);
}

void memory_close(void)
{
    for (int i = 0; i < DEVICES; i++) close_one(&memories[i]);
}

size_t memory_count(void)
{
    size_t n = 0;
    for (int i = 0; i < DEVICES; i++)
        for (const struct allocation *a = memories[i].allocations; a; a = a->next) n++;
    return n;
}
