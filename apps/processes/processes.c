// SPDX-License-Identifier: MIT
// See processes.h. Errors of communication end all processes (MPI's default).
#include "processes.h"

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/hash.h"

// Processes with commands of their own would wait for each other without end.
static bool check_arguments(struct processes *processes, int argc, char **argv, struct fault *fault)
{
    uint64_t hash = HASH_BEGIN, ends[2];
    for (int i = 0; i < argc; i++) hash = hash_bytes(hash, argv[i], strlen(argv[i]) + 1);
    MPI_Allreduce(&hash, &ends[0], 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&hash, &ends[1], 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (ends[0] == ends[1]) return true;
    processes->failed = true;
    return fault_set(fault, "mpirun started processes with different arguments; to run each by "
                            "itself, add --range 1/1");
}

bool processes_begin(struct processes *processes, int argc, char **argv, struct fault *fault)
{
    int provided, rank, n;
    *processes = (struct processes){0};
    // Without a launcher MPI_Init would start services of its own.
    if (processes_launched() < 2) return true;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided))
        return fault_set(fault, "MPI cannot be started");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (n == 1) { // the launcher has not told
        MPI_Finalize();
        return true;
    }
    processes->rank = (size_t)rank;
    processes->n = (size_t)n;
    if (provided >= MPI_THREAD_SERIALIZED) return check_arguments(processes, argc, argv, fault);
    processes->failed = true; // in all: the library is the same
    return fault_set(fault, "this MPI does not support calls from several threads");
}

void processes_end(struct processes *processes)
{
    if (processes->n) MPI_Finalize();
    processes->n = 0;
}

bool processes_agree(struct processes *processes, bool good, struct fault *fault)
{
    int local = good ? INT_MAX : (int)processes->rank, first;
    if (!processes->n || processes->failed) return good && !processes->failed;
    MPI_Allreduce(&local, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == INT_MAX) return true;
    processes->failed = true;
    MPI_Bcast(fault, sizeof *fault, MPI_CHAR, first, MPI_COMM_WORLD);
    return false;
}

void processes_broadcast(const struct processes *processes, void *bytes, size_t n)
{
    if (processes->n) MPI_Bcast(bytes, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
}

void processes_exchange(const struct processes *processes, const void *sent, size_t bytes,
                        void *all)
{
    if (processes->n)
        MPI_Allgather(sent, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
}

// The numbers of items of all processes: where the items of each start, and their sum.
static bool place_items(const int *counts, int *begins, size_t n, struct fault *fault)
{
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        begins[i] = (int)sum; // at most INT_MAX
        sum += counts[i];
        if (sum > INT_MAX)
            return fault_set(fault, "more than %d peaks; name fewer with --peaks", INT_MAX);
    }
    begins[n] = (int)sum;
    return true;
}

bool processes_gather(struct processes *processes, const void *items, size_t n, size_t bytes,
                      void **ret_all, size_t *ret_n, struct fault *fault)
{
    const bool first = processes->rank == 0;
    int *counts = calloc(2 * processes->n + 1, sizeof *counts), *begins = NULL;
    char *all = NULL;
    MPI_Datatype item;
    const int local = n < INT_MAX ? (int)n : INT_MAX;
    *ret_all = NULL;
    *ret_n = 0;
    if (!processes_agree(processes, counts || fault_set(fault, "out of memory"), fault)) {
        free(counts);
        return false;
    }
    begins = counts + processes->n;
    MPI_Allgather(&local, 1, MPI_INT, counts, 1, MPI_INT, MPI_COMM_WORLD);
    bool good = place_items(counts, begins, processes->n, fault);
    if (good && first) {
        all = malloc((size_t)begins[processes->n] * bytes + 1);
        good = all || fault_set(fault, "out of memory for %d peaks", begins[processes->n]);
    }
    good = processes_agree(processes, good, fault);
    if (good) {
        MPI_Type_contiguous((int)bytes, MPI_BYTE, &item);
        MPI_Type_commit(&item);
        MPI_Gatherv(items, local, item, all, counts, begins, item, 0, MPI_COMM_WORLD);
        MPI_Type_free(&item);
        *ret_all = all;
        *ret_n = first ? (size_t)begins[processes->n] : 0;
    } else {
        free(all);
    }
    free(counts);
    return good;
}
