// SPDX-License-Identifier: MIT
#include "ir_name.h"

#include <string.h>

const char *const ir_prefixes[N_IR_LAYOUTS] = {
    [IR_PLAIN] = "", [IR_MATRIX] = "matrix:", [IR_TRUE_STEREO] = "true-stereo:"};

const char *ir_name_path(const char *name, enum ir_layout *ret_layout)
{
    for (int i = N_IR_LAYOUTS - 1; i >= 0; i--) {
        const size_t n = strlen(ir_prefixes[i]);
        *ret_layout = (enum ir_layout)i;
        if (strncmp(name, ir_prefixes[i], n) == 0) return name + n;
    }
    return name;
}
