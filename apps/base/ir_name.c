// SPDX-License-Identifier: MIT
#include "ir_name.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const ir_prefixes[N_IR_LAYOUTS] = {[IR_PLAIN] = "",
                                               [IR_MATRIX] = "matrix:",
                                               [IR_TRUE_STEREO] = "true-stereo:",
                                               [IR_HESUVI] = "hesuvi:"};

const char *ir_name_path(const char *name, enum ir_layout *ret_layout)
{
    for (int i = N_IR_LAYOUTS - 1; i >= 0; i--) {
        const size_t n = strlen(ir_prefixes[i]);
        if (ret_layout) *ret_layout = (enum ir_layout)i;
        if (strncmp(name, ir_prefixes[i], n) == 0) return name + n;
    }
    return name;
}

static bool is_file(const char *name, size_t n)
{
    char *beginning = strndup(name, n);
    const bool exists = beginning && access(ir_name_path(beginning, NULL), F_OK) == 0;
    free(beginning);
    return exists;
}

size_t ir_name_first(const char *name)
{
    size_t end = strlen(name);
    while (end && !is_file(name, end)) {
        do end--;
        while (end && name[end] != '+');
    }
    return end ? end : strcspn(name, "+");
}
