// SPDX-License-Identifier: MIT
#include "launcher.h"

#include <stdlib.h>

// How many processes a launcher of MPI has started; 0: there is none, 2: more than one, or unknown.
static int count_processes(void)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE"); // by Open MPI
    if (!n) n = getenv("PMI_SIZE");                 // by MPICH
    if (!n && !getenv("PMIX_RANK")) return 0;
    if (!n) n = getenv("SLURM_STEP_NUM_TASKS"); // PMIx itself has no variable for the number
    return !n || atoi(n) > 1 ? 2 : 1;
}

bool launcher_started(void)
{
    return count_processes() > 0;
}

bool launcher_started_several(void)
{
    return count_processes() > 1;
}
