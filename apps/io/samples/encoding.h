// SPDX-License-Identifier: MIT
// The encoding of one sample in a file: integer or float, width, byte order, real or complex; and
// its name, as users write it.
#ifndef PARTITA_APPS_ENCODING_H
#define PARTITA_APPS_ENCODING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/nearest.h"

enum encoding_kind {
    ENCODING_FLOAT = 0,
    ENCODING_SIGNED,   // full scale is 1
    ENCODING_UNSIGNED, // the same, with the middle of the range as 0
    // Integers of .npy arrays, which are taken as the numbers that they are; only read.
    ENCODING_WHOLE,
    ENCODING_WHOLE_UNSIGNED,
};

struct encoding {
    enum encoding_kind kind;
    // Of one scalar: 1 to 4 for integers, 1, 2, 4 or 8 for whole numbers, 4 or 8 for floats, of
    // which 2 are only read.
    unsigned bytes;
    bool big_endian;
    bool is_complex; // pairs of scalars
};

// Bytes of one sample of one channel.
size_t encoding_size(struct encoding encoding);

// Whether samples may be written in this encoding.
bool encoding_is_writable(struct encoding encoding);

// Whether float cannot represent every value.
bool encoding_needs_double(struct encoding encoding);

// Whether scalars have the same bytes in the file as in memory, as double or as float.
bool encoding_is_plain(struct encoding encoding, bool as_double);

// Parses a name of SigMF (cf32_le, ri16, u8) or of another program (f32le, s16, CS16, fc32, cfile,
// complex64). Without a suffix it is little endian. False if it is no such name.
bool encoding_parse(const char *name, struct encoding *ret_encoding);

// Compares all known names.
void encoding_try_names(struct nearest *nearest);

// One name of every encoding, separated by commas. Returns `text`.
const char *encoding_list(char text[NAME_LIST_SIZE]);

enum { ENCODING_NAME_SIZE = 12 };

// Writes the SigMF name, for example "rf32_le", and returns `name`.
const char *encoding_name(struct encoding encoding, char name[ENCODING_NAME_SIZE]);

// The same as users write it, without the r of real samples and the byte order: a part of `name`.
const char *encoding_short_name(struct encoding encoding, char name[ENCODING_NAME_SIZE]);

#endif
