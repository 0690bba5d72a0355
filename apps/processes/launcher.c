// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "processes.h"

int processes_launched(void)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE"); // by Open MPI
    if (!n) n = getenv("PMI_SIZE");                 // by MPICH
    if (!n && !getenv("PMIX_RANK")) return 0;
    if (!n) n = getenv("SLURM_STEP_NUM_TASKS"); // PMIx itself has no variable for the number
    return !n || atoi(n) > 1 ? 2 : 1;
}

#ifndef HAVE_MPI
bool processes_begin(struct processes *processes, int argc, char **argv, struct fault *fault)
{
    (void)argc, (void)argv;
    *processes = (struct processes){0};
    return processes_launched() < 2 ||
           fault_set(fault, "this build has no MPI (meson -Dmpi=enabled); without it, give each "
                            "process a part of its own by --range K/N");
}
#endif
