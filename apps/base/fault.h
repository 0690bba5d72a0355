// SPDX-License-Identifier: MIT
// How a failure travels from where it is found to the one line the user reads: the finder writes
// the sentence, names the file, the field and the value, and returns false; everybody above passes
// false on.
#ifndef PARTITA_APPS_FAULT_H
#define PARTITA_APPS_FAULT_H

#include <stdbool.h>

struct fault {
    char text[640];
};

// Writes the sentence and returns false, so that callers can `return fault_set(...)`. Control
// characters, which file names may hold, become '?'.
__attribute__((format(printf, 2, 3))) bool fault_set(struct fault *fault, const char *format, ...);

#endif
