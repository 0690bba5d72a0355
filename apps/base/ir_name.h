// SPDX-License-Identifier: MIT
// How users name an impulse response of `live`: a path, perhaps with a word before it that says
// which input and output each of its channels belongs to.
#ifndef PARTITA_APPS_IR_NAME_H
#define PARTITA_APPS_IR_NAME_H

enum ir_layout {
    IR_PLAIN = 0,   // PATH: as the options say
    IR_MATRIX,      // matrix:PATH: as with --matrix
    IR_TRUE_STEREO, // true-stereo:PATH: as with --true-stereo
    N_IR_LAYOUTS,
};

// The word with its colon; empty for IR_PLAIN.
extern const char *const ir_prefixes[N_IR_LAYOUTS];

// The path, which is a part of the name.
const char *ir_name_path(const char *name, enum ir_layout *ret_layout);

#endif
