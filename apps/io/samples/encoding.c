// SPDX-License-Identifier: MIT
// Sample encodings and their names: (c|r)(f32|f64|i32|i24|i16|i8|u32|u24|u16|u8)(_le|_be). The
// SigMF specification defines all but the 24-bit ones, which audio needs.
#include "encoding.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

size_t encoding_size(struct encoding encoding)
{
    return encoding.bytes * (encoding.is_complex ? 2u : 1u);
}

static bool parse_kind(char letter, enum encoding_kind *ret_kind)
{
    switch (letter) {
    case 'f':
        *ret_kind = ENCODING_FLOAT;
        return true;
    case 'i':
    case 's':
        *ret_kind = ENCODING_SIGNED;
        return true;
    case 'u':
        *ret_kind = ENCODING_UNSIGNED;
        return true;
    default:
        return false;
    }
}

static bool parse_width(const char **at, bool is_float, unsigned *ret_bytes)
{
    static const char *const widths[] = {"8", "16", "24", "32", "64"};
    static const unsigned bytes[] = {1, 2, 3, 4, 8};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        size_t length = strlen(widths[i]);
        if (strncmp(*at, widths[i], length) != 0) continue;
        *at += length;
        *ret_bytes = bytes[i];
        return is_float ? bytes[i] >= 4 : bytes[i] <= 4;
    }
    return false;
}

static bool parse_order(const char *suffix, bool *ret_big_endian)
{
    if (*suffix == '_') suffix++;
    *ret_big_endian = strcmp(suffix, "be") == 0;
    return *ret_big_endian || strcmp(suffix, "le") == 0;
}

bool encoding_is_plain(struct encoding encoding, bool as_double)
{
    return encoding.kind == ENCODING_FLOAT && !encoding.big_endian &&
           encoding.bytes == (as_double ? 8 : 4);
}

bool encoding_parse(const char *name, struct encoding *ret_encoding)
{
    char lower[ENCODING_NAME_SIZE];
    size_t length = strlen(name);
    if (length >= sizeof lower) return false;
    for (size_t i = 0; i <= length; i++)
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 32 : name[i]);

    struct encoding e = {0};
    const char *at = lower;
    if (*at == 'c' || *at == 'r') e.is_complex = *at++ == 'c';
    if (!parse_kind(*at++, &e.kind)) return false;
    if (!parse_width(&at, e.kind == ENCODING_FLOAT, &e.bytes)) return false;
    if (*at && !parse_order(at, &e.big_endian)) return false;
    if (e.bytes == 1) e.big_endian = false;
    *ret_encoding = e;
    return true;
}

const char *encoding_name(struct encoding encoding, char name[ENCODING_NAME_SIZE])
{
    static const char letters[] = {'f', 'i', 'u'};
    const char *order = encoding.bytes == 1 ? "" : encoding.big_endian ? "_be" : "_le";
    snprintf(name, ENCODING_NAME_SIZE, "%c%c%u%s", encoding.is_complex ? 'c' : 'r',
             letters[encoding.kind], encoding.bytes * 8 % 100, order);
    return name;
}
