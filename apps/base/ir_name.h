// SPDX-License-Identifier: MIT
// How users name impulse responses: a path, perhaps with a word before it that says which input and
// output each of its channels belongs to; a chain is several of these with + between them.
#ifndef PARTITA_APPS_IR_NAME_H
#define PARTITA_APPS_IR_NAME_H

#include <stddef.h>

enum ir_layout {
    IR_PLAIN = 0,   // PATH: as the options say
    IR_MATRIX,      // matrix:PATH: as with --matrix
    IR_TRUE_STEREO, // true-stereo:PATH: as with --true-stereo
    IR_HESUVI,      // hesuvi:PATH: see route/layout.h
    N_IR_LAYOUTS,
};

// The word with its colon; empty for IR_PLAIN.
extern const char *const ir_prefixes[N_IR_LAYOUTS];

// The path, which is a part of the name. ret_layout may be NULL.
const char *ir_name_path(const char *name, enum ir_layout *ret_layout);

// The length of the first filter of a chain; of a name that is no chain, its whole length. A + that
// belongs to the name of a file that exists separates nothing.
size_t ir_name_first(const char *name);

#endif
