// SPDX-License-Identifier: MIT
// How one sample lies in a file: integer or float, width, byte order, real or complex; and the
// names users give to it.
#ifndef PARTITA_APPS_ENCODING_H
#define PARTITA_APPS_ENCODING_H

#include <stdbool.h>
#include <stddef.h>

enum encoding_kind {
    ENCODING_FLOAT = 0,
    ENCODING_SIGNED,
    ENCODING_UNSIGNED,
};

struct encoding {
    enum encoding_kind kind;
    unsigned bytes; // of one scalar: 1 to 4 for integers, 4 or 8 for floats
    bool big_endian;
    bool is_complex; // pairs of scalars
};

// Bytes of one sample of one channel.
size_t encoding_size(struct encoding encoding);

// Whether scalars lie in a file as in memory, where they are double or else float.
bool encoding_is_plain(struct encoding encoding, bool as_double);

// Reads a name in SigMF's spelling (cf32_le, ri16, u8) or in ffmpeg's and SoapySDR's (f32le, s16le,
// CS16); a missing prefix means real, a missing suffix little endian. False if it is no such name.
bool encoding_parse(const char *name, struct encoding *ret_encoding);

enum { ENCODING_NAME_SIZE = 12 };

// Writes the SigMF name, for example "rf32_le", and returns `name`.
const char *encoding_name(struct encoding encoding, char name[ENCODING_NAME_SIZE]);

#endif
