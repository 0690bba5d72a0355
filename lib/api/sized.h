// SPDX-License-Identifier: MIT
// Public structs that may grow. A caller's struct has the size that it had in the caller's headers,
// which may be older or newer than the library (decision 31).
#ifndef PARTITA_SIZED_H
#define PARTITA_SIZED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

#include <partita/plan.h>

// Copies a caller's struct to the library's own. Fields that the caller does not know become zero.
// False if the caller has set one that the library does not know; the log then names the struct.
// A caller's struct that is NULL has no fields.
bool sized_read(void *ret, size_t own_bytes, const void *given, size_t given_bytes,
                const struct partita_log *log, const char *name);

// The same for options, whose log is the default one if the caller has none.
bool options_read(struct partita_options *ret, const struct partita_options *given,
                  size_t given_bytes);

// Copies a result to the caller's struct. Fields that the library does not know become zero.
void sized_write(void *given, size_t given_bytes, const void *ret, size_t own_bytes);

#endif
