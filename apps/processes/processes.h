// SPDX-License-Identifier: MIT
// Several processes that mpirun started and that compute one result together, by MPI.
//
// All functions but processes_begin are collective: every process makes the same calls in the same
// order, of which processes_agree always comes first. A process that has failed calls it once more
// with `good` false; then it returns false in every process, now and later, and no process waits
// for another. One thread of a process at a time may make these calls.
#ifndef PARTITA_APPS_PROCESSES_H
#define PARTITA_APPS_PROCESSES_H

#include <stddef.h>

#include "base/fault.h"

struct processes {
    size_t rank, n; // of this process, from 0 on, and of all; n 0: it is alone
    bool failed;    // processes_agree has returned false
};

// How many processes a launcher of MPI has started, as it says in the environment; 0: there is no
// launcher, 2: more than one, or unknown.
int processes_launched(void);

// Joins the processes that mpirun started with the same arguments, if it started this one and
// others. False, with a fault, if their arguments differ or if this build has no MPI.
bool processes_begin(struct processes *processes, int argc, char **argv, struct fault *fault);

#ifdef HAVE_MPI
// The last call; after it other processes may have ended.
void processes_end(struct processes *processes);

// Whether all processes are `good`. If not, every process gets the fault of the first that is not.
// Alone: returns `good`.
bool processes_agree(struct processes *processes, bool good, struct fault *fault);

// Copies the first process's bytes to all.
void processes_broadcast(const struct processes *processes, void *bytes, size_t n);

// Gets the `bytes` bytes of every process, in the order of ranks, into `all`.
void processes_exchange(const struct processes *processes, const void *sent, size_t bytes,
                        void *all);

// Items of `bytes` bytes, n of this process: the first gets those of all, in the order of ranks,
// into memory that it frees; the others get NULL and 0.
bool processes_gather(struct processes *processes, const void *items, size_t n, size_t bytes,
                      void **ret_all, size_t *ret_n, struct fault *fault);

#else // a process is alone
static inline bool processes_alone(const void *processes, ...)
{
    return processes;
}
#define processes_agree(processes, good, fault) (processes_alone(processes, fault) && (good))
#define processes_end processes_alone
#define processes_broadcast processes_alone
#define processes_exchange processes_alone
#define processes_gather processes_alone
#endif

#endif
