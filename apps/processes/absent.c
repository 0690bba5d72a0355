// SPDX-License-Identifier: MIT
// See processes.h. Without MPI a process is always alone, so only processes_begin and
// processes_agree do anything.
#include "processes.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" // of functions that do nothing

bool processes_begin(struct processes *processes, int argc, char **argv, struct fault *fault)
{
    *processes = (struct processes){0};
    return processes_launched() < 2 ||
           fault_set(fault, "this build has no MPI (meson -Dmpi=enabled); without it, give each "
                            "process a part of its own by --range K/N");
}

void processes_end(struct processes *processes)
{
}

bool processes_agree(struct processes *processes, bool good, struct fault *fault)
{
    return good;
}

void processes_broadcast(const struct processes *processes, void *bytes, size_t n)
{
}

void processes_exchange(const struct processes *processes, const void *sent, size_t bytes,
                        void *all)
{
}

bool processes_gather(struct processes *processes, const void *items, size_t n, size_t bytes,
                      void **ret_all, size_t *ret_n, struct fault *fault)
{
    *ret_all = NULL;
    *ret_n = 0;
    return true;
}

bool processes_open(struct processes *processes, const char *path, const char *name,
                    struct fault *fault)
{
    return true;
}

bool processes_write(const struct processes *processes, uint64_t at, const void *data, size_t n,
                     struct fault *fault)
{
    return true;
}

bool processes_sync(const struct processes *processes, struct fault *fault)
{
    return true;
}

bool processes_close(struct processes *processes, struct fault *fault)
{
    return true;
}
