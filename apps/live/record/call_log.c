// SPDX-License-Identifier: MIT
#include "call_log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "live/chain/chain.h"
#include "ring_writer.h"

enum { RING_CALLS = 1 << 16 };

struct call_log {
    FILE *file;
    const char *path;
    struct ring_writer *writer;
};

static bool call_log_fault(const char *path, struct fault *fault)
{
    return fault_set(fault, "%s: cannot write: %s", path, strerror(errno));
}

static bool call_log_write(void *user, const void *items, size_t n, struct fault *fault)
{
    struct call_log *log = user;
    const struct call_time *times = items;
    for (size_t i = 0; i < n; i++)
        if (fprintf(log->file, "%llu,%.4g\n", (unsigned long long)times[i].frame,
                    (double)times[i].seconds) < 0)
            return call_log_fault(log->path, fault);
    return true;
}

void call_log_close(struct call_log *log)
{
    if (!log) return;
    ring_writer_close(log->writer);
    if (log->file) fclose(log->file);
    free(log);
}

bool call_log_open(struct call_log **ret_log, const char *path, struct fault *fault)
{
    struct call_log *log = calloc(1, sizeof *log);
    if (!log) return fault_set(fault, "out of memory");
    log->path = path;
    log->file = fopen(path, "we");
    bool good = log->file || call_log_fault(path, fault);
    if (good) fputs("frame,seconds\n", log->file);
    good = good && ring_writer_open(&log->writer, RING_CALLS, sizeof(struct call_time),
                                    call_log_write, log, fault);
    if (good) *ret_log = log;
    else call_log_close(log);
    return good;
}

struct ring *call_log_ring(struct call_log *log)
{
    return ring_writer_ring(log->writer);
}

bool call_log_finish(struct call_log *log, struct fault *fault)
{
    bool good = ring_writer_stop(log->writer, fault);
    int not_closed = fclose(log->file);
    log->file = NULL;
    return good && not_closed ? call_log_fault(log->path, fault) : good;
}
