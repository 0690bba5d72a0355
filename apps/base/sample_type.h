// SPDX-License-Identifier: MIT
#ifndef PARTITA_APPS_SAMPLE_TYPE_H
#define PARTITA_APPS_SAMPLE_TYPE_H

#include <partita/problem.h>
#include <stdbool.h>

static inline bool type_is_double(enum partita_type type)
{
    return type == PARTITA_F64 || type == PARTITA_CF64;
}

static inline bool type_is_complex(enum partita_type type)
{
    return type == PARTITA_CF32 || type == PARTITA_CF64;
}

#endif
