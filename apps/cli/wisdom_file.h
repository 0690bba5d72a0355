// SPDX-License-Identifier: MIT
// The measured facts of this machine, remembered in the user's cache folder.
#ifndef PARTITA_APPS_WISDOM_FILE_H
#define PARTITA_APPS_WISDOM_FILE_H

#include <partita/partita.h>

#include "base/fault.h"

// What was remembered, or an empty store if there is nothing or it is of another machine; NULL
// without memory.
struct partita_wisdom *wisdom_file_load(void);

// Remembers, and fills in the name of the file. ret_path: at least PATH_MAX bytes.
bool wisdom_file_save(const struct partita_wisdom *wisdom, char *ret_path, struct fault *fault);

#endif
