// SPDX-License-Identifier: MIT
// The file in the user's cache folder that stores measurements of this machine (wisdom).
#ifndef PARTITA_APPS_WISDOM_FILE_H
#define PARTITA_APPS_WISDOM_FILE_H

#include <partita/partita.h>

#include "base/fault.h"

// Loads the file. Without it, or if it is from another machine, the wisdom is empty. NULL: out of
// memory.
struct partita_wisdom *wisdom_file_load(void);

// Saves the file and returns its name. ret_path: at least PATH_MAX bytes.
bool wisdom_file_save(const struct partita_wisdom *wisdom, char *ret_path, struct fault *fault);

#endif
