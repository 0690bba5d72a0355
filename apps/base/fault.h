// SPDX-License-Identifier: MIT
// An error message on its way to the user. The function that detects an error writes one sentence,
// which names the file, the field and the value, and returns false; its callers pass false on.
#ifndef PARTITA_APPS_FAULT_H
#define PARTITA_APPS_FAULT_H

#include <stdbool.h>

struct fault {
    char text[640];
    bool usage; // an option is wrong: the program ends with status 2
};

// Writes the message and returns false, so that callers can `return fault_set(...)`. Control
// characters, which file names may contain, become '?'.
__attribute__((format(printf, 2, 3))) bool fault_set(struct fault *fault, const char *format, ...);

// The same of an option that is wrong, which may be known only after a file was opened.
static inline bool fault_mark(struct fault *fault, bool set)
{
    fault->usage = true;
    return set;
}
#define fault_usage(fault, ...) fault_mark(fault, fault_set(fault, __VA_ARGS__))

#endif
