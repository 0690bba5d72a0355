// SPDX-License-Identifier: MIT
// See launcher.h.
#include "launcher.h"

#include <stdlib.h>

bool launcher_started_several(void)
{
    const char *n = getenv("OMPI_COMM_WORLD_SIZE"); // by Open MPI
    if (!n) n = getenv("PMI_SIZE");                 // by MPICH
    if (n) return atoi(n) > 1;
    if (!getenv("PMIX_RANK")) return false;
    n = getenv("SLURM_STEP_NUM_TASKS"); // PMIx itself has no variable for the number
    return !n || atoi(n) > 1;
}
