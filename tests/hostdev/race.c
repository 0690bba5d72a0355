// SPDX-License-Identifier: MIT
#include "race.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostdev.h"
#include "internal.h"

enum { NOBODY = 0, SEVERAL = MAX_THREADS + 1 }; // others: a thread's number + 1

// Of a byte, since the last barrier; of an older interval nothing is known.
struct accesses {
    unsigned interval;
    unsigned short writer, reader;
    const void *write_at, *read_at; // instructions
};

static struct accesses shadow[SHARED_BYTES];
static unsigned char *watched;
static size_t watched_bytes;
static unsigned interval, running;

void race_watch(unsigned char *memory, size_t bytes)
{
    watched = memory;
    watched_bytes = bytes;
}

void race_fence(void)
{
    if (++interval == 0) memset(shadow, 0, sizeof shadow);
}

void race_thread(unsigned thread)
{
    running = thread + 1;
}

// Prints the kernel and the line of an instruction, if addr2line is installed.
static void print_place(const char *what, const void *instruction)
{
    Dl_info info;
    char command[512];
    if (!dladdr(instruction, &info) || !info.dli_fname) return;
    // A return address belongs to the instruction before it.
    const size_t offset = (size_t)((const char *)instruction - (const char *)info.dli_fbase) - 1;
    snprintf(command, sizeof command, "addr2line -Cfpe '%s' %#zx >&2", info.dli_fname, offset);
    fprintf(stderr, "hostdev: the %s: ", what);
    fflush(stderr);
    if (system(command) != 0) fprintf(stderr, "%s, offset %#zx\n", info.dli_fname, offset);
}

// The other access is by one thread, or by several of which the last is not known.
_Noreturn static void report(size_t at, const char *what, const void *instruction, const char *kind,
                             unsigned other, const void *other_instruction)
{
    print_place(what, instruction);
    print_place(kind, other_instruction);
    const struct hostdev_index block = blockIdx;
    char others[32];
    if (other == SEVERAL) snprintf(others, sizeof others, "several threads");
    else snprintf(others, sizeof others, "thread %u", other - 1);
    hostdev_abort("race: %s of byte %zu of shared memory by thread %u after a %s by %s of block "
                  "%u,%u,%u, no barrier between",
                  what, at, running - 1, kind, others, block.x, block.y, block.z);
}

static const unsigned char *observed;
static size_t observed_bytes;
static struct hostdev_accesses accesses_observed;

void hostdev_observe(const void *memory, size_t bytes)
{
    observed = memory;
    observed_bytes = bytes;
    accesses_observed = (struct hostdev_accesses){0};
}

struct hostdev_accesses hostdev_observed(void)
{
    return accesses_observed;
}

static void access(const void *memory, size_t bytes, bool writes, const void *instruction)
{
    if ((size_t)((const unsigned char *)memory - observed) < observed_bytes)
        *(writes ? &accesses_observed.written : &accesses_observed.read) += bytes;
    const size_t first = (size_t)((const unsigned char *)memory - watched); // wraps if before
    if (first >= watched_bytes) return;
    for (size_t i = first; i < first + bytes && i < watched_bytes; i++) {
        struct accesses *a = &shadow[i];
        if (a->interval != interval) *a = (struct accesses){.interval = interval};
        if (a->writer != NOBODY && a->writer != running)
            report(i, writes ? "write" : "read", instruction, "write", a->writer, a->write_at);
        if (writes && a->reader != NOBODY && a->reader != running)
            report(i, "write", instruction, "read", a->reader, a->read_at);
        if (writes) {
            a->writer = (unsigned short)running;
            a->write_at = instruction;
        } else {
            const bool first_reader = a->reader == NOBODY || a->reader == running;
            a->reader = (unsigned short)(first_reader ? running : SEVERAL);
            a->read_at = instruction;
        }
    }
}

// gcc's and clang's callbacks for -fsanitize=thread, with the types that gcc itself gives them.
#define ACCESS(kind, bytes, writes)                                                                \
    void __tsan_##kind##bytes(void *memory);                                                       \
    void __tsan_##kind##bytes(void *memory)                                                        \
    {                                                                                              \
        access(memory, bytes, writes, __builtin_return_address(0));                                \
    }
#define ACCESSES(bytes)                                                                            \
    ACCESS(read, bytes, false)                                                                     \
    ACCESS(write, bytes, true)                                                                     \
    ACCESS(unaligned_read, bytes, false)                                                           \
    ACCESS(unaligned_write, bytes, true)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_read_range(void *memory, long bytes);
void __tsan_read_range(void *memory, long bytes)
{
    access(memory, (size_t)bytes, false, __builtin_return_address(0));
}

void __tsan_write_range(void *memory, long bytes);
void __tsan_write_range(void *memory, long bytes)
{
    access(memory, (size_t)bytes, true, __builtin_return_address(0));
}

void __tsan_init(void);
void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller)
{
    (void)caller;
}

void __tsan_func_exit(void *unused);
void __tsan_func_exit(void *unused)
{
    (void)unused;
}
