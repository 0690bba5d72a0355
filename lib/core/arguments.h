// SPDX-License-Identifier: MIT
// The pointers that a public call gets. A call that refuses one logs one line, which begins with
// the name of the function.
#ifndef PARTITA_INTERNAL_ARGUMENTS_H
#define PARTITA_INTERNAL_ARGUMENTS_H

#include "plan.h"

// The last one of a list has no name.
struct call_array {
    const char *name;
    const void *data;
    size_t bytes, alignment;
    bool written;
};

// The log of a call: that of the plan, or the default one without a plan.
static inline struct partita_log log_of(const struct partita_plan *plan)
{
    return plan ? plan->log : log_default();
}

// Alignment of samples, in bytes; 0 for a value that is not a type.
static inline size_t type_alignment(enum partita_type type)
{
    const bool complex = type == PARTITA_CF32 || type == PARTITA_CF64;
    return complex ? partita_type_size(type) / 2 : partita_type_size(type);
}

static inline bool arrays_apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (uintptr_t)a + a_bytes <= (uintptr_t)b || (uintptr_t)b + b_bytes <= (uintptr_t)a;
}

// Whether none of these variables is NULL.
#define arguments_given(log, ...)                                                                  \
    arguments_check_null(log, __func__, #__VA_ARGS__, (const void *const[]){__VA_ARGS__},          \
                         sizeof((const void *const[]){__VA_ARGS__}) / sizeof(void *))

// Whether all arrays are aligned and none that is written shares memory with another. NULL stands
// for no array.
#define arrays_usable(log, ...)                                                                    \
    arrays_check(log, __func__, (const struct call_array[]){__VA_ARGS__, {.name = NULL}})

bool arguments_check_null(struct partita_log log, const char *function, const char *names,
                          const void *const *pointers, size_t n);
bool arrays_check(struct partita_log log, const char *function, const struct call_array *arrays);

#endif
