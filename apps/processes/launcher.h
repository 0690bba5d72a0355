// SPDX-License-Identifier: MIT
// What the launcher of MPI that started this process says in the environment.
#ifndef PARTITA_APPS_LAUNCHER_H
#define PARTITA_APPS_LAUNCHER_H

#include <stdbool.h>

// Whether a launcher of MPI started this process.
bool launcher_started(void);

// The same, and not as the only one as far as is known.
bool launcher_started_several(void);

#endif
