// SPDX-License-Identifier: MIT
// Sample encodings and their names. The SigMF specification defines all but the 24-bit ones, which
// audio needs; the other names are those of NumPy, ffmpeg, SoapySDR, UHD, GNU Radio and inspectrum.
#include "encoding.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { MAX_NAMES = 6 };

// Every name without the prefix of real samples (r) and the suffix of the byte order. The first
// name of a row is the one that messages use.
static const struct {
    const char *names[MAX_NAMES];
    struct encoding encoding;
} types[] = {
    {{"f32", "float32"}, {ENCODING_FLOAT, 4, false, false}},
    {{"f64", "float64"}, {ENCODING_FLOAT, 8, false, false}},
    {{"i8", "s8", "int8"}, {ENCODING_SIGNED, 1, false, false}},
    {{"i16", "s16", "int16"}, {ENCODING_SIGNED, 2, false, false}},
    {{"i24", "s24"}, {ENCODING_SIGNED, 3, false, false}},
    {{"i32", "s32", "int32"}, {ENCODING_SIGNED, 4, false, false}},
    {{"u8", "uint8"}, {ENCODING_UNSIGNED, 1, false, false}},
    {{"u16", "uint16"}, {ENCODING_UNSIGNED, 2, false, false}},
    {{"u24"}, {ENCODING_UNSIGNED, 3, false, false}},
    {{"u32", "uint32"}, {ENCODING_UNSIGNED, 4, false, false}},
    {{"cf32", "fc32", "cfile", "iq", "c64", "complex64"}, {ENCODING_FLOAT, 4, false, true}},
    {{"cf64", "fc64", "c128", "complex128"}, {ENCODING_FLOAT, 8, false, true}},
    {{"ci8", "cs8", "sc8"}, {ENCODING_SIGNED, 1, false, true}},
    {{"ci16", "cs16", "sc16"}, {ENCODING_SIGNED, 2, false, true}},
    {{"ci24", "cs24", "sc24"}, {ENCODING_SIGNED, 3, false, true}},
    {{"ci32", "cs32", "sc32"}, {ENCODING_SIGNED, 4, false, true}},
    {{"cu8", "uc8"}, {ENCODING_UNSIGNED, 1, false, true}},
    {{"cu16", "uc16"}, {ENCODING_UNSIGNED, 2, false, true}},
    {{"cu24", "uc24"}, {ENCODING_UNSIGNED, 3, false, true}},
    {{"cu32", "uc32"}, {ENCODING_UNSIGNED, 4, false, true}},
};
enum { N_TYPES = sizeof types / sizeof *types };

size_t encoding_size(struct encoding encoding)
{
    return encoding.bytes * (encoding.is_complex ? 2u : 1u);
}

bool encoding_is_writable(struct encoding encoding)
{
    return encoding.kind <= ENCODING_UNSIGNED && (encoding.kind || encoding.bytes > 2);
}

bool encoding_needs_double(struct encoding encoding)
{
    return encoding.kind == ENCODING_FLOAT
               ? encoding.bytes == 8
               : encoding.kind > ENCODING_UNSIGNED && encoding.bytes >= 4;
}

bool encoding_is_plain(struct encoding encoding, bool as_double)
{
    return encoding.kind == ENCODING_FLOAT && !encoding.big_endian &&
           encoding.bytes == (as_double ? 8 : 4);
}

// Whether the first `length` characters of `name` are a name of row i; a real one may have an r in
// front.
static bool is_name_of(size_t i, const char *name, size_t length)
{
    for (size_t k = 0; k < MAX_NAMES && types[i].names[k]; k++) {
        const char *known = types[i].names[k];
        if (strlen(known) == length && strncasecmp(name, known, length) == 0) return true;
    }
    return !types[i].encoding.is_complex && length > 1 && (*name == 'r' || *name == 'R') &&
           is_name_of(i, name + 1, length - 1);
}

static bool find_type(const char *name, size_t length, struct encoding *ret_encoding)
{
    for (size_t i = 0; i < N_TYPES; i++) {
        if (!is_name_of(i, name, length)) continue;
        *ret_encoding = types[i].encoding;
        return true;
    }
    return false;
}

bool encoding_parse(const char *name, struct encoding *ret_encoding)
{
    const size_t length = strlen(name);
    if (find_type(name, length, ret_encoding)) return true; // cfile ends in le, too
    if (length <= 2) return false;
    const char *order = name + length - 2;
    const bool big_endian = strcasecmp(order, "be") == 0;
    if (!big_endian && strcasecmp(order, "le") != 0) return false;
    if (!find_type(name, length - 2 - (order[-1] == '_'), ret_encoding)) return false;
    ret_encoding->big_endian = big_endian && ret_encoding->bytes > 1;
    return true;
}

void encoding_try_names(struct nearest *nearest)
{
    for (size_t i = 0; i < N_TYPES; i++)
        for (size_t k = 0; k < MAX_NAMES && types[i].names[k]; k++)
            nearest_try(nearest, types[i].names[k]);
}

const char *encoding_list(char text[NAME_LIST_SIZE])
{
    return nearest_list(types, N_TYPES, sizeof *types, text);
}

const char *encoding_name(struct encoding encoding, char name[ENCODING_NAME_SIZE])
{
    static const char letters[] = {'f', 'i', 'u', 'i', 'u'};
    const char *order = encoding.bytes == 1 ? "" : encoding.big_endian ? "_be" : "_le";
    snprintf(name, ENCODING_NAME_SIZE, "%c%c%u%s", encoding.is_complex ? 'c' : 'r',
             letters[encoding.kind], encoding.bytes * 8 % 100, order);
    return name;
}

const char *encoding_short_name(struct encoding encoding, char name[ENCODING_NAME_SIZE])
{
    encoding_name(encoding, name);
    name[strcspn(name, "_")] = 0;
    return encoding.is_complex ? name : name + 1;
}
